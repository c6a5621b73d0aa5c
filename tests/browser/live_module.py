"""For the tests of live faces: what must not be seen in them, and the page's module alone, in a page without a policy.

What a kernel would send the module it is given step by step: each is drawn before the next one comes, so whatever it
makes of the beginning of a text is there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from playwright.sync_api import Page

from tests.browser.sentinel import Watch, provoke, strays
from tests.support.hostile_transcripts import END
from toolcall_nb.approvals.page import editable_json
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.frontend import MODULE, page_css
from toolcall_nb.render import LiveHtml
from toolcall_nb.render.review import review
from toolcall_nb.render.run_footer import footer_html, info_line
from toolcall_nb.runs.document import LiveDocument

__all__ = ["IS_GONE", "PANELS", "Module", "faults"]

_LOAD = """async ([source, css, snapshot]) => {
    if (!window.load) {
        const queued = new Map();
        let number = 0;
        window.requestAnimationFrame = (draw) => (queued.set(++number, draw), number);
        window.cancelAnimationFrame = (id) => queued.delete(id);
        window.draw = () => [...queued].forEach(([id, draw]) => { queued.delete(id); draw(performance.now()); });
        window.load = (await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })))).default;
        document.head.append(Object.assign(document.createElement("style"), { textContent: css }));
    }
    window.sent = [];
    const handlers = {};
    const model = {
        get: () => snapshot,
        on: (name, callback) => { handlers[name] = callback; },
        send: (message) => window.sent.push(message),
    };
    window.widget = window.load();
    window.widget.initialize({ model });
    window.receive = (step) => handlers["msg:custom"](step);
    const host = document.createElement("div");
    document.body.replaceChildren(host);
    window.widget.render({ el: host, model });
    window.draw();
}"""
_PLAY = "steps => { for (const step of steps) { window.receive(step); window.draw(); } }"


class Module:
    """The module in ``page``, and the kernel's side of it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.steps: list[dict[str, Any]] = []
        self.begin()

    def begin(self) -> None:
        """A new run, in place of the one before."""
        self.steps.clear()
        self.document = LiveDocument(html := LiveHtml(), self.steps.append, info=END)
        self.html = html
        self.load(self.document.state())

    def load(self, snapshot: dict[str, Any]) -> None:
        """A view that begins with a snapshot, as after a reload."""
        self.page.evaluate(_LOAD, [MODULE.read_text("utf-8"), page_css(), snapshot])

    def play(self, steps: Iterable[dict[str, Any]]) -> None:
        """Let the page draw each of the steps."""
        self.page.evaluate(_PLAY, list(steps))

    def show(self, events: Iterable[Event]) -> None:
        """Tell the page of each event, one at a time."""
        for event in events:
            self.document.apply(event)
            self.document.flush()
        self.play(self.steps)
        self.steps.clear()

    def ask(self, text: str) -> None:
        """Ask about a call of that name, with it in its arguments; what was wrong with an answer stands there too."""
        call = f"asked {text}"
        self.show([ev.ToolInputAvailable(call, text, {text: text}), ev.ToolApprovalRequest(f"q{text}", call)])
        form = {"approval": f"q{text}", "name": text, "text": editable_json({text: text}), "invisible": True}
        form |= {"lines": len(review({text: text}).entries), "hidden": text}
        self.document.ask(call, form)
        self.document.ask(call, {**form, "problem": text, "refused": 1})
        self.show([])

    def finish(self, text: str) -> None:
        """The run is over: a model of that name has answered."""
        transcript = self.html.transcript
        line = info_line(text, transcript)
        self.document.finish(line, footer_html(line, transcript))
        self.document.flush()
        self.show([])


# What should not be ----------------------------------------------------------------------------------------------


_UNDRESS = """() => {
    document.querySelectorAll(".tc .tc-ask").forEach(panel => panel.remove());
    document.querySelectorAll(".tc .tc-group").forEach(group => group.removeAttribute("style"));
}"""
"""Take away what is the page's own: the form of a question, and the heights of groups that part a long row."""

PANELS = """() => [...document.querySelectorAll(".tc-ask *")].filter(
    each => !each.matches("div, button, label, input, select, option, textarea")
).map(each => each.outerHTML.slice(0, 200))"""
"""What stands in the forms of questions and is no part of one."""

IS_GONE = "panel => !panel.isConnected"


def faults(page: Page, watch: Watch, *, ends: int = 1) -> list[str]:
    """What should not have been, in words."""
    provoke(page, ".tc-run")
    found = [f"in a question's form: {words}" for words in page.evaluate(PANELS)]
    page.evaluate(_UNDRESS)
    found += [*strays(page), *strays(page, ".tc-foot-info", "body")]
    shown = page.locator(".tc-said > .tc-text", has_text=END).count()
    if shown != ends:
        found.append(f"{shown} ends of {ends}")
    page.wait_for_timeout(50)  # what was asked for by then is told
    return [*watch.faults, *found]
