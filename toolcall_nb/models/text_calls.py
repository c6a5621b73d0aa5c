"""The calls of a conversation that was written as text, found again: a real model reads them, the mock needs them.

The other way round is `toolcall_nb.dialects.write_back`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from toolcall_nb import dialects
from toolcall_nb.core.events import Object
from toolcall_nb.core.transcript import Message, State, ToolCall, Transcript

__all__ = ["with_calls"]

_SIGNATURE = re.compile(r"^###: (?=\{)", re.MULTILINE)
_JSON = re.compile(
    r"^Tool '.*' (?P<ended>executed successfully):|^Tool '.*' failed:|^Tool execution failed:", re.MULTILINE
)
_DATA = re.compile(r"(?:\A|\n)Data: (?P<data>.*)\Z", re.DOTALL)


def with_calls(dialect: str, messages: Sequence[Message]) -> list[Message]:
    """The messages with a reply and the results that follow it as one message with calls.

    What is no reply with results in ``dialect`` stays as it is.
    """
    found: list[Message] = []
    for message in messages:
        asked = found[-1] if found else None
        results: list[Object] = []
        if message.role == "user" and asked is not None and asked.role == "assistant" and dialect != "native":
            results = [*_READERS[dialect](message.text)]
        if asked is not None and results:
            calls = zip(_calls_in(dialect, asked.text), results, strict=False)
            found[-1] = replace(asked, parts=(*asked.parts, *(replace(call, **result) for call, result in calls)))
        else:
            found.append(message)
    return found


def _calls_in(dialect: str, text: str) -> tuple[ToolCall, ...]:
    detector = dialects.detector(dialect)
    return tuple(Transcript.from_events([*detector.feed(text), *detector.close()]).calls.values())


# How each dialect writes results. Of each: the fields of the call that it gives.


def _callout(text: str) -> Iterator[Object]:
    for call in Transcript.from_markdown(text).calls.values():
        yield {"state": call.state, "output": call.output, "error": call.error}


def _signature(text: str) -> Iterator[Object]:
    for start in _SIGNATURE.finditer(text):
        read = _json(text[start.end() :])
        if isinstance(read, dict) and "result" in read:
            yield {"state": State.OUTPUT_AVAILABLE, "output": read["result"]}
        elif isinstance(read, dict) and "error" in read:
            yield {"state": State.OUTPUT_ERROR, "error": str(read["error"])}


def _json_call(text: str) -> Iterator[Object]:
    starts = [*_JSON.finditer(text)]
    ends = [start.start() for start in starts[1:]] + [len(text)] * bool(starts)
    for start, end in zip(starts, ends, strict=True):
        said = text[start.end() : end].strip()
        if start["ended"]:
            yield {"state": State.OUTPUT_AVAILABLE, "output": _output(said)}
        else:
            yield {"state": State.OUTPUT_ERROR, "error": said.partition("\n\nInput: ")[0]}


def _output(said: str) -> Any:
    """What a tool gave: its data, or where there are none, its message."""
    data = _DATA.search(said)
    if data is None:
        return said
    return said[: data.start()].strip() if data["data"] == "None" else _json(data["data"])


def _json(text: str) -> Any:
    """The JSON value that ``text`` begins with; the text itself where it begins with none."""
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return text


_READERS: Mapping[str, Callable[[str], Iterator[Object]]] = {
    "callout": _callout,
    "signature": _signature,
    "json": _json_call,
}
