"""Queries the Parquet files of runs with duckdb: `query_tables`. duckdb is imported on first use."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

from toolcall_nb.core.data_frames import import_pandas
from toolcall_nb.errors import MissingPackageError, UsageError
from toolcall_nb.runs.parquet_files import PARQUET, PARQUET_TABLES

_WILDCARD = re.compile(r"[*?\[]")


def query_tables(folder: str | os.PathLike[str], query: str) -> Any:
    """Runs an SQL query over the tables ``runs``, ``calls`` and ``messages``, and returns a `pandas.DataFrame`.

    Only what the query needs is read from the files. Raises `UsageError` for a query that duckdb refuses, and
    `MissingPackageError` where duckdb, pandas or pyarrow is not installed.
    """
    purpose = "A query over runs"
    pandas = import_pandas(purpose)
    try:
        duckdb: Any = import_module("duckdb")
        datasets: Any = import_module("pyarrow.dataset")
    except ImportError as error:
        raise MissingPackageError(str(error.name or "duckdb").partition(".")[0], "traces", purpose) from None
    with duckdb.connect(":memory:") as connection:
        for name in PARQUET_TABLES:
            path = os.path.join(folder, f"{name}{PARQUET}")
            if _WILDCARD.search(path):  # which duckdb takes for a pattern
                connection.register(name, datasets.dataset(path, format="parquet"))
            else:
                connection.read_parquet(path, hive_partitioning=False).create_view(name)
        try:
            found = connection.sql(query)
            return None if found is None else found.to_arrow_table().to_pandas(types_mapper=_nullable(pandas))
        except duckdb.Error as error:
            raise UsageError(
                f"The query cannot be run: {' '.join(str(error).partition('LINE 1')[0].split())}"
            ) from None


def _nullable(pandas: Any) -> Callable[[Any], Any]:
    """Returns a function from arrow's types to those of pandas that have `pandas.NA`, as in ``Runs.df``."""
    types = {
        "double": "Float64",
        "bool": "boolean",
        "string": "string",
        **{f"int{n}": f"Int{n}" for n in (8, 16, 32, 64)},
    }
    return lambda kind: pandas.api.types.pandas_dtype(types[f"{kind}"]) if f"{kind}" in types else None
