"""Reads frames, series and arrays of pandas, polars, pyarrow and numpy as tables: `value_table`.

The cells are read from the value itself, so no display option of a package has an effect. No package is imported.
A query that has not run, such as a LazyFrame of polars, holds no cells and is no table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

Row: TypeAlias = Sequence[Any]


class ValueTable(NamedTuple):
    """A value as a table of ``size`` rows. ``labels`` and ``names`` are the names of the row labels and of the columns.

    ``read(start, stop, columns)`` returns some rows: of each its labels, then the cells in these columns.
    """

    labels: Sequence[Any]
    names: Sequence[Any]
    size: int
    read: Callable[[int, int, Sequence[int]], Sequence[Row]]


def value_table(value: Any) -> ValueTable | None:
    """Returns the value's table; None for a value that is none. Of numpy's arrays, only those of records are tables."""
    for kind in type(value).__mro__:
        make = _MAKERS.get((kind.__module__.partition(".")[0], kind.__name__))
        if make is not None:
            return make(value)
    return None


def array_table(array: Any) -> ValueTable | None:
    """Returns the table of an array of numpy with at least one axis: the last axis is across, others label the rows."""
    if not array.ndim:
        return None
    if array.dtype.names is not None:
        flat, names = array.reshape(-1), list(array.dtype.names)
        return _of_columns(names, len(flat), lambda column, part: numpy_items(flat[names[column]][part]))
    if array.ndim == 1:
        return _of_columns(["value"], len(array), lambda _, part: numpy_items(array[part]), labelled=True)
    flat, outer = array.reshape(-1, array.shape[-1]), array.shape[:-1]

    def read(start: int, stop: int, columns: Sequence[int]) -> list[Row]:
        rows = numpy_items(flat[start:stop][:, list(columns)])
        return [(_position(start + number, outer), *row) for number, row in enumerate(rows)]

    return ValueTable(["position"], range(array.shape[-1]), len(flat), read)


def numpy_items(array: Any) -> Any:
    """Returns an array, or a number of numpy, as Python values; dates and durations as text, records as objects."""
    if array.dtype.kind in "mM":
        return array.astype(str).tolist()
    if array.dtype.names is None:
        return array.tolist()
    if not array.ndim:
        return {name: numpy_items(array[name]) for name in array.dtype.names}
    return [numpy_items(item) for item in array]


def _position(number: int, outer: Sequence[int]) -> str:
    """Returns the indexes of a row along the ``outer`` axes."""
    indexes: list[str] = []
    for length in reversed(outer):
        number, index = divmod(number, length)
        indexes.insert(0, str(index))
    return " ".join(indexes)


def _of_columns(
    names: Sequence[Any], size: int, read_column: Callable[[int, slice], Sequence[Any]], *, labelled: bool = False
) -> ValueTable:
    """Returns a table that is read by columns; ``labelled`` numbers its rows."""

    def read(start: int, stop: int, columns: Sequence[int]) -> list[Row]:
        cells = [read_column(column, slice(start, stop)) for column in columns]
        return list(zip(*([range(start, stop)] if labelled else []), *cells, strict=False))

    return ValueTable(["position"] if labelled else [], names, size, read)


def _pandas_frame(frame: Any, *, has_labels: bool = True) -> ValueTable:
    def read(start: int, stop: int, columns: Sequence[int]) -> list[Row]:
        part = frame.iloc[start:stop]
        levels = [part.index.get_level_values(number) for number in range(part.index.nlevels)] if has_labels else []
        return list(zip(*levels, *(part.iloc[:, column] for column in columns), strict=True))

    return ValueTable(_level_names(frame.index, "index") if has_labels else [], list(frame.columns), len(frame), read)


def _pandas_index(index: Any) -> ValueTable:
    names = _level_names(index, "value")
    return _of_columns(names, len(index), lambda column, part: index[part].get_level_values(column))


def _level_names(index: Any, otherwise: str) -> list[Any]:
    names = list(index.names)
    unnamed = [otherwise] if len(names) == 1 else [f"level {number}" for number in range(len(names))]
    return [spare if name is None else name for name, spare in zip(names, unnamed, strict=True)]


def _pandas_style(style: Any) -> ValueTable:
    """Returns the table of a styled frame without the rows, columns and labels that its style hides."""
    rows, columns = (
        [number for number in range(length) if number not in set(hidden)]
        for length, hidden in zip(style.data.shape, (style.hidden_rows, style.hidden_columns), strict=True)
    )
    return _pandas_frame(style.data.iloc[rows, columns], has_labels=not all(style.hide_index_))


def _arrow_table(table: Any) -> ValueTable:
    names = table.schema.names
    return _of_columns(names, table.num_rows, lambda column, part: _arrow_items(table.column(column), part))


def _arrow_array(array: Any) -> ValueTable:
    return _of_columns(["value"], len(array), lambda _, part: _arrow_items(array, part), labelled=True)


def _arrow_items(array: Any, part: slice) -> Any:
    return array.slice(part.start, part.stop - part.start).to_pylist()


_MAKERS: Mapping[tuple[str, str], Callable[[Any], ValueTable | None]] = {
    ("pandas", "DataFrame"): _pandas_frame,
    ("pandas", "Series"): lambda series: _pandas_frame(
        series.to_frame("value" if series.name is None else series.name)
    ),
    ("pandas", "Index"): _pandas_index,
    ("pandas", "Styler"): _pandas_style,
    ("pandas", "ExtensionArray"): lambda array: _of_columns(
        ["value"], len(array), lambda _, part: array[part], labelled=True
    ),
    ("polars", "DataFrame"): lambda frame: _of_columns(
        frame.columns, frame.height, lambda column, part: frame.to_series(column)[part].to_list()
    ),
    ("polars", "Series"): lambda series: _of_columns(
        [series.name or "value"], len(series), lambda _, part: series[part].to_list(), labelled=True
    ),
    ("pyarrow", "Table"): _arrow_table,
    ("pyarrow", "RecordBatch"): _arrow_table,
    ("pyarrow", "ChunkedArray"): _arrow_array,
    ("pyarrow", "Array"): _arrow_array,
    ("numpy", "ndarray"): lambda array: array_table(array) if array.dtype.names is not None else None,
}
"""The maker of the table of each class, by the package and the name."""
