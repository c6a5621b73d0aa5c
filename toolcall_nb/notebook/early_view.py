"""The view of a kernel's first run, opened before the rest that the run needs is imported: `early_view`.

Importing takes a few times as long as opening a view. So the person sees at once that the run is starting, and the page
loads the view's module meanwhile.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from toolcall_nb.notebook.environment import Place, place_of, present_request

if TYPE_CHECKING:
    from toolcall_nb.notebook.cell_outputs import JupyterOutput
    from toolcall_nb.notebook.widget import TranscriptWidget

_MAGIC = "%%toolchat"
_REST = "toolcall_nb.notebook.live_display"


class EarlyView(NamedTuple):
    """A widget without a run, and the output that shows it."""

    widget: TranscriptWidget
    output: JupyterOutput


_waiting: list[EarlyView] = []


@contextmanager
def early_view(shell: Any) -> Iterator[None]:
    """Opens a view for the run that the block begins, if that is the first run and its cell shows nothing else.

    If the block takes no view, because the run cannot begin, the cell's output is cleared.
    """
    view = _open() if _is_first(shell) else None
    try:
        yield
    finally:
        if view is not None and take_early_view() is view:
            from IPython.display import clear_output

            clear_output()  # type: ignore[no-untyped-call]  # IPython has no types
            view.widget.close()


def take_early_view() -> EarlyView | None:
    """Returns the view that waits for its run, once."""
    return _waiting.pop() if _waiting else None


def _is_first(shell: Any) -> bool:
    """Whether the rest is not imported yet, a page shows widgets, and the running cell is the magic alone."""
    if _REST in sys.modules or place_of(shell) is not Place.LIVE:
        return False
    content = present_request(shell.kernel).get("content") or {}
    return str(content.get("code", "")).lstrip().startswith(_MAGIC)


def _open() -> EarlyView | None:
    try:
        from toolcall_nb.notebook.cell_outputs import JupyterOutput
        from toolcall_nb.notebook.widget import TranscriptWidget

        view = EarlyView(TranscriptWidget(), JupyterOutput())
        view.output.show_widget(view.widget)
    except Exception:  # a broken widget installation, of which `make_display` tells
        return None
    _waiting.append(view)
    return view
