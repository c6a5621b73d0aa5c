"""Reads the JSON files in a zip archive, such as a log of Inspect: `archive_members`."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any
from zipfile import BadZipFile, ZipFile, ZipInfo

from toolcall_nb.errors import UsageError

__all__ = ["archive_members"]

_LARGEST_MEMBER = 2**29


def archive_members(
    file: IO[bytes], place: str, decode: Callable[[bytes], Any], report: Callable[[str], None]
) -> Iterator[Any]:
    """Yields the JSON members of an archive as ``{"member": name, "content": value}``, those at its top first.

    ``decode`` reads a JSON text.

    A member that cannot be read is left out and reported. Raises `UsageError` for a file that is no archive.
    """
    try:
        with ZipFile(file) as archive:
            members = [member for member in archive.infolist() if member.filename.lower().endswith(".json")]
            for member in sorted(members, key=lambda member: member.filename.count("/")):
                try:
                    yield {"member": member.filename, "content": decode(_content(archive, member))}
                except (NotImplementedError, RecursionError):
                    report(f"the member {member.filename} is compressed, or nested, in a way that cannot be read here")
                except (OSError, RuntimeError, ValueError, EOFError, BadZipFile, zlib.error) as error:
                    report(f"the member {member.filename} cannot be read: {error}")
    except (BadZipFile, ValueError) as error:
        raise UsageError(f"{place} is no zip archive: {error}") from None


def _content(archive: ZipFile, member: ZipInfo) -> bytes:
    with archive.open(member) as content:
        data = content.read(_LARGEST_MEMBER + 1)
    if len(data) > _LARGEST_MEMBER:
        raise ValueError("it is larger than 512 MiB")
    return data
