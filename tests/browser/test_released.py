"""The files saved by each version open in JupyterLab, without a kernel and without this package's scripts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, expect

from tests.browser.browser import Notebook
from tests.browser.conftest import Lab
from tests.browser.contrast import too_faint
from tests.support.released import FOLDER, transcript_outputs

NOTEBOOKS = sorted(path for path in FOLDER.glob("*/*.ipynb") if transcript_outputs(path))
CUT_OFF = sorted(FOLDER.glob("*/cut-off.ipynb"))
PAGES = sorted(FOLDER.glob("*/page.html"))
OUTPUT = ".jp-OutputArea-output[data-mime-type='text/html']"
_OF_JUPYTERLAB = "/lsp/status"  # JupyterLab's request for a language server; an error, since there is none

_OPEN_ALL = """outputs => outputs.forEach(
    output => output.querySelectorAll("details").forEach(fold => { fold.open = true; })
)"""

trusts = pytest.mark.parametrize(
    "trusted", [pytest.param(True, id="trusted", marks=pytest.mark.thorough), pytest.param(False, id="untrusted")]
)


def opened(lab: Lab, path: Path, *, trusted: bool) -> tuple[Notebook, list[str]]:
    """Opens the file in a page without a kernel; returns it and the errors in its console."""
    name = f"{path.parent.name}-{path.stem}-{'trusted' if trusted else 'untrusted'}.ipynb"
    content = json.loads(path.read_text("utf-8"))
    content["metadata"]["title"] = name  # the signature depends on the content
    (lab.server.folder / name).write_text(json.dumps(content), "utf-8")
    if trusted:
        lab.server.api(f"contents/{name}/trust", "POST")
    notebook = lab.page(name)
    told: list[str] = []
    notebook.page.on(
        "console", lambda line: told.append(f"{line.text} {line.location['url']}") if line.type == "error" else None
    )
    return notebook.open(kernel=False), told


def words(html: str) -> list[str]:
    """Returns the words in HTML, without styles and formulas (an untrusted notebook shows formulas only as TeX)."""
    page = BeautifulSoup(html, "html.parser")
    for hidden in page.select("style, math"):
        hidden.decompose()
    return page.get_text(" ").split()


@trusts
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.parent.name)
def test_a_notebook_of_each_version_is_readable(lab: Lab, path: Path, trusted: bool) -> None:
    notebook, told = opened(lab, path, trusted=trusted)
    outputs = notebook.page.locator(OUTPUT)
    expect(outputs).to_have_count(len(transcript_outputs(path)))
    for number, bundle in enumerate(transcript_outputs(path)):
        output = outputs.nth(number)
        shown = output.evaluate("node => node.textContent")
        assert [word for word in words(bundle["text/html"]) if word not in shown] == [], f"output {number}"
        assert output.locator("details").count() == bundle["text/html"].count("<details")
        assert output.locator("style").count() == (bundle["text/html"].count("<style") if trusted else 0)
        assert output.locator("script, iframe, form, button, input:enabled").count() == 0
    card = outputs.locator(".tc-call details:not([open])").first
    card.locator("summary").first.click()
    expect(outputs.locator(".tc-call details[open]").first).to_be_visible()
    outputs.evaluate_all(_OPEN_ALL)
    for scheme in (
        ("Dark", "Light") if trusted else ("Light",)
    ):  # an untrusted notebook has only JupyterLab's own colours
        notebook.set_theme(scheme)
        assert too_faint(notebook.page, OUTPUT) == [], scheme
    assert [line for line in told if _OF_JUPYTERLAB not in line] == []


@trusts
@pytest.mark.parametrize("path", CUT_OFF, ids=lambda path: path.parent.name)
def test_a_run_that_was_cut_off_says_so_when_its_kernel_is_gone(lab: Lab, path: Path, trusted: bool) -> None:
    notebook, told = opened(lab, path, trusted=trusted)
    expect(notebook.output(1)).to_contain_text("below")
    # In a trusted notebook, the widgets' own renderer comes first and shows only this.
    shown = "model not found" if trusted else "A run of toolcall_nb that is not finished, or was cut off"
    expect(notebook.output(0)).to_contain_text(shown)
    assert notebook.output(0).locator("button, .tc-transcript").count() == 0
    assert [line for line in told if _OF_JUPYTERLAB not in line and "widget" not in line] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.parent.name)
def test_a_page_of_each_version_is_readable_without_scripts_and_sends_no_requests(
    chromium: Browser, path: Path
) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    shown = page.locator("body").text_content() or ""
    assert [word for word in words(path.read_text("utf-8")) if word not in shown] == []
    card = page.locator(".tc-call details:not([open])").first
    card.locator("summary").first.click()
    expect(page.locator(".tc-call details[open]").first).to_be_visible()
    assert [url for url in asked if not url.startswith(("data:", path.as_uri()))] == []
    context.close()
    for scheme in ("light", "dark"):
        context = chromium.new_context(color_scheme=scheme)
        page = context.new_page()
        page.goto(path.as_uri())
        page.locator("body").evaluate_all(_OPEN_ALL)
        assert too_faint(page, "body") == [], scheme
        context.close()


def test_a_text_with_too_little_contrast_is_found(chromium: Browser) -> None:
    page = chromium.new_page()
    page.set_content("".join(f"<p>dark {number}</p>" for number in range(20)))
    assert too_faint(page, "body") == []
    mixed = "color: color-mix(in srgb, black 30%, white)"
    faint = ("color: #999", mixed, "opacity: 0.3", "color: #fff; background: #eee")
    for style in faint:
        page.locator("p").nth(3).evaluate("(p, style) => p.setAttribute('style', style)", style)
        assert len(too_faint(page, "body")) == 1, style
    page.close()
