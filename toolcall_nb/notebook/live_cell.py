"""The live face: a widget while a run goes on, and its static form in the same place afterwards."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from toolcall_nb.approvals.page import PendingApprovals
from toolcall_nb.notebook.faces import final_bundle, saved_line
from toolcall_nb.redaction.registered_secrets import saved_value
from toolcall_nb.redaction.saved_output import picture_hosts
from toolcall_nb.render import LiveHtml
from toolcall_nb.render.escaping import visible
from toolcall_nb.runs.document import LiveDocument
from toolcall_nb.runs.pacer import Pacer
from toolcall_nb.runs.request_details import foot_info

if TYPE_CHECKING:
    from toolcall_nb.approvals import Approver, Decision
    from toolcall_nb.core.events import Event
    from toolcall_nb.core.transcript import ToolCall, Transcript
    from toolcall_nb.notebook.widget import TranscriptWidget

__all__ = ["LiveFace"]

PATIENCE = 15.0
"""Seconds until a question goes elsewhere, where no page shows the run: it may lack what shows widgets."""

_REOPENED = 3
"""How often a view that somebody closes in mid-run is opened again."""

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
"""What a page shows that cannot show widgets, or gets the notebook without its kernel."""


class _NoPage(Exception):
    """No page shows the question."""


class LiveFace:
    """Shows the run from the first moment; `close` leaves the static form, with the cards as the reader left them.

    ``approver`` is asked about calls where no click reaches a kernel that runs a cell, and where no page shows the
    run; None: no cell runs, a click is always heard.
    """

    def __init__(
        self,
        *,
        info: str,
        on_stop: Callable[[], None],
        timings: Mapping[str, float],
        approver: Approver | None = None,
    ) -> None:
        self._html = LiveHtml(images=picture_hosts())
        self._document = LiveDocument(self._html, self._tell, info=info, timings=timings)
        self._pacer = Pacer(self._flush)
        self._questions = PendingApprovals(self._document.ask)
        self._on_stop = on_stop
        self._approver = approver
        self._reopened = 0
        self._display: Any = None
        self._widget = self._make_widget()
        self._display = self._show_widget()
        self._pacer.wake()  # a page may have closed the view before it stood anywhere

    @property
    def transcript(self) -> Transcript:
        """What was shown."""
        self._document.catch_up()
        return self._html.transcript

    @property
    def needs_a_free_kernel(self) -> bool:
        """Whether a person is asked in a card whose buttons do nothing while the kernel runs a cell."""
        return self._questions.is_open and not self._widget.is_heard_in_cells

    def show(self, event: Event) -> None:
        """Take one event in; the page sees it with the next step."""
        if self._document.apply(event):
            self._pacer.wake()

    def ask(self, call: ToolCall, is_stopped: Callable[[], bool]) -> Decision:
        """Whether a call may run: asked in its card; by keys where no page shows that, or none is heard in a cell."""
        self._document.flush()
        if self._approver is not None and not self._widget.is_heard_in_cells:
            return self._approver(call)
        try:
            return self._questions.ask(call, self._watch(call, is_stopped))
        except _NoPage:
            assert self._approver is not None
            return self._approver(call)

    def close(self, info: str) -> None:
        """Tell the rest, put the static form in the view's place, and only then let the widget go.

        A widget that is closed first leaves an empty output for a moment, and what lies below jumps.
        """
        self._pacer.close()
        line = saved_line(info, saved_value(self.transcript)[1])
        self._document.finish(line, foot_info(line, self.transcript))
        self._document.flush()
        self._widget.finish(lambda: self._settle(line))

    def _settle(self, info: str) -> dict[str, str]:
        """Put the static form in the view's place; gives it."""
        bundle = final_bundle(self.transcript, info, self._document.opened)
        self._display.update(bundle, raw=True)
        return bundle

    def _watch(self, call: ToolCall, is_stopped: Callable[[], bool]) -> Callable[[], bool]:
        """Looks for a stop, and for a page: where none shows the run for long, it raises `_NoPage`, or says so once."""
        give_up = time.monotonic() + PATIENCE

        def look() -> bool:
            nonlocal give_up
            if self._widget.is_shown:
                give_up = time.monotonic() + PATIENCE
            elif time.monotonic() > give_up:
                if self._approver is not None:
                    raise _NoPage
                print(_NO_PAGE.format(name=visible(call.name[:_MAX_NAME])))
                give_up = math.inf
            return is_stopped()

        return look

    def _tell(self, step: dict[str, Any]) -> None:
        self._widget.tell(step)

    def _flush(self) -> None:
        """Tell what is new. A view that was closed, by `Widget.close_all` or a page, is opened again with all of it."""
        self._document.flush()
        if self._display is not None and self._widget.is_closed and self._reopened < _REOPENED:
            self._reopened += 1
            self._widget = self._make_widget()
            self._display.update(self._view(), raw=True)

    def _make_widget(self) -> TranscriptWidget:
        from toolcall_nb.notebook.widget import TranscriptWidget

        on_answer, pacer = self._questions.answer, self._pacer
        return TranscriptWidget(self._document, self._on_stop, on_answer, pacer.pace, pacer.wake)

    def _show_widget(self) -> Any:
        from IPython.display import display

        return display(self._view(), raw=True, display_id=True)  # type: ignore[no-untyped-call]  # IPython has no types

    def _view(self) -> dict[str, Any]:
        return {"application/vnd.jupyter.widget-view+json": self._widget.get_view_spec(), **MEANWHILE}
