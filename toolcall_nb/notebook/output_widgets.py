"""Finds the ipywidgets Output widgets that a run is displayed in: `capturing_outputs`.

Such a widget takes what is displayed into its own model, in the page. It knows no display ids, so an update of a
display does not reach it. The page puts the static output into the widget (frontend/src/notebook_outputs.js);
`replace_view` does it in the kernel, for a view that no page has replaced.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ipywidgets import Output, Widget  # type: ignore[import-untyped]  # ipywidgets has no types

from toolcall_nb.notebook.environment import present_request
from toolcall_nb.tools.ipython_shell import ipython_shell

try:
    from ipywidgets.widgets.widget import _instances  # type: ignore[import-untyped]
except ImportError:
    _instances = Widget.widgets  # ipywidgets 7, where this is public

VIEW = "application/vnd.jupyter.widget-view+json"


def capturing_outputs() -> tuple[str, ...]:
    """Returns the ids of the Output widgets that capture what the running cell or callback displays now."""
    kernel = getattr(ipython_shell(), "kernel", None)
    if kernel is None:
        return ()
    message = (present_request(kernel).get("header") or {}).get("msg_id")
    widgets = list(_instances.values())
    return tuple(each.model_id for each in widgets if isinstance(each, Output) and message and each.msg_id == message)


def replace_view(outputs: Iterable[str], model: str, data: dict[str, str]) -> None:
    """Replaces the view of a widget, whose id is ``model``, by static data in these Output widgets."""
    static = {"output_type": "display_data", "data": data, "metadata": {}}
    for widget in filter(None, map(_instances.get, outputs)):
        assert isinstance(widget, Output)
        if any(_shows(each, model) for each in widget.outputs):
            widget.outputs = tuple(static if _shows(each, model) else each for each in widget.outputs)


def _shows(output: dict[str, Any], model: str) -> bool:
    view = output.get("data", {}).get(VIEW, {})
    return bool(view.get("model_id") == model)
