"""A chat in the terminal: `ShownTurns` shows its turns, `PromptLoop` asks for prompts and commands until Ctrl+D."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from rich.console import Console

from toolcall_nb.approvals.terminal import TerminalApprover
from toolcall_nb.cli.terminal_streams import unescaped_output
from toolcall_nb.core.escaping import visible_line
from toolcall_nb.core.similar_names import did_you_mean
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.errors import ToolcallError, UsageError
from toolcall_nb.render.terminal import TerminalFace

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

    from toolcall_nb.approvals import Decision
    from toolcall_nb.chat import Chat
    from toolcall_nb.core.events import Event
    from toolcall_nb.core.transcript import Message, ToolCall

_HELP = """\
  Enter sends, Alt+Enter begins a line, ↑ brings back a prompt. Ctrl+C stops an answer, Ctrl+D leaves.
  /tools      the tools that the model may call
  /save FILE  writes the transcript: .md, .json, .jsonl, or .html to look at
  /undo       takes the last turn back; its prompt can be changed and sent again
  /new        forgets what was said"""
_PROMPT = "> "


class ShownTurns:
    """Shows turns in the terminal while they run. Questions are answered by keys, while the drawing pauses."""

    def __init__(self) -> None:
        self._console = Console(file=unescaped_output())
        self._face = TerminalFace(self._console)
        self._approver = TerminalApprover()
        self._showing = threading.RLock()

    def run(self, chat: Chat, prompt: str) -> Message:
        """Shows a turn, and returns its answer. Ctrl+C stops it."""
        self._face = TerminalFace(self._console)
        with self._face:
            events = chat.stream(prompt, live=self._show)
            try:
                self._show_all(events)
            except KeyboardInterrupt:  # while an event was shown: at any other time, the turn itself ends
                chat.stop()
                self._show_all(events)
        return chat.transcript.messages[-1]

    def ask(self, call: ToolCall) -> Decision:
        """Asks whether a call may run."""
        with self._face.paused():
            return self._approver(call)

    def _show(self, event: Event) -> None:  # also from a tool's own threads
        with self._showing:
            self._face.apply(event)

    def _show_all(self, events: Iterator[Event]) -> None:
        for event in events:
            self._show(event)


class PromptLoop:
    """A chat whose prompts and commands are typed."""

    def __init__(self, chat: Chat, turns: ShownTurns) -> None:
        self._chat = chat
        self._turns = turns
        self._draft = ""
        self._commands: Mapping[str, Callable[[str], str]] = {
            "/help": lambda _: _HELP,
            "/tools": lambda _: self._describe_tools(),
            "/save": self._save,
            "/undo": lambda _: self._undo(),
            "/new": lambda _: self._begin_anew(),
        }

    def run(self) -> None:
        """Asks for prompts and commands, and answers them, until Ctrl+D."""
        session = _prompt_session(list(self._commands))
        print(f"A chat with {visible_line(self._chat.shown_model_name)}. /help says what there is; Ctrl+D leaves.")
        while True:
            try:
                prompt = session.prompt(_PROMPT, default=self._draft).strip()
            except KeyboardInterrupt:  # the line is given up
                self._draft = ""
                continue
            except EOFError:
                return
            self._draft = ""
            try:
                self._take(prompt)
            except (ToolcallError, OSError) as error:
                print(visible_line(f"{error}"))

    def _take(self, prompt: str) -> None:
        name, _, argument = prompt.partition(" ")
        if name in self._commands:
            print(f"{_PROMPT}{visible_line(prompt)}")  # only a turn shows its prompt
            print(self._commands[name](argument.strip()))
        elif prompt.startswith("/"):
            raise UsageError(f"There is no command {name!r:.100}.{did_you_mean(name, self._commands)} See /help.")
        elif prompt:
            print()
            self._turns.run(self._chat, prompt)
            print()

    # Commands

    def _describe_tools(self) -> str:
        return "\n".join(tool.summary for tool in self._chat.tools.values()) or "There are no tools: see --tools."

    def _save(self, file: str) -> str:
        if not file:
            raise UsageError("/save needs the name of a file.")
        self._chat.transcript.write(file)
        return visible_line(f"Saved to {file}.")

    def _undo(self) -> str:
        self._draft = self._chat.undo()
        return "Taken back."

    def _begin_anew(self) -> str:
        self._chat.load(Transcript())
        return "Nothing is said yet."


def _prompt_session(commands: list[str]) -> PromptSession[str]:
    """Returns a prompt with the history of this conversation, in which Enter sends and Alt+Enter begins a line."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.output import create_output

    keys = KeyBindings()

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def begin_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return PromptSession(
        completer=WordCompleter(commands, sentence=True),
        complete_while_typing=False,
        erase_when_done=True,
        key_bindings=keys,
        multiline=True,
        output=create_output(stdout=unescaped_output()),
    )
