"""The live face: a widget while a run goes on, and its static form in the same place afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from toolcall_nb.live.asking import Questions
from toolcall_nb.live.document import LiveDocument
from toolcall_nb.live.face import Approver
from toolcall_nb.live.pacer import Pacer
from toolcall_nb.live.taken import foot_info
from toolcall_nb.notebook.faces import final_bundle
from toolcall_nb.render import LiveHtml

if TYPE_CHECKING:
    from toolcall_nb.events import Event
    from toolcall_nb.tools import Decision
    from toolcall_nb.transcript import ToolCall, Transcript

__all__ = ["LiveFace"]

_MEANWHILE = "A run of toolcall_nb that is not finished, or was cut off before its end."
"""What a page shows that cannot show widgets, or gets the notebook without its kernel."""


class LiveFace:
    """Shows the run from the first moment; `close` leaves the static form, with the cards as the reader left them.

    ``approver`` is asked about calls where no click reaches a kernel that runs a cell; None: there is no such cell.
    """

    def __init__(
        self,
        *,
        info: str,
        on_stop: Callable[[], None],
        timings: Mapping[str, float],
        approver: Approver | None = None,
    ) -> None:
        from toolcall_nb.notebook.widget import TranscriptWidget

        self._html = LiveHtml()
        self._document = LiveDocument(self._html, self._tell, info=info, timings=timings)
        self._pacer = Pacer(self._document.flush)
        self._questions = Questions(self._document.ask)
        self._widget = TranscriptWidget(self._document, on_stop, self._questions.answer, self._pacer.pace)
        self._approver = None if self._widget.is_heard_in_cells else approver
        self._display = self._show_widget()

    @property
    def transcript(self) -> Transcript:
        """What was shown."""
        self._document.catch_up()
        return self._html.transcript

    def show(self, event: Event) -> None:
        """Take one event in; the page sees it with the next step."""
        if self._document.apply(event):
            self._pacer.wake()

    def ask(self, call: ToolCall, is_stopped: Callable[[], bool]) -> Decision:
        """Whether a call may run; asked in its card."""
        if self._approver is None:
            return self._questions.ask(call, is_stopped)
        self._document.flush()
        return self._approver(call)

    def close(self, info: str) -> None:
        """Tell the rest, put the static form in the view's place, and only then let the widget go.

        A widget that is closed first leaves an empty output for a moment, and what lies below jumps.
        """
        self._pacer.close()
        self._document.finish(info, foot_info(info, self.transcript))
        self._document.flush()
        self._widget.finish(lambda: self._settle(info))

    def _settle(self, info: str) -> dict[str, str]:
        """Put the static form in the view's place; gives it."""
        bundle = final_bundle(self.transcript, info, self._document.opened)
        self._display.update(bundle, raw=True)
        return bundle

    def _tell(self, step: dict[str, Any]) -> None:
        self._widget.send(step)

    def _show_widget(self) -> Any:
        from IPython.display import display

        view = {"application/vnd.jupyter.widget-view+json": self._widget.get_view_spec()}
        bundle = {**view, "text/plain": _MEANWHILE, "text/html": f"<p>{_MEANWHILE}</p>"}
        return display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]  # IPython has no types
