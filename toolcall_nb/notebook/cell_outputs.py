"""The output of a run in a cell, which changes while the cell runs: `JupyterOutput` and `MarimoOutput`.

Each shows the run's widget first and a static MIME bundle in its place afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from toolcall_nb.notebook.early_messages import HOW_TO_STOP

if TYPE_CHECKING:
    from toolcall_nb.notebook.widget import TranscriptWidget

_MEANWHILE = (
    "A run of toolcall_nb that is not finished, or was cut off before its end.",
    "To watch a run, the front end must show widgets. JupyterLab needs the packages jupyterlab_widgets and anywidget "
    "in its own environment.",
)
_SUMMARY = "<!-- Run: not finished, or cut off before its end -->"
"""As `toolcall_nb.render.output_summary.summary_line`; the first view must not wait for that import."""
MEANWHILE = {
    "text/plain": "\n".join(_MEANWHILE),
    "text/html": "\n".join([_SUMMARY, *(f"<p>{sentence}</p>" for sentence in _MEANWHILE)]),
}
"""The output for a page that cannot show widgets, or that opens the notebook without its kernel."""


class CellOutput(Protocol):
    """One output of the running cell."""

    how_to_stop: str
    """The hint in place of a Stop button whose click would not arrive in time."""
    page_may_miss_steps: bool
    """Whether the page loads the widget after the first steps, and cannot ask for them while the cell runs."""

    def show_widget(self, widget: TranscriptWidget) -> None:
        """Shows a widget, in place of the one before."""

    def show_static(self, bundle: dict[str, str]) -> None:
        """Shows a MIME bundle in place of the widget."""


class JupyterOutput:
    """An output of a Jupyter notebook, found again by its display id."""

    how_to_stop = HOW_TO_STOP
    page_may_miss_steps = False

    def __init__(self) -> None:
        self._handle: Any = None

    def show_widget(self, widget: TranscriptWidget) -> None:
        """Displays the view of the widget, or updates the display."""
        from IPython.display import display

        view = {"application/vnd.jupyter.widget-view+json": widget.get_view_spec(), **MEANWHILE}
        if self._handle is None:
            self._handle = display(view, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(view, raw=True)

    def show_static(self, bundle: dict[str, str]) -> None:
        """Updates the display."""
        self._handle.update(bundle, raw=True)


class MarimoOutput:
    """An output of a marimo cell, found again by its index among the cell's outputs.

    marimo's own display ids would replace all outputs of the cell. It changes the outputs of a cell only while the cell
    runs, so the widget of a run that ends later stays.
    """

    page_may_miss_steps = True

    def __init__(self) -> None:
        import marimo

        self._marimo: Any = marimo
        self._context, self._cell = running_marimo_cell()
        self._index: int | None = None
        can_interrupt = marimo.app_meta().mode == "edit"
        self.how_to_stop = "To stop, press marimo's Interrupt" if can_interrupt else "An app cannot interrupt a cell"

    def show_widget(self, widget: TranscriptWidget) -> None:
        """Shows a widget, if the cell still runs."""
        self._show(widget)

    def show_static(self, bundle: dict[str, str]) -> None:
        """Shows the HTML, if the cell still runs: of several types, marimo makes tabs."""
        self._show(self._marimo.Html(bundle["text/html"]))

    def _show(self, value: Any) -> None:
        """Appends a value to the cell's outputs the first time, and then replaces that one. Works in any thread."""
        if self._cell is None or self._context.execution_context is not self._cell:
            return
        if self._index is None:
            self._index = len(self._cell.output)
        with self._context.install():  # marimo keeps the running cell by thread
            self._marimo.output.replace_at_index(value, self._index)


def running_marimo_cell() -> tuple[Any, Any]:
    """Returns marimo's context of this thread, and that of this run of its cell. Both are private parts of marimo."""
    from marimo._runtime.context import safe_get_context

    context = safe_get_context()
    return context, getattr(context, "execution_context", None)
