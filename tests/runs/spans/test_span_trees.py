"""Parents that are missing, remote or circular, spans that come twice, late or without times: a diagnostic each."""

from __future__ import annotations

from typing import Any

from tests.support.span_files import otlp, read_records, span

TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t"}


def read_one(*spans: dict[str, Any]) -> tuple[list[tuple[str, Any]], list[str]]:
    """The id and parent of each span, in order, and the diagnostics."""
    [run] = read_records([otlp(*spans)])
    assert len(run.transcript.calls) == len({each["id"] for each in run.extra["spans"] if each["kind"] == "tool"})
    links = [(each["id"], each.get("parent")) for each in run.extra["spans"]]
    return links, [f"{each.message} {each.action}" for each in run.transcript.diagnostics]


def test_children_may_come_before_their_parents() -> None:
    links, problems = read_one(span("c", "c", 2, 3, "b"), span("b", "b", 1, 4, "a"), span("a", "a", 0, 5))
    assert links == [("a", None), ("b", "a"), ("c", "b")]
    assert problems == []


def test_a_missing_parent_makes_a_root() -> None:
    links, problems = read_one(span("a", "a", 0, 1), span("b", "b", 1, 2, "gone"))
    assert links == [("a", None), ("b", "gone")]
    assert problems == ["1 span has a parent that is not in the file. Such a span was read as a root."]


def test_a_remote_parent_makes_a_root() -> None:
    _, problems = read_one(span("a", "a", 0, 1, "gone", flags=0x300))
    assert problems == [
        "1 span has a parent in another process, which is not in the file. Such a span was read as a root."
    ]


def test_a_span_that_is_its_own_parent_is_a_root() -> None:
    links, problems = read_one(span("a", "a", 0, 1, "a", attributes=TOOL))
    assert len(links) == 1
    assert problems == ["1 circle of parents was found. One link of each was left out."]


def test_each_circle_of_parents_is_broken_once() -> None:
    ring = [span(f"r{i}", "r", i, i + 1, f"r{(i + 1) % 5}", attributes=TOOL) for i in range(5)]
    pair = [span("p", "p", 8, 9, "q"), span("q", "q", 9, 10, "p")]
    links, problems = read_one(*ring, *pair, span("x", "x", 9, 10, "p"))
    assert len(links) == 8
    assert problems[0] == "2 circles of parents were found. One link of each was left out."


def test_the_first_copy_of_a_span_counts() -> None:
    first, second = (span("a", name, attributes={**TOOL, "gen_ai.tool.name": name}) for name in ("first", "second"))
    [run] = read_records([otlp(first, second)])
    assert [call.name for call in run.transcript.calls.values()] == ["first"]
    assert run.transcript.diagnostics[0].message == "1 span was in the file more than once."


def test_a_span_that_starts_before_its_parent_is_read_after_it() -> None:
    links, problems = read_one(span("late", "late", 0, 1, "a"), span("a", "a", 5, 9), span("b", "b", 6, 7, "a"))
    assert links == [("a", None), ("late", "a"), ("b", "a")]
    assert problems == ["1 span starts before its parent. Such a span was read after its parent."]


def test_spans_without_times_are_read_in_the_order_of_the_file() -> None:
    given = [span("a", "a"), span("b", "b", parent="a"), span("c", "c", parent="a")]
    for each in given:
        del each["startTimeUnixNano"], each["endTimeUnixNano"]
    links, problems = read_one(*given)
    assert [link[0] for link in links] == ["a", "b", "c"]
    assert problems == ["3 spans have no time. Such a span was read in the order of the file."]


def test_a_call_without_an_end_is_open() -> None:
    given = span("a", "execute_tool t", attributes=TOOL)
    del given["endTimeUnixNano"]
    [run] = read_records([otlp(given)])
    [call] = run.transcript.calls.values()
    assert (call.state.value, call.started, call.seconds) == ("input-available", 0, None)
