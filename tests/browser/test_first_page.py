"""The first page of the documentation, followed in the real JupyterLab: a live card appears, and stays."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Lab
from tests.support.page_snippets import ROOT, snippets


@pytest.mark.thorough
def test_a_newcomer_who_follows_the_first_page_has_a_live_card_that_stays(lab: Lab) -> None:
    page = (ROOT / "docs" / "start.md").read_text("utf-8")
    cells = [snippet.code.rstrip() for snippet in snippets(page) if snippet.fence == "ipython"]
    assert len(cells) == 3
    notebook = lab.page(lab.server.write("first-page.ipynb", *cells)).open()
    notebook.run(0)
    notebook.start(1)
    output = notebook.output(1)
    expect(output.locator(".tc-live .tc-call").first).to_be_visible()
    expect(output.get_by_role("button", name="Stop")).to_be_visible()
    notebook.wait_until_run(1)
    expect(output.locator(".tc-live")).to_have_count(0)
    expect(output.locator(".tc-state")).to_have_text(["Completed", "Completed"])
    notebook.run(2)
    expect(notebook.output(2)).to_contain_text("> [!tool weather call_1]")
