"""Reads the calls and results back from a conversation that a text dialect wrote as text. `with_calls` does it.

Only the mock needs this: a real model reads the text. `toolcall_nb.dialects.TextDialect.write_history` is the other
direction.
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

_SIGNATURE = re.compile(r"^###: (?=\{)", re.MULTILINE)
_JSON = re.compile(
    r"^Tool '.*' (?P<ended>executed successfully):|^Tool '.*' failed:|^Tool execution failed:", re.MULTILINE
)
_DATA = re.compile(r"(?:\A|\n)Data: (?P<data>.*)\Z", re.DOTALL)


def with_calls(dialect: str, messages: Sequence[Message]) -> list[Message]:
    """Returns the messages; a reply and the results that follow it become one message with calls."""
    if dialect == "native":
        return [*messages]
    joined: list[Message] = []
    for message in messages:
        reply = joined[-1] if joined else None
        is_answer = message.role == "user" and reply is not None and reply.role == "assistant"
        results = message.once(_results, dialect) if is_answer else ()
        if reply is not None and results:
            calls = reply.once(_calls, dialect)
            ended = (replace(call, **result) for call, result in zip(calls, results, strict=False))
            joined[-1] = replace(reply, parts=(*reply.parts, *ended))
        else:
            joined.append(message)
    return joined


def _results(message: Message, dialect: str) -> list[Object]:
    return [*_READERS[dialect](message.text)]


def _calls(reply: Message, dialect: str) -> list[ToolCall]:
    detector = dialects.detector(dialect)
    return [*Transcript.from_events([*detector.feed(reply.text), *detector.close()]).calls.values()]


# The results of each dialect. A reader yields the fields of each call that has a result.


def _callout_results(text: str) -> Iterator[Object]:
    for call in Transcript.from_markdown(text).calls.values():
        yield {"state": call.state, "output": call.output, "error": call.error}


def _signature_results(text: str) -> Iterator[Object]:
    for start in _SIGNATURE.finditer(text):
        read = _first_json(text[start.end() :])
        if isinstance(read, dict) and "result" in read:
            yield {"state": State.OUTPUT_AVAILABLE, "output": read["result"]}
        elif isinstance(read, dict) and "error" in read:
            yield {"state": State.OUTPUT_ERROR, "error": str(read["error"])}


def _json_results(text: str) -> Iterator[Object]:
    starts = [*_JSON.finditer(text)]
    ends = [start.start() for start in starts[1:]] + [len(text)] * bool(starts)
    for start, end in zip(starts, ends, strict=True):
        result = text[start.end() : end].strip()
        if not start["ended"]:
            yield {"state": State.OUTPUT_ERROR, "error": result.partition("\n\nInput: ")[0]}
            continue
        data = _DATA.search(result)
        if data is None:
            output: Any = result
        elif data["data"] == "None":  # there is a message only
            output = result[: data.start()].strip()
        else:
            output = _first_json(data["data"])
        yield {"state": State.OUTPUT_AVAILABLE, "output": output}


def _first_json(text: str) -> Any:
    """The JSON value at the beginning of a text; the text itself if there is none."""
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return text


_READERS: Mapping[str, Callable[[str], Iterator[Object]]] = {
    "callout": _callout_results,
    "signature": _signature_results,
    "json": _json_results,
}
