"""What each front end must do: `SCENARIOS`, functions that take a `RunningFrontEnd` and raise if it does not."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Locator, expect

from tests.browser.browser import ARTIFACTS
from tests.browser.front_ends import FrontEnd, OpenRun, RunningFrontEnd
from tests.browser.scripted_turn import ASK

__all__ = ["PICTURES", "SCENARIOS", "scenarios_of"]

PICTURES = ARTIFACTS / "front-ends"
"""The folder for pictures of the front ends, and for what was tested in them."""

_ASK = ASK.format(options="")
_APPROVE = ASK.format(options="--approve ask")
_REST = ("tool", "answer", "rest", "end")
_SCROLLING = """output => [output, ...output.querySelectorAll("*")].filter(box => !box.closest(".tc-run")
    && box.scrollHeight > box.clientHeight && /auto|scroll/.test(getComputedStyle(box).overflowY)
).map(box => box.className)"""
"""The boxes around a run that scroll. Each has a scrollbar, which headless Chromium hides."""


def live(front_end: RunningFrontEnd) -> None:
    """A run is shown while it goes on: its text, a call that is written, and the call while it runs."""
    with front_end.open(_ASK) as run:
        _begin(run)
        expect(run.output).to_contain_text("I will look at the forecast.")
        run.pass_gate("call")
        expect(_state(run)).to_have_text("Writing arguments…")
        run.pass_gate("input")
        expect(_state(run)).to_have_text("Running")
        expect(run.output.locator(".tc-time").first).to_have_text(re.compile(r"^[\d.]+ s$"))
        scrolling = run.output.evaluate(_SCROLLING)
        assert not scrolling, scrolling


def approve(front_end: RunningFrontEnd) -> None:
    """A call asks in its card, and a click there approves it."""
    with front_end.open(_APPROVE) as run:
        _begin(run, "call", "input")
        panel = run.output.get_by_role("group", name="May weather run?")
        panel.scroll_into_view_if_needed()  # a call is approved only after it was in view
        expect(panel).to_be_visible()
        run.page.screenshot(path=PICTURES / f"{front_end.front_end.slug}-approve.png")
        panel.get_by_role("button", name="Approve", exact=True).click()
        expect(_state(run)).to_have_text("Running")
        _end(run)
        expect(_state(run)).to_have_text("Completed")


def stop(front_end: RunningFrontEnd) -> None:
    """The Stop button interrupts a tool, and the run ends."""
    with front_end.open(_ASK) as run:
        _begin(run, "call", "input")
        expect(_state(run)).to_have_text("Running")
        run.output.get_by_role("button", name="Stop").click()
        expect(_state(run)).to_have_text("Interrupted")
        _expect_static(run)


def finished(front_end: RunningFrontEnd) -> None:
    """At the end, the run is static in the place where it was live."""
    with front_end.open(_ASK) as run:
        _begin(run, "call", "input")
        _end(run)
        expect(_state(run)).to_have_text("Completed")
        card = run.output.locator(".tc-call details")
        expect(card).not_to_have_attribute("open", "")
        card.locator("summary").click()
        expect(card).to_contain_text("24.1")


def reopened(front_end: RunningFrontEnd) -> None:
    """The saved notebook shows the run without its kernel, in a page that has never seen it."""
    with front_end.open(_ASK, is_kept=True) as run:
        _begin(run, "call", "input", *_REST)
        _expect_finished(run)
        run.save_and_reopen()
        _expect_finished(run)


SCENARIOS: tuple[Callable[[RunningFrontEnd], None], ...] = (live, approve, stop, finished, reopened)


def scenarios_of(front_end: FrontEnd) -> list[Callable[[RunningFrontEnd], None]]:
    """Returns the scenarios of a front end: all, but Voilà has none that saves."""
    return [scenario for scenario in SCENARIOS if scenario is not reopened or front_end.program != "Voilà"]


def _begin(run: OpenRun, *gates: str) -> None:
    run.start()
    for name in gates:
        run.pass_gate(name)


def _end(run: OpenRun) -> None:
    for name in _REST:
        run.pass_gate(name)
    expect(run.output).to_contain_text("Paragraph 11")
    _expect_static(run)


def _state(run: OpenRun) -> Locator:
    return run.output.locator(".tc-state")


def _expect_static(run: OpenRun) -> None:
    expect(run.output.locator(".tc-voice")).to_have_count(0)
    expect(run.output.locator(".tc-run")).to_have_count(1)
    expect(run.output.get_by_role("button", name="Stop")).to_have_count(0)


def _expect_finished(run: OpenRun) -> None:
    """Expects the static form, once."""
    expect(_state(run)).to_have_text("Completed")
    expect(run.output.get_by_text("Paragraph 11")).to_have_count(1)
    expect(run.output.locator(".tc-voice")).to_have_count(0)
    expect(run.output.get_by_role("button", name="Stop")).to_have_count(0)
