"""One run as the page is told of it: numbered steps, and everything for a page that asks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias

from msgspec.structs import replace

from toolcall_nb.approvals.page import ApprovalForm
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.runs.clocks import RUN, Clocks
from toolcall_nb.runs.patches import Patch, brief, merged
from toolcall_nb.runs.progress import Progress
from toolcall_nb.runs.request_details import FOLD

__all__ = ["LiveDocument", "PatchSource"]

Step: TypeAlias = dict[str, Any]

_ENDS = (ev.ToolOutputAvailable, ev.ToolOutputError, ev.ToolOutputDenied, ev.ToolInputError, ev.ToolInterrupted)
_STARTS = (ev.ToolInputStart, ev.ToolInputAvailable, ev.ToolInputError)
_GROWING: Mapping[Any, str] = {
    ev.TextDelta: "delta",
    ev.ReasoningDelta: "delta",
    ev.ToolInputDelta: "input_text_delta",
    ev.ToolLog: "text",
}
"""What only adds text, and the field of it: pieces that follow each other are drawn as one, when that is told."""


class PatchSource(Protocol):
    """What is needed of `toolcall_nb.render.LiveHtml`."""

    def apply(self, event: Event) -> list[Patch]:
        """Take one event in; what it changed."""

    def close(self) -> list[Patch]:
        """Nothing more comes; what that changes."""

    def snapshot(self) -> list[Patch]:
        """Patches that make everything from nothing."""

    def call_of(self, node_id: str) -> str | None:
        """The name under which what a node shows is opened and closed: the id of its call, or a fold's own."""

    def set_open(self, key: str, is_open: bool) -> list[Patch]:
        """The reader opened or closed it; what that changes for other views."""


class LiveDocument:
    """Collects what happens; `flush` tells it as one numbered step, `state` is the whole. Safe in any thread.

    ``tell`` sends a step to the pages. It is called with the lock held, so that steps leave in their order.
    ``opened`` is what the reader opened and closed, by call id or fold.
    ``timings`` are the calls' own durations in seconds; for a call that is not in it, the time between its start and
    its end as they were told. A call whose start is not told has no clock. ``clock`` gives seconds; what it says when
    clocks are told is told with them, so that a page that hears it late (asleep, cut off) counts from the right moment.
    """

    def __init__(
        self,
        source: PatchSource,
        tell: Callable[[Step], None],
        *,
        info: str = "",
        timings: Mapping[str, float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.opened: dict[str, bool] = {}
        self._lock = threading.RLock()
        self._tell = tell
        self._chosen: dict[str, bool] = {}
        self.seq = 0
        self._source = source
        self._timings = timings if timings is not None else {}
        self._clocks = Clocks(clock)
        self._progress = Progress()
        self._calls: set[str] = set()
        self._cards: dict[str, str] = {}  # the node of each call
        self._asks: dict[str, ApprovalForm] = {}  # by node
        self._info = info
        self._foot = ""
        self._done = False
        self._is_torn = False  # an interrupt came while an event was taken in: its patches may be lost
        self._growing: list[Any] = []  # pieces of one text that are not drawn yet
        self._patches: list[Patch] = []
        self._news: Step = {}
        self._said: list[str] = []
        self._told = (self._progress.status, info)

    def apply(self, event: Event) -> bool:
        """Take one event in. Whether there is anything to tell."""
        with self._lock:
            self._said += self._progress.apply(event)
            if self._growing and _is_more_of(self._growing[0], event):
                self._growing.append(event)
                return True
            self.catch_up()
            if _text_of(event):
                self._growing.append(event)
                return True
            if isinstance(event, _STARTS):
                self._calls.add(event.tool_call_id)
            self._draw(event)
            self._time(event)
            return self._has_news()

    def recall(self, events: Iterable[Event]) -> None:
        """Take in what was said before this run: it is drawn, and neither timed nor said aloud."""
        with self._lock:
            for event in events:
                if isinstance(event, _STARTS):
                    self._calls.add(event.tool_call_id)
                self._draw(event)

    def catch_up(self) -> None:
        """Draw what was taken in and not drawn yet."""
        with self._lock:
            growing, self._growing = self._growing, []
            if growing:
                whole = "".join(map(_text_of, growing))
                self._draw(replace(growing[0], **{_GROWING[type(growing[0])]: whole}))

    def _draw(self, event: Event) -> None:
        was_torn, self._is_torn = self._is_torn, True
        self._take(self._source.apply(event))
        self._is_torn = was_torn

    def ask(self, call: str, form: ApprovalForm | None) -> bool:
        """The pages are to ask a person about a call; or, with None, not any more. False: it has no card to ask in."""
        with self._lock:
            self.catch_up()
            node = self._cards.get(call)
            if node is None:
                return False
            self._asks.pop(node, None)
            if form is not None:
                self._asks[node] = form
                self._said += [form["problem"]] if "problem" in form else []
            self._news["asks"] = dict(self._asks)
            self.flush()
            return True

    def choose(self, node: str, is_open: bool) -> None:
        """The reader has opened or closed the card, or the fold, of ``node``; or the one below the run, `FOLD`."""
        with self._lock:
            self.catch_up()
            key = FOLD if node == FOLD else self._source.call_of(node)
            if key is not None:
                self._chosen[node] = self.opened[key] = is_open
                self._take(self._source.set_open(key, is_open))
                self.flush()

    def finish(self, info: str, foot: str = "") -> None:
        """The run has ended; ``info`` is the line that stays below it, and ``foot`` the HTML that takes its place."""
        with self._lock:
            self.catch_up()
            self._take(self._source.close())
            self._stop_all()
            self._clocks.stop(RUN)
            self._progress.finish()
            self._info, self._foot = info, foot
            self._done = True
            self._asks.clear()
            self._news |= {"done": True, "clocks": self._clocks.all(), "asks": {}, "foot": foot}

    def flush(self) -> None:
        """Tell what changed since the last step, if anything did."""
        with self._lock:
            self.catch_up()
            if self._has_news():
                self.seq += 1
                self._tell(self.state() if self._is_torn else self._step())

    def _step(self) -> Step:
        status, info = self._progress.status, self._info
        step: Step = {"type": "patches", "seq": self.seq, "patches": brief(merged(self._patches))}
        step |= {"clocks": self._clocks.news, "now": self._clocks.now()} if self._clocks.news else {}
        step |= self._news
        step |= {"status": status} if status != self._told[0] else {}
        step |= {"info": info} if info != self._told[1] else {}
        step |= {"say": self._said} if self._said else {}
        self._forget_news()
        return step

    def _forget_news(self) -> None:
        self._patches, self._news, self._said, self._clocks.news = [], {}, [], {}
        self._told = (self._progress.status, self._info)

    def state(self) -> Step:
        """Everything, and of what was said aloud that which still holds: who gets this may not have heard it.

        What was not told yet is told first, unless this tells it: the next step fits to this state.
        """
        with self._lock:
            self.catch_up()
            if self._is_torn:
                self._is_torn = False
                self._forget_news()
            self.flush()
            return {
                "type": "state",
                "seq": self.seq,
                "patches": brief(self._source.snapshot()),
                "opened": dict(self._chosen),
                "clocks": self._clocks.all(),
                "now": self._clocks.now(),
                "asks": dict(self._asks),
                "say": self._progress.standing,
                "status": self._progress.status,
                "info": self._info,
                "foot": self._foot,
                "done": self._done,
            }

    def _has_news(self) -> bool:
        news = self._patches or self._news or self._said or self._clocks.news
        return bool(news) or self._told != (self._progress.status, self._info)

    def _take(self, patches: list[Patch]) -> None:
        self._patches += patches
        for patch in patches:
            if patch[0] == "insert" and self._is_card(patch[1], patch[2]):
                self._cards[self._source.call_of(patch[1]) or ""] = patch[1]

    def _is_card(self, node: str, parent: str) -> bool:
        """Whether the node is a call's outermost."""
        call = self._source.call_of(node)
        return call in self._calls and self._source.call_of(parent) != call

    def _time(self, event: Event) -> None:
        """What the event means for the clocks of the cards."""
        match event:
            case ev.ToolExecution(status="running") if event.tool_call_id in self._cards:
                self._clocks.start(self._cards[event.tool_call_id])
            case ev.ToolOutputAvailable(preliminary=True):
                pass
            case _ if isinstance(event, _ENDS) and event.tool_call_id in self._cards:
                self._clocks.stop(self._cards[event.tool_call_id], self._timings.get(event.tool_call_id))
            case ev.Abort():
                self._stop_all()

    def _stop_all(self) -> None:
        for node in self._clocks.all().keys() - {RUN}:
            self._clocks.stop(node, self._timings.get(self._source.call_of(node) or ""))


def _text_of(event: Any) -> str:
    """The text that the event adds, if that is all it does."""
    text: str = getattr(event, _GROWING.get(type(event), ""), "")
    return text


def _is_more_of(first: Any, event: Any) -> bool:
    """Whether the event is the next piece of the same text, and nothing but that."""
    if type(event) is not type(first):
        return False
    same: bool = replace(event, **{_GROWING[type(first)]: _text_of(first)}) == first
    return same
