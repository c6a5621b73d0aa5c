"""Completion for ``%%toolchat`` and ``%toolchat``: options, their values, commands, tools, models, files.

`matcher` is one of IPython's custom matchers. On a line of these magics it answers alone, with nothing where nothing
fits: Python's names mean nothing there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from toolcall_nb.notebook.magic import COMMANDS, DIALECTS, OPTIONS, SWITCH, ToolchatMagics

if TYPE_CHECKING:
    from IPython.core.completer import CompletionContext, IPCompleter, SimpleMatcherResult

__all__ = ["Found", "complete", "install", "remove"]

_LINE = re.compile(r"\s*(%%?)toolchat\s+(.*)", re.DOTALL)
_PRIORITY = 1000.0
_IDENTIFIER = "toolcall_nb.toolchat"


class Found(NamedTuple):
    """What may stand where the cursor is. ``fragment`` is the text before the cursor that a name replaces."""

    fragment: str
    names: list[str]


class _Nothing(list[Any]):
    """No completions, and the last word: IPython asks others as well where the length is 0."""

    def __len__(self) -> int:
        return 1


def install(completer: IPCompleter, magics: ToolchatMagics) -> None:
    """Answer on the magics' lines from now on."""
    from IPython.core.completer import SimpleCompletion, context_matcher

    def match(context: CompletionContext) -> SimpleMatcherResult:
        found = complete(magics, context.text_until_cursor)
        if found is None:
            return {"completions": []}
        completions = [SimpleCompletion(text=name, type="magic") for name in found.names]
        return {
            "completions": completions or _Nothing(),
            "matched_fragment": found.fragment,
            "ordered": True,
            "suppress": True,
        }

    remove(completer)
    completer.custom_matchers.append(context_matcher(priority=_PRIORITY, identifier=_IDENTIFIER)(match))


def remove(completer: IPCompleter) -> None:
    """Take the matcher out again."""
    others = [each for each in completer.custom_matchers if getattr(each, "matcher_identifier", "") != _IDENTIFIER]
    completer.custom_matchers[:] = others


def complete(magics: ToolchatMagics, text: str) -> Found | None:
    """What may stand at the end of ``text``, the line up to the cursor; None for a line that is none of the magics'."""
    line = _LINE.fullmatch(text)
    if line is None:
        return None
    if line[1] == "%":
        return _in_line(magics, line[2])
    return _in_options(magics, line[2], OPTIONS)


def _in_line(magics: ToolchatMagics, text: str) -> Found:
    """After ``%toolchat``: a command, and then what it takes."""
    command, blank, rest = text.partition(" ")
    if not blank:
        return _beginning(command, COMMANDS)
    last = re.split(r"\s", rest)[-1]
    if command == "replay" and (last.startswith("-") or " --speed" in f" {rest}"):
        return _in_options(magics, rest, ("--speed", "--background"))
    if command == "tools":
        return _listed(rest, magics.threads.tool_names())
    if command in _FILES:
        return _files(rest.lstrip(), _FILES[command]())
    if command in ("config", "images", "secrets"):
        return _beginning(last, _WORDS[command](magics, rest))
    return _beginning(rest.lstrip(), _WORDS[command](magics, rest) if command in _WORDS else ())


def _in_options(magics: ToolchatMagics, text: str, options: Iterable[str]) -> Found:
    """Among options: the value of the one before the cursor, or those that are not there yet."""
    if text.count('"') % 2 or text.count("'") % 2:
        return Found("", [])  # inside a quotation
    *before, last = re.split(r"\s+", text)
    option, equals, value = last.partition("=")
    if not (equals and option in _TAKES_VALUE):
        option, value = (before[-1] if before else ""), last
    if option in _TAKES_VALUE:
        names = _VALUES[option](magics) if option in _VALUES else ()
        return _listed(value, names) if option in ("--tools", "-t") else _beginning(value, names)
    return _beginning(last, [each for each in options if each not in before])


def _beginning(fragment: str, names: Iterable[str]) -> Found:
    return Found(fragment, [name for name in names if name.startswith(fragment)])


def _listed(text: str, names: Iterable[str]) -> Found:
    """The last place of a list that commas part, or blanks; what the list has already is not offered again."""
    *chosen, fragment = re.split(r"[\s,]", text)
    return _beginning(fragment, [name for name in names if name not in chosen])


def _files(text: str, suffixes: tuple[str, ...]) -> Found:
    """Folders, and files with these suffixes; the name may have blanks, and a quotation mark before it."""
    path = text.lstrip("'\"")
    folder, slash, beginning = path.rpartition("/")
    here = Path(folder + slash or ".").expanduser()
    try:
        entries = sorted(here.iterdir())
    except (OSError, ValueError, RuntimeError):
        entries = []
    names = [f"{each.name}{'/' if each.is_dir() else ''}" for each in entries if _is_offered(each, suffixes)]
    return _beginning(beginning, [name for name in names if beginning.startswith(".") or not name.startswith(".")])


def _is_offered(path: Path, suffixes: tuple[str, ...]) -> bool:
    return path.is_dir() or path.suffix.lower() in suffixes


def _models(magics: ToolchatMagics) -> list[str]:
    from toolcall_nb.models import model_names

    return [*model_names(), *magics.threads.model_variables()]


def _config(text: str) -> Iterator[str]:
    from toolcall_nb.notebook.config import KEYS, RESET

    if re.search(r"(^|\s)key=\S*$", text):
        yield from (f"key={name}" for name in sorted(os.environ) if name.endswith(("KEY", "TOKEN")))
    else:
        yield from (f"{name}=" for name in KEYS)
        yield RESET


def _approval_modes() -> tuple[str, ...]:
    from toolcall_nb.approvals import APPROVAL_MODES

    return APPROVAL_MODES


def _readable() -> tuple[str, ...]:
    from toolcall_nb.runs.transcript_files import READABLE

    return READABLE


def _writable() -> tuple[str, ...]:
    from toolcall_nb.runs.transcript_files import WRITABLE

    return WRITABLE


_VALUES: Mapping[str, Callable[[ToolchatMagics], Iterable[str]]] = {
    **dict.fromkeys(("--model", "-m"), _models),
    **dict.fromkeys(("--tools", "-t"), lambda magics: magics.threads.tool_names()),
    "--thread": lambda magics: magics.threads.names(),
    "--dialect": lambda _: DIALECTS,
    "--approve": lambda _: _approval_modes(),
}
_TAKES_VALUE = frozenset(
    name for action in ToolchatMagics.toolchat.parser._actions if action.nargs is None for name in action.option_strings
)
_WORDS: Mapping[str, Callable[[ToolchatMagics, str], Iterable[str]]] = {
    "model": lambda magics, _: _models(magics),
    "config": lambda _, text: _config(text),
    "approve": lambda *_: _approval_modes(),
    "thread": lambda magics, _: magics.threads.names(),
    "new": lambda magics, _: magics.threads.names(),
    "stop": lambda magics, _: magics.threads.names(),
    "show": lambda magics, _: [*magics.threads.names(), *magics.threads.call_ids()],
    "hooks": lambda *_: SWITCH,
    "code": lambda magics, _: magics.threads.call_ids(),
    "images": lambda *_: ("off",),
    "secrets": lambda *_: (*SWITCH, "add"),
    "serve": lambda *_: ("stop",),
}
"""What the commands take that are named by a word."""

_FILES: Mapping[str, Callable[[], tuple[str, ...]]] = {"save": _writable, "load": _readable, "replay": _readable}
