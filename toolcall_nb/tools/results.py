"""What a tool returned, in three forms: as JSON for programs, as a MIME bundle for people, as text for the model."""

from __future__ import annotations

import base64
import io
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import Struct

from toolcall_nb.events import Json, Object
from toolcall_nb.tools.values import json_value, safe_repr, without_addresses

__all__ = ["WIDGET", "Result", "clean_bundle", "forms"]

WIDGET = "application/vnd.jupyter.widget-view+json"
PLAIN = "text/plain"

_METHODS: Mapping[str, str] = {
    "text/html": "_repr_html_",
    "text/markdown": "_repr_markdown_",
    "image/svg+xml": "_repr_svg_",
    "image/png": "_repr_png_",
    "image/jpeg": "_repr_jpeg_",
    "application/pdf": "_repr_pdf_",
    "text/latex": "_repr_latex_",
    "application/json": "_repr_json_",
}
"""How an object displays itself in a notebook: a method for each MIME type."""

_NOT_KEPT = frozenset({WIDGET, "application/javascript", PLAIN})
"""What only works with a kernel, what would run as a program, and what is told as the output."""

_SAYS_NOTHING = re.compile(r"<[\w.<>]+( object)?>")
"""The repr that every object has, as Python or as IPython writes it."""
_ANYTHING = "_ipython_canary_method_should_not_exist_"


class Result(Struct, frozen=True):
    """What a tool may return to say itself what programs and the model get, and what a person sees.

    ``display`` is a MIME bundle; binary types are bytes or base64 text.
    """

    output: Any
    display: Mapping[str, Any] | None = None


def forms(value: Any) -> tuple[Json, Object | None]:
    """The output and the display of what a tool returned; only `KeyboardInterrupt` gets out.

    A display is a MIME bundle with base64 text for binary types. It is there for objects that bring one, by their
    ``_repr_*_`` methods or by what the running IPython knows about their type; plain data has none. The output of
    such an object is its plain text, unless it is data besides.
    """
    if isinstance(value, Result):
        return json_value(value.output), clean_bundle(value.display or {})
    if value is None or type(value) in (bool, int, float, str, bytes, list, dict, tuple, set):
        return json_value(value), None
    return _rich_forms(value)


def clean_bundle(data: Mapping[str, Any]) -> Object | None:
    """What a card may show of a MIME bundle, without its plain text; None where nothing is left."""
    kept = {kind: _content(kind, content) for kind, content in data.items() if kind not in _NOT_KEPT}
    return {kind: content for kind, content in kept.items() if content is not None} or None


def _rich_forms(value: Any) -> tuple[Json, Object | None]:
    output = json_value(value)
    bundle = _bundle(_pictured(value))
    if output == safe_repr(value):
        output = _plain_text(bundle, output)
        bundle.pop(PLAIN, None)
    display = clean_bundle(bundle)
    _put_away(value)
    return output, display


def _plain_text(bundle: Object, otherwise: str) -> str:
    """The text of an object that is no data: its plain one, or the source of a formula or a Markdown text."""
    text = bundle.get(PLAIN)
    text = without_addresses(text) if isinstance(text, str) else otherwise
    if _SAYS_NOTHING.fullmatch(text):
        sources = (bundle.get(kind) for kind in ("text/markdown", "text/latex"))
        return next((source for source in sources if isinstance(source, str)), otherwise)
    return text


# Asking an object ---------------------------------------------------------------------------------------------


def _bundle(value: Any) -> Object:
    """All that an object, or the shell, has to show for it. What raises is left out."""
    if isinstance(value, type):
        return {}
    whole = _attempt(lambda: _method(value, "_repr_mimebundle_")(include=None, exclude=None))
    bundle: Object = dict(whole) if isinstance(whole := _without_metadata(whole), Mapping) else {}
    for kind, show in _ways(value):
        if bundle.get(kind) is None:
            bundle[kind] = _without_metadata(_attempt(show))
    return {kind: content for kind, content in bundle.items() if content is not None}


def _ways(value: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """For each MIME type how to get at it."""
    formatters = _formatters()
    for kind, formatter in formatters.items():
        yield kind, partial(_formatted, formatter, value)
    for kind, name in _METHODS.items():
        if kind not in formatters:
            yield kind, lambda name=name: _method(value, name)()  # type: ignore[misc] # the default binds it at once
    yield "image/png", partial(_drawn, value)


def _formatters() -> Mapping[str, Any]:
    interactive = sys.modules.get("IPython.core.getipython")
    shell = interactive.get_ipython() if interactive is not None else None
    return shell.display_formatter.formatters if shell is not None else {}


def _formatted(formatter: Any, value: Any) -> Any:
    """What one of IPython's formatters gives, without the wrapper that prints errors into the cell."""
    call = type(formatter).__call__
    return getattr(call, "__wrapped__", call)(formatter, value)


def _method(value: Any, name: str) -> Callable[..., Any]:
    """The method, unless the object has one of every name."""
    if getattr(value, _ANYTHING, None) is not None:
        raise AttributeError(name)
    method: Callable[..., Any] = getattr(value, name)
    return method


def _attempt(show: Callable[[], Any]) -> Any:
    try:
        return show()
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None


def _without_metadata(shown: Any) -> Any:
    return shown[0] if isinstance(shown, tuple) and len(shown) == 2 else shown


def _content(kind: str, content: Any) -> Json:
    """What a bundle holds under a MIME type: text, base64 text, or JSON; None for what is none of these."""
    if isinstance(content, bytes | bytearray | memoryview):
        return base64.b64encode(content).decode("ascii")
    if isinstance(content, str):
        return content
    return json_value(content) if kind.endswith("json") and content is not None else None


# Figures ------------------------------------------------------------------------------------------------------


def _pictured(value: Any) -> Any:
    """The figure that the axes of a plot belong to; anything else is itself."""
    return value.figure if _is_a(value, "matplotlib.axes", "Axes") else value


def _drawn(value: Any) -> bytes | None:
    """A figure of matplotlib as PNG, which it does not offer by itself."""
    if not _is_a(value, "matplotlib.figure", "Figure"):
        return None
    buffer = io.BytesIO()
    value.savefig(buffer, format="png", bbox_inches="tight")
    return buffer.getvalue()


def _put_away(value: Any) -> None:
    """Close a figure in pyplot: what is open at the end of the cell is shown below it, and so once more."""
    pyplot, figure = sys.modules.get("matplotlib.pyplot"), _pictured(value)
    if pyplot is not None and _is_a(figure, "matplotlib.figure", "Figure"):
        with suppress(Exception):
            pyplot.close(figure)


def _is_a(value: Any, module: str, name: str) -> bool:
    """Whether it is of a type whose package may not be there; nothing is imported for that."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(value, kind)
