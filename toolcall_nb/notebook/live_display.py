"""Shows a run in a cell: as a widget while it goes on, and as static output in the same place afterwards."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from toolcall_nb.approvals.page import PendingApprovals
from toolcall_nb.notebook.early_messages import HOW_TO_STOP
from toolcall_nb.redaction.registered_secrets import saved_value
from toolcall_nb.redaction.saved_output import picture_hosts, saved_bundle, saved_line
from toolcall_nb.render import LiveHtml
from toolcall_nb.render.escaping import visible
from toolcall_nb.render.run_footer import footer_html
from toolcall_nb.runs.document import LiveDocument
from toolcall_nb.runs.pacer import Pacer

if TYPE_CHECKING:
    from toolcall_nb.approvals import Approver, Decision
    from toolcall_nb.core.events import Event
    from toolcall_nb.core.transcript import ToolCall, Transcript
    from toolcall_nb.notebook.widget import TranscriptWidget

__all__ = ["LiveDisplay"]

NO_PAGE_AFTER = 15.0
"""Seconds until a question is asked elsewhere, if no page shows the run: a page may be unable to show widgets."""

_MAX_REOPENED = 3
"""The number of times that a view which somebody closes during the run is opened again."""

_NO_PAGE = "{name} asks whether it may run, and no page has answered that could show it. %toolchat stop ends the run."
_MAX_NAME = 60
_MEANWHILE = (
    "A run of toolcall_nb that is not finished, or was cut off before its end.",
    "To watch a run, JupyterLab needs the packages jupyterlab_widgets and anywidget in its own environment.",
)
MEANWHILE = {
    "text/plain": "\n".join(_MEANWHILE),
    "text/html": "".join(f"<p>{sentence}</p>" for sentence in _MEANWHILE),
}
"""The output for a page that cannot show widgets, or that opens the notebook without its kernel."""


class _NoPage(Exception):
    """No page shows the question for approval."""


class LiveDisplay:
    """Shows the run from the first moment; `close` leaves static output, with the cards as the reader left them.

    ``approver`` decides about calls if no page shows the run, or if the kernel receives no clicks while it runs a cell.
    Without one no cell is running, and the kernel receives every click. ``must_be_open``: a page that has received the
    run may show it nowhere, as in a widget's callback, so it shows the run only if it has a view open.
    """

    def __init__(
        self,
        *,
        info: str,
        on_stop: Callable[[], None],
        timings: Mapping[str, float],
        approver: Approver | None = None,
        must_be_open: bool = False,
    ) -> None:
        from IPython.display import display

        self._html = LiveHtml(images=picture_hosts())
        self._document = LiveDocument(self._html, self._send, info=info, timings=timings)
        self._pacer = Pacer(self._flush)
        self._questions = PendingApprovals(self._document.ask)
        self._on_stop = on_stop
        self._approver = approver
        self._must_be_open = must_be_open
        self._reopened = 0
        self._display: Any = None
        self._widget = self._make_widget()
        if approver is not None and not self._widget.receives_in_cells:
            self._document.replace_stop_button(HOW_TO_STOP)
        self._display = display(self._view(), raw=True, display_id=True)  # type: ignore[no-untyped-call]
        self._pacer.wake()  # a page may have closed the view before the output was shown

    @property
    def transcript(self) -> Transcript:
        """The transcript of the events so far."""
        self._document.draw_pending_text()
        return self._html.transcript

    @property
    def needs_a_free_kernel(self) -> bool:
        """Whether a card asks a person, and its buttons do nothing while the kernel runs a cell."""
        return self._questions.is_open and not self._widget.receives_in_cells

    def show(self, event: Event) -> None:
        """Takes one event in; the page gets it with the next step."""
        if self._document.apply(event):
            self._pacer.wake()

    def ask(self, call: ToolCall, is_stopped: Callable[[], bool]) -> Decision:
        """Asks in the call's card whether it may run; by ``input`` if that card cannot be seen or used."""
        self._document.flush()
        if self._approver is not None and not self._widget.receives_in_cells:
            return self._approver(call)
        try:
            return self._questions.ask(call, self._watch(call, is_stopped))
        except _NoPage:
            assert self._approver is not None
            return self._approver(call)

    def close(self, info: str) -> None:
        """Sends the rest, replaces the view by the static output, and only then lets the widget go.

        A widget that is closed first leaves an empty output for a moment, and everything below it jumps.
        """
        self._pacer.close()
        line = saved_line(info, saved_value(self.transcript)[1])
        self._document.finish(line, footer_html(line, self.transcript))
        self._document.flush()
        self._widget.finish(lambda: self._show_static(info))

    def _show_static(self, info: str) -> dict[str, str]:
        """Replaces the view by the static output, and returns that."""
        bundle = saved_bundle(self.transcript, line=info, opened=self._document.opened, is_run=True)
        self._display.update(bundle, raw=True)
        return bundle

    def _watch(self, call: ToolCall, is_stopped: Callable[[], bool]) -> Callable[[], bool]:
        """Returns a function that says whether the run is stopped, and also looks whether a page shows the run.

        If none has for long, the function raises `_NoPage`, or without an ``approver`` prints a hint once.
        """
        give_up = time.monotonic() + NO_PAGE_AFTER

        def look() -> bool:
            nonlocal give_up
            if self._widget.is_open if self._must_be_open else self._widget.is_shown:
                give_up = time.monotonic() + NO_PAGE_AFTER
            elif time.monotonic() > give_up:
                if self._approver is not None:
                    raise _NoPage
                print(_NO_PAGE.format(name=visible(call.name[:_MAX_NAME])))
                give_up = math.inf
            return is_stopped()

        return look

    def _send(self, step: dict[str, Any]) -> None:
        self._widget.send_step(step)

    def _flush(self) -> None:
        """Sends what is new. A view that was closed, by `Widget.close_all` or a page, is opened again."""
        self._document.flush()
        if self._display is not None and self._widget.is_closed and self._reopened < _MAX_REOPENED:
            self._reopened += 1
            self._widget = self._make_widget()
            self._display.update(self._view(), raw=True)

    def _make_widget(self) -> TranscriptWidget:
        from toolcall_nb.notebook.widget import TranscriptWidget

        on_answer, pacer = self._questions.answer, self._pacer
        return TranscriptWidget(self._document, self._on_stop, on_answer, pacer.set_interval, pacer.wake)

    def _view(self) -> dict[str, Any]:
        return {"application/vnd.jupyter.widget-view+json": self._widget.get_view_spec(), **MEANWHILE}
