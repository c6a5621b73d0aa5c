"""Asking a person whether a call may run: by keys in a terminal; and the answer where nobody can be asked.

Names and arguments are a model's, and a terminal obeys some characters: what cannot be seen is written out. All of the
arguments is shown, page by page, in the same lines as in a card.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from toolcall_nb.approvals.decisions import Scope
from toolcall_nb.approvals.edited_arguments import reader_of_edits
from toolcall_nb.core.events import MISSING, Json, Missing
from toolcall_nb.core.invisible_characters import escaped_in_json, written_out
from toolcall_nb.core.transcript import ToolCall
from toolcall_nb.render.review import review
from toolcall_nb.render.text import INDENT, indented
from toolcall_nb.render.yaml_like import counted
from toolcall_nb.tools import Decision

__all__ = ["TerminalApprover", "deny_unattended"]

_SCOPES: dict[str, Scope] = {
    **dict.fromkeys(("y", "yes"), "once"),
    **dict.fromkeys(("c", "chat"), "chat"),
    **dict.fromkeys(("a", "always"), "always"),
}
_KEYS = "[y/c/a/n/e/?]"
_HELP = """\
  y  yes, run it this once
  c  yes, and do not ask again for this tool in this chat
  a  yes, and never ask again for this tool in this session
  n  no; you may say why, and the model is told
  e  edit the arguments first
  ?  this help
Where the arguments are longer than the screen, Enter shows more; "y unread" (and c, a) approves without that."""
_UNREAD = " unread"
_ROWS_OF_THE_QUESTION = 5
_FEWEST_ROWS = 8
_NARROWEST = 20
_NOBODY = "Nobody answered: there is no input to read an answer from, so the call was denied."


def deny_unattended(call: ToolCall) -> Decision:
    """The answer where nobody can be asked: no, with what to do about it."""
    return Decision(
        False,
        f"Nobody is here to ask whether {written_out(call.name[:100])} may run, so it was denied: "
        "--approve auto lets calls run unasked, --approve never switches them off.",
    )


class TerminalApprover:
    """Called with a call, it shows the name and the whole arguments, asks, and returns the `Decision`.

    Arguments that are longer than the screen are shown page by page. Until the last page was shown an approval is
    refused, unless it says so: ``y unread``.

    ``ask`` is given a prompt and returns a line, ``say`` is given text to show; without them, the `input` and `print`
    of the moment. Where no answer can be read (the input is at its end, or there is none) the call is denied.
    `KeyboardInterrupt` passes through.
    """

    def __init__(self, ask: Callable[[str], str] | None = None, say: Callable[[str], object] | None = None) -> None:
        self._given_ask = ask
        self._say = say if say is not None else print

    def __call__(self, call: ToolCall) -> Decision:
        """The person's decision about this call."""
        try:
            return self._decided(call)
        except (EOFError, OSError, RuntimeError):  # the end, a closed stream, a frontend that has no input
            return Decision(False, _NOBODY)

    def _ask(self, prompt: str) -> str:
        return input(prompt) if self._given_ask is None else self._given_ask(prompt)

    def _decided(self, call: ToolCall) -> Decision:
        asked = {} if call.input is MISSING or call.input is None else call.input
        arguments = asked
        left = self._show(call.name, arguments)
        while True:
            answer = self._ask(_prompt(left)).strip().lower()
            key = answer.removesuffix(_UNREAD)
            if key in _SCOPES and (not left or key != answer):
                reason = f"Approved without reading all of it: {_lines(left)} not shown." if left else None
                return Decision(True, reason, input=_if_edited(asked, arguments), scope=_SCOPES[key])
            if key in ("n", "no"):
                return Decision(False, self._reason())
            if key in ("e", "edit"):
                arguments = self._edited(arguments)
                left = self._show(
                    call.name, arguments, " (edited)" if _if_edited(asked, arguments) is not MISSING else ""
                )
            elif not key and left:
                left = self._show_page(left)
            elif key in _SCOPES:
                self._say(f'{_lines(left)} not shown yet. Enter shows more; "{key}{_UNREAD}" approves without that.')
            else:
                self._say(_HELP if key in ("?", "h", "help") else f"Please answer with one of {_KEYS}; ? says more.")

    def _show(self, name: str, arguments: Json, note: str = "") -> list[str]:
        """Say what is asked, with the first page of the arguments; returns the lines that are not shown yet."""
        self._say(f"\nThe model asks to run {written_out(name)}{note} with")
        return self._show_page(_screen_lines(arguments))

    def _show_page(self, lines: list[str]) -> list[str]:
        rows = max(shutil.get_terminal_size().lines - _ROWS_OF_THE_QUESTION, _FEWEST_ROWS)
        self._say("\n".join(lines[:rows]))
        return lines[rows:]

    def _reason(self) -> str | None:
        try:
            return self._ask("Why not? (may stay empty) ").strip() or None
        except (EOFError, OSError, RuntimeError):  # the answer itself was given
            return None

    # Editing

    def _edited(self, arguments: Json) -> Json:
        """The arguments as the person wants them; as they were where nothing could be made of the edit."""
        try:
            text = self._edited_text(arguments)
        except _EditorFailed as error:
            self._say(str(error))
            return arguments
        if not text.strip():
            return arguments
        try:
            return reader_of_edits()(text)
        except ValueError as error:
            self._say(f"{written_out(str(error))} Nothing was changed.")
            return arguments

    def _edited_text(self, arguments: Json) -> str:
        line = _json(arguments)
        if self._given_ask is None and sys.stdin.isatty() and sys.stdout.isatty():
            editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
            return _from_editor(editor, _json(arguments, 2)) if editor else self._prefilled(line)
        self._say(f"Write the arguments anew in one line; an empty one keeps them:\n{indented(line)}")
        return self._ask("> ")

    def _prefilled(self, line: str) -> str:
        """A line to edit that holds the arguments already, where the terminal can do that."""
        try:
            import readline
        except ImportError:  # not on every system
            return self._ask(f"{line}\n> ")
        readline.set_startup_hook(lambda: readline.insert_text(line))
        try:
            return self._ask("> ")
        finally:
            readline.set_startup_hook()


class _EditorFailed(Exception):
    """The person's editor could not be used."""


def _from_editor(command: str, text: str) -> str:
    """What the person's own editor makes of the text."""
    with tempfile.TemporaryDirectory(prefix="toolcall-nb-") as folder:
        file = Path(folder) / "arguments.json"
        file.write_text(text + "\n", encoding="utf-8")
        try:
            subprocess.run([*shlex.split(command), str(file)], check=True)
            return file.read_text(encoding="utf-8")
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise _EditorFailed(f"The editor {command!r} failed ({error}), so nothing was changed.") from error


def _if_edited(asked: Json, arguments: Json) -> Json | Missing:
    """The arguments where they are others than were asked for; the order of keys and the kind of a number count."""
    same = json.dumps(asked) == json.dumps(arguments)
    return MISSING if same else arguments


# On the screen ----------------------------------------------------------------------------------------------


def _prompt(left: list[str]) -> str:
    if not left:
        return f"Run it? {_KEYS} "
    return f"{_lines(left)} not shown yet. Enter shows more, or {_KEYS} "


def _lines(left: list[str]) -> str:
    return counted(len(left), "lines")


def _screen_lines(arguments: Json) -> list[str]:
    """All of the arguments as lines of the screen: long ones are folded at its width."""
    width = max(shutil.get_terminal_size().columns - len(INDENT), _NARROWEST)
    entries = review(arguments, lines=sys.maxsize, characters=sys.maxsize).entries
    text = "".join(text for entry in entries for _, text in entry.tokens) or "{}"
    lines = text.removesuffix("\n").expandtabs(4).split("\n")
    from rich.cells import chop_cells  # %toolchat asks nobody, and rich is not quick to import

    return [f"{INDENT}{piece}".rstrip() for line in lines for piece in chop_cells(line, width) or [""]]


def _json(value: Json, indent: int | None = None) -> str:
    return escaped_in_json(json.dumps(value, ensure_ascii=False, indent=indent))
