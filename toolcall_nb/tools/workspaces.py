"""Resolves the paths that a model gives inside a root folder, the `workspace`; see `Workspace` and `WorkspacePath`.

    def summary(file_path: WorkspacePath) -> str: ...

A model's value for such a parameter is resolved before the call, relative to the workspace's root, with every ``..``
and symbolic link followed. A path that leaves the workspace is refused (seed 004).

    workspace.root = "~/thesis"         # instead of the current directory
    workspace.allow("/data/measured")   # also allows paths in here

This is no sandbox. Hard links are not detected. A path is checked when it is resolved and again when its file is
opened, but not against a process that replaces a folder by a link right between the second check and the opening. A
shell command can use any path.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from os import PathLike
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, BinaryIO

from toolcall_nb.errors import UsageError
from toolcall_nb.tools.results.failures import InputOutputFailed, InvalidInput, ToolFailed

WORKSPACE_PATH_SCHEMA = {"type": "string", "format": "path", "description": "A path relative to the workspace root."}
"""The JSON Schema of a `WorkspacePath`."""

if TYPE_CHECKING:
    WorkspacePath = Path
else:

    class WorkspacePath(type(Path())):
        """A path from a model: relative to the workspace's root, and absolute when the tool gets it."""

        @classmethod
        def __get_pydantic_core_schema__(cls, source, handler):
            """Lets pydantic resolve the path in the workspace, as `toolcall_nb.tools.schemas.msgspec_types` does."""
            from pydantic_core import core_schema

            return core_schema.no_info_after_validator_function(workspace.resolve, core_schema.str_schema())

        @classmethod
        def __get_pydantic_json_schema__(cls, schema, handler):
            return dict(WORKSPACE_PATH_SCHEMA)


class OutsideWorkspace(ToolFailed, ValueError):
    """A path leaves the workspace, or is not a valid path."""


class Workspace:
    """A root folder, and other folders that are allowed (``also``).

    Resolved paths are absolute and contain no links. ``root`` is the current directory of the moment unless it is set.
    """

    def __init__(self, root: str | PathLike[str] | None = None, also: Iterable[str | PathLike[str]] = ()) -> None:
        self._root = None if root is None else _folder(root)
        self._also = [_folder(path) for path in also]

    def __repr__(self) -> str:
        return f"<Workspace {self.root}{''.join(f', {path}' for path in self._also)}>"

    @property
    def root(self) -> Path:
        """The folder that relative paths start from. Raises `UsageError` when it is set to something else."""
        return self._root or Path(os.path.realpath(os.curdir))

    @root.setter
    def root(self, path: str | PathLike[str] | None) -> None:
        self._root = None if path is None else _folder(path)

    def allow(self, path: str | PathLike[str]) -> None:
        """Allows paths in this folder too. Raises `UsageError` where there is no such folder."""
        self._also.append(_folder(path))

    def resolve(self, path: str | PathLike[str]) -> WorkspacePath:
        r"""Resolves a path, which need not exist. An empty path is the root.

        In a string, ``~`` is the home folder and ``\`` separates like ``/``, since models write Windows paths; a name
        with a backslash can only be given as a ``Path``. Raises `OutsideWorkspace`.
        """
        text = os.fspath(path)
        start = os.path.expanduser(_local(text)) if isinstance(path, str) else text
        resolved = _resolved(os.path.join(self.root, start), text)
        if not self._contains(resolved):
            raise OutsideWorkspace(
                f"the path {_quoted(text)} leaves the workspace {self.root}. To allow it on purpose: "
                f"from toolcall_nb.tools import workspace; workspace.allow({str(resolved.parent)!r})"
            )
        return WorkspacePath(resolved)

    def open(self, path: Path) -> BinaryIO:
        """Opens a regular file of the workspace for reading bytes.

        The path is resolved once more, so that a link that was made meanwhile is refused, as are folders, pipes and
        devices. Raises `InvalidInput` or `InputOutputFailed`.
        """
        path = self.resolve(path)
        flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        try:
            descriptor = os.open(path, flags)
        except (FileNotFoundError, NotADirectoryError):
            raise InvalidInput(f"File does not exist: {path}") from None
        except OSError as error:
            raise InputOutputFailed(f"{error.strerror}: {path}") from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise InvalidInput(f"Not a file: {path}")
        return os.fdopen(descriptor, "rb")

    def _contains(self, path: Path) -> bool:
        return any(path.is_relative_to(folder) for folder in (self.root, *self._also))


workspace = Workspace()
"""The workspace of this session."""


def _folder(path: str | PathLike[str]) -> Path:
    folder = Path(os.path.realpath(os.path.expanduser(path)))
    if not folder.is_dir():
        raise UsageError(f"The workspace needs a folder, but {os.fspath(path)!r} is not one. Create it first.")
    return folder


def _local(text: str) -> str:
    """Returns the path with this system's separators; raises where it cannot be a path here."""
    if "\0" in text:
        raise OutsideWorkspace(f"the path {_quoted(text)} holds a NUL character")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise OutsideWorkspace(f"the path {_quoted(text)} holds half a character (a lone surrogate)") from None
    if os.sep == "/" and PureWindowsPath(text).is_absolute() and not PurePosixPath(text).is_absolute():
        raise OutsideWorkspace(f"the path {_quoted(text)} is one of another system; give it relative to the workspace")
    return text.replace("\\", os.sep)


def _resolved(joined: str, text: str) -> Path:
    try:
        return Path(os.path.realpath(joined, strict=True))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OutsideWorkspace(f"the path {_quoted(text)} goes round in a circle of symbolic links") from None
        return Path(os.path.realpath(joined))  # a path that does not exist yet is allowed


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 200 else f"{text[:200]}…")
