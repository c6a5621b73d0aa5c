"""The site of the documentation: its cards, its docstrings as markup, and its build without warnings and network."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.card_gallery import cards, gallery
from tests.support.docstring_markup import to_markup
from tests.support.environments import ROOT, make_environment
from toolcall_nb.core.transcript import State
from toolcall_nb.render.shown_states import STATE_WORDS


def test_the_gallery_has_a_card_in_each_state_that_shows_it() -> None:
    made = list(cards())
    assert {card.state for card in made} == {*(STATE_WORDS[state] for state in State), "Running", "Called"}
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
    assert pages["gallery.html"].count('class="tc-state"') == len(list(cards()))
