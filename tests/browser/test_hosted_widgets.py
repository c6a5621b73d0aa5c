"""The live widget as VS Code and Colab draw it, with a real kernel: what each front end must do, and its colours."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.browser import ARTIFACTS, VIEWPORT
from tests.browser.contrast import contrasts, faint
from tests.browser.front_end_scenarios import SCENARIOS
from tests.browser.front_ends import RunningFrontEnd
from tests.browser.hosted_live import COLAB, VS_CODE, running_hosted
from tests.browser.scripted_turn import ASK

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module", params=[VS_CODE, COLAB], ids=lambda front_end: front_end.slug)
def hosted(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[RunningFrontEnd]:
    context = chromium.new_context(viewport=VIEWPORT)
    with running_hosted(request.param, tmp_path_factory.mktemp("hosted"), context) as running:
        yield running
    context.close()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_a_front_ends_way_to_draw_widgets(hosted: RunningFrontEnd, scenario: Callable[[RunningFrontEnd], None]) -> None:
    scenario(hosted)


def test_a_run_has_the_colours_of_a_dark_theme_and_not_those_of_ipywidgets_style(hosted: RunningFrontEnd) -> None:
    folder = ARTIFACTS / "hosted"
    folder.mkdir(parents=True, exist_ok=True)
    with hosted.open(ASK.format(options="--approve ask")) as run:
        run.start()
        for name in ("call", "input"):
            run.pass_gate(name)
        panel = run.output.get_by_role("group", name="May weather run?")
        expect(panel).to_be_visible()
        assert faint(contrasts(run.page, "#outputs")) == []
        box = "() => getComputedStyle(document.querySelector('#outputs > .output')).backgroundColor"
        assert run.page.evaluate(box) == "rgba(0, 0, 0, 0)"
        run.page.screenshot(path=folder / f"{hosted.front_end.slug}-live-dark.png")
        panel.get_by_role("button", name="Approve", exact=True).click()
        for name in ("tool", "answer", "rest", "end"):
            run.pass_gate(name)
        expect(run.output.locator(".tc-voice")).to_have_count(0)
        assert faint(contrasts(run.page, "#outputs")) == []
        assert run.page.evaluate(box) == "rgba(0, 0, 0, 0)"
        run.page.screenshot(path=folder / f"{hosted.front_end.slug}-ended-dark.png")
