"""A conversation with a model that may call tools: `Chat`. `toolcall_nb.chat.turn` has the loop of one turn."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from msgspec.structs import replace

from toolcall_nb.chat.state import ChatState
from toolcall_nb.chat.turn import Turn
from toolcall_nb.core import events as ev
from toolcall_nb.core.deprecated_names import RenamedAttribute
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message, State, ToolCall, Transcript
from toolcall_nb.core.usage import UsageSummary, read_usage
from toolcall_nb.errors import UsageError

__all__ = ["Chat"]

_SHOWN_COUNTS = {"inputTokens": "in", "outputTokens": "out"}


class Chat(ChatState):
    """A conversation with a model that may call tools.

    ``model`` is whatever `toolcall_nb.models.model` takes. ``tools`` is whatever `toolcall_nb.tools.as_tools` takes:
    functions, names, a registry, an MCP server, tools of LangChain or pydantic-ai, or a list of these; None means the
    session's registry, as it is at each turn. ``approval_mode`` says whether calls run unasked (``auto``), after
    ``ask_approval`` has approved them (``ask``), or not at all (``never``); ``remembered_approvals`` holds the
    approvals that last longer than one call. With ``once`` the model is asked only once: the results replace its reply
    (seed 004). ``speed`` is for the mock: 1 is usual, None never waits. ``retries`` is how often a failed request is
    repeated, which happens only while nothing of its reply has come. ``clock`` returns seconds, ``pause`` waits for
    some.
    """

    approve = RenamedAttribute("approval_mode")
    approver = RenamedAttribute("ask_approval")
    grants = RenamedAttribute("remembered_approvals")

    _turn: Turn | None = None

    def __repr__(self) -> str:
        return f"<Chat {self.thread!r} with {self.model_name}: {len(self.transcript.messages)} messages>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The transcript, with the settings below it."""
        from toolcall_nb.redaction.saved_output import saved_bundle

        usage = self.usage
        tokens = [f"{round(usage[name]):,} {word}" for name, word in _SHOWN_COUNTS.items() if usage.get(name)]
        tools = f"tools: {', '.join(self.tools) or 'none'}"
        settings = (f"Thread {self.thread}", self.model_name, tools, f"approve: {self.approval_mode}", *tokens)
        return saved_bundle(self.transcript, include=include, exclude=exclude, line=" · ".join(settings))

    @property
    def account(self) -> UsageSummary:
        """The cost of the chat, request by request: ``.requests``, ``.usage``, ``.cost``, and ``.added`` by call."""
        return read_usage(self.transcript.messages)

    @property
    def usage(self) -> dict[str, int | float]:
        """The tokens of the whole chat, as its model reports them: ``inputTokens``, ``outputTokens`` and more."""
        return self.account.usage

    def send(self, prompt: str) -> Message:
        """Runs one whole turn and returns the message that answers."""
        for _ in self.stream(prompt):
            pass
        return self.transcript.messages[-1]

    def stream(
        self, prompt: str, live: Callable[[Event], None] | None = None, *, files: Sequence[ev.File] = ()
    ) -> Generator[Event, None, None]:
        """Streams the events of one turn, from the user's ``start`` to the assistant's ``finish`` or ``abort``.

        While a tool occupies the thread, the stream cannot yield: its printed text and preliminary outputs go to
        ``live`` at once, from any thread, and are left out of the stream; without ``live`` they follow when the tool
        has ended. ``files`` are sent with the prompt. Raises `UsageError` at once if no turn can begin. Errors of the
        model and of tools are events.
        """
        if not isinstance(prompt, str):
            raise UsageError(f"A prompt is text, but got {prompt!r:.100}.")
        self._check()
        self._end_turn()
        self.stopping.clear()
        self._turn = Turn(self, live)
        return self._turn.start(prompt, files)

    def stop(self) -> None:
        """Ends the running turn at its next event, from any thread."""
        self.stopping.set()

    @property
    def is_stopping(self) -> bool:
        """Whether the running turn was told to stop; whoever waits for an answer in it can stop waiting."""
        return self.stopping.is_set()

    def reset(self) -> None:
        """Removes all messages and keeps the settings."""
        self.load(Transcript())

    def load(self, transcript: Transcript) -> None:
        """Continues from a transcript. Its open calls become interrupted."""
        self._end_turn()
        messages = tuple(map(_with_ended_calls, transcript.messages))
        self._restart(replace(transcript, messages=messages))

    def _end_turn(self) -> None:
        if self._turn is not None:
            self._turn.end_unread()


def _with_ended_calls(message: Message) -> Message:
    if all(call.is_final for call in message.calls):
        return message
    parts = (
        replace(part, state=State.INTERRUPTED) if isinstance(part, ToolCall) and not part.is_final else part
        for part in message.parts
    )
    return replace(message, parts=tuple(parts))
