"""The widget that carries a run to the page. Imported by the first live run: ipywidgets and anywidget are not cheap."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol
from uuid import uuid4

import anywidget
import traitlets

from toolcall_nb.frontend import MODULE, page_css
from toolcall_nb.runs.inbox import Inbox

__all__ = ["KEPT", "Document", "TranscriptWidget", "close_all"]

KEPT = 8
"""How many finished runs stay open for pages that may come back after a reload."""

_kept: deque[TranscriptWidget] = deque()
_lock = threading.Lock()  # runs in the background end in threads of their own


class Document(Protocol):
    """What the widget needs of `toolcall_nb.runs.document.LiveDocument`."""

    def state(self) -> dict[str, Any]:
        """Everything, for a page that has nothing or has missed something."""

    def choose(self, node: str, is_open: bool) -> None:
        """The reader has opened or closed a card."""


class TranscriptWidget(anywidget.AnyWidget):
    """One live run. ``snapshot`` is computed each time that it is asked for, so it is never an old state.

    JupyterLab asks after a reload (ipywidgets, Widget._handle_control_comm_msg, request_states). What the page
    says is handled in its order and in a thread of its own, also during a cell, where the kernel lets it.
    """

    _esm = MODULE.read_text("utf-8")  # of a path, anywidget keeps one object that holds every widget for good
    _css = traitlets.Unicode().tag(sync=True)
    snapshot = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        document: Document,
        on_stop: Callable[[], None],
        on_answer: Callable[[dict[str, Any]], None],
        on_pace: Callable[[float], None],
        on_close: Callable[[], None],
    ) -> None:
        self._document = document
        self._on_stop = on_stop
        self._on_answer = on_answer
        self._on_pace = on_pace
        self._on_close = on_close
        self._inbox = Inbox()
        self._settle: Callable[[], dict[str, str]] | None = None
        self._final: dict[str, str] | None = None
        self._settling = threading.Lock()
        self._closing = threading.Lock()  # pages, the kernel and the run close and send from threads of their own
        self._is_heard = False
        self._id = uuid4().hex
        super().__init__(_css=page_css(), model_id=self._id)
        self.comm.on_close(lambda _: self.close())
        is_heard_early = _hear_while_routed(self.comm, self._hear)
        if not is_heard_early:
            self.on_msg(lambda _, content, __: self._hear({"method": "custom", "content": content}))
        self.is_heard_in_cells = is_heard_early or _has_subshells(self.comm)
        """Whether messages of the page are handled while the kernel runs a cell."""

    def get_state(self, key: str | Iterable[str] | None = None, drop_defaults: bool = False) -> dict[str, Any]:
        """The synced state, with the run as it is now; its ``model`` is what the page's notebook calls this widget."""
        state: dict[str, Any] = super().get_state(key=key, drop_defaults=drop_defaults)
        if "snapshot" in state:
            state["snapshot"] = {**self._document.state(), "model": self._id}
        return state

    def close(self) -> None:
        """Close it, and the layout that ipywidgets makes for each widget and keeps for good."""
        with self._closing:
            was_closed = self.is_closed
            super().close()
            self.layout.close()
        if not was_closed:
            self._on_close()

    @property
    def is_closed(self) -> bool:
        """Whether no page is told anything any more."""
        return self.comm is None

    @property
    def is_shown(self) -> bool:
        """Whether a page shows the run, as far as can be told: it is open, and a page has said something."""
        return self._is_heard and not self.is_closed

    def tell(self, step: dict[str, Any]) -> None:
        """Send a step to the pages, if there are any."""
        with self._closing:
            if not self.is_closed:
                self.send(step)

    def finish(self, settle: Callable[[], dict[str, str]]) -> None:
        """The run has ended: ``settle`` puts the static output in the view's place, and gives it.

        It does not reach a page that was reloaded in the meantime, or is reloaded before the notebook is saved
        again: such a page has this view still, and asks for the output. So the last `KEPT` widgets stay.
        """
        self._settle = settle
        self._settle_again()
        with _lock:
            _kept.append(self)
            surplus = [_kept.popleft() for _ in range(len(_kept) - KEPT)]
        for widget in surplus:
            widget.close()

    def receive(self, message: dict[str, Any]) -> None:
        """A message of a page; what is not understood is ignored, since pages may be older than the kernel."""
        self._is_heard = True
        match message:
            case {"type": "sync" | "here", "seq": seq}:
                self._answer(seq)
            case {"type": "open", "node": str(node), "open": bool(is_open)}:
                self._document.choose(node, is_open)
                self._settle_again()  # said in the last moment of the view, it is heard after its end
            case {"type": "stop"}:
                self._on_stop()
            case {"type": "answer"}:
                self._on_answer(message)
            case {"type": "pace", "seconds": int(seconds) | float(seconds)}:
                self._on_pace(seconds)
            case {"type": "final"} if self._final is not None:
                self.send({"type": "final", "model": self.model_id, "bundle": self._final})

    def _hear(self, data: Any) -> None:
        """What a page sends, while it is routed; without data it is the end of the view. A stop waits for nothing.

        A page that knows no widgets says just that it ends, so that is no sign of one that shows the run.
        """
        if not data:
            self._inbox.put(self.close)
            return
        self._is_heard = True
        match data:
            case {"method": "custom", "content": {"type": "stop"} as message}:  # it takes its time
                threading.Thread(target=self.receive, args=(message,), name="toolcall_nb-stop", daemon=True).start()
            case {"method": "custom", "content": dict(message)}:
                self._inbox.put(partial(self.receive, message))

    def _settle_again(self) -> None:
        if self._settle is not None:
            with self._settling:
                self._final = self._settle()

    def _answer(self, seq: Any) -> None:
        state = self._document.state()
        if seq != state["seq"]:
            self.send(state)


def close_all() -> None:
    """Close what stays of finished runs."""
    while _kept:
        _kept.popleft().close()


def _hear_while_routed(comm: Any, hear: Callable[[Any], None]) -> bool:
    """Have ``hear`` called with the data of each message of the page before any shell of the kernel has to handle it.

    The shell may be the one that is busy with the cell that the message is about: ipykernel 7.4 routes it to the shell
    that last published on the comm (ipykernel/comm/comm.py, `_reply_subshell_for`), and JupyterLab sends on none until
    it has a subshell. Or it is gone: with its last view JupyterLab deletes its subshell, on another channel, which may
    be quicker than what was sent on that. The message still goes to the shell that it was sent on, for ipywidgets.

    The method is private. Without it (ipykernel 7.0, ipykernel 6, another kernel) nothing is done, and it is False.
    """
    if not callable(getattr(comm, "_reply_subshell_for", None)):
        return False

    def route(data: Any, sent_on: str | None) -> str | None:
        hear(data)
        return sent_on

    comm._reply_subshell_for = route
    return True


def _has_subshells(comm: Any) -> bool:
    return bool(getattr(getattr(comm, "kernel", None), "_supports_kernel_subshells", False))
