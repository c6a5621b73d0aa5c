"""Converts what a tool returned into JSON for programs and a MIME bundle for people: `output_and_display`.

`result_contents` makes the pieces of a result that has several: a list of pictures, or a text and a picture.

Packages cut long tables by their own display options, and write an ellipsis where they do. A note after a frame's own
HTML counts what that leaves out.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from html.parser import HTMLParser
from typing import Any

from msgspec import Struct

from toolcall_nb.core.call_display import MAX_DISPLAY, MAX_DISPLAYS
from toolcall_nb.core.contents import describe_file, file_piece, json_piece, picture_type, text_piece
from toolcall_nb.core.escaping import escape
from toolcall_nb.core.events import MISSING, Json, Object
from toolcall_nb.core.result_text import RESULT_LIMIT, format_result_content, truncate_text
from toolcall_nb.tools.ipython_shell import ipython_shell
from toolcall_nb.tools.output.figures import close_figure, draw_figure, figure_of
from toolcall_nb.tools.results.json_values import (
    MAX_TEXT,
    has_json,
    to_json_value,
    to_model_text,
    without_addresses,
    write_cell,
)
from toolcall_nb.tools.results.table_csv import cell_text, left_out_note
from toolcall_nb.tools.results.value_tables import ValueTable, value_table

WIDGET = "application/vnd.jupyter.widget-view+json"
_PLAIN = "text/plain"

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
"""The method by which an object displays itself in a notebook, for each MIME type."""

_NOT_KEPT = frozenset({"application/javascript", _PLAIN})
"""Types that a card does not show: programs, and the plain text, which is in the output."""

_INTERACTIVE = "application/vnd."
"""The prefix of MIME types that need the script of a package to be shown, and for widgets also a kernel."""

_WIDGET_NOTICE = (
    "*A widget cannot be shown in a card. Return its value, or a picture; or make the widget in a cell of its own.*"
)
_SCRIPT_NOTICE = (
    "*This is interactive ({kind}), and a card shows only what is static. Return or display a picture of it instead: "
    "for plotly, `Image(figure.to_image())`.*"
)
_STATIC = ("image/", "text/html", "text/markdown", "text/latex")

_DATA = (type(None), bool, int, float, str, bytes, list, dict, tuple, set)
"""The types of plain data, which has no display."""

_MAX_TYPES = 8
"""The number of types of a list's items that are asked whether they are pictures."""

_MAX_MARKUP = 1_000_000
"""Characters of HTML, Markdown and the like that are kept; a picture may have `MAX_DISPLAY`."""

_DEFAULT_REPR = re.compile(r"<[\w.<>]+( object)?>")
"""The repr that every object has, as Python or as IPython writes it."""
_CANARY = "_ipython_canary_method_should_not_exist_"
"""An attribute that only objects have which answer to every name."""


class Result(Struct, frozen=True):
    """A tool's return value in separate forms: ``output`` for programs, ``display`` for people, ``model`` for models.

    ``display`` is a MIME bundle, whose binary types are bytes or base64 text, or any object that a notebook shows, such
    as a figure. ``model`` is text, or a value that is sent as JSON; None is the same as ``output``. Without an output,
    ``model`` is the output too.

    ``contents`` are further pieces of the result, in order, for people and for models that see pictures: texts,
    pictures, values, or objects in one of the forms of `toolcall_nb.core.contents`. A list as ``display`` is the same.
    Without an output, their text is the output.
    """

    output: Any = None
    display: Any = None
    model: Any = None
    contents: Sequence[Any] = ()

    @property
    def pieces(self) -> Sequence[Any]:
        """The contents, or the display where that is a list."""
        return self.contents or (self.display if isinstance(self.display, list | tuple) else ())

    @property
    def own_attribute(self) -> str:
        """The name of the attribute that is the output: ``model`` if there is no other."""
        return "model" if self.output is None else "output"

    @property
    def own_output(self) -> Any:
        """The output; what the model is told, if there is no other."""
        return getattr(self, self.own_attribute)


def output_and_display(
    value: Any, expression: str = "", max_text: int = MAX_TEXT, max_table: int = RESULT_LIMIT
) -> tuple[Json, Object | None]:
    """Returns the bounded output and display of what a tool returned. Raises nothing but `KeyboardInterrupt`.

    A display is a MIME bundle with base64 text for binary types. Objects have one if they have ``_repr_*_`` methods, or
    IPython has a formatter for their type, and bytes if they are a picture; other plain data has none. The output of
    such an object is its plain text, unless it has a JSON form too. ``expression``, ``max_text`` and ``max_table`` are
    as in `to_json_value`.
    """
    if isinstance(value, Result):
        output = to_json_value(value.own_output, _attribute(expression, value.own_attribute), max_text, max_table)
        displayed = _attribute(expression, "display")
        if value.display is None or isinstance(value.display, Mapping):
            return output, clean_bundle(value.display or {}, displayed)
        return output, output_and_display(value.display, displayed)[1]
    if type(value) in _DATA:
        kind = picture_type(value) if isinstance(value, bytes) else None
        display = clean_bundle({kind: value}, expression) if kind else None
        return to_json_value(value, expression, max_text, max_table), display
    figure = figure_of(value)
    output = to_json_value(value, expression, max_text, max_table)
    bundle = _bundle(value if figure is None else figure)
    table = value_table(value)
    if table is not None and isinstance(bundle.get("text/html"), str):
        bundle["text/html"] = _attempt(lambda: with_note(bundle["text/html"], table, expression, write_cell))
    if not has_json(value):
        plain = _plain_text(bundle, output, value)
        output = output if plain == output else truncate_text(plain, max_text, expression)
    display = clean_bundle(bundle, expression)
    close_figure(figure)
    return output, display


def result_contents(value: Any, expression: str = "", max_text: int = MAX_TEXT) -> list[Object] | None:
    """Returns the bounded pieces of what a tool returned, if it is a `Result`, or a list or a tuple with pictures.

    At most `MAX_DISPLAYS` files are kept, and `MAX_DISPLAY` characters of them. A text stands in place of any other.
    """
    if isinstance(value, Result):
        return contents_of(value.pieces, _attribute(expression, "contents"), max_text)
    return contents_of(value, expression, max_text) if _has_pictures(value) else None


def contents_of(pieces: Sequence[Any], expression: str = "", max_text: int = MAX_TEXT) -> list[Object] | None:
    """Returns these pieces as contents, bounded; None if there are none."""
    contents: list[Object | None] = []  # None: a piece that is no file, of which these share the room for text
    others: list[Any] = []
    files, room = 0, MAX_DISPLAY
    for item in pieces:
        if files == MAX_DISPLAYS and type(item) not in _DATA:
            contents.append(text_piece(f"<{type(item).__name__}, not kept>"))
            continue
        piece = item if _is_piece(item) else _picture(item)
        if piece is None or piece["type"] != "file":
            contents.append(None)
            others.append(piece or item)
        elif files < MAX_DISPLAYS and len(piece["url"]) <= room:
            contents.append(piece)
            files, room = files + 1, room - len(piece["url"])
        else:
            contents.append(text_piece(f"<{describe_file(piece)}, not kept>"))
    values = iter(to_json_value(others, expression, max_text))
    kept = (next(values, MISSING) if piece is None else piece for piece in contents)
    return [piece if _is_piece(piece) else json_piece(piece) for piece in kept if piece is not MISSING] or None


def _is_piece(item: Any) -> bool:
    """Whether a value is in one of the forms of a piece already."""
    kind = item.get("type") if type(item) is dict else None
    name = _PIECES.get(kind) if isinstance(kind, str) else None
    return name is not None and name in item and (kind == "json" or isinstance(item[name], str))


_PIECES = {"text": "text", "file": "url", "json": "value", "resource": "uri"}


def _has_pictures(value: Any) -> bool:
    """Whether it is a list or a tuple with a picture; one item of each type is asked."""
    if type(value) not in (list, tuple):
        return False
    first_of_type = {type(item): item for item in reversed(value) if type(item) not in _DATA}
    return any(_picture(item) is not None for item in [*first_of_type.values()][:_MAX_TYPES])


def _picture(item: Any) -> Object | None:
    """Returns the piece of an object that displays itself as a picture; None for any other."""
    if type(item) in _DATA:
        return None
    display = output_and_display(item)[1] or {}
    kind = next((kind for kind in display if kind.startswith("image/")), None)
    if kind is None:
        return None
    return file_piece(kind, display[kind].encode() if kind == "image/svg+xml" else display[kind])


def figures_in(value: Any) -> list[Any]:
    """Returns the figures of matplotlib that a result is made of."""
    pieces = value if type(value) in (list, tuple) else value.pieces if isinstance(value, Result) else [value]
    return [figure for piece in pieces if (figure := figure_of(piece)) is not None]


def text_for_model(
    value: Any, output: Json, limit: int, expression: str = "", contents: Sequence[Object] | None = None
) -> str | None:
    """Returns the text that the model is sent of what a tool returned; None if it is all of its output and contents."""
    if isinstance(value, Result):
        if value.model is not None and value.output is not None:
            return to_model_text(value.model, limit, _attribute(expression, "model"))
        value, expression = value.own_output, _attribute(expression, value.own_attribute)
    text = format_result_content(output, contents)
    if len(text) <= limit:
        return None
    return truncate_text(text, limit) if contents or not has_json(value) else to_model_text(value, limit, expression)


def _attribute(expression: str, name: str) -> str:
    return f"{expression}.{name}" if expression else ""


def clean_bundle(data: Mapping[str, Any], expression: str = "") -> Object | None:
    """Returns the part of a MIME bundle that a card may show, without plain text; None where nothing is left.

    Content that is interactive or too large is replaced by a notice, in which ``expression`` names the whole value.
    """
    kept: Object = {}
    interactive = [kind for kind in data if kind.startswith(_INTERACTIVE)]
    if interactive and not _has_static(data):
        text = _WIDGET_NOTICE if WIDGET in interactive else _SCRIPT_NOTICE.format(kind=interactive[0])
        return {"text/markdown": text}
    too_large: list[str] = []
    for kind, content in data.items():
        if kind in _NOT_KEPT or kind in interactive:
            continue
        content = _content(kind, content)
        size = len(content) if isinstance(content, str) else 0
        if size > (MAX_DISPLAY if kind.startswith("image/") else _MAX_MARKUP):
            too_large.append(f"{size:,} characters of {kind}")
        elif content is not None:
            kept[kind] = content
    if "image/png" in kept:  # PIL gives both
        kept.pop("image/jpeg", None)
    if too_large and not any(kind.startswith(_STATIC) for kind in kept):
        location = f"; all of it is in `{expression}`" if expression else ""
        kept["text/markdown"] = f"*Too large to be kept: {', '.join(too_large)}{location}*"
    return kept or None


def _plain_text(bundle: Object, otherwise: str, value: Any) -> str:
    """Returns an object's plain text; its Markdown or LaTeX source or its ``str`` where that is the default repr."""
    text = bundle.get(_PLAIN)
    text = without_addresses(text) if isinstance(text, str) else otherwise
    if _DEFAULT_REPR.fullmatch(text):
        sources = (bundle.get(kind) for kind in ("text/markdown", "text/latex"))
        written = _attempt(lambda: without_addresses(str(value)))
        return next((source for source in (*sources, written) if isinstance(source, str)), otherwise)
    return text


def _has_static(data: Mapping[str, Any]) -> bool:
    """Whether a bundle has a form that needs neither a kernel nor a script."""
    markup = data.get("text/html")
    is_markup = isinstance(markup, str) and WIDGET not in data and "<script" not in markup.lower()
    return is_markup or any(kind.startswith("image/") for kind in data)


# Asking an object ---------------------------------------------------------------------------------------------


def _bundle(value: Any) -> Object:
    """Returns every form that an object or IPython has for it; those that raise are left out."""
    if isinstance(value, type):
        return {}
    forms = _without_metadata(_attempt(lambda: _method(value, "_repr_mimebundle_")(include=None, exclude=None)))
    bundle: Object = dict(forms) if isinstance(forms, Mapping) else {}
    for kind, show in _displayers(value):
        if bundle.get(kind) is None:
            bundle[kind] = _without_metadata(_attempt(show))
    return {kind: content for kind, content in bundle.items() if content is not None}


def _displayers(value: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yields MIME types, each with a function that makes this form."""
    shell = ipython_shell()
    formatters = shell.display_formatter.formatters if shell is not None else {}
    for kind, formatter in formatters.items():
        yield kind, partial(_formatted, formatter, value)
    for kind, name in _METHODS.items():
        if kind not in formatters:
            yield kind, lambda name=name: _method(value, name)()  # type: ignore[misc] # the default binds it
    yield "image/png", partial(draw_figure, value)


def _formatted(formatter: Any, value: Any) -> Any:
    """Calls one of IPython's formatters without its wrapper, which would print errors into the cell."""
    call = type(formatter).__call__
    return getattr(call, "__wrapped__", call)(formatter, value)


def _method(value: Any, name: str) -> Callable[..., Any]:
    """Returns a method, but not of an object that has every attribute one asks for."""
    if getattr(value, _CANARY, None) is not None:
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


def _without_metadata(form: Any) -> Any:
    return form[0] if isinstance(form, tuple) and len(form) == 2 else form


def _content(kind: str, content: Any) -> Json:
    """Converts a bundle's content to text, base64 text or JSON; None for any other content."""
    if isinstance(content, bytes | bytearray | memoryview):
        return base64.b64encode(content).decode("ascii")
    if isinstance(content, str):
        return content
    return to_json_value(content) if kind.endswith("json") and content is not None else None


_ELLIPSES = ("...", "…")
_COMPARED = 100
"""Rows of either end, and columns, whose cells are compared with those in the HTML."""


def with_note(html: str, table: ValueTable, expression: str, write_cell: Callable[[Any], str]) -> str:
    """Returns the HTML of a frame with a note that counts the rows, columns and ends of cells that it leaves out."""
    parser = _Cells()
    parser.feed(html)
    width = max(map(len, parser.rows), default=0)
    if not width:
        return html
    rows = [row for row in parser.rows if len(row) == width]
    if len(rows) != table.size:
        rows = [row for row in rows if not set(row) <= set(_ELLIPSES)]
    has_gaps = width != len(table.names)
    gaps = {column for column in range(width) if has_gaps and all(row[column] in _ELLIPSES for row in rows)}
    cells = [cell for row in rows for column, cell in enumerate(row) if column not in gaps]
    hidden_rows, hidden_columns = table.size - len(rows), len(table.names) - width + len(gaps)
    counts = (
        (hidden_rows, "rows", table.size),
        (hidden_columns, "columns", len(table.names)),
        (_count_cut(cells, table, write_cell), "ends of cells", 0),
    )
    is_whole = all(number <= 0 for number, _, _ in counts)
    return html if is_whole else f"{html}<p>{escape(f'Of this table are {left_out_note(counts, expression)}')}</p>"


class _Cells(HTMLParser):
    """Collects the texts of the ``<td>`` cells in the body of a table."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._is_body = self._is_cell = False

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        if tag == "tbody":
            self._is_body = True
        elif tag == "tr" and self._is_body:
            self.rows.append([])
        elif tag == "td" and self._is_body and self.rows:
            self._is_cell = True
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "td":
            self._is_cell = False
        elif tag == "tbody":
            self._is_body = False

    def handle_data(self, data: str) -> None:
        if self._is_cell:
            self.rows[-1][-1] += data


def _count_cut(cells: Sequence[str], table: ValueTable, write_cell: Callable[[Any], str]) -> int:
    """Returns how many cells end with an ellipsis that is not their own."""
    cut = [cell for cell in cells if cell.endswith(_ELLIPSES)]
    if not cut:
        return 0
    width, size = len(table.names), table.size
    columns = sorted({*range(min(width, _COMPARED)), *range(max(0, width - _COMPARED), width)})
    parts = [(0, min(_COMPARED, size)), (max(_COMPARED, size - _COMPARED), size)]
    rows = [row for start, stop in parts if start < stop for row in table.read(start, stop, columns)]
    whole = {cell_text(value, write_cell) for row in rows for value in row[len(table.labels) :]}
    return sum(cell not in whole for cell in cut)
