"""The live widget in VS Code's own widget manager, with a real kernel: what each front end must do, and its colours."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.browser import ARTIFACTS, VIEWPORT
from tests.browser.contrast import contrasts, faint
from tests.browser.front_end_scenarios import SCENARIOS
from tests.browser.front_ends import RunningFrontEnd
from tests.browser.hosted_live import running_vs_code
from tests.browser.scripted_turn import ASK

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def vs_code(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFrontEnd]:
    context = chromium.new_context(viewport=VIEWPORT)
    with running_vs_code(tmp_path_factory.mktemp("vs-code"), context) as running:
        yield running
    context.close()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_vs_codes_widget_manager(vs_code: RunningFrontEnd, scenario: Callable[[RunningFrontEnd], None]) -> None:
    scenario(vs_code)


def test_a_run_has_the_colours_of_vs_codes_dark_theme_and_not_ipywidgets_white(vs_code: RunningFrontEnd) -> None:
    folder = ARTIFACTS / "hosted"
    folder.mkdir(parents=True, exist_ok=True)
    with vs_code.open(ASK.format(options="--approve ask")) as run:
        run.start()
        for name in ("call", "input"):
            run.pass_gate(name)
        panel = run.output.get_by_role("group", name="May weather run?")
        expect(panel).to_be_visible()
        assert faint(contrasts(run.page, "#outputs")) == []
        box = "() => getComputedStyle(document.querySelector('.cell-output-ipywidget-background')).backgroundColor"
        assert run.page.evaluate(box) == "rgba(0, 0, 0, 0)"
        run.page.screenshot(path=folder / "vs-code-live-dark.png")
        panel.get_by_role("button", name="Approve", exact=True).click()
        for name in ("tool", "answer", "rest", "end"):
            run.pass_gate(name)
        expect(run.output.locator(".tc-voice")).to_have_count(0)
        assert faint(contrasts(run.page, "#outputs")) == []
        assert run.page.evaluate(box) == "rgba(0, 0, 0, 0)"
        run.page.screenshot(path=folder / "vs-code-ended-dark.png")
