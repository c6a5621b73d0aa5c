"""Measures reading: a saved transcript of portable Markdown, and a trace of OpenTelemetry; both to HTML."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.benchmarks.documents import mixed, sentences
from tests.benchmarks.measuring import alternating, one_shot, units
from tests.benchmarks.report import Row
from tests.benchmarks.scale import Scale
from toolcall_nb import read
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.render import to_html

__all__ = ["rows"]


def rows(scale: Scale) -> Iterator[Row]:
    """Measures a saved transcript relative to parsing its text once, and a trace in U."""
    yield from _saved(scale)
    yield from _traced(scale)


def _saved(scale: Scale) -> Iterator[Row]:
    text = Transcript.from_markdown(mixed(scale.saved)).to_markdown()
    transcript = Transcript.from_markdown(text)
    works: dict[str, Callable[[], object]] = {
        "S": partial(one_shot, text),
        "whole": lambda: to_html(Transcript.from_markdown(text)),
        "read": lambda: Transcript.from_markdown(text),
        "draw": lambda: to_html(transcript),
    }
    times = alternating(works, scale.rounds)
    read, draw = times["read"] / times["S"], times["draw"] / times["S"]
    detail = f"{len(transcript.calls)} calls; reading {read:.2f} S, drawing {draw:.2f} S"
    yield Row("reading a saved transcript of 1 MB, to HTML", times["whole"] / times["S"], "S", 1.5, 1.15, detail)


def _traced(scale: Scale) -> Iterator[Row]:
    """Measures a trace. Its bounds of 2 and 1 s were set where U was 15 µs."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        path.write_text(json.dumps(_trace(scale.trace)), "utf-8")
        transcript = read(path)
        works: dict[str, Callable[[], object]] = {
            "whole": lambda: to_html(read(path)),
            "read": lambda: read(path),
            "draw": lambda: to_html(transcript),
            "kU": partial(units, 1_000),
        }
        times = alternating(works, scale.rounds)
        size = path.stat().st_size
    whole, reading, drawing = (times[part] for part in ("whole", "read", "draw"))
    detail = f"{whole:.2f} s; {size / 1e6:.1f} MB of OTLP; reading {reading:.2f} s, drawing {drawing:.2f} s"
    yield Row(f"a trace of {scale.trace:,} calls: read and drawn", whole / times["kU"], "kU", 133, 67, detail)


def _trace(calls: int) -> dict[str, Any]:
    """Returns a trace of an agent that calls one tool after each request to its model."""
    words = sentences(2 * calls)
    spans = [_span(0, "invoke_agent helper", {"gen_ai.operation.name": "invoke_agent"})]
    told: list[dict[str, Any]] = [{"role": "user", "parts": [{"type": "text", "content": "Do it."}]}]
    for number in range(calls):
        call = {"id": f"call_{number}", "name": "search"}
        given = {"query": next(words), "limit": number % 9}
        found = {"titles": ["first", "second"], "text": next(words), "score": number}
        text = {"type": "text", "content": f"Step {number}: {given['query']}"}
        answer = {"role": "assistant", "parts": [text, {"type": "tool_call", **call, "arguments": given}]}
        request = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "model",
            "gen_ai.usage.input_tokens": 100 * number,
            "gen_ai.usage.output_tokens": 50,
            "gen_ai.input.messages": json.dumps(told),
            "gen_ai.output.messages": json.dumps([answer]),
        }
        run = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call["name"],
            "gen_ai.tool.call.id": call["id"],
            "gen_ai.tool.call.arguments": json.dumps(given),
            "gen_ai.tool.call.result": json.dumps(found),
        }
        spans += [_span(2 * number + 1, "chat model", request), _span(2 * number + 2, "execute_tool search", run)]
        told = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": call["id"], "response": found}]}]
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def _span(number: int, name: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    start = 1_700_000_000_000_000_000 + number * 10**9
    values = {
        key: {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}
        for key, value in attributes.items()
    }
    return {
        "traceId": f"{1:032x}",
        "spanId": f"{number + 1:016x}",
        "parentSpanId": f"{1:016x}" if number else "",
        "name": name,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 10**9),
        "attributes": [{"key": key, "value": value} for key, value in values.items()],
    }
