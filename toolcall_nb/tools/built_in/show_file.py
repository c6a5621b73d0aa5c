"""Implements the built-in tool ``show``: a file, or some of its lines, with line numbers (seed 004)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

from msgspec import Meta

from toolcall_nb.core.events import Object
from toolcall_nb.tools.results.failures import InputOutputFailed, InvalidInput
from toolcall_nb.tools.workspaces import WorkspacePath, workspace

_MAX_BYTES = 10_000_000
"""Bytes that are shown at once; a larger file is read line by line."""


def show_file(
    file_path: WorkspacePath,
    start_line: Annotated[int, Meta(ge=1)] | None = None,
    end_line: Annotated[int, Meta(ge=1)] | None = None,
) -> Object:
    """Show the contents of a file with line numbers.

    Args:
        file_path: The file, relative to the workspace root.
        start_line: The first line to show; lines count from 1. Without it, the file's first.
        end_line: The last line to show. Without it, the file's last.
    """
    path = workspace.resolve(file_path)
    start = 1 if start_line is None else start_line
    if end_line is not None and end_line < start:
        raise InvalidInput(f"end_line {end_line} comes before start_line {start}")
    with workspace.open(path) as file:
        lines = _selected(_numbered(file, path), start, end_line, path)
    content = "\n".join(f"{number:5} | {line}" for number, line in enumerate(lines, start))
    message = f"Showing lines {start}-{start + len(lines) - 1} of {path}"
    return {"success": True, "message": message, "data": {"content": content}}


def _numbered(file: BinaryIO, path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    try:
        while line := file.readline(_MAX_BYTES + 1):
            number += 1
            yield number, line
    except OSError as error:
        raise InputOutputFailed(f"{error.strerror or error}: {path}") from error


def _selected(lines: Iterator[tuple[int, bytes]], start: int, end: int | None, path: Path) -> list[str]:
    """Returns the lines from ``start`` to ``end``. Raises `InvalidInput` if the file is shorter, or not text."""
    selected: list[str] = []
    number = size = 0
    for number, line in lines:
        size += len(line) if number >= start else 0
        if size > _MAX_BYTES or len(line) > _MAX_BYTES:
            raise InvalidInput(
                f"Too much to show: more than {_MAX_BYTES:,} bytes of {path}, use start_line and end_line"
            )
        if number >= start:
            selected.append(_text(line, number, path))
        if number == end:
            break
    if not selected:
        raise InvalidInput(f"start_line {start} exceeds file length {number}")
    return selected


def _text(line: bytes, number: int, path: Path) -> str:
    """Decodes a line, without its line end and without a byte order mark."""
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"File is not UTF-8 text: {path} (line {number})") from None
    if "\0" in text:
        raise InvalidInput(f"File is not text: {path} (line {number} holds a NUL character)")
    return text.removesuffix("\r\n").removesuffix("\n")
