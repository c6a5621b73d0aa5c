"""The commands of ``%toolchat``: `COMMANDS` is their one table.

A new command is one entry there: what it takes, its help, the function that does it, and what completion offers for
it. A command of more than a few lines has a module of its own, ``NAME_command.py``.
"""

from __future__ import annotations

import os
import re
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from toolcall_nb.errors import UsageError

if TYPE_CHECKING:
    from toolcall_nb.approvals import ApprovalMode
    from toolcall_nb.notebook.magic import ToolchatMagics

__all__ = ["COMMANDS", "ON_OFF", "Command", "approval_modes", "check_choice", "command_help", "model_choices"]

ON_OFF = ("on", "off")


class Command(NamedTuple):
    """One command of ``%toolchat``."""

    usage: str
    """The argument that it takes, as the help writes it."""
    help: str
    run: Callable[[ToolchatMagics, str, Namespace], None]
    """Runs the command, given the text behind its name and the options of the line."""
    choices: Callable[[ToolchatMagics, str], Iterable[str]] = lambda *_: ()
    """Returns the possible arguments for completion, given the text so far; for a file, its suffixes."""
    argument: Literal["name", "words", "list", "file"] = "name"
    """Whether the argument is one name, several words, a list that commas or blanks separate, or a file."""


def command_help() -> str:
    """Returns the lines of the help that describe the commands."""
    lines = []
    for name, command in COMMANDS.items():
        first, *more = command.help.split("\n")
        lines.append(f"%toolchat {f'{name} {command.usage}'.strip():<20} {first}")
        lines += [f"{'':31}{line}" for line in more]
    return "\n".join(lines)


def check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    """Raises `UsageError` for a value that is not among the choices."""
    if value not in choices:
        raise UsageError(f"{option} {value!r} is not known. There are: {', '.join(choices)}.")


def approval_modes() -> tuple[str, ...]:
    """Returns what ``--approve`` takes."""
    from toolcall_nb.approvals import APPROVAL_MODES  # imports msgspec, which loading the extension does not need

    return APPROVAL_MODES


def model_choices(magics: ToolchatMagics) -> list[str]:
    """Returns the names of models, and the variables that hold one."""
    from toolcall_nb.models import model_names

    return [*model_names(), *magics.threads.model_variables()]


# The settings -------------------------------------------------------------------------------------------------


def _model(magics: ToolchatMagics, name: str, _: Namespace) -> None:
    if name:
        magics.threads.set_model(name)
    print(f"model: {magics.threads.model_name()}")


def _config(magics: ToolchatMagics, changes: str, _: Namespace) -> None:
    if changes:
        magics.threads.configure(changes)
    print(magics.threads.describe_config())


def _config_choices(_: ToolchatMagics, text: str) -> Iterator[str]:
    from toolcall_nb.notebook.model_settings import KEYS, RESET

    if re.search(r"(^|\s)key=\S*$", text):
        yield from (f"key={name}" for name in sorted(os.environ) if name.endswith(("KEY", "TOKEN")))
    else:
        yield from (f"{name}=" for name in KEYS)
        yield RESET


def _tools(magics: ToolchatMagics, names: str, _: Namespace) -> None:
    if names:
        magics.threads.set_tools(names)
    print(magics.threads.describe_tools())


def _approve(magics: ToolchatMagics, mode: str, _: Namespace) -> None:
    if mode:
        check_choice("%toolchat approve", mode, approval_modes())
        magics.threads.set_approve(cast("ApprovalMode", mode))
    print(f"approve: {magics.threads.approve()}")


# The conversations --------------------------------------------------------------------------------------------


def _thread(magics: ToolchatMagics, name: str, _: Namespace) -> None:
    if name:
        magics.threads.switch(name)
    print(magics.threads.describe_threads())


def _thread_names(magics: ToolchatMagics, _: str) -> list[str]:
    return magics.threads.names()


def _new(magics: ToolchatMagics, name: str, _: Namespace) -> None:
    magics.threads.forget(name or None)


def _stop(magics: ToolchatMagics, name: str, _: Namespace) -> None:
    if answer := magics.threads.stop(name or None):
        print(answer)


def _show(magics: ToolchatMagics, name: str, _: Namespace) -> None:
    from toolcall_nb.notebook.show import show

    show(magics.threads.find(name))


def _hooks(magics: ToolchatMagics, wish: str, _: Namespace) -> None:
    if wish:
        check_choice("%toolchat hooks", wish, ON_OFF)
        magics.hooks.install() if wish == "on" else magics.hooks.remove()
    print(f"hooks: {'on' if magics.hooks.are_on else 'off'}")


def _code(magics: ToolchatMagics, name: str, _: Namespace) -> None:
    magics.threads.put_code(name)


# Files --------------------------------------------------------------------------------------------------------


def _save(magics: ToolchatMagics, file: str, _: Namespace) -> None:
    from toolcall_nb.redaction.registered_secrets import saved_value
    from toolcall_nb.runs.transcript_files import check_writable, write_file

    path, name = _path(file, "save"), magics.threads.current
    check_writable(path)
    kept, tally = saved_value(magics.threads.chat().transcript)
    if not kept.messages and os.path.exists(path):
        raise UsageError(f"Nothing was said in the thread {name!r} yet, so {path} was left as it is.")
    write_file(kept, path)
    print(" · ".join(filter(None, (f"Saved the thread {name!r} to {path}", f"{tally}"))))


def _load(magics: ToolchatMagics, file: str, _: Namespace) -> None:
    from toolcall_nb.runs.transcript_files import read_transcript_file

    path = _path(file, "load")
    print(magics.threads.load(read_transcript_file(path), f"{path}"))


def _replay(magics: ToolchatMagics, file: str, options: Namespace) -> None:
    from toolcall_nb.runs.transcript_files import read_transcript_file

    magics.threads.replay(read_transcript_file(_path(file, "replay")), options)


def _path(file: str, command: str) -> Path:
    if not file:
        raise UsageError(f"%toolchat {command} needs the name of a file.")
    try:
        return Path(file).expanduser()
    except RuntimeError as error:  # ~somebody
        raise UsageError(f"{file} is no path: {error}") from None


def _readable(*_: object) -> tuple[str, ...]:
    from toolcall_nb.runs.transcript_files import READABLE

    return READABLE


def _writable(*_: object) -> tuple[str, ...]:
    from toolcall_nb.runs.transcript_files import WRITABLE

    return WRITABLE


# Pictures, secrets, the server --------------------------------------------------------------------------------


def _images(_: ToolchatMagics, hosts: str, __: Namespace) -> None:
    from toolcall_nb.redaction.saved_output import allow_pictures, picture_hosts

    if hosts:
        allow_pictures([] if hosts == "off" else hosts.split())
    print(f"images: {', '.join(sorted(picture_hosts())) or 'none is loaded; a link stands in its place'}")


def _secrets(magics: ToolchatMagics, words: str, _: Namespace) -> None:
    from toolcall_nb.notebook.secrets_command import run_secrets_command

    print(run_secrets_command(words, magics.threads.chat().transcript, magics.threads.namespace))


def _serve(magics: ToolchatMagics, words: str, _: Namespace) -> None:
    from toolcall_nb.notebook.serve_command import NotebookServer

    magics.server = magics.server or NotebookServer()
    print(magics.server.run_command(words, magics.threads.sample()))


COMMANDS: Mapping[str, Command] = {
    "model": Command("[NAME]", "what answers from now on", _model, choices=lambda magics, _: model_choices(magics)),
    "config": Command(
        "[NAME=VALUE]",
        "base_url, key (the name of a variable), temperature …; reset unsets all;\n"
        'native_tools=["web_search"] has the provider run tools of its own',
        _config,
        choices=_config_choices,
        argument="words",
    ),
    "tools": Command(
        "[a,b | all]",
        "what may be called from now on; alone, what there is",
        _tools,
        choices=lambda magics, _: magics.threads.tool_names(),
        argument="list",
    ),
    "approve": Command(
        "[MODE]",
        "auto, ask or never from now on; ask forgets what was allowed",
        _approve,
        choices=lambda *_: approval_modes(),
    ),
    "thread": Command("[NAME]", "the conversation to go on with", _thread, choices=_thread_names),
    "new": Command("", "forget what was said in this thread", _new, choices=_thread_names),
    "stop": Command("[THREAD]", "end what runs in the background", _stop, choices=_thread_names),
    "show": Command(
        "[THREAD|CALL]",
        "put a transcript, or one call, into this cell",
        _show,
        choices=lambda magics, _: [*magics.threads.names(), *magics.threads.call_ids()],
    ),
    "hooks": Command(
        "[on|off]", "whether replies and streams of SDKs display as transcripts", _hooks, choices=lambda *_: ON_OFF
    ),
    "code": Command(
        "[CALL]", "put a call into a new cell, as Python", _code, choices=lambda magics, _: magics.threads.call_ids()
    ),
    "save": Command(
        "FILE",
        "write the thread's transcript: .md, .json, .jsonl, or .html to look at",
        _save,
        choices=_writable,
        argument="file",
    ),
    "load": Command(
        "FILE",
        "go on from a transcript; what was said before becomes another thread",
        _load,
        choices=_readable,
        argument="file",
    ),
    "replay": Command("FILE", "play a transcript as if it were live", _replay, choices=_readable, argument="file"),
    "images": Command(
        "[HOST … |off]",
        "which hosts may serve the pictures in a text; they learn who reads, and when",
        _images,
        choices=lambda *_: ("off",),
        argument="words",
    ),
    "secrets": Command(
        "[on|off]",
        "what is masked where it is saved; add NAME: the value of a variable as well",
        _secrets,
        choices=lambda *_: (*ON_OFF, "add"),
        argument="words",
    ),
    "serve": Command(
        "[PORT | stop]",
        "a chat with what is set here, over HTTP, for this machine",
        _serve,
        choices=lambda *_: ("stop",),
    ),
}
"""The commands by name, in the order of the help."""
