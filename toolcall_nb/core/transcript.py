"""The transcript, `Transcript`: messages made of parts, as frozen values.

`toolcall_nb.core.reducer` builds a transcript from events and `toolcall_nb.core.replay` turns it back into events. The
states of a tool call and their transitions are in `toolcall_nb.core.call_states`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, TypeAlias, overload

import msgspec
from msgspec import Struct, field
from msgspec.structs import force_setattr

from toolcall_nb.core.call_states import FINAL_STATES, State
from toolcall_nb.core.calls import NO_RECORD, CallRecord, ToolCalls
from toolcall_nb.core.events import MISSING, Diagnostic, Event, Json, Missing, Object, from_dict
from toolcall_nb.core.lazy_imports import port
from toolcall_nb.core.text import well_formed_json
from toolcall_nb.errors import UsageError, WireError

__all__ = [
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
    "changed_call",
]

Role: TypeAlias = Literal["system", "user", "assistant"]


class _Value(Struct, frozen=True):
    """The base class of all values. It corrects its fields, so that every value reads back equal from its text form.

    Texts and JSON values become well formed (`toolcall_nb.core.text`); an optional object without fields becomes None.
    """

    def __post_init__(self) -> None:
        read, names = _CORRECTED[type(self)]
        self._correct(zip(names, read(self), strict=True))

    def _correct(self, fields: Iterable[tuple[str, Any]]) -> None:
        for name, value in fields:
            if value is None or value is MISSING or (type(value) is str and value.isascii()):
                continue
            if value != {}:
                force_setattr(self, name, well_formed_json(value))
            elif name in _OPTIONAL_OBJECTS:
                force_setattr(self, name, None)


class Approval(_Value, frozen=True, kw_only=True):
    """A request for approval and, once ``approved`` is not None, the answer to it."""

    id: str
    approved: bool | None = None
    reason: str | None = None
    is_automatic: bool | None = None
    signature: str | None = None


class ToolCall(_Value, frozen=True, kw_only=True):
    """One call of a tool.

    ``input`` and ``output`` are JSON values, or `MISSING` while there is none. ``input_text`` is the text of an input
    that is not complete. In any state but `State.OUTPUT_AVAILABLE`, ``output`` is a preliminary output.
    ``original_input`` is the model's input where a person edited it before approving.

    ``log`` is what the tool printed. ``display`` is the output as a person sees it, a MIME bundle. ``model_text``
    is the text that the model was sent, where that is not the whole output. ``traceback`` shows where in its own code
    the tool failed. ``extra`` keeps the fields that the vocabulary does not name. ``record`` holds times, tokens
    and the Python value; it does not count when calls are compared, and Markdown holds it only on request.

    A call is corrected where these do not hold: its id and name are not blank; with an input, its state is no longer
    `State.INPUT_STREAMING` and ``input_text`` is empty; in `State.OUTPUT_ERROR` it has an ``error``, which may be
    empty; in `State.OUTPUT_AVAILABLE` it has an ``output``.
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
    model_text: str | None = None
    traceback: str | None = None
    provider_executed: bool | None = None
    dynamic: bool | None = None
    provider_metadata: Object | None = None
    tool_metadata: Object | None = None
    extra: Object = field(default_factory=dict)
    record: CallRecord = field(default_factory=lambda: NO_RECORD)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._correct_together()

    def _correct_together(self) -> None:
        if not self.id.strip():
            force_setattr(self, "id", "tool-call")
        if not self.name.strip():
            force_setattr(self, "name", "tool")
        if self.input is not MISSING:
            force_setattr(self, "input_text", "")
            if self.state is State.INPUT_STREAMING:
                force_setattr(self, "state", State.INPUT_AVAILABLE)
        if self.state is State.OUTPUT_ERROR and self.error is None:
            force_setattr(self, "error", "")
        if self.state is State.OUTPUT_AVAILABLE and self.output is MISSING:
            force_setattr(self, "output", None)

    @property
    def is_final(self) -> bool:
        """Whether the call has ended."""
        return self.state in FINAL_STATES

    @property
    def started(self) -> float | None:
        """The start of the call, in seconds since the start of the run; None if that was not recorded."""
        return self.record.started

    @property
    def seconds(self) -> float | None:
        """The duration of the call in seconds; None if that was not recorded."""
        return self.record.seconds

    @property
    def tokens(self) -> int | None:
        """The number of tokens that the result added to the next prompt; None if that is not known."""
        return self.record.tokens

    @property
    def value(self) -> Any:
        """The object that the tool returned, while the process that ran it has it; else None."""
        return self.record.value

    @property
    def parent(self) -> str | None:
        """The id of the call that this call ran inside of; None for a call of the run itself."""
        parent = (self.tool_metadata or {}).get("parent")
        return parent if isinstance(parent, str) and parent else None

    def to_code(self) -> str:
        """Returns the call as a Python expression; see `toolcall_nb.core.call_code`."""
        from toolcall_nb.core.call_code import call_code

        return call_code(self.name, {} if self.input is MISSING else self.input)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Shows the call in a cell as an open card."""
        whole = Transcript((Message("assistant", (self,)),))
        return _saved_bundle(whole, include=include, exclude=exclude, opened={self.id: True})


def _saved_bundle(transcript: Transcript, **options: Any) -> dict[str, str]:
    bundle: dict[str, str] = port("saved_bundle")(transcript, **options)
    return bundle


def changed_call(call: ToolCall, **changes: Any) -> ToolCall:
    """Returns the call with other values of some fields. The others are shared: they are well formed already."""
    changed = copy(call)
    for name, value in changes.items():
        force_setattr(changed, name, value)
    changed._correct(changes.items())
    changed._correct_together()
    return changed


class TextPart(_Value, frozen=True):
    """Text, as Markdown."""

    text: str
    provider_metadata: Object | None = None


class ReasoningPart(_Value, frozen=True):
    """The reasoning that the model showed, as Markdown."""

    text: str
    provider_metadata: Object | None = None


class SourceUrlPart(_Value, frozen=True):
    """A web page that the answer is based on."""

    source_id: str
    url: str
    title: str | None = None
    provider_metadata: Object | None = None


class SourceDocumentPart(_Value, frozen=True):
    """A document that the answer is based on."""

    source_id: str
    media_type: str
    title: str
    filename: str | None = None
    provider_metadata: Object | None = None


class FilePart(_Value, frozen=True):
    """A file, by URL (often ``data:``). ``reasoning`` is true for a file that belongs to the reasoning."""

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
    """A part that only one provider knows; ``kind`` is ``provider.type``."""

    kind: str
    provider_metadata: Object | None = None


class ErrorPart(_Value, frozen=True):
    """An error outside a tool call; ``details`` is what the other side reported."""

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
    """A message of one role: its parts, in order.

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
        force_setattr(self, "parts", tuple(self.parts))
        force_setattr(self, "id", self.id or None)
        if self.aborted is not None or self.finish_reason in _ORDINARY_ENDS:
            force_setattr(self, "finish_reason", None)

    @property
    def text(self) -> str:
        """The text parts, joined by blank lines."""
        return "\n\n".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def error(self) -> str | None:
        """The text of the error with which the message ended; None without one. Errors of tools are in the calls."""
        errors = [part.text for part in self.parts if isinstance(part, ErrorPart)]
        unnamed = "The reply ended with an error that says nothing." if self.finish_reason == "error" else None
        return errors[-1] if errors else unnamed

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Shows the message in a cell as in a transcript."""
        return _saved_bundle(Transcript((self,)), include=include, exclude=exclude)


_FIELD_TYPES = (str, str | None, Json, Json | Missing, Object, Object | None)
_FIELD_NAMES = {
    cls: tuple(each.name for each in msgspec.structs.fields(cls) if each.type in _FIELD_TYPES)
    for cls in _Value.__subclasses__()
}
_CORRECTED = {cls: (attrgetter(*names), names) for cls, names in _FIELD_NAMES.items()}
"""The fields that are texts or JSON values: how they are read, all at once, and their names."""
_OPTIONAL_OBJECTS = frozenset(
    each.name for cls in _CORRECTED for each in msgspec.structs.fields(cls) if each.type == Object | None
)


class Transcript(Struct, frozen=True, eq=False):
    """Messages in order.

    ``metadata`` belongs to the whole and is the front matter of the Markdown form. ``diagnostics`` report how the
    transcript was read; two transcripts are equal when their messages and metadata are.

    It is a sequence of its messages: a slice is a transcript with the same metadata, and ``+`` puts the messages of
    two transcripts behind each other, with the metadata of both; where both have a field, the first one's stays.
    """

    messages: tuple[Message, ...] = ()
    metadata: Object = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()

    def __post_init__(self) -> None:
        if self.metadata:
            force_setattr(self, "metadata", well_formed_json(self.metadata))

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

    def __len__(self) -> int:
        return len(self.messages)

    def __bool__(self) -> bool:
        return bool(self.messages or self.metadata)

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Transcript: ...
    def __getitem__(self, index: int | slice) -> Message | Transcript:
        if isinstance(index, slice):
            return Transcript(self.messages[index], self.metadata)
        return self.messages[index]

    def __add__(self, other: object) -> Transcript:
        if not isinstance(other, Transcript):
            return NotImplemented
        diagnostics = (*self.diagnostics, *other.diagnostics)
        return Transcript((*self.messages, *other.messages), {**other.metadata, **self.metadata}, diagnostics)

    @property
    def calls(self) -> ToolCalls:
        """The tool calls by id, in order. Of calls with the same id in two messages, it holds the later one."""
        return ToolCalls((call for message in self.messages for call in message.calls), self.messages)

    @classmethod
    def from_events(cls, events: Iterable[Event | Mapping[str, Any]]) -> Transcript:
        """Builds the transcript of a stream of events, in whatever order they come.

        An event may be a mapping: a chunk of the AI SDK's UI message stream. Raises `UsageError`, with the position,
        for an item that is neither.
        """
        from toolcall_nb.core.reducer import TranscriptBuilder

        builder = TranscriptBuilder()
        for number, item in enumerate(events, 1):
            if isinstance(item, Event):
                builder.apply(item)
                continue
            if not isinstance(item, Mapping):
                raise UsageError(
                    f"A transcript is made of events, or of chunks as mappings, but item {number} is {item!r:.200}."
                )
            try:
                builder.apply(from_dict(item))
            except WireError as error:
                raise UsageError(f"Item {number} is no event: {error}") from None
        return builder.transcript

    def events(self, *, timings: bool = False) -> Iterator[Event]:
        """Yields events from which `from_events` builds the same messages; with ``timings`` also the calls' times."""
        from toolcall_nb.core.replay import message_events

        for message in self.messages:
            yield from message_events(message, timings=timings)

    def write(self, path: str | os.PathLike[str], *, timings: bool = False) -> None:
        """Writes the transcript without secrets, as the suffix says: ``.md``, ``.json``, ``.jsonl`` or ``.html``.

        With ``timings``, the file holds the times of the calls as far as they are known. Raises `UsageError` for
        another suffix, and for a path that cannot be written.
        """
        port("write_file")(port("saved_value")(self)[0], Path(path), timings=timings)

    def to_openai(self) -> list[Object]:
        """Returns the messages as OpenAI's chat API takes them; see `toolcall_nb.adapters.openai.messages`."""
        messages: list[Object] = port("to_openai")(self.messages)
        return messages

    def to_anthropic(self) -> Object:
        """Returns arguments of Anthropic's API; see `toolcall_nb.adapters.anthropic.request_messages`."""
        arguments: Object = port("to_anthropic")(self.messages)
        return arguments

    def to_ui_messages(self) -> list[Object]:
        """Returns the messages as the AI SDK's front ends keep them; see `toolcall_nb.adapters.ai_sdk.messages`."""
        messages: list[Object] = port("to_ui")(self.messages)
        return messages

    @classmethod
    def from_markdown(cls, text: str) -> Transcript:
        """Reads portable Markdown. Any text is a transcript; see `toolcall_nb.markdown.reading`."""
        transcript: Transcript = port("read_transcript")(text)
        return transcript

    def to_markdown(self, *, versioned: bool = False, timings: bool = False) -> str:
        """Returns portable Markdown, which reads back equal; see `toolcall_nb.markdown.writing`.

        With ``versioned``, the text begins with the version of the format, as a file does. With ``timings`` it holds
        the times of the calls, too, which differ from run to run.
        """
        text: str = port("write_transcript")(self, versioned=versioned, timings=timings)
        return text

    def to_html(self, *, page: bool = False) -> str:
        """Returns HTML that is complete without scripts: a fragment, or with ``page`` a document that loads nothing."""
        html: str = port("to_html")(self, page=page)
        return html

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return _saved_bundle(self, include=include, exclude=exclude)
