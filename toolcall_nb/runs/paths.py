"""Opens and lists files by path or URL: `open_path`, `list_files`. URLs are read by fsspec, where it is installed."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import IO, Any

from toolcall_nb.core.files import open_regular
from toolcall_nb.errors import MissingPackageError, UsageError

_URL = re.compile(r"(?:[a-zA-Z]\w{0,40}::){0,4}[a-zA-Z][a-zA-Z0-9+.-]{1,40}://")
_WILDCARD = re.compile(r"[*?\[]")
_NOT_ENTERED = frozenset({"__pycache__", "node_modules"})


def is_remote(path: str) -> bool:
    """Whether it is a URL of fsspec, such as ``s3://bucket/run.jsonl``, and no path of this machine."""
    return _URL.match(path) is not None


def suffix_of(path: str) -> str:
    """Returns the suffix of the file's name, in lower case."""
    return os.path.splitext(path)[1].lower()


def open_path(path: str) -> IO[bytes]:
    """Opens a file for reading. Raises `UsageError`, with the reason, where that fails."""
    try:
        return _fsspec().open(path, "rb").open() if is_remote(path) else open_regular(path)
    except MissingPackageError:
        raise
    except Exception as error:  # those of the storage services are of many kinds
        raise UsageError(f"{path} cannot be read: {describe_error(error)}") from None


def describe_error(error: Exception) -> str:
    """Returns why a file cannot be read or written."""
    return error.strerror or str(error) if isinstance(error, OSError) else str(error) or type(error).__name__


def common_folder(paths: Sequence[str]) -> str:
    """Returns the folder that all paths begin with, to the last slash; empty if they have none, or are one file."""
    prefix = os.path.commonprefix(paths)  # noqa: RUF071 - a URL is no path
    return prefix[: 1 + max(prefix.rfind("/"), prefix.rfind(os.sep))] if len(set(paths)) > 1 else ""


def list_files(path: str, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, bool]]:
    """Yields the files that a path, a pattern or a URL means, in order, and whether each was named on its own.

    Of a folder, it gives the files below it that ``is_wanted`` accepts by name; hidden files and folders are left out,
    and links to folders are not followed. Of a pattern such as ``logs/**/*.jsonl``, it gives what matches, and of a
    folder that matches what is below it. Raises `UsageError` if there is nothing there.
    """
    is_empty = True
    for file, is_named in _list_remote(path) if is_remote(path) else _list_local(path):
        if is_named or is_wanted(file):
            is_empty = False
            yield file, is_named
    if is_empty:
        raise UsageError(f"{path} has no file that could be a run.")


def _list_local(path: str) -> Iterator[tuple[str, bool]]:
    if os.path.isdir(path):
        yield from _walk(path)
    elif _WILDCARD.search(path) and not os.path.exists(path):
        for match in sorted(glob.glob(path, recursive=True)):
            yield from _walk(match) if os.path.isdir(match) else iter([(match, False)])
    else:
        yield path, True


def _walk(folder: str) -> Iterator[tuple[str, bool]]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _NOT_ENTERED)
        yield from ((os.path.join(parent, name), False) for name in sorted(files) if not name.startswith("."))


def _list_remote(url: str) -> Iterator[tuple[str, bool]]:
    try:
        system, path = _fsspec().core.url_to_fs(url)
        if _WILDCARD.search(path):
            files = sorted(system.glob(path))
        elif system.isdir(path):
            files = sorted(system.find(path))
        else:
            yield url, True
            return
    except MissingPackageError:
        raise
    except Exception as error:
        raise UsageError(f"{url} cannot be read: {describe_error(error)}") from None
    yield from ((system.unstrip_protocol(file), False) for file in files)


def _fsspec() -> Any:
    try:
        return import_module("fsspec")
    except ImportError:
        raise MissingPackageError("fsspec", "traces", "Reading a URL") from None
