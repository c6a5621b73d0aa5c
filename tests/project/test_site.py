"""The site of the documentation: its cards, its docstrings as markup, and its build without warnings and network."""

from __future__ import annotations

import os
import pydoc
import re
import subprocess
from pathlib import Path

import pytest

import toolcall_nb
from tests.project.card_gallery import cards, gallery
from tests.project.docstring_markup import to_markup
from tests.project.public_names import STABLE
from tests.support.environments import ROOT, make_environment
from toolcall_nb.render.shown_states import CARD_WORDS

WHOLE = {"toolcall_nb.core.events"}
"""The modules that a page of the reference describes as a whole."""


def test_the_gallery_has_a_card_in_each_state_that_shows_it() -> None:
    made = list(cards())
    assert {card.state for card in made} == {*CARD_WORDS.values(), "Running", "Called"}
    for card in made:
        assert re.findall(r'class="tc-state">([^<]+)<', card.html) == [card.state]


def test_the_gallery_is_the_same_each_time_and_has_one_style_sheet() -> None:
    assert gallery() == gallery()
    assert gallery().count("<style>") == 1


@pytest.mark.parametrize(
    ("docstring", "markup"),
    [
        ("Reads ``a`` and `b`.", ["Reads ``a``\\  and ``b``\\ .", ""]),
        ("A * is no emphasis_, nor is |.", [r"A \* is no emphasis\_, nor is \|.", ""]),
        ("Text::\n\n    code *x*", ["Text:", "", ".. code-block:: text", "", "   code *x*", ""]),
        ("| a | b |\n| --- | --- |", [".. code-block:: text", "", "   | a | b |", "   | --- | --- |", ""]),
        ("a.py    one\nb.py    two", [".. code-block:: text", "", "   a.py    one", "   b.py    two", ""]),
        ("Takes:\n- one\n- two", ["Takes:", "", "- one", "", "- two", ""]),
    ],
)
def test_a_docstring_becomes_markup_in_which_only_its_marks_have_a_meaning(docstring: str, markup: list[str]) -> None:
    assert to_markup(docstring.splitlines()) == markup


def test_the_reference_describes_each_public_name() -> None:
    text = "".join(page.read_text("utf-8") for page in (ROOT / "docs" / "api").glob("*.md"))
    described = set(re.findall(r"^\.\. auto(?:class|function|module):: (\S+)$", text, re.MULTILINE))
    assert [name for name in described if pydoc.locate(name) is None] == []
    names = {name.rpartition(".")[2] for name in described}
    of_ipython = {"load_ipython_extension", "unload_ipython_extension", "__version__"}
    assert set(toolcall_nb.__all__) - of_ipython - names == set()
    assert {name for module in STABLE for name in STABLE[module] if module not in WHOLE} - of_ipython - names == set()


@pytest.mark.thorough
def test_the_site_builds_without_warnings_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    python = make_environment(tmp_path, "-r", str(ROOT / "requirements" / "docs.txt"))
    command = [str(python), "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(tmp_path / "trees"), "docs"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    site = tmp_path / "site"
    done = subprocess.run([*command, str(site)], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    pages = {str(path.relative_to(site)): path.read_text("utf-8") for path in site.rglob("*.html")}
    assert {"index.html", "start.html", "gallery.html", "api/chat.html", "changelog.html"} <= set(pages)
    for name, page in pages.items():
        assert re.findall(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=\"(?:https?:)?//[^\"]*", page) == [], name
    pictures = re.findall(r'class="only-(\w+)" src="_images/approval-(\w+)\.png"', pages["approve.html"])
    assert pictures == [("light", "light"), ("dark", "dark")]
    assert "<picture>" not in "".join(pages.values())
    assert pages["gallery.html"].count('class="tc-state"') == len(list(cards()))
