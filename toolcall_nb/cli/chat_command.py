"""The command ``toolcall-nb chat``, and the tools that ``--tools`` names: `add_chat`, `named_tools`."""

from __future__ import annotations

import argparse
import importlib
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from toolcall_nb.approvals import APPROVAL_MODES
from toolcall_nb.cli.command_input import at_least, read_input
from toolcall_nb.core.events import Event
from toolcall_nb.core.similar_names import did_you_mean
from toolcall_nb.core.transcript import ToolCall
from toolcall_nb.errors import UsageError

if TYPE_CHECKING:
    from toolcall_nb.approvals import Decision
    from toolcall_nb.tools import Tool


def add_chat(commands: Any) -> None:
    """Adds the command ``chat``."""
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
        "--approve", choices=APPROVAL_MODES, default="auto", help="who is asked before a call runs (%(default)s)"
    )
    chat.add_argument("--system", metavar="TEXT", help="the system prompt")
    chat.add_argument("--dialect", metavar="D", default="native", help="how calls are written (default: %(default)s)")
    chat.add_argument("--max-steps", metavar="N", type=at_least(1), default=10, help="requests at most (%(default)s)")
    chat.add_argument(
        "--retries",
        metavar="N",
        type=at_least(0),
        default=2,
        help="tries of a request that failed before it began (%(default)s)",
    )
    chat.add_argument("--eager", action="store_true", help="start a tool while the model still writes, in a thread")
    chat.add_argument("--once", action="store_true", help="the results of the calls are the answer; no second request")
    chat.add_argument("--speed", metavar="X", type=float, default=1.0, help="speed of the mock; 0 never waits")
    chat.set_defaults(command=_chat)


def _chat(options: argparse.Namespace) -> int:
    from rich.console import Console

    from toolcall_nb.approvals.terminal import TerminalApprover
    from toolcall_nb.chat import Chat
    from toolcall_nb.cli.terminal_streams import unescaped_output
    from toolcall_nb.render.terminal import TerminalFace

    prompt = read_input("-")[0] if options.prompt == "-" else options.prompt
    terminal, approver, showing = TerminalFace(Console(file=unescaped_output())), TerminalApprover(), threading.RLock()

    def ask(call: ToolCall) -> Decision:
        with terminal.paused():
            return approver(call)

    def show(event: Event) -> None:  # also from a tool's own threads
        with showing:
            terminal.apply(event)

    chat = Chat(
        options.model,
        tools=list(named_tools(options.tools)),
        system=options.system,
        max_steps=options.max_steps,
        retries=options.retries,
        dialect=options.dialect,
        approval_mode=options.approve,
        ask_approval=ask if options.approve == "ask" else None,
        once=options.once,
        eager=options.eager,
        speed=options.speed,
    )
    with terminal:
        events = chat.stream(prompt, live=show)
        try:
            for event in events:
                show(event)
        except KeyboardInterrupt:  # while an event was shown: at any other time, the turn itself ends
            chat.stop()
            for event in events:
                show(event)
    answer = chat.transcript.messages[-1]
    if answer.aborted is not None:
        return 130
    return 1 if answer.finish_reason == "error" else 0


def named_tools(names: str) -> Iterator[Tool]:
    """Yields the tools of ``bash,module:function,module``: by its name, from a module, or all ``@tool`` of a module."""
    from toolcall_nb.tools import as_tools, registry
    from toolcall_nb.tools.built_in import BUILT_IN_NAMES
    from toolcall_nb.tools.sources import tools_named

    if "" not in sys.path:
        sys.path.insert(0, "")  # as `python -m` has it: modules beside the user
    for name in filter(None, map(str.strip, names.split(","))):
        module_name, _, attribute = name.partition(":")
        if name in registry or name in BUILT_IN_NAMES:
            yield from tools_named(name, {})
            continue
        module = _imported(module_name)
        if attribute:
            if not hasattr(module, attribute):
                hint = did_you_mean(attribute, dir(module))
                raise UsageError(f"The module {module_name!r} has no {attribute!r}.{hint}")
            yield from as_tools(getattr(module, attribute))
            continue
        decorated = [tool for tool in registry.values() if tool.origin.startswith(f"{module_name}:")]
        if not decorated:
            raise UsageError(
                f"The module {module_name!r} has no function with @tool. Name one: {module_name}:function."
            )
        yield from decorated


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except Exception as error:  # the module is the user's, and may fail in any way
        from toolcall_nb.tools import registry
        from toolcall_nb.tools.built_in import BUILT_IN_NAMES

        hint = did_you_mean(name, [*registry, *BUILT_IN_NAMES])
        raise UsageError(f"The module {name!r} cannot be imported: {type(error).__name__}: {error}.{hint}") from error
