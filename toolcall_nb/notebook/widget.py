"""The widget that carries a run to the page. Imported by the first live run: ipywidgets and anywidget are not cheap."""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol
from uuid import uuid4

import anywidget
import traitlets

from toolcall_nb.live import MODULE
from toolcall_nb.live.style import page_css

__all__ = ["KEPT", "Document", "TranscriptWidget", "close_all"]

KEPT = 8
"""How many finished runs stay open for pages that may come back after a reload."""

_kept: deque[TranscriptWidget] = deque()
_lock = threading.Lock()  # runs in the background end in threads of their own


class Document(Protocol):
    """What the widget needs of `toolcall_nb.live.document.LiveDocument`."""

    def state(self) -> dict[str, Any]:
        """Everything, for a page that has nothing or has missed something."""

    def choose(self, node: str, is_open: bool) -> None:
        """The reader has opened or closed a card."""


class TranscriptWidget(anywidget.AnyWidget):
    """One live run. ``snapshot`` is computed each time that it is asked for, so it is never an old state.

    JupyterLab asks after a reload (ipywidgets, Widget._handle_control_comm_msg, request_states). Messages of
    the page are handled in whichever thread the kernel gives them: during a cell, that of a subshell.
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
        self._context = contextvars.copy_context()
        self._settle: Callable[[], dict[str, str]] | None = None
        self._final: dict[str, str] | None = None
        self._settling = threading.Lock()
        self._closing = threading.Lock()  # pages, the kernel and the run close and send from threads of their own
        self._is_heard = False
        self._id = uuid4().hex
        super().__init__(_css=page_css(), model_id=self._id)
        self.comm.on_close(lambda _: self.close())
        self.on_msg(_dispatch)
        self.is_heard_in_cells = _answer_where_asked(self.comm, self._overhear)
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

    def _overhear(self, data: Any, sent_on: str | None) -> None:
        """What a person says is not left to a shell that may be busy with the very cell that it is about.

        Nor is the end of the view, which has no data, left to any shell: after it JupyterLab deletes the subshell that
        it was sent on, on another channel, and may be quicker there. A page that knows no widgets says just that.
        """
        if not data:
            self._aside(self.close)
            return
        self._is_heard = True
        match data:
            case {"method": "custom", "content": {"type": "answer" | "stop"} as message} if sent_on is None:
                self._aside(self.receive, message)

    def _aside(self, act: Callable[..., None], *arguments: Any) -> None:
        run = self._context.copy().run
        threading.Thread(target=run, args=(act, *arguments), name="toolcall_nb-page", daemon=True).start()

    def _settle_again(self) -> None:
        if self._settle is not None:
            with self._settling:
                self._final = self._settle()

    def _answer(self, seq: Any) -> None:
        state = self._document.state()
        if seq != state["seq"]:
            self.send(state)


def _dispatch(widget: TranscriptWidget, content: Any, _buffers: Any) -> None:
    if isinstance(content, dict):
        widget.receive(content)


def close_all() -> None:
    """Close what stays of finished runs."""
    while _kept:
        _kept.popleft().close()


def _answer_where_asked(comm: Any, overhear: Callable[[Any, str | None], None]) -> bool:
    """Let messages of the page be handled on the subshell that JupyterLab sends them on, also during a cell.

    ipykernel 7.4 (ipykernel/comm/comm.py, `_reply_subshell_for`) routes them to the shell that last published
    on the comm: the one that is busy with the cell, so that Stop would wait for the end of what it should stop.
    So that those are heard in time which a page sends on no subshell, because it knows none or has not got its own
    yet, or on one that is gone, each is overheard while it is routed: its data, and the subshell. Where it comes again
    on its shell, it changes nothing.

    The method is private. Without it ipykernel 7 hears what JupyterLab sends on a subshell. In others (ipykernel 6,
    another kernel) the messages come at the cell's end, and the kernel's own interrupt stops a run. Whether they
    come in mid-cell is returned.
    """
    if not callable(getattr(comm, "_reply_subshell_for", None)):
        return bool(getattr(getattr(comm, "kernel", None), "_supports_kernel_subshells", False))

    def route(data: Any, sent_on: str | None) -> str | None:
        overhear(data, sent_on)
        return sent_on

    comm._reply_subshell_for = route
    return True
