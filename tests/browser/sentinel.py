"""What watches a page in which hostile text is drawn: what ran, what was asked for, what lies where it must not.

`watched` goes before the page is loaded. It tells of every call of a function that a payload would call, of
windows, frames, dialogs and downloads, of reports of a content security policy, and of requests that leave the
page's own server. `strays` looks at what was drawn, in the page itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from pathlib import Path

from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Frame, Page, Request, Route

__all__ = ["STRICT", "Watch", "outside", "provoke", "reporting", "strays", "watched"]

_SCRIPTS = Path(__file__).parent
_TOLD = "sentinel:"

STRICT = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""A policy under which nothing runs and nothing is asked for."""

_SENTINEL = """(() => {
    const told = console.debug.bind(console);
    const tell = (kind, ...what) => told(PREFIX + JSON.stringify([kind, what.map(String).join(" ").slice(0, 300)]));
    const watch = (owner, name, how) => {
        const original = owner?.[name];
        if (!original) return;
        Object.defineProperty(owner, name, { value: how(original), writable: false, configurable: false });
    };
    for (const name of ["alert", "confirm", "prompt", "print", "open"])
        watch(window, name, () => (...what) => { tell("execution", name, ...what); return null; });
    for (const name of ["write", "writeln", "execCommand"])
        watch(Document.prototype, name, () => (...what) => { tell("execution", name, ...what); });
    // Hosts, and the driver of the browser, make code of their own text; a payload's code names what it would do.
    const foreign = what => typeof what[0] === "string" && !new Error().stack.includes("UtilityScript")
        && /\\b(alert|confirm|prompt)\\s*[(`]|document\\.cookie|__ran|evil\\.example/i.test(what.join(" "));
    for (const name of ["eval", "setTimeout", "setInterval", "Function"])
        watch(window, name, original => new Proxy(original, {
            apply(target, self, what) {
                if (foreign(what)) tell("execution", name, ...what);
                return Reflect.apply(target, self, what);
            },
            construct(target, what) {
                if (foreign(what)) tell("execution", "new", name, ...what);
                return Reflect.construct(target, what);
            },
        }));
    Object.defineProperty(window, "__ran", { set: value => tell("execution", "__ran", value), get: () => undefined });
    document.addEventListener("securitypolicyviolation", event => tell("violation",
        event.effectiveDirective, event.blockedURI, event.sample, `${event.sourceFile}:${event.lineNumber}`), true);
    if (window.top !== window) tell("frame", location.href);
})()"""


class Watch:
    """What was seen so far. ``requests`` are those that left the page's own server."""

    def __init__(self, own: Collection[str]) -> None:
        self._own = (*own, "data:", "blob:", "about:")
        self.executions: list[str] = []
        self.requests: list[str] = []
        self.violations: list[str] = []
        self.every_request: list[str] = []
        """Those to the page's own server too; ``data:`` and ``blob:`` are none."""

    @property
    def faults(self) -> list[str]:
        """All that should not have been, in words."""
        found = {"ran": self.executions, "asked for": self.requests, "against the policy": self.violations}
        return [f"{word}: {what}" for word, every in found.items() for what in every]

    def clear(self) -> None:
        """Forget what was seen."""
        for every in (self.executions, self.requests, self.violations, self.every_request):
            every.clear()

    def hear(self, message: ConsoleMessage) -> None:
        """A line of the page's console; only the sentinel's own are listened to."""
        if message.text.startswith(_TOLD):
            kind, what = json.loads(message.text.removeprefix(_TOLD))
            (self.violations if kind == "violation" else self.executions).append(what or kind)

    def ask(self, address: str) -> None:
        """A request, or a socket, to this address."""
        if not address.startswith(("data:", "blob:", "about:")):
            self.every_request.append(address)
        if not address.startswith(self._own):
            self.requests.append(address)

    def dialog(self, dialog: Dialog) -> None:
        """A dialog of the browser's, which is sent away; a host may ask whether its page is left."""
        if dialog.type == "beforeunload":
            dialog.accept()
            return
        self.executions.append(f"dialog {dialog.type} {dialog.message}")
        dialog.dismiss()

    def page(self, page: Page) -> None:
        """One more page of the context."""
        page.on("websocket", lambda socket: self.ask(socket.url.replace("ws", "http", 1)))
        page.on("popup", lambda popup: self.executions.append(f"popup {popup.url}"))
        page.on("download", lambda download: self.executions.append(f"download {download.url}"))
        page.on("frameattached", lambda frame: self._frame(frame))

    def _frame(self, frame: Frame) -> None:
        self.executions.append(f"frame {frame.name} {frame.url}")


def watched(target: BrowserContext | Page, own: Collection[str]) -> Watch:
    """Watch the pages of a context, those that are loaded from now on.

    ``own``: how addresses of the page's own server begin. Nothing that leaves it is let out.
    """
    context = target.context if isinstance(target, Page) else target
    watch = Watch(own)
    context.add_init_script(_SENTINEL.replace("PREFIX", json.dumps(_TOLD)))
    context.on("console", watch.hear)
    context.on("dialog", watch.dialog)
    context.on("request", lambda request: watch.ask(request.url))
    context.on("page", watch.page)
    for page in context.pages:
        watch.page(page)
    context.route(lambda address: not address.startswith(tuple(own)), _refuse)
    return watch


def _refuse(route: Route, request: Request) -> None:
    route.abort()


def reporting(page: Page, address: str, policy: str = STRICT, *, only: bool = True) -> None:
    """Documents of the page whose address begins so come with the policy: in force, or as a report ``only``."""
    name = f"content-security-policy{'-report-only' if only else ''}"

    def answer(route: Route, request: Request) -> None:
        if request.resource_type != "document":
            route.fallback()
            return
        response = route.fetch()
        route.fulfill(response=response, headers={**response.headers, name: policy})

    page.route(lambda url: url.startswith(address), answer)


# What was drawn -------------------------------------------------------------------------------------------------

_PROVOKE = """root => {
    const kinds = ["mouseover", "pointerover", "focus", "focusin", "blur", "mousemove", "keydown", "input", "change",
        "toggle", "beforetoggle", "animationstart", "transitionend", "scroll", "wheel", "copy", "paste", "drag",
        "error", "load", "begin", "select", "contextmenu"];
    const roots = document.querySelectorAll(root);
    roots.forEach(one => one.querySelectorAll("details").forEach(details => { details.open = true; }));
    roots.forEach(one => one.querySelectorAll("*").forEach(element => {
        if (element.getAttributeNames().some(name => name.startsWith("on")))
            kinds.forEach(kind => element.dispatchEvent(new Event(kind, { bubbles: false })));
    }));
}"""


_KINDS = """([root, within]) => [...document.querySelectorAll(`${within}, ${within} *`)]
    .filter(each => !each.closest(root))
    .map(each => each.localName
        + [...each.classList].filter(name => !/^jp-mod-|overlap$/.test(name)).map(name => "." + name).join("")
        + (each.id && !/^id-|[0-9a-f]{8}-/.test(each.id) ? "#" + each.id : ""))"""


def provoke(page: Page, root: str = ".tc") -> None:
    """Open every fold, and give each element that has a handler what the handler waits for."""
    page.evaluate(_PROVOKE, root)


def strays(page: Page, root: str = ".tc", box: str | None = None) -> list[str]:
    """What was drawn that must not be, in words: within the roots, and of them outside of their ``box``.

    Only elements and attributes of the renderer's own lists; no names, no handlers, no style of its own; links
    to the web and to mail alone, which open apart; pictures from their own bytes; nothing that is drawn outside of
    the ``box`` (the root itself, where it is not told).
    """
    script = (_SCRIPTS / "strays.js").read_text("utf-8")
    found: list[str] = page.evaluate(script, [root, box or root])
    return found


def outside(page: Page, root: str = ".tc", within: str = "html") -> Counter[str]:
    """How many elements of each kind there are outside of the roots: by tag, id and classes, those of states apart."""
    kinds: list[str] = page.evaluate(_KINDS, [root, within])
    return Counter(kinds)
