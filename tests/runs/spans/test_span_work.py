"""Reading a trace twice as long takes twice the work, by exact counts of the functions that are entered."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.call_counts import counted
from tests.support.span_files import otlp, read_records, span

TWICE = 2.1
ROOT = span("r", "run", 0, 9999, attributes={"gen_ai.operation.name": "invoke_agent"})


def model(i: int, asked: Any, said: Any, parent: str = "r") -> dict[str, Any]:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(asked),
        "gen_ai.output.messages": json.dumps(said),
    }
    return span(f"m{i}", "chat", i, i + 0.25, parent, attributes=attributes)


def tool(i: int, parent: str = "r", **more: str) -> dict[str, Any]:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t", **more}
    return span(f"t{i}", "t", i + 0.5, i + 0.75, parent, attributes=attributes)


def ask(call_id: str | None, i: int) -> dict[str, Any]:
    call = {"type": "tool_call", "id": call_id, "name": "t", "arguments": {"i": i % 3}}
    return {"role": "assistant", "parts": [call]}


def told(call_id: str | None) -> dict[str, Any]:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": "x"}]}


def loop_with_ids(n: int) -> list[Any]:
    steps = [
        (model(i, [told(f"c{i - 1}")], [ask(f"c{i}", i)]), tool(i, **{"gen_ai.tool.call.id": f"c{i}"}))
        for i in range(n)
    ]
    return [ROOT, *(each for step in steps for each in step)]


def loop_without_ids(n: int) -> list[Any]:
    return [ROOT, *(each for i in range(n) for each in (model(i, [told(None)], [ask(None, i)]), tool(i)))]


def growing_history(n: int) -> list[Any]:
    """Few requests with long histories."""
    history = [message for i in range(n) for message in (ask(f"c{i}", i), told(f"c{i}"))]
    return [ROOT, model(1, history[:n], []), model(2, history, []), model(3, history, [])]


def history_without_ids(n: int) -> list[Any]:
    history = [message for i in range(n) for message in (ask(None, i), told(None), {"role": "user", "content": "Hi"})]
    return [ROOT, model(1, history, []), model(2, history, [])]


def chain_of_tools(n: int) -> list[Any]:
    return [ROOT, *(tool(i, f"t{i - 1}" if i else "r", **{"gen_ai.tool.call.id": f"c{i}"}) for i in range(n))]


def agents_without_messages(n: int) -> list[Any]:
    attributes = {"gen_ai.operation.name": "invoke_agent"}
    return [span(f"a{i}", "agent", i, i + 1, f"a{i - 1}" if i else "", attributes=attributes) for i in range(n)]


def lost_and_circular(n: int) -> list[Any]:
    return [span(f"s{i}", "x", i, i + 1, f"s{i ^ 1}" if i % 3 else "gone") for i in range(n)]


SHAPES = [
    *(loop_with_ids, loop_without_ids, growing_history, history_without_ids, chain_of_tools, agents_without_messages),
    lost_and_circular,
]


def work_of(shape: Callable[[int], list[Any]], n: int) -> int:
    request = otlp(*shape(n))
    with counted() as calls:
        [run] = read_records([request])
    assert run.extra["spans"]
    return calls.total()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_trace_twice_as_long_takes_twice_the_work(shape: Callable[[int], list[Any]]) -> None:
    work_of(shape, 2)  # what is computed once
    assert work_of(shape, 120) <= TWICE * work_of(shape, 60)
