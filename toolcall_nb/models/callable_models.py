"""Functions as models: `CallableModel` calls any function; `EnvelopeModel` one that sends provider envelopes."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec.structs import replace

from toolcall_nb.adapters.openai.messages import RequestsOfChat, openai_tool
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Object
from toolcall_nb.core.transcript import Message
from toolcall_nb.errors import ModelError, UsageError, WireError
from toolcall_nb.sources.event_loop import iterate
from toolcall_nb.sources.sdk_streams import ItemReader, is_asynchronous, items, items_async
from toolcall_nb.tools import Tool
from toolcall_nb.tools.results.json_values import safe_repr
from toolcall_nb.wire import Envelopes

_OTHER_ROLES = ("user", "system")
_EXPECTED = (
    "Let it return or yield text, events of toolcall_nb.core.events, or what an SDK gives: "
    "a stream, its chunks, a whole reply."
)


class CallableModel:
    """A model that calls ``function(messages)``, or ``function(messages, tools)`` if it takes tools.

    Messages and tools are dictionaries in the form of OpenAI's chat completions. A function takes tools by a parameter
    of that name, or by a second parameter without a default. In a text dialect it gets no tools: the system prompt
    describes them, and its text is searched for calls.

    The function may return or yield text, events, chunks of a stream, or a whole reply in any format that
    `toolcall_nb.adapters` knows; it may be asynchronous. Of several choices the first counts, and of a list of
    messages those after the last one that is not the assistant's. Raises `UsageError` for an object that cannot be
    called so. Exceptions of the function are raised by `stream`.
    """

    repeats_requests = True

    def __init__(self, function: Callable[..., Any], name: str | None = None, *, dialect: str = "native") -> None:
        self._function = function
        self._takes_tools = _takes_tools(function)
        self._dialect = dialect
        self._requests = RequestsOfChat()
        self.name = name or _name_of(function)

    def __repr__(self) -> str:
        return f"<CallableModel {self.name}>"

    @property
    def takes_tools(self) -> bool:
        """Whether the function gets the tools."""
        return self._takes_tools is not None

    @property
    def may_run_calls(self) -> bool:
        """Whether its calls may come with results: it gets no tools of the chat, and may be an agent with its own."""
        return self._dialect == "native" and not self.takes_tools

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        """Yields the events of one reply. Raises `ModelError` for a result that is no reply."""
        reader, reply = ItemReader(), OneReply()
        requests, self._requests = self._requests, RequestsOfChat()  # no other thread may change these dicts
        for item in self._items(requests.add(messages), tools):
            try:
                events = reader.take(item)
            except UsageError:
                hint = " Does it lack a return?" if item is None else ""
                text = f"{self.name} gave {safe_repr(item):.100}, which is no answer.{hint} {_EXPECTED}"
                raise ModelError(text) from None
            yield from _with_reason(reply.events_of(events), reader)
        yield from _with_reason(reply.events_of(reader.close()), reader)
        self._requests = requests

    def _items(self, sent: list[Object], tools: Sequence[Tool]) -> Generator[Any, None, None]:
        offered = tools if self._dialect == "native" else ()
        definitions = [openai_tool(tool.name, tool.description, tool.parameters) for tool in offered]
        if self._takes_tools is None:
            result = self._function(sent)
        else:
            result = self._function(sent, tools=definitions) if self._takes_tools else self._function(sent, definitions)
        return iterate(lambda: items_async(result)) if is_asynchronous(result) else items(result)


def _with_reason(events: list[Event], reader: ItemReader) -> Iterator[Event]:
    """Yields the events. Texts and whole replies are complete unless they say otherwise: the function has returned."""
    for event in events:
        has_no_reason = isinstance(event, ev.Finish) and event.finish_reason is None and reader.is_whole
        yield replace(event, finish_reason="stop") if has_no_reason else event


class OneReply:
    """Drops the events that do not belong to the reply: other choices, and messages from before it."""

    def __init__(self) -> None:
        self._is_skipping = False

    def events_of(self, events: list[Event]) -> list[Event]:
        """Returns those of a batch of events that belong to the reply. Another choice is in one batch as a whole."""
        kept: list[Event] = []
        for index, event in enumerate(events):
            if isinstance(event, ev.Start):
                if event.role in _OTHER_ROLES:  # what came before it is the past
                    kept.clear()
                self._is_skipping = event.role in _OTHER_ROLES or _choice_number(events[index:]) > 0
            if not self._is_skipping:
                kept.append(event)
        return kept


def _choice_number(events: list[Event]) -> int:
    """The number of the choice that begins here; the metadata of its ``finish`` holds it."""
    finish = next((event for event in events if isinstance(event, ev.Finish)), None)
    metadata = finish.message_metadata if finish is not None else None
    choice = metadata.get("choice") if isinstance(metadata, dict) else None
    return choice if isinstance(choice, int) else 0


def _name_of(function: Any) -> str:
    inner = inspect.unwrap(getattr(function, "func", function))
    name = getattr(inner, "__name__", None) or type(inner).__name__
    return name if name != "<lambda>" else "lambda"


def _takes_tools(function: Any) -> bool | None:
    """Whether it takes tools by name (True), as its second argument (False), or not at all (None)."""
    if isinstance(function, type) or not callable(function):
        raise UsageError(
            f"A model is a name, a function of the messages, or an object with stream, not {function!r:.100}."
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions have no signature
        return None
    parameters = list(signature.parameters.values())
    if "tools" in signature.parameters and _accepts(signature, (0,), {"tools": ()}):
        return True
    if _accepts(signature, (0, 0), {}) and (
        # a second parameter with a default is a setting of the function's own
        parameters[0].kind is inspect.Parameter.VAR_POSITIONAL or parameters[1].default is inspect.Parameter.empty
    ):
        return False
    if _accepts(signature, (0,), {}):
        return None
    raise UsageError(
        f"{_name_of(function)}{signature} cannot be a model: it is called with the messages, "
        "or with the messages and tools."
    )


def _accepts(signature: inspect.Signature, arguments: tuple[int, ...], named: dict[str, Any]) -> bool:
    try:
        signature.bind(*arguments, **named)
    except TypeError:
        return False
    return True


# Envelopes --------------------------------------------------------------------------------------------------------

Send: TypeAlias = "Callable[[Sequence[Message], Sequence[Tool]], Iterable[Mapping[str, Any] | str | bytes]]"


class EnvelopeModel:
    """A model behind a service that sends envelopes (seed 001).

    ``send(messages, tools)`` returns the envelopes of one reply: mappings, or lines of JSON text. Calls are found by
    the chat's dialect (``Chat(EnvelopeModel(send), dialect="signature")``), or are the service's own. Blank lines are
    skipped; a line that is no envelope raises `WireError`.
    """

    may_run_calls = True

    def __init__(self, send: Send, name: str = "envelopes") -> None:
        self.name = name
        self._send = send

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        """Yields the events of one reply."""
        envelopes = Envelopes()
        for sent in self._send(messages, tools):
            if isinstance(sent, Mapping):
                yield from envelopes.take(sent)
            elif sent.strip():
                try:
                    envelope = json.loads(sent)
                except (ValueError, RecursionError) as error:
                    raise WireError(f"An envelope is a JSON object, but this is {sent!r:.200} ({error}).") from None
                if envelope is not None:
                    yield from envelopes.take(envelope)
        yield from envelopes.close()
