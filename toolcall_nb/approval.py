"""Asking a person whether a call may run: by keys in a terminal; and the answer where nobody can be asked.

Names and arguments are a model's, and a terminal obeys some characters: whatever is not printable is shown as JSON's
own escape, so the text on the screen is the whole of the arguments and still JSON.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

from toolcall_nb.events import MISSING, Json, Missing, Object
from toolcall_nb.tools import Decision
from toolcall_nb.transcript import ToolCall

__all__ = ["TerminalApprover", "deny_unattended"]

Scope: TypeAlias = Literal["once", "chat", "always"]

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
  ?  this help"""
_NOBODY = "Nobody answered: there is no input to read an answer from, so the call was denied."


def deny_unattended(call: ToolCall) -> Decision:
    """The answer where nobody can be asked: no, with what to do about it."""
    return Decision(
        False,
        f"Nobody is here to ask whether {_escaped(call.name)[:100]} may run, so it was denied: "
        "--approve auto lets calls run unasked, --approve never switches them off.",
    )


class TerminalApprover:
    """Called with a call, it shows the name and the whole arguments, asks, and returns the `Decision`.

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
        self._show(call.name, arguments)
        while True:
            key = self._ask(f"Run it? {_KEYS} ").strip().lower()
            if key in _SCOPES:
                return Decision(True, input=_if_edited(asked, arguments), scope=_SCOPES[key])
            if key in ("n", "no"):
                return Decision(False, self._reason())
            if key in ("e", "edit"):
                arguments = self._edited(arguments)
                self._show(call.name, arguments, " (edited)" if _if_edited(asked, arguments) is not MISSING else "")
            else:
                self._say(_HELP if key in ("?", "h", "help") else f"Please answer with one of {_KEYS}; ? says more.")

    def _show(self, name: str, arguments: Json, note: str = "") -> None:
        self._say(f"\nThe model asks to run {_escaped(name)}{note} with\n{_indented(_json(arguments, 2))}")

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
            value = json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            self._say(f"This is not JSON ({_escaped(str(error))}), so nothing was changed.")
            return arguments
        if not isinstance(value, dict):
            self._say("Arguments are a JSON object, {…}, and this is none, so nothing was changed.")
            return arguments
        return value

    def _edited_text(self, arguments: Json) -> str:
        line = _json(arguments)
        if self._given_ask is None and sys.stdin.isatty() and sys.stdout.isatty():
            editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
            return _from_editor(editor, _json(arguments, 2)) if editor else self._prefilled(line)
        self._say(f"Write the arguments anew in one line; an empty one keeps them:\n{_indented(line)}")
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


def _refuse(name: str) -> Object:
    raise ValueError(f"{name} is none of its numbers")


# On the screen ----------------------------------------------------------------------------------------------


def _json(value: Json, indent: int | None = None) -> str:
    return "\n".join(map(_escaped, json.dumps(value, ensure_ascii=False, indent=indent).split("\n")))


def _escaped(text: str) -> str:
    """The text with each character that is not printable as JSON writes it in ASCII: ``\\u001b``."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _code_units(c) for c in text)


def _code_units(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))
