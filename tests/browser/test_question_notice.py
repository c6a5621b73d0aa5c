"""A question out of sight is told: by the line below the run, in the page's title, and by a notification."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.page_runs import Run, page
from toolcall_nb.approvals.page import ApprovalForm
from toolcall_nb.core import events as ev
from toolcall_nb.frontend import page_css

__all__ = ["page"]

_CALL = ev.ToolInputAvailable("c", "send_mail", {"to": "ada@example.org"})
_FORM: ApprovalForm = {"approval": "a", "name": "send_mail", "text": "{}", "lines": 1}
_WAITING = "Waiting for you: A notebook"

_STUBBED = """([permission, isHidden]) => {
    window.notified = [];
    window.Notification = class {
        static permission = permission;
        static requestPermission() { window.notified.push("asked for permission"); }
        constructor(text, { tag }) { window.notified.push(`${text} ${tag}`); }
        close() { window.notified.push("closed"); }
    };
    Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
}"""


def asking(page: Page) -> Run:
    run = Run(page, [ev.Start(), _CALL, ev.ToolApprovalRequest("a", "c")])
    run.document.ask("c", _FORM)
    run.flush()
    return run


def answer(run: Run) -> None:
    run.document.ask("c", None)
    run.apply([ev.ToolApprovalResponse("a", True)])
    run.flush()


def test_the_title_says_once_that_runs_wait_whatever_else_it_says_and_is_restored(page: Page) -> None:
    page.evaluate("document.title = 'A notebook'")
    first = asking(page)
    expect(page).to_have_title(_WAITING)
    page.evaluate("() => { window.answerFirst = window.receive; }")
    second = asking(page)
    page.evaluate("document.title = 'Another'")  # as JupyterLab does when another document is shown
    expect(page).to_have_title("Waiting for you: Another")
    page.evaluate("document.title = 'A notebook'")
    page.evaluate("() => { [window.receive, window.answerFirst] = [window.answerFirst, window.receive]; }")
    answer(first)
    expect(page).to_have_title(_WAITING)
    page.evaluate("() => { window.receive = window.answerFirst; }")
    answer(second)
    expect(page).to_have_title("A notebook")


def test_a_run_whose_views_are_closed_waits_for_nobody(page: Page) -> None:
    page.evaluate("document.title = 'A notebook'")
    asking(page)
    expect(page).to_have_title(_WAITING)
    page.evaluate("() => window.views.pop()()")
    expect(page).to_have_title("A notebook")


def test_a_hidden_page_notifies_once_if_it_may_and_never_asks_whether(page: Page) -> None:
    for permission, notified in (("default", []), ("granted", ["send_mail asks whether it may run. a"])):
        page.evaluate(_STUBBED, [permission, True])
        run = asking(page)
        page.wait_for_timeout(1200)
        run.document.ask("c", {**_FORM, "problem": "Not these.", "refused": 1})
        run.flush()
        page.wait_for_timeout(100)
        assert page.evaluate("window.notified") == notified
        answer(run)
        assert page.evaluate("window.notified") == [*notified, *(["closed"] if notified else [])]
    page.evaluate(_STUBBED, ["granted", False])
    answer(asking(page))
    page.evaluate("delete document.hidden")


def test_while_a_person_is_asked_nothing_turns_and_a_question_out_of_sight_is_one_key_away(page: Page) -> None:
    page.add_style_tag(content=page_css())
    lines = "\n\n".join(f"Paragraph {number}." for number in range(80))
    run = Run(page, [ev.Start(), ev.TextDelta("t", lines)])
    expect(page.locator(".tc-busy")).to_have_count(1)
    run.apply([_CALL, ev.ToolApprovalRequest("a", "c")])
    run.document.ask("c", _FORM)
    run.flush()
    expect(page.locator(".tc-foot-status")).to_have_text("Waiting for you: send_mail")
    expect(page.locator(".tc-busy")).to_have_count(0)
    page.get_by_role("button", name="Show question").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_focused()
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_in_viewport()
    expect(page.locator(".tc-lead")).to_be_hidden()
    answer(run)
