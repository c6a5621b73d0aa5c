"""The command line: ``toolcall-nb render|events|check|diff|chat|serve``. `main` runs one command.

Exit codes: 0 for success; 1 if ``check`` found something, ``diff`` found a difference, or the model could not answer; 2
for a mistake in the command, with one line on standard error; 130 for Ctrl-C. ``-`` is standard input. Text is UTF-8,
in and out.
"""

from __future__ import annotations

import argparse
import codecs
import importlib
import io
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolcall_nb.approvals import APPROVAL_MODES
from toolcall_nb.core.events import Diagnostic, Event, to_dict
from toolcall_nb.core.json_text import json_text
from toolcall_nb.core.transcript import ToolCall, Transcript
from toolcall_nb.errors import ToolcallError, UsageError
from toolcall_nb.redaction import Tally
from toolcall_nb.redaction.registered_secrets import saved_text, saved_value
from toolcall_nb.server.command import add_options, serve
from toolcall_nb.traces.transcript_files import (
    READABLE,
    WRITABLE,
    check_writable,
    read_events,
    read_transcript_file,
    write_file,
)

if TYPE_CHECKING:
    from toolcall_nb.approvals import Decision
    from toolcall_nb.tools import Tool

__all__ = ["main"]


_FILE_HELP = f"the transcript ({', '.join(READABLE)}); - is standard input, as Markdown"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        options = _parser().parse_args(argv)
    except SystemExit as error:  # argparse has printed why
        return error.code if isinstance(error.code, int) else 2
    try:
        code: int = options.command(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe; the interpreter's last flush must not fail either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except (ToolcallError, OSError) as error:
        print(f"toolcall-nb: {_one_line(error)}", file=sys.stderr)
        return 2
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="toolcall-nb", description="Tool calls of language models, shown.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    render = commands.add_parser("render", help="a transcript as a page of HTML, or as another kind of file")
    render.add_argument("file", metavar="FILE", help=_FILE_HELP)
    render.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help=f"the file to write ({', '.join(WRITABLE)}); otherwise a page of HTML goes to standard output",
    )
    render.add_argument("--timings", action="store_true", help="write the known times of the calls, too")
    render.add_argument("--no-masking", action="store_true", help="keep secrets in what is written as they are")
    render.set_defaults(command=_render)

    events = commands.add_parser("events", help="the events of what a model wrote, one JSON object a line")
    events.add_argument("file", metavar="FILE", help=_FILE_HELP)
    events.add_argument("--cut", metavar="N", type=_at_least(1), help="feed the text in pieces of N characters")
    events.add_argument(
        "--format",
        choices=("ui", "stages"),
        default="ui",
        help="as UI message chunks or as updates of tool blocks (%(default)s)",
    )
    events.set_defaults(command=_events)

    check = commands.add_parser("check", help="what is wrong with a transcript, and where; 1 if anything is")
    check.add_argument("file", metavar="FILE", help=_FILE_HELP)
    check.add_argument(
        "--stages", action="store_true", help="FILE is a log of tool block updates, one JSON object a line"
    )
    check.set_defaults(command=_check)
    _add_diff(commands)
    _add_chat(commands)
    serve = commands.add_parser("serve", help="a chat over HTTP, for pages, agents and other programs")
    add_options(serve)
    serve.set_defaults(command=_serve)
    return parser


def _add_diff(commands: Any) -> None:
    diff = commands.add_parser("diff", help="what differs between two runs; 1 if anything does")
    diff.add_argument("a", metavar="A", help=_FILE_HELP)
    diff.add_argument("b", metavar="B", help="the other one")
    diff.add_argument(
        "--ignore",
        metavar="WORDS",
        default="",
        help="what is no difference: timings (also tokens and costs), ids, text; with commas between them",
    )
    diff.add_argument("--no-masking", action="store_true", help="keep secrets in what is written as they are")
    diff.set_defaults(command=_diff)


def _add_chat(commands: Any) -> None:
    chat = commands.add_parser("chat", help="ask a model, live in the terminal")
    chat.add_argument("prompt", metavar="PROMPT", help="what is asked; - is standard input")
    chat.add_argument("--model", metavar="M", default="mock", help="the model (default: %(default)s)")
    chat.add_argument(
        "--tools",
        metavar="MODULE:FUNCTION,…",
        default="",
        help="functions that the model may call; also edit, show and bash, for this folder",
    )
    chat.add_argument(
        "--approve",
        choices=APPROVAL_MODES,
        default="auto",
        help="who is asked before a call runs (%(default)s)",
    )
    chat.add_argument("--system", metavar="TEXT", help="the system prompt")
    chat.add_argument("--dialect", metavar="D", default="native", help="how calls are written (default: %(default)s)")
    chat.add_argument("--max-steps", metavar="N", type=_at_least(1), default=10, help="requests at most (%(default)s)")
    chat.add_argument(
        "--retries",
        metavar="N",
        type=_at_least(0),
        default=2,
        help="tries of a request that failed before it began (%(default)s)",
    )
    chat.add_argument("--once", action="store_true", help="the results of the calls are the answer; no second request")
    chat.add_argument("--speed", metavar="X", type=float, default=1.0, help="speed of the mock; 0 never waits")
    chat.set_defaults(command=_chat)


def _at_least(least: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} on")
        return number

    return whole


# Commands ---------------------------------------------------------------------------------------------------


def _render(options: argparse.Namespace) -> int:
    from toolcall_nb.markdown.front_matter import FORMAT_VERSION, describe_newer_version, read_format_version
    from toolcall_nb.render import to_html

    output = None if options.output in (None, "-") else Path(options.output)
    if output is not None:
        check_writable(output)
    if _is_markdown(options.file):
        text, broken = _read(options.file)
        if (version := read_format_version(text)) > FORMAT_VERSION:
            print(f"toolcall-nb: {options.file} is of {describe_newer_version(version)}.", file=sys.stderr)
        _warn(options.file, broken)
        transcript = Transcript.from_markdown(text)
    else:
        transcript = read_transcript_file(Path(options.file))
    tally = Tally()
    if not options.no_masking:
        transcript, tally = saved_value(transcript)
    if tally.secrets:
        print(f"toolcall-nb: {tally}", file=sys.stderr)
    if output is None:
        known = {call.id: call.seconds for call in transcript.calls.values() if call.seconds is not None}
        sys.stdout.write(to_html(transcript, page=True, timings=known if options.timings else None))
    else:
        write_file(transcript, output, timings=options.timings)
    return 0


def _events(options: argparse.Namespace) -> int:
    if _is_markdown(options.file):
        text, broken = _read(options.file)
        _warn(options.file, broken)
        events: Iterable[Event] = _detected(text, options.cut or max(len(text), 1))
    elif options.cut is not None:
        raise UsageError(f"--cut is for text, and {options.file} is none: leave it out.")
    else:
        events = read_events(Path(options.file))
    for line in _staged(events) if options.format == "stages" else map(to_dict, events):
        print(json_text(line))
    return 0


def _detected(text: str, size: int) -> Iterator[Event]:
    from toolcall_nb.dialects import detector

    found = detector("callout")
    for start in range(0, len(text), size):
        yield from found.feed(text[start : start + size])
    yield from found.close()


def _staged(events: Iterable[Event]) -> Iterator[dict[str, Any]]:
    from toolcall_nb.stages import StageProjector

    projector = StageProjector()
    for event in events:
        yield from projector.feed(event)
    yield from projector.close()


def _check(options: argparse.Namespace) -> int:
    if options.stages:
        return _check_stages(options.file, *_read(options.file))
    if _is_markdown(options.file):
        text, broken = _read(options.file)
        diagnostics = [*broken, *Transcript.from_markdown(text).diagnostics]
    else:
        diagnostics = [*read_transcript_file(Path(options.file)).diagnostics]
    found = sorted(diagnostics, key=lambda item: (item.line, item.column))
    for diagnostic in found:
        print(_format_diagnostic(options.file, diagnostic))
    return 1 if found else 0


def _check_stages(name: str, text: str, broken: Sequence[Diagnostic]) -> int:
    from toolcall_nb.stages import RULES, validate

    found = [(diagnostic.line, _format_diagnostic(name, diagnostic)) for diagnostic in broken]
    places: list[int] = []
    log: list[Any] = []
    for number, line in enumerate(text.split("\n"), 1):
        try:
            log += [json.loads(line)] if line.strip() else []
        except (ValueError, RecursionError) as error:
            found.append((number, f"{name}:{number}: this is not JSON ({error}) — Each line is one update."))
        places += [number] * (len(log) - len(places))
    for rule in validate(log):
        number = places[rule.position]
        found.append((number, f"{name}:{number}: {rule.message} — {RULES[rule.rule]}"))
    for _, line in sorted(found, key=lambda item: item[0]):
        print(line)
    return 1 if found else 0


def _diff(options: argparse.Namespace) -> int:
    from toolcall_nb.traces.difference import diff

    if options.a == options.b == "-":
        raise UsageError("Standard input is one run: name a file for the other.")
    runs = (_read_run(options.a), _read_run(options.b))
    difference = diff(*runs, ignore=options.ignore, names=(options.a, options.b))
    shown, tally = (difference, Tally()) if options.no_masking else difference.masked()
    if sys.stdout.isatty():
        from rich.console import Console

        from toolcall_nb.render.difference_text import difference_rich

        Console().print(difference_rich(shown), soft_wrap=True)
    else:
        print(shown.to_text())
    if tally.secrets:
        print(f"toolcall-nb: {tally}", file=sys.stderr)
    return 1 if difference else 0


def _read_run(name: str) -> Transcript:
    return Transcript.from_markdown(_read(name)[0]) if name == "-" else read_transcript_file(Path(name))


def _chat(options: argparse.Namespace) -> int:
    from toolcall_nb.approvals.terminal import TerminalApprover
    from toolcall_nb.chat import Chat
    from toolcall_nb.render.terminal import TerminalFace

    prompt = _read("-")[0] if options.prompt == "-" else options.prompt
    terminal, approver, showing = TerminalFace(), TerminalApprover(), threading.RLock()

    def ask(call: ToolCall) -> Decision:
        with terminal.paused():
            return approver(call)

    def show(event: Event) -> None:  # also from a tool's own threads
        with showing:
            terminal.apply(event)

    chat = Chat(
        options.model,
        tools=list(_tools(options.tools)),
        system=options.system,
        max_steps=options.max_steps,
        retries=options.retries,
        dialect=options.dialect,
        approval_mode=options.approve,
        ask_approval=ask if options.approve == "ask" else None,
        once=options.once,
        speed=options.speed,
    )
    with terminal:
        for event in chat.stream(prompt, live=show):
            show(event)
    answer = chat.transcript.messages[-1]
    if answer.aborted is not None:
        return 130
    return 1 if answer.finish_reason == "error" else 0


def _serve(options: argparse.Namespace) -> int:
    return serve(options, _tools)


# Input and output -------------------------------------------------------------------------------------------


def _is_markdown(name: str) -> bool:
    """Whether the input is Markdown: standard input, or a file whose suffix says so."""
    return name == "-" or Path(name).suffix.lower() == ".md"


def _read(name: str) -> tuple[str, list[Diagnostic]]:
    """Returns the text of a file or of standard input, and a diagnostic if its bytes are not UTF-8."""
    data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode("utf-8"), []
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
        broken = Diagnostic(
            f"the byte 0x{data[error.start]:02x} is not UTF-8", "Such bytes were replaced by U+FFFD.", line, column
        )
        return data.decode("utf-8", "replace"), [broken]


def _warn(name: str, diagnostics: Sequence[Diagnostic]) -> None:
    for diagnostic in diagnostics:
        print(_format_diagnostic(name, diagnostic), file=sys.stderr)


def _format_diagnostic(name: str, diagnostic: Diagnostic) -> str:
    text = saved_text(f"{diagnostic.message} — {diagnostic.action}")  # such lines end up in logs
    return f"{name}:{diagnostic.line}:{diagnostic.column}: {text}"


def _tools(names: str) -> Iterator[Tool]:
    """Yields the tools of ``bash,module:function,module``: by its name, from a module, or all ``@tool`` of a module."""
    from toolcall_nb.tools import as_tools, registry
    from toolcall_nb.tools.built_in import BUILT_IN_NAMES
    from toolcall_nb.tools.sources import tools_named

    if "" not in sys.path:
        sys.path.insert(0, "")  # as `python -m` has it: modules beside the user
    for name in filter(None, map(str.strip, names.split(","))):
        module_name, _, held = name.partition(":")
        if name in registry or name in BUILT_IN_NAMES:
            yield from tools_named(name, {})
        elif not held:
            yield from _decorated(module_name)
        else:
            module = _imported(module_name)
            if not hasattr(module, held):
                raise UsageError(f"The module {module_name!r} has no {held!r}.")
            yield from as_tools(getattr(module, held))


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except Exception as error:  # the module is the user's, and may fail in any way
        raise UsageError(f"The module {name!r} cannot be imported: {type(error).__name__}: {error}") from error


def _decorated(module: str) -> list[Tool]:
    from toolcall_nb.tools import registry

    _imported(module)
    found = [tool for tool in registry.values() if tool.origin.startswith(f"{module}:")]
    if not found:
        raise UsageError(f"The module {module!r} has no function with @tool. Name one: {module}:function.")
    return found


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())
