"""AG-UI: its events are written and read back, in the order that its verifier requires."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from ag_ui.core import Event as AgUiEvent
from ag_ui.core import EventType
from hypothesis import example, given
from pydantic import TypeAdapter

from tests.support.strategies import streams, transcripts
from tests.support.wire_round_trips import CONVERSATION, decoded, decoded_bytewise, decoded_transcript, encoded, frames
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, to_dict
from toolcall_nb.core.transcript import State, Transcript
from toolcall_nb.wire import encoder
from toolcall_nb.wire.ag_ui import CHUNK
from toolcall_nb.wire.ag_ui.contents import result_event
from toolcall_nb.wire.ag_ui.terms import EVENT_TYPES

RUN = {"threadId": "th", "runId": "r"}
_PEER: TypeAdapter[Any] = TypeAdapter(AgUiEvent)


def kinds(events: list[Any]) -> list[str]:
    return [event["type"] for event in events]


def run(*events: Event) -> list[Any]:
    """What is written, without the run's beginning."""
    return frames(encoded("ag-ui", events, thread_id="th", run_id="r"))[1:]


def native(event: Mapping[str, Any]) -> dict[str, Any]:
    """The event as a reader sees it that does not know this package."""
    return {key: value for key, value in event.items() if key != "metadata"}


# Writing ------------------------------------------------------------------------------------------------------


def test_the_types_are_those_of_the_protocols_own_package() -> None:
    assert {kind.value for kind in EventType} == EVENT_TYPES


def test_a_conversation_is_one_run_that_the_protocols_own_types_accept() -> None:
    events = frames(encoded("ag-ui", CONVERSATION, thread_id="th", run_id="r"))
    for event in events:
        _PEER.validate_python(event)
    assert native(events[0]) == {"type": "RUN_STARTED", **RUN, "protocolVersion": "1.0"}
    assert native(events[-1]) == {
        **{"type": "RUN_FINISHED", **RUN},
        "outcome": {"type": "success"},
        "usage": [{"model": "mock", "inputTokens": 10, "outputTokens": 5, "totalTokens": 15}],
    }
    assert [kind for kind in kinds(events) if kind != "CUSTOM"] == [
        *("RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "STEP_STARTED"),
        *("REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT"),
        *("REASONING_MESSAGE_END", "REASONING_END"),
        *("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"),
        *("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_ARGS", "TOOL_CALL_END"),
        *("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT", "TOOL_CALL_RESULT"),
        *("STEP_FINISHED", "STEP_STARTED", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"),
        *("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "STEP_FINISHED", "RUN_FINISHED"),
    ]


def test_every_event_is_a_block_of_its_own_and_json_without_blanks() -> None:
    data = encoded("ag-ui", [ev.TextDelta("t", "é")])
    assert data.decode().split("\n\n")[2] == 'data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"run-1","delta":"é"}'


def test_a_call_belongs_to_the_text_before_it_and_what_follows_a_result_is_another_message() -> None:
    text = (ev.TextStart("t"), ev.TextDelta("t", "Wait."), ev.TextEnd("t"))
    calls = [ev.ToolInputAvailable(name, "f", {}) for name in "abc"]
    events = run(*text, *calls[:2], ev.ToolOutputAvailable("a", 1), calls[2], ev.Finish())
    starts = {event["toolCallId"]: event["parentMessageId"] for event in events if event["type"] == "TOOL_CALL_START"}
    assert starts["a"] == starts["b"] == events[0]["messageId"]
    assert starts["c"] not in (starts["a"], None)


def test_text_after_a_call_is_another_message() -> None:
    events = run(
        ev.TextStart("t"), ev.TextDelta("t", "a"), ev.ToolInputStart("c", "f"), ev.TextDelta("t", "b"), ev.Finish()
    )
    messages = [event["messageId"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT"]
    assert len(set(messages)) == 2
    assert kinds(events)[:4] == ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "TOOL_CALL_START"]


@pytest.mark.parametrize(
    ("end", "content"),
    [
        (ev.ToolOutputAvailable("c", "text"), "text"),
        (ev.ToolOutputAvailable("c", {"é": [1]}), '{"é":[1]}'),
        (ev.ToolOutputAvailable("c", None), "null"),
        (ev.ToolOutputError("c", "No such city", traceback="line 1"), "No such city"),
        (ev.ToolOutputDenied("c"), "The call was denied."),
        (ev.ToolInterrupted("c"), "The call was interrupted before it had a result."),
        (ev.ToolInputError("c", "f", {"a": 1}, "There is no a"), "There is no a"),
        (ev.ToolRetracted("c"), "This was no call: its text stays text."),
    ],
    ids=lambda value: getattr(value, "type", None),
)
def test_every_end_of_a_call_is_a_result_that_says_so(end: Event, content: str) -> None:
    begun = ev.ToolInputAvailable("c", "f", {"a": 1})
    events = run(begun, end, ev.Finish())
    assert kinds(events) == ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT", "RUN_FINISHED"]
    assert {key: events[3][key] for key in ("toolCallId", "content", "role")} == {
        **{"toolCallId": "c", "content": content, "role": "tool"},
    }
    assert events[4]["outcome"] == {"type": "success"}
    assert decoded_transcript("ag-ui", [begun, end, ev.Finish()]) == Transcript.from_events([begun, end, ev.Finish()])


def test_a_denial_says_why() -> None:
    asked = (ev.ToolInputAvailable("c", "f", {}), ev.ToolApprovalRequest("a", "c"))
    answer = (ev.ToolApprovalResponse("a", approved=False, reason="Too dear"), ev.ToolOutputDenied("c"))
    (result,) = [event for event in run(*asked, *answer) if event["type"] == "TOOL_CALL_RESULT"]
    assert result["content"] == "The call was denied: Too dear"


def test_a_question_without_an_answer_is_an_interrupt() -> None:
    asked = (ev.ToolInputAvailable("c", "book", {}), ev.ToolApprovalRequest("a", "c"))
    outcome = run(*asked, ev.Finish())[-1]["outcome"]
    assert outcome["type"] == "interrupt"
    (interrupt,) = outcome["interrupts"]
    assert (interrupt["id"], interrupt["toolCallId"], interrupt["message"]) == ("a", "c", "May book run?")
    assert decoded_transcript("ag-ui", [*asked, ev.Finish()]).calls["c"].state is State.APPROVAL_REQUESTED
    assert decoded_transcript("ag-ui", [*asked, ev.Finish()]).diagnostics == ()


def test_calls_that_wait_for_a_result_are_named() -> None:
    calls = [ev.ToolInputAvailable(name, "f", {}) for name in "ab"]
    assert run(*calls, ev.ToolOutputAvailable("a", 1), ev.Finish())[-1]["outcome"] == {
        **{"type": "success", "pendingToolCallIds": ["b"]},
    }


def test_a_stop_is_the_outcome_cancelled_and_its_calls_are_interrupted() -> None:
    events: list[Event] = [ev.ToolInputStart("c", "f"), ev.ToolInputDelta("c", '{"a": '), ev.Abort(reason="enough")]
    assert kinds(run(*events)) == ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "RUN_FINISHED"]
    assert run(*events)[-1]["outcome"] == {"type": "cancelled"}
    found = decoded_transcript("ag-ui", events)
    assert (found.calls["c"].state, found.calls["c"].input_text) == (State.INTERRUPTED, '{"a": ')
    assert found.messages[0].aborted == "enough"


def test_an_error_ends_the_run_if_nothing_follows_it_and_is_told_in_its_place_otherwise() -> None:
    error = ev.Error("No connection", details="ECONNREFUSED")
    at_the_end = run(ev.TextDelta("t", "a"), error, ev.Finish(finish_reason="error"))
    assert native(at_the_end[-1]) == {"type": "RUN_ERROR", "message": "No connection"}
    between = run(error, ev.TextDelta("t", "a"), ev.Finish())
    assert (kinds(between)[0], kinds(between)[-1]) == ("CUSTOM", "RUN_FINISHED")
    last: tuple[list[Event], ...] = ([], [ev.Finish(finish_reason="error")], [ev.TextDelta("t", "a"), ev.Finish()])
    for events in ([error, *rest] for rest in last):
        assert decoded_transcript("ag-ui", events) == Transcript.from_events(events)


def test_each_message_of_the_assistant_is_a_run_and_the_question_before_it_belongs_to_it() -> None:
    events = [*CONVERSATION, *CONVERSATION]
    found = frames(encoded("ag-ui", events, run_id="r"))
    starts = [event for event in found if event["type"] == "RUN_STARTED"]
    assert [event["runId"] for event in starts] == ["r", "r-run-2"]
    roles = [event["role"] for event in found if event["type"] == "TEXT_MESSAGE_START"]
    assert roles == ["user", "assistant", "assistant"] * 2
    calls = [event["toolCallId"] for event in found if event["type"] == "TOOL_CALL_START"]
    assert calls == ["c1", "c2", "c3", "c1~2", "c2~2", "c3~2"]  # a reader puts what it knows together
    assert decoded_transcript("ag-ui", events) == Transcript.from_events(events)


def test_an_empty_stream_is_a_run_without_anything() -> None:
    assert kinds(frames(encoded("ag-ui", []))) == ["RUN_STARTED", "RUN_FINISHED"]
    assert decoded_transcript("ag-ui", []).messages == ()


@pytest.mark.parametrize(
    ("deltas", "given", "arguments"),
    [
        (['{"a":', " 1}"], {"a": 1}, '{"a": 1}'),
        ([], {"a": [None, "é"]}, '{"a":[null,"é"]}'),
        ([" \n"], {}, " \n{}"),
        (["a: 1"], {"a": 1}, '{"a":1}'),  # YAML, of a callout
        (['{"a": 1'], {"a": 1}, '{"a": 1'),  # what was written was repaired
        (['{"a": 1}'], {"a": True}, '{"a": 1}'),
    ],
    ids=repr,
)
def test_arguments_are_json_as_they_are_written_and_the_input_is_exact(
    deltas: list[str], given: Any, arguments: str
) -> None:
    events: list[Event] = [ev.ToolInputStart("c", "f"), *(ev.ToolInputDelta("c", delta) for delta in deltas)]
    events += [ev.ToolInputAvailable("c", "f", given), ev.Finish()]
    assert "".join(event["delta"] for event in run(*events) if event["type"] == "TOOL_CALL_ARGS") == arguments
    assert json.dumps(decoded_transcript("ag-ui", events).calls["c"].input) == json.dumps(given)
    assert decoded_transcript("ag-ui", events[:-2]) == Transcript.from_events(events[:-2])


def test_what_ag_ui_has_no_event_for_is_a_custom_event_with_the_chunk() -> None:
    events: list[Event] = [ev.Status("Thinking"), ev.SourceUrl("s", "https://e.org"), ev.Diagnostic("odd", "left out")]
    assert [event for event in run(*events) if event["type"] == "CUSTOM"] == [
        {"type": "CUSTOM", "name": CHUNK, "value": to_dict(event)} for event in events
    ]


def test_a_step_has_the_name_of_its_agent() -> None:
    steps: list[Event] = [
        ev.StartStep(agent="planner"),
        ev.FinishStep(model="m", usage={"inputTokens": 1}),
        ev.StartStep(),
    ]
    events: list[Event] = [*steps, ev.TextDelta("t", "a"), ev.Finish()]
    assert [(event["type"], event["stepName"]) for event in run(*events) if "stepName" in event] == [
        *(("STEP_STARTED", "planner"), ("STEP_FINISHED", "planner")),
        *(("STEP_STARTED", "step-2"), ("STEP_FINISHED", "step-2")),
    ]
    assert decoded_transcript("ag-ui", events) == Transcript.from_events(events)


def test_the_usage_of_a_run_is_that_of_its_steps_and_subagents_by_model() -> None:
    steps = [(None, "large", 3), ("c", "small", 5), (None, "large", 4)]
    ends = [ev.FinishStep(parent=parent, model=name, usage={"inputTokens": n}) for parent, name, n in steps]
    finish = ev.Finish(message_metadata={"usage": {"inputTokens": 1}})
    events: list[Event] = [ev.ToolInputAvailable("c", "ask", {}), *ends, finish]
    usage = run(*events)[-1]["usage"]
    assert usage == [{"model": "large", "inputTokens": 7}, {"model": "small", "inputTokens": 5}]
    last = frames(encoded("provider", events))[-2]["data"]
    assert last["tokenUsage"] == {"promptTokens": 12}
    assert run(events[0], finish)[-1]["usage"] == [{"inputTokens": 1}]


def test_an_agent_inside_a_call_is_a_subagent_and_all_that_it_says_has_its_id() -> None:
    inner: dict[str, Any] = {"tool_metadata": {"parent": "c"}}
    events: list[Event] = [
        ev.ToolInputAvailable("c", "ask", {}),
        ev.StartStep(parent="c", agent="expert"),
        *(ev.TextDelta("t", "I look.", parent="c"), ev.TextEnd("t", parent="c")),
        *(ev.ToolInputAvailable("d", "look", {}, **inner), ev.ToolOutputAvailable("d", 1)),
        ev.FinishStep(parent="c", model="small"),
        *(ev.ToolOutputAvailable("c", "found"), ev.TextDelta("t", "Found."), ev.Finish()),
    ]
    sent = run(*events)
    started = next(event for event in sent if event["type"] == "SUBAGENT_STARTED")
    assert (started["name"], started["parentToolCallId"]) == ("expert", "c")
    assert kinds([event for event in sent if event.get("subagentRunId") == started["subagentRunId"]]) == [
        *("SUBAGENT_STARTED", "STEP_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"),
        *("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT", "STEP_FINISHED"),
        "SUBAGENT_FINISHED",
    ]
    assert decoded_transcript("ag-ui", events) == Transcript.from_events(events)


def test_the_error_of_an_agent_inside_a_call_is_not_the_runs() -> None:
    events: list[Event] = [
        ev.ToolInputAvailable("c", "ask", {}),
        ev.Error("Nothing", details="404", parent="c"),
        ev.Finish(),
    ]
    assert kinds(run(*events))[3:] == ["SUBAGENT_STARTED", "SUBAGENT_ERROR", "RUN_FINISHED"]
    assert decoded_transcript("ag-ui", events) == Transcript.from_events(events)


def test_an_id_that_is_used_again_in_another_step_is_another_call() -> None:
    step: list[Event] = [
        ev.StartStep(),
        ev.ToolInputAvailable("look:0", "look", {}),
        ev.ToolOutputAvailable("look:0", 1),
    ]
    events: list[Event] = [*step, *step, ev.Finish()]
    starts = [event["toolCallId"] for event in run(*events) if event["type"] == "TOOL_CALL_START"]
    assert starts == ["look:0", "look:0~2"]
    assert [*decoded_transcript("ag-ui", events).calls] == ["look:0", "look:0-2"]


def test_an_interrupt_says_why_it_is_asked_and_what_may_be_answered() -> None:
    asked = ev.ToolApprovalRequest(
        *("a", "c"),
        message="It costs money",
        rule="book*",
        response_schema={"type": "string"},
        expires_at="2027",
    )
    events: list[Event] = [ev.ToolInputAvailable("c", "book", {}), asked, ev.Finish()]
    assert run(*events)[-1]["outcome"]["interrupts"] == [
        {
            **{"id": "a", "reason": "book*", "message": "It costs money", "toolCallId": "c"},
            **{"responseSchema": {"type": "string"}, "expiresAt": "2027"},
        }
    ]
    assert decoded_transcript("ag-ui", events) == Transcript.from_events(events)


def test_the_pieces_of_a_result_are_parts_of_its_message() -> None:
    picture = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA"}
    contents = [{"type": "text", "text": "Two:"}, picture, {**picture, "url": "https://h/b.png"}]
    output = ev.ToolOutputAvailable("c", "Two:", contents=contents)
    events: list[Event] = [ev.ToolInputAvailable("c", "draw", {}), output, ev.Finish()]
    result = next(event for event in run(*events) if event["type"] == "TOOL_CALL_RESULT")
    assert result["content"] == [
        {"type": "text", "text": "Two:"},
        {"type": "image", "source": {"type": "data", "value": "AAAA", "mimeType": "image/png"}},
        {"type": "image", "source": {"type": "url", "value": "https://h/b.png", "mimeType": "image/png"}},
    ]
    _PEER.validate_python(result)
    assert decoded_transcript("ag-ui", events) == Transcript.from_events(events)
    foreign = {key: value for key, value in result.items() if key != "metadata"}
    read = result_event(foreign, "c")
    assert isinstance(read, ev.ToolOutputAvailable)
    assert read.contents == contents


def test_data_is_a_custom_event_and_the_state_is_the_state() -> None:
    events: list[Event] = [ev.Data("chart", [1], id="d"), ev.Data("state", {"a": 1}, id="state"), ev.Data(CHUNK, 1)]
    first, state, odd, _ = run(*events)
    assert native(first) == {"type": "CUSTOM", "name": "chart", "value": [1]}
    assert state == {"type": "STATE_SNAPSHOT", "snapshot": {"a": 1}}
    assert odd["name"] == CHUNK
    assert decoded_transcript("ag-ui", events) == Transcript.from_events(events)


# There and back -----------------------------------------------------------------------------------------------


@given(transcripts())
def test_a_transcript_comes_back_as_it_was(transcript: Transcript) -> None:
    events = [*transcript.events()]
    assert decoded_transcript("ag-ui", events) == Transcript.from_events(events)


@given(streams())
@example([ev.TextStart("t", seam=True), ev.TextStart("t"), ev.TextDelta("t", "text, and no blank line")])
def test_any_stream_reads_back_and_other_readers_accept_it(events: list[Event]) -> None:
    events = without_late_ends(events)
    data = encoded("ag-ui", events)
    found = decoded("ag-ui", data)
    assert Transcript.from_events(found) == Transcript.from_events(events)
    assert decoded_bytewise("ag-ui", data) == found
    for event in frames(data):
        _PEER.validate_python(event)
    assert out_of_order(frames(data)) == []


def without_late_ends(events: list[Event]) -> list[Event]:
    """Without the ends of blocks whose message has ended before: there the wire has ended them already."""
    begun: set[str] = set()
    kept: list[Event] = []
    for event in events:
        match event:
            case ev.Finish() | ev.Abort() | ev.Start():
                begun.clear()
            case ev.TextStart() | ev.TextDelta() | ev.ReasoningStart() | ev.ReasoningDelta():
                begun.add(event.type[:4] + event.id)
            case ev.TextEnd() | ev.ReasoningEnd() if event.type[:4] + event.id not in begun:
                continue
        kept.append(event)
    return kept


def out_of_order(events: list[Any]) -> list[str]:
    """What the verifier's rules would refuse (client, verify.ts); its own code reads the same in test_wire_peers."""
    open_: set[tuple[str, str, str]] = set()
    wrong, running = [], False
    for event in events:
        family, _, step = event["type"].rpartition("_")
        name = event.get("messageId", event.get("toolCallId", event.get("stepName", "")))
        of_subagent = (event.get("subagentRunId") or "") if family in ("STEP", "SUBAGENT") else ""
        key = (family, of_subagent, name if family != "SUBAGENT" else "")
        wrong += [] if running or event["type"] == "RUN_STARTED" else [event["type"]]
        if event["type"] in ("RUN_FINISHED", "RUN_ERROR"):
            wrong += [str(name) for name in open_ if event["type"] == "RUN_FINISHED"]
            running = False
            open_.clear()
        elif event["type"] == "RUN_STARTED":
            wrong += ["RUN_STARTED"] if running else []
            running = True
        elif step in ("START", "STARTED"):
            wrong += [str(key)] if key in open_ else []
            open_.add(key)
        elif step in ("CONTENT", "ARGS", "END", "FINISHED", "ERROR"):
            wrong += [] if key in open_ else [str(event)]
            if step in ("END", "FINISHED", "ERROR"):
                open_.discard(key)
    return wrong + (["no end"] if running else [])


def test_event_ids_are_counted_over_all_events() -> None:
    writer = encoder("ag-ui", numbered=True)
    data = writer.encode(ev.TextDelta("t", "a")) + writer.close()
    assert [line for line in data.split(b"\n") if line.startswith(b"id")] == [b"id: %d" % n for n in range(1, 6)]
