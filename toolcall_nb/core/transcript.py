"""The transcript: messages of parts, as frozen values, and the table of a tool call's life.

A tool call lives by the table `TRANSITIONS`, and nothing else in this package may decide a state:

    (none) ──start──► input-streaming ──available──► input-available ──output──► output-available
                            │                            │    ▲    │──error────► output-error
                            │                    request ▼    │    │──denied───► output-denied
                            │             approval-requested  │    └──stop─────► interrupted
                            │                   answer ▼      │
                            └──────────────► approval-responded

A final state is final: an event that the table does not list changes nothing and leaves a diagnostic. A
preliminary output leaves the call where it was, as running.

`toolcall_nb.core.reducer` makes these values from events; `toolcall_nb.core.replay` goes the other way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct, field

from toolcall_nb.core.events import MISSING, Diagnostic, Event, Json, Missing, Object, from_dict
from toolcall_nb.core.text import well_formed_json
from toolcall_nb.errors import UsageError, WireError

__all__ = [
    "FINAL_STATES",
    "TRANSITIONS",
    "Approval",
    "CustomPart",
    "DataPart",
    "ErrorPart",
    "FilePart",
    "Message",
    "Part",
    "ReasoningPart",
    "Role",
    "SourceDocumentPart",
    "SourceUrlPart",
    "State",
    "TextPart",
    "ToolCall",
    "ToolCalls",
    "Transcript",
]

Role: TypeAlias = Literal["system", "user", "assistant"]


class State(StrEnum):
    """Where a tool call stands; the names are the AI SDK's, and `INTERRUPTED` for a run that was stopped."""

    INPUT_STREAMING = "input-streaming"
    INPUT_AVAILABLE = "input-available"
    APPROVAL_REQUESTED = "approval-requested"
    APPROVAL_RESPONDED = "approval-responded"
    OUTPUT_AVAILABLE = "output-available"
    OUTPUT_ERROR = "output-error"
    OUTPUT_DENIED = "output-denied"
    INTERRUPTED = "interrupted"


FINAL_STATES = frozenset({State.OUTPUT_AVAILABLE, State.OUTPUT_ERROR, State.OUTPUT_DENIED, State.INTERRUPTED})

_ENDS: Mapping[str, State] = {
    "tool-output-available": State.OUTPUT_AVAILABLE,
    "tool-output-error": State.OUTPUT_ERROR,
    "tool-output-denied": State.OUTPUT_DENIED,
    "tool-input-error": State.OUTPUT_ERROR,
    "data-tool-interrupted": State.INTERRUPTED,
}
_LOG = "data-tool-log"
_ASK: Mapping[str, State] = {"tool-approval-request": State.APPROVAL_REQUESTED}

TRANSITIONS: Mapping[State | None, Mapping[str, State]] = {
    None: {
        "tool-input-start": State.INPUT_STREAMING,
        "tool-input-available": State.INPUT_AVAILABLE,
        "tool-input-error": State.OUTPUT_ERROR,
    },
    State.INPUT_STREAMING: {
        "tool-input-start": State.INPUT_STREAMING,  # the same call written anew: its text starts over
        "tool-input-delta": State.INPUT_STREAMING,
        "tool-input-available": State.INPUT_AVAILABLE,
        _LOG: State.INPUT_STREAMING,
        **_ASK,
        **_ENDS,
    },
    State.INPUT_AVAILABLE: {
        "tool-input-start": State.INPUT_AVAILABLE,  # a second view of the same call: nothing new
        "tool-input-available": State.INPUT_AVAILABLE,
        _LOG: State.INPUT_AVAILABLE,
        **_ASK,
        **_ENDS,
    },
    State.APPROVAL_REQUESTED: {
        "tool-input-available": State.APPROVAL_REQUESTED,  # edited while it waits
        "tool-approval-response": State.APPROVAL_RESPONDED,
        _LOG: State.APPROVAL_REQUESTED,
        **_ENDS,
    },
    State.APPROVAL_RESPONDED: {
        "tool-input-available": State.APPROVAL_RESPONDED,  # what was approved, as edited
        _LOG: State.APPROVAL_RESPONDED,
        **_ENDS,
    },
    State.OUTPUT_AVAILABLE: {},
    State.OUTPUT_ERROR: {},
    State.OUTPUT_DENIED: {},
    State.INTERRUPTED: {},
}
"""Chunk type to next state, for each state; ``None`` is a call that has not begun."""


# Values -----------------------------------------------------------------------------------------------------


class _Value(Struct, frozen=True):
    """The base of all values. Whoever makes one, it is mended so that its text form reads back equal.

    Texts and JSON values are well formed (`toolcall_nb.core.text`); an optional object without fields is None.
    """

    def __post_init__(self) -> None:
        for name, is_optional in _MENDED[type(self)]:
            value = getattr(self, name)
            if value is None or value is MISSING or (type(value) is str and value.isascii()):
                continue
            self._mend(name, None if is_optional and value == {} else well_formed_json(value))

    def _mend(self, name: str, value: Any) -> None:
        msgspec.structs.force_setattr(self, name, value)


class Approval(_Value, frozen=True, kw_only=True):
    """A question to a person and, once ``approved`` is not None, the answer."""

    id: str
    approved: bool | None = None
    reason: str | None = None
    is_automatic: bool | None = None
    signature: str | None = None


class ToolCall(_Value, frozen=True, kw_only=True):
    """One invocation of a tool.

    ``input`` and ``output`` are JSON values, or `MISSING` while there is none. ``input_text`` is the written
    form of an input that is not complete. An ``output`` in any state but `State.OUTPUT_AVAILABLE` is a
    preliminary one. ``extra`` keeps the fields that the vocabulary does not name.

    ``original_input`` is the input as it was when a person was asked, where it is another now: it was edited.
    ``log`` is what the tool printed, ``display`` the output as a person sees it (a MIME bundle), ``seen`` what the
    model was told of it where that is not the whole, ``traceback`` where in its own code the tool failed.

    A call has an id and a name that are not blank; with an input it is no longer `State.INPUT_STREAMING`, and has no
    ``input_text``; a failed one has an ``error`` (which may be empty) and a completed one an ``output``. A call that
    is made otherwise is mended.
    """

    id: str
    name: str
    state: State = State.INPUT_STREAMING
    input: Json | Missing = MISSING
    output: Json | Missing = MISSING
    error: str | None = None
    input_text: str = ""
    original_input: Json | Missing = MISSING
    title: str | None = None
    open: bool | None = None
    approval: Approval | None = None
    log: str = ""
    display: Object | None = None
    seen: str | None = None
    traceback: str | None = None
    provider_executed: bool | None = None
    dynamic: bool | None = None
    provider_metadata: Object | None = None
    tool_metadata: Object | None = None
    extra: Object = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.id.strip():
            self._mend("id", "tool-call")
        if not self.name.strip():
            self._mend("name", "tool")
        if self.input is not MISSING:
            self._mend("input_text", "")
            if self.state is State.INPUT_STREAMING:
                self._mend("state", State.INPUT_AVAILABLE)
        if self.state is State.OUTPUT_ERROR and self.error is None:
            self._mend("error", "")
        if self.state is State.OUTPUT_AVAILABLE and self.output is MISSING:
            self._mend("output", None)

    @property
    def is_final(self) -> bool:
        """Whether nothing more can happen to this call."""
        return self.state in FINAL_STATES

    def to_code(self) -> str:
        """The call as a Python expression; see `toolcall_nb.core.call_code`."""
        from toolcall_nb.core.call_code import call_code

        return call_code(self.name, {} if self.input is MISSING else self.input)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """As a cell's value: its card, open."""
        from toolcall_nb.redaction.saved_output import saved_bundle

        whole = Transcript((Message("assistant", (self,)),))
        return saved_bundle(whole, include=include, exclude=exclude, opened={self.id: True})


class ToolCalls(Mapping[str, ToolCall]):
    """Tool calls by id, in order; of two with one id, the later. No ``dict``: IPython prints those its own way."""

    def __init__(self, calls: Iterable[ToolCall] = ()) -> None:
        self._calls = {call.id: call for call in calls}

    def __getitem__(self, call_id: str) -> ToolCall:
        return self._calls[call_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._calls)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    def __repr__(self) -> str:
        return f"<ToolCalls: {', '.join(self._calls) or 'none'}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """As a cell's value: a table."""
        from toolcall_nb.redaction.saved_output import saved_calls_bundle

        return saved_calls_bundle(self.values(), include=include, exclude=exclude)


class TextPart(_Value, frozen=True):
    """Text, as Markdown."""

    text: str
    provider_metadata: Object | None = None


class ReasoningPart(_Value, frozen=True):
    """What the model showed of its reasoning, as Markdown."""

    text: str
    provider_metadata: Object | None = None


class SourceUrlPart(_Value, frozen=True):
    """A web page that the answer rests on."""

    source_id: str
    url: str
    title: str | None = None
    provider_metadata: Object | None = None


class SourceDocumentPart(_Value, frozen=True):
    """A document that the answer rests on."""

    source_id: str
    media_type: str
    title: str
    filename: str | None = None
    provider_metadata: Object | None = None


class FilePart(_Value, frozen=True):
    """A file, by URL (often ``data:``). ``reasoning`` says that it belongs to the reasoning."""

    url: str
    media_type: str
    provider_metadata: Object | None = None
    reasoning: bool = False


class DataPart(_Value, frozen=True):
    """Data of the application under a name."""

    name: str
    data: Json
    id: str | None = None


class CustomPart(_Value, frozen=True):
    """Something of one provider; ``kind`` is ``provider.type``."""

    kind: str
    provider_metadata: Object | None = None


class ErrorPart(_Value, frozen=True):
    """Something went wrong outside a tool call; ``details`` is what the peer said of it."""

    text: str
    details: str | None = None


Part: TypeAlias = (
    TextPart
    | ReasoningPart
    | ToolCall
    | SourceUrlPart
    | SourceDocumentPart
    | FilePart
    | DataPart
    | CustomPart
    | ErrorPart
)


_ORDINARY_ENDS = ("", "stop", "tool-calls")


class Message(_Value, frozen=True):
    """What one side said, in order.

    ``finish_reason`` is None for an ordinary end (stop, tool-calls). ``aborted`` is None, or the reason (may be
    empty) of a message that was stopped.
    """

    role: Role
    parts: tuple[Part, ...] = ()
    id: str | None = None
    metadata: Object = field(default_factory=dict)
    finish_reason: str | None = None
    aborted: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._mend("parts", tuple(self.parts))
        self._mend("id", self.id or None)
        if self.aborted is not None or self.finish_reason in _ORDINARY_ENDS:
            self._mend("finish_reason", None)

    @property
    def text(self) -> str:
        """The text parts, joined by blank lines."""
        return "\n\n".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """As a cell's value: the message as in a transcript."""
        from toolcall_nb.redaction.saved_output import saved_bundle

        return saved_bundle(Transcript((self,)), include=include, exclude=exclude)


_MENDED: dict[type[_Value], tuple[tuple[str, bool], ...]] = {
    cls: tuple(
        (known.name, known.type == Object | None)
        for known in msgspec.structs.fields(cls)
        if known.type in (str, str | None, Json, Json | Missing, Object, Object | None)
    )
    for cls in _Value.__subclasses__()
}
"""The fields that are texts or JSON values, and whether they are optional objects."""


class Transcript(Struct, frozen=True, eq=False):
    """Messages in order. Equal when the messages and the metadata are: diagnostics say how it was read.

    ``metadata`` belongs to the whole and is the front matter of the Markdown form.
    """

    messages: tuple[Message, ...] = ()
    metadata: Object = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()

    def __post_init__(self) -> None:
        if self.metadata:
            msgspec.structs.force_setattr(self, "metadata", well_formed_json(self.metadata))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transcript):
            return NotImplemented
        return self.messages == other.messages and self.metadata == other.metadata

    def __ne__(self, other: object) -> bool:
        return not self == other  # a Struct does not derive it

    def __hash__(self) -> int:
        return hash(tuple(len(message.parts) for message in self.messages))

    def __repr__(self) -> str:
        return f"<Transcript: {len(self.messages)} messages, {len(self.calls)} tool calls>"

    @property
    def calls(self) -> ToolCalls:
        """The tool calls by id, in order; of two calls with one id in two messages, the later."""
        return ToolCalls(call for message in self.messages for call in message.calls)

    @classmethod
    def from_events(cls, events: Iterable[Event | Mapping[str, Any]]) -> Transcript:
        """The transcript that a stream of events amounts to, whatever their order.

        An event may be a mapping: a chunk of the AI SDK's UI message stream. Raises `UsageError` for what is neither,
        with its place.
        """
        from toolcall_nb.core.reducer import TranscriptBuilder

        builder = TranscriptBuilder()
        for number, item in enumerate(events, 1):
            builder.apply(item if isinstance(item, Event) else _event(number, item))
        return builder.transcript

    def events(self) -> Iterator[Event]:
        """A stream of events that amounts to this transcript (metadata and diagnostics apart)."""
        from toolcall_nb.core.replay import message_events

        for message in self.messages:
            yield from message_events(message)

    @classmethod
    def from_markdown(cls, text: str) -> Transcript:
        """Read the portable Markdown form; any text is a transcript. See `toolcall_nb.markdown.reading`."""
        from toolcall_nb.markdown.reading import read_transcript

        return read_transcript(text)

    def to_markdown(self, *, versioned: bool = False) -> str:
        """The portable Markdown form, which reads back equal. See `toolcall_nb.markdown.writing`.

        ``versioned``: as a file, which always begins with the version of the format.
        """
        from toolcall_nb.markdown.writing import write_transcript

        return write_transcript(self, versioned=versioned)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from toolcall_nb.redaction.saved_output import saved_bundle

        return saved_bundle(self, include=include, exclude=exclude)


def _event(number: int, item: Any) -> Event:
    if not isinstance(item, Mapping):
        raise UsageError(
            f"A transcript is made of events, or of chunks as mappings, but item {number} is {item!r:.200}."
        )
    try:
        return from_dict(item)
    except WireError as error:
        raise UsageError(f"Item {number} is no event: {error}") from None
