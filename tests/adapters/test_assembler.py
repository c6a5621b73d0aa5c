"""The Assembler turns deltas into well-formed events: one message, its blocks, its calls and their ends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.documents import in_pieces
from tests.support.strategies import json_values, texts
from toolcall_nb.adapters.assembler import NO_JSON, Assembler
from toolcall_nb.adapters.common_events import usage_of
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.run_outcome import cut_off_error
from toolcall_nb.core.transcript import ReasoningPart, State, TextPart, ToolCall, Transcript


def _read(*events: list[Event]) -> Transcript:
    return Transcript.from_events([event for some in events for event in some])


def _call(transcript: Transcript, call_id: str) -> ToolCall:
    return transcript.calls[call_id]


def test_a_message_begins_once_and_ends_once() -> None:
    message = Assembler()
    assert message.start("m1") == [ev.Start(message_id="m1")]
    assert message.start("m2") == []
    message.reason, message.metadata = "stop", {"model": "m"}
    assert message.close() == [ev.Finish(finish_reason="stop", message_metadata={"model": "m"})]
    assert message.close() == []


def test_of_a_single_step_the_model_and_the_usage_are_facts_of_the_message() -> None:
    message = Assembler()
    message.start()
    message.describe("m", {"inputTokens": 2}, "r1")
    message.keep("p", "tier", "fast")
    step, finish = message.close()
    assert step == ev.FinishStep(response_id="r1", provider_metadata={"p": {"tier": "fast"}})
    assert finish == ev.Finish(message_metadata={"model": "m", "usage": {"inputTokens": 2}})


def test_each_step_has_its_own_facts_and_the_message_their_sums() -> None:
    message = Assembler()
    events = message.text("a")
    message.describe("m", {"inputTokens": 2}, "r1")
    message.reason = "length"
    events += [*message.next_step(), *message.text("b")]
    message.describe("n", {"inputTokens": 3}, "r2")
    first, second, finish = [event for event in [*events, *message.close()] if isinstance(event, _ENDS)]
    assert first == ev.FinishStep(model="m", usage={"inputTokens": 2}, finish_reason="length", response_id="r1")
    assert second == ev.FinishStep(model="n", usage={"inputTokens": 3}, response_id="r2")
    assert finish == ev.Finish(message_metadata={"model": "n", "usage": {"inputTokens": 5}})


_ENDS = (ev.FinishStep, ev.Finish)


def test_a_step_does_not_end_before_it_has_begun() -> None:
    message = Assembler()
    assert message.next_step() == []
    message.text("a")
    assert [type(event) for event in message.next_step()] == [ev.TextEnd, ev.FinishStep, ev.StartStep]
    assert message.next_step() == []


def test_results_of_the_callers_tools_end_a_reply_and_those_of_the_provider_do_not() -> None:
    message = Assembler()
    message.begin_call(0, "a", "search", provider_executed=True)
    message.begin_call(1, "b", "f")
    assert (message.output("a", 1), message.has_results)[1] is False
    assert (message.output("b", 1), message.has_results)[1] is True
    message.next_step()
    assert message.has_results is False


def test_an_empty_stream_is_an_empty_message() -> None:
    assert Assembler().close() == [ev.Start(), ev.Finish()]


def test_text_of_another_key_is_a_block_of_its_own() -> None:
    message = Assembler()
    found = _read(message.text("a", 1), message.text("b", 1), message.text("c", 2), message.close())
    assert found.messages[0].parts == (TextPart("ab"), TextPart("c"))


def test_empty_text_neither_begins_nor_ends_a_block() -> None:
    message = Assembler()
    found = [message.text("", 1), message.reasoning("why", 1), message.text("", 1), message.reasoning("!", 1)]
    assert _read(*found, message.close()).messages[0].parts == (ReasoningPart("why!"),)


def test_reasoning_without_text_carries_the_providers_metadata() -> None:
    message = Assembler()
    found = [*message.reasoning("", 1, {"p": {"secret": "x"}}), *message.end_block()]
    assert _read(found).messages[0].parts == (ReasoningPart("", {"p": {"secret": "x"}}),)


def test_metadata_of_a_block_comes_at_its_end() -> None:
    message = Assembler()
    before = (message.is_reasoning, message.open_key)
    message.reasoning("why", "r")
    assert (before, message.is_reasoning, message.open_key) == ((False, None), True, "r")
    assert message.annotate({"p": {"signature": "s"}}) == []
    assert message.end_block({"q": {"more": 1}}) == [
        ev.ReasoningEnd("reasoning-1", {"p": {"signature": "s"}, "q": {"more": 1}})
    ]


def test_a_source_does_not_split_its_text() -> None:
    message = Assembler()
    source = ev.SourceUrl("source-1", "https://a.example")
    found = _read(message.text("a"), message.after_block(source), message.text("b"), message.close())
    assert [type(part).__name__ for part in found.messages[0].parts] == ["TextPart", "SourceUrlPart"]
    assert found.messages[0].text == "ab"


def test_several_calls_may_grow_at_the_same_time() -> None:
    message = Assembler()
    found = _read(
        *(message.begin_call(key, f"c{key}", "search") for key in (0, 1)),
        *(message.arguments(key, piece) for piece in ('{"q":', " 1", "}") for key in (0, 1)),
        message.close(),
    )
    assert [(call.id, call.input) for call in found.messages[0].calls] == [("c0", {"q": 1}), ("c1", {"q": 1})]


def test_a_missing_or_repeated_call_id_is_replaced() -> None:
    message = Assembler()
    ids: list[Any] = [None, None, "a", "a", "call_1"]
    calls = _read(*(message.begin_call(key, call_id, "t") for key, call_id in enumerate(ids))).messages[0].calls
    assert [message.id_of(key) for key in range(5)] == ["call_1", "call_2", "a", "a-2", "call_1-2"]
    assert [call.provider_id for call in calls] == [None, None, None, "a", "call_1"]


def test_results_for_a_repeated_id_go_to_its_open_calls_in_order() -> None:
    message = Assembler()
    first = [*message.begin_call(1, "a", "t"), *message.end_call(1, {}), *message.output("a", 1)]
    then = [*message.begin_call(2, "a", "t"), *message.end_call(2, {}), *message.output("a", 2)]
    found = _read(first, then, message.output("a", 3), message.close())
    assert [(call.id, call.output) for call in found.messages[0].calls] == [("a", 1), ("a-2", 2)]
    assert not found.diagnostics


@pytest.mark.parametrize("written", ["", "  ", "\n"])
def test_empty_text_means_no_arguments(written: str) -> None:
    message = Assembler()
    message.begin_call(1, "a", "t")
    message.arguments(1, written)
    assert [*message.end_call(1), *message.text("So.")][0] == ev.ToolInputAvailable("a", "t", {})


@pytest.mark.parametrize("reason", [None, "length", "content-filter", "other", "error"])
def test_empty_text_at_the_end_of_a_cut_off_reply_is_an_error(reason: str | None) -> None:
    message = Assembler()
    begun = message.begin_call(1, "a", "t")
    message.reason = reason
    call = _call(_read(begun, message.end_call(1), message.close()), "a")
    assert (call.state, call.error) == (State.OUTPUT_ERROR, cut_off_error(reason))


@pytest.mark.parametrize("written", ['{"q": "ca', "{", "nonsense", '{"a": 1}{', "[" * 100_000])
def test_arguments_that_are_not_json_are_an_error_with_their_text(written: str) -> None:
    message = Assembler()
    found = _read(message.begin_call(1, "a", "t"), message.arguments(1, written), message.close())
    call = _call(found, "a")
    assert (call.state, call.input, call.error) == (State.OUTPUT_ERROR, written, NO_JSON)


def test_unknown_calls_give_no_events() -> None:
    message = Assembler()
    message.begin_call(1, "a", "t")
    assert message.begin_call(1, "b", "u") == []
    for found in (
        *(message.arguments(2, "{}"), message.end_call(2), message.rewrite_call(2), message.rename_call(2, "x")),
        *(message.output("b", 1), message.failure("b", "no"), message.arguments(1, "")),
    ):
        assert found == []
    assert (message.id_of(2), message.name_of(2), message.written(2), message.knows("b")) == (None, "", "", False)


def test_a_call_ends_once() -> None:
    message = Assembler()
    message.begin_call(1, "a", "t")
    assert message.open_call() == message.open_call("t") == "a"
    assert message.open_call("u") is None
    assert message.end_call(1, {"x": 1}) == [ev.ToolInputAvailable("a", "t", {"x": 1})]
    assert message.end_call(1) == message.arguments(1, "more") == message.rewrite_call(1) == []
    assert message.output("a", 1, provider_executed=True) == [ev.ToolOutputAvailable("a", 1, provider_executed=True)]
    assert message.failure("a", "no") == message.output("a", 2) == []
    assert message.open_call() is None


def test_a_preliminary_output_does_not_end_the_call() -> None:
    message = Assembler()
    message.begin_call(1, "a", "t")
    message.outcome("a", ev.ToolOutputAvailable("a", 1, preliminary=True))
    assert message.failure("a", "no") == [ev.ToolOutputError("a", "no")]


def test_a_call_is_described_when_its_arguments_are_complete() -> None:
    message = Assembler()
    message.begin_call(1, "a", "sea")
    message.describe_call(1, "search", provider_executed=True, provider_metadata=None)
    assert message.end_call(1, {}) == [ev.ToolInputAvailable("a", "search", {}, provider_executed=True)]


def test_arguments_can_start_over() -> None:
    message = Assembler()
    found = [message.begin_call(1, "a", "t"), message.arguments(1, '{"x": '), message.rewrite_call(1)]
    transcript = _read(*found, message.arguments(1, '{"y": 1}'), message.close())
    assert _call(transcript, "a").input == {"y": 1}


def test_a_call_can_turn_out_to_have_another_id() -> None:
    message = Assembler()
    found = [message.begin_call(1, "a", "t"), message.begin_call(2, "b", "t"), message.rename_call(1, "c")]
    assert message.rename_call(1, "c") == message.rename_call(1, "a") == []
    found += [message.rename_call(2, "c"), message.end_calls(), message.output("c", 1), message.close()]
    assert [(call.id, call.output) for call in _read(*found).messages[0].calls] == [("c", 1), ("c-2", ev.MISSING)]


@given(st.data(), json_values(), texts())
def test_cuts_do_not_matter(data: st.DataObject, value: Any, said: str) -> None:
    written = json.dumps(value)  # halves of surrogate pairs as escapes

    def read(text_cuts: list[int], argument_cuts: list[int]) -> Transcript:
        message = Assembler()
        found = [message.text(piece) for piece in in_pieces(said, text_cuts)]
        found.append(message.begin_call(1, "a", "t"))
        found += [message.arguments(1, piece) for piece in in_pieces(written, argument_cuts)]
        return _read(*found, message.close())

    places = st.lists(st.integers(0, max(len(said), len(written))), max_size=6).map(sorted)
    cut = read(data.draw(places), data.draw(places))
    assert cut == read([], [])
    assert cut.messages[0].text == said
    assert json.dumps(cut.calls["a"].input) == json.dumps(value)


def test_a_surrogate_pair_that_was_cut_is_joined() -> None:
    message = Assembler()
    halves = "😀".encode("utf-16-be")
    high, low = (half.decode("utf-16-be", "surrogatepass") for half in (halves[:2], halves[2:]))
    found = [message.text(high), message.text(low), message.begin_call(1, "a", "t")]
    found += [message.arguments(1, piece) for piece in ('{"x": "', high, low, '"}')]
    transcript = _read(*found, message.close())
    assert (transcript.messages[0].text, transcript.calls["a"].input) == ("😀", {"x": "😀"})


def test_counts_are_found_at_paths_and_add_up() -> None:
    names = {"inputTokens": ("in", "cache.read"), "outputTokens": "out", "totalTokens": "odd"}
    reported = {"in": 3, "cache": {"read": 4}, "out": True, "odd": -1}
    assert usage_of(reported, names) == {"inputTokens": 7}


@given(st.dictionaries(st.sampled_from(["in", "a", "b"]), json_values()))
def test_counts_are_never_negative_or_of_another_type(reported: Any) -> None:
    found = usage_of(reported, {"inputTokens": "in", "outputTokens": "a.b"})
    assert all(type(count) is int and count >= 0 for count in found.values())
