"""What a tool returned, in three forms: as JSON for programs, as a MIME bundle for people, as text for the model."""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from toolcall_nb.core.call_display import MAX_DISPLAY
from toolcall_nb.core.events import Json, Object
from toolcall_nb.tools.figures import close_figure, draw_figure, figure_of
from toolcall_nb.tools.values import MAX_TEXT, cut_text, has_json, json_value, without_addresses

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

_NOT_KEPT = frozenset({"application/javascript", PLAIN})
"""What would run as a program, and what is told as the output."""

_INTERACTIVE = "application/vnd."
"""How the kinds begin that only a page with the package's own script can show; a widget's, only with a kernel."""

_WIDGET_SHOWN = (
    "*A widget cannot be shown in a card. Return its value, or a picture; or make the widget in a cell of its own.*"
)
_SCRIPT_SHOWN = (
    "*This is interactive ({kind}), and a card shows only what is static. Return or display a picture of it instead: "
    "for plotly, `Image(figure.to_image())`.*"
)
_STATIC = ("image/", "text/html", "text/markdown", "text/latex")

MAX_MARKUP = 1_000_000
"""Characters of HTML, Markdown and the like that are kept; a picture may have `MAX_DISPLAY`."""

_SAYS_NOTHING = re.compile(r"<[\w.<>]+( object)?>")
"""The repr that every object has, as Python or as IPython writes it."""
_ANYTHING = "_ipython_canary_method_should_not_exist_"


class Result(Struct, frozen=True):
    """What a tool may return to say itself what programs and the model get, and what a person sees.

    ``display`` is a MIME bundle; binary types are bytes or base64 text.
    """

    output: Any
    display: Mapping[str, Any] | None = None


def forms(value: Any, whole: str = "", max_text: int = MAX_TEXT) -> tuple[Json, Object | None]:
    """The output and the display of what a tool returned, both bounded; only `KeyboardInterrupt` gets out.

    A display is a MIME bundle with base64 text for binary types. It is there for objects that bring one, by their
    ``_repr_*_`` methods or by what the running IPython knows about their type; plain data has none. The output of
    such an object is its plain text, unless it is data besides. ``whole`` and ``max_text`` are as in `json_value`.
    """
    if isinstance(value, Result):
        return json_value(value.output, whole, max_text), clean_bundle(value.display or {}, whole)
    if value is None or type(value) in (bool, int, float, str, bytes, list, dict, tuple, set):
        return json_value(value, whole, max_text), None
    figure = figure_of(value)
    output = json_value(value, whole, max_text)
    bundle = _bundle(value if figure is None else figure)
    if not has_json(value):
        plain = _plain_text(bundle, output)
        output = output if plain == output else cut_text(plain, max_text, whole)
        output += _remark(value, output, whole)
    display = clean_bundle(bundle, whole)
    close_figure(figure)
    return output, display


def clean_bundle(data: Mapping[str, Any], whole: str = "") -> Object | None:
    """What a card may show of a MIME bundle, without its plain text; None where nothing is left.

    What cannot be shown is told in words: what is interactive, and what is too large. ``whole`` is where all of it is.
    """
    kept: Object = {}
    interactive = [kind for kind in data if kind.startswith(_INTERACTIVE)]
    if interactive and not _has_static(data):
        text = _WIDGET_SHOWN if WIDGET in interactive else _SCRIPT_SHOWN.format(kind=interactive[0])
        return {"text/markdown": text}
    too_large: list[str] = []
    for kind, content in data.items():
        if kind in _NOT_KEPT or kind in interactive:
            continue
        content = _content(kind, content)
        size = len(content) if isinstance(content, str) else 0
        if size > (MAX_DISPLAY if kind.startswith("image/") else MAX_MARKUP):
            too_large.append(f"{size:,} characters of {kind}")
        elif content is not None:
            kept[kind] = content
    if "image/png" in kept:  # PIL gives both
        kept.pop("image/jpeg", None)
    if too_large and not any(kind.startswith(_STATIC) for kind in kept):
        there = f"; all of it is in `{whole}`" if whole else ""
        kept["text/markdown"] = f"*Too large to be kept: {', '.join(too_large)}{there}*"
    return kept or None


def _remark(value: Any, text: str, whole: str) -> str:
    """Where all of a frame or a series is, of which the text leaves rows out."""
    shape = getattr(value, "shape", None)
    rows = shape[0] if isinstance(shape, tuple) and shape else 0
    return f"\n… all in {whole}" if whole and isinstance(rows, int) and rows > text.count("\n") + 1 else ""


def _plain_text(bundle: Object, otherwise: str) -> str:
    """The text of an object that is no data: its plain one, or the source of a formula or a Markdown text."""
    text = bundle.get(PLAIN)
    text = without_addresses(text) if isinstance(text, str) else otherwise
    if _SAYS_NOTHING.fullmatch(text):
        sources = (bundle.get(kind) for kind in ("text/markdown", "text/latex"))
        return next((source for source in sources if isinstance(source, str)), otherwise)
    return text


def _has_static(data: Mapping[str, Any]) -> bool:
    """Whether there is a form that needs neither a kernel nor a script."""
    markup = data.get("text/html")
    is_markup = isinstance(markup, str) and WIDGET not in data and "<script" not in markup.lower()
    return is_markup or any(kind.startswith("image/") for kind in data)


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
    yield "image/png", partial(draw_figure, value)


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
