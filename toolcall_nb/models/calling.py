"""Any function as a model: it is given the messages, and what it gives is the reply."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from toolcall_nb.adapters.openai.messages import openai_tool, to_openai
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message
from toolcall_nb.errors import ModelError, UsageError
from toolcall_nb.models.bridge import iterate
from toolcall_nb.models.sdk_streams import Reader, is_async, items, items_async
from toolcall_nb.tools import Tool
from toolcall_nb.tools.values import safe_repr

__all__ = ["CallableModel", "OneReply"]

_OTHERS = ("user", "system")
_GIVE = (
    "Let it return or yield text, events of toolcall_nb.core.events, or what an SDK gives: "
    "a stream, its chunks, a whole reply."
)


class CallableModel:
    """A model that asks ``function(messages)``, or ``function(messages, tools)`` if it takes tools.

    The messages are dictionaries as OpenAI's chat completions take them, and so are the tools. A function takes tools
    by a parameter of that name, or by a second one that has no default. In a text dialect there are none for it: they
    are described in the system prompt, and its text is searched for calls.

    It may return text, a whole reply of any format that `toolcall_nb.adapters` knows, or a stream of text, events or
    chunks; or yield them; also asynchronously, which runs on the loop of `toolcall_nb.models.bridge`. Of several
    choices the first counts, and of a list of messages what follows the last one that is not the assistant's. Raises
    `UsageError` for what cannot be called so; what the function raises is raised by `stream`.
    """

    def __init__(self, function: Callable[..., Any], name: str | None = None, *, dialect: str = "native") -> None:
        self._function = function
        self._takes_tools = _takes_tools(function)
        self._dialect = dialect
        self.name = name or _name_of(function)

    def __repr__(self) -> str:
        return f"<CallableModel {self.name}>"

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        """One reply. Raises `ModelError` for what is none, with what the function gave."""
        reader, reply = Reader(), OneReply()
        for item in self._items(messages, tools):
            yield from reply.of(self._read(reader, item))
        yield from reply.of(reader.close())

    def _items(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Generator[Any, None, None]:
        given = self._call(to_openai(messages), tools if self._dialect == "native" else ())
        return iterate(lambda: items_async(given)) if is_async(given) else items(given)

    def _call(self, messages: list[dict[str, Any]], tools: Sequence[Tool]) -> Any:
        if self._takes_tools is None:
            return self._function(messages)
        told = [openai_tool(tool.name, tool.description, tool.parameters) for tool in tools]
        return self._function(messages, **{"tools": told}) if self._takes_tools else self._function(messages, told)

    def _read(self, reader: Reader, item: Any) -> list[Event]:
        try:
            return reader.take(item)
        except UsageError:
            hint = " Does it lack a return?" if item is None else ""
            raise ModelError(f"{self.name} gave {safe_repr(item):.100}, which is no answer.{hint} {_GIVE}") from None


class OneReply:
    """Lets through what belongs to the reply: no other choice, and no message that was said before."""

    def __init__(self) -> None:
        self._is_skipping = False

    def of(self, events: list[Event]) -> Iterator[Event]:
        """Those of the events, which came together, that are the reply's. Other choices come whole."""
        said = [place for place, event in enumerate(events) if isinstance(event, ev.Start) and event.role in _OTHERS]
        first = said[-1] if said else 0
        for place, event in enumerate(events[first:], first):
            if isinstance(event, ev.Start):
                self._is_skipping = event.role in _OTHERS or _choice(events[place:]) > 0
            if not self._is_skipping:
                yield event


def _choice(events: list[Event]) -> int:
    """The number of the choice that begins here; its ``finish`` tells it."""
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
    except (TypeError, ValueError):  # some that are built in say nothing of themselves
        return None
    for takes, arguments, named in ((True, (0,), {"tools": ()}), (False, (0, 0), {}), (None, (0,), {})):
        if _fits(signature, arguments, named) and _is_meant(signature, takes):
            return takes
    raise UsageError(
        f"{_name_of(function)}{signature} cannot be a model: it is called with the messages, "
        "or with the messages and tools."
    )


def _fits(signature: inspect.Signature, arguments: tuple[int, ...], named: dict[str, Any]) -> bool:
    try:
        signature.bind(*arguments, **named)
    except TypeError:
        return False
    return True


def _is_meant(signature: inspect.Signature, takes: bool | None) -> bool:
    """A second argument that may be left out is a setting of the function's own unless it is called tools."""
    parameters = list(signature.parameters.values())
    if takes is None:
        return True
    if takes:
        return "tools" in signature.parameters
    return parameters[0].kind is inspect.Parameter.VAR_POSITIONAL or parameters[1].default is inspect.Parameter.empty
