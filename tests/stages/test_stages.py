"""Stages: the shapes of tool blocks, events as a log of updates and back, the check of logs, and upgrades."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.fixture_files import read_fixtures
from tests.support.strategies import json_values, streams, texts
from toolcall_nb.core import events as ev
from toolcall_nb.core.contents import file_piece
from toolcall_nb.core.events import MISSING, Event
from toolcall_nb.core.replay import call_events
from toolcall_nb.core.transcript import State, ToolCall, Transcript
from toolcall_nb.errors import UsageError, WireError
from toolcall_nb.stages import (
    ABORTED,
    DENIED,
    RULES,
    TAKEN_BACK,
    TRUNCATED,
    UNREADABLE,
    CommandOutputBlock,
    Image,
    NameAndArguments,
    Stage,
    StageProjector,
    StageReader,
    ToolBlock,
    UpdateToolBlockParams,
    apply_update,
    block_from_dict,
    block_to_dict,
    from_stages,
    to_stages,
    upgrade,
    validate,
)

WHOLE: dict[str, Any] = {"id": "c", "name": "f", "parameters": "{}", "stage": "running"}


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines() if line]


def fixtures(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("given_text", "expected"), [pytest.param(*entry[1:], id=entry[0]) for entry in read_fixtures(name)]
    )


def event(kind: str, fields: dict[str, Any]) -> Event:
    named = {"toolCallId": "c"} if kind.startswith("tool-") else {}
    if kind.startswith("tool-input") and kind != "tool-input-delta":
        named["toolName"] = "f"
    return ev.from_dict({"type": kind, **named, **fields})


# Shapes -----------------------------------------------------------------------------------------------------

UPDATE: dict[str, Any] = {
    "id": "c",
    "parameters": "{}",
    "stage": "end",
    "result": "r",
    "success": True,
    "error": "e",
    "name": "f",
    "shortResult": "s",
    "images": [{"data": "iVBO", "mediaType": "image/png"}, {"data": "R0lG"}],
    "compactParams": "p",
    "parametersChunk": "}",
}
BLOCK: dict[str, Any] = {
    "type": "tool",
    "content": "r",
    "toolCall": {"name": "f", "arguments": "{}"},
    "stage": "end",
    "id": "c",
    "name": "f",
    "success": False,
    "error": {"name": "TypeError", "message": "no"},
    "compactParams": "p",
    "parametersChunk": "}",
}
COMMAND: dict[str, Any] = {
    "type": "command_output",
    "command": "ls",
    "output": "a\n",
    "isRunning": True,
    "exitCode": None,
}


@pytest.mark.parametrize(
    ("mapping", "cls"), [(UPDATE, UpdateToolBlockParams), (BLOCK, ToolBlock), (COMMAND, CommandOutputBlock)]
)
def test_each_shape_is_read_and_written_with_the_names_of_the_wire(mapping: dict[str, Any], cls: type) -> None:
    block = block_from_dict(mapping)
    assert type(block) is cls
    assert block_to_dict(block) == mapping
    assert json.loads(json.dumps(block_to_dict(block))) == mapping


def test_fields_that_are_not_set_are_not_written() -> None:
    update = UpdateToolBlockParams(id="c", parameters="", stage=Stage.START)
    assert block_to_dict(update) == {"id": "c", "parameters": "", "stage": "start"}
    block = ToolBlock(content="", tool_call=NameAndArguments(name="f", arguments=""), stage=Stage.START)
    assert block_to_dict(block) == {
        "type": "tool",
        "content": "",
        "toolCall": {"name": "f", "arguments": ""},
        "stage": "start",
    }
    assert block_to_dict(UpdateToolBlockParams(id="c", parameters="", stage=Stage.END, images=(Image(data="x"),)))[
        "images"
    ] == [{"data": "x"}]


@pytest.mark.parametrize("mapping", [UPDATE, BLOCK, COMMAND], ids=["update", "block", "command"])
def test_fields_that_a_sender_adds_are_kept(mapping: dict[str, Any]) -> None:
    more = {**mapping, "timestamp": 1, "startLineNumber": None}
    assert block_to_dict(block_from_dict(more)) == more


def test_messages_are_optional_and_kept() -> None:
    more = {**UPDATE, "messages": [{"role": "user"}]}
    assert block_to_dict(block_from_dict(more)) == more


def test_values_do_not_change() -> None:
    with pytest.raises(AttributeError):
        block_from_dict(UPDATE).id = "d"  # type: ignore[misc] # that is what is tested


@pytest.mark.parametrize("mapping", [UPDATE, BLOCK], ids=["update", "block"])
@pytest.mark.parametrize("value", [True, False, None])
def test_is_running_is_refused_with_what_to_do(mapping: dict[str, Any], value: Any) -> None:
    with pytest.raises(WireError, match=r"'c' has the field 'isRunning'.*upgrade\(block\)"):
        block_from_dict({**mapping, "isRunning": value})


def test_is_running_is_refused_among_extra_fields_too() -> None:
    with pytest.raises(UsageError, match="isRunning"):
        UpdateToolBlockParams(id="c", parameters="", stage=Stage.START, extra={"isRunning": True})
    with pytest.raises(TypeError):
        UpdateToolBlockParams(id="c", parameters="", stage=Stage.START, is_running=True)  # type: ignore[call-arg] # as above


@pytest.mark.parametrize(
    "mapping",
    [
        {},
        [],
        "text",
        {**UPDATE, "stage": "finished"},
        {name: value for name, value in UPDATE.items() if name != "stage"},
        {name: value for name, value in UPDATE.items() if name != "parameters"},
        {**UPDATE, "images": [1]},
        {**BLOCK, "toolCall": {}},
        {**BLOCK, "type": "bang"},
        {**BLOCK, "type": 1},
        {name: value for name, value in COMMAND.items() if name != "isRunning"},
    ],
)
def test_anything_but_a_block_is_a_wire_error_that_quotes_it(mapping: Any) -> None:
    with pytest.raises(WireError):
        block_from_dict(mapping)


# Old blocks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "stage"),
    [
        ({"isRunning": True}, "running"),
        ({"isRunning": True, "result": "so far"}, "running"),
        ({"isRunning": False}, "start"),
        ({}, "start"),
        ({"isRunning": False, "parameters": "{}"}, "streaming"),
        ({"isRunning": False, "parametersChunk": "{"}, "streaming"),
        ({"isRunning": False, "toolCall": {"name": "f", "arguments": "{"}}, "streaming"),
        ({"isRunning": False, "parameters": "{}", "result": "x"}, "end"),
        ({"isRunning": False, "error": "x"}, "end"),
        ({"isRunning": False, "success": False}, "end"),
        ({"isRunning": False, "type": "tool", "content": "x"}, "end"),
        ({"isRunning": True, "stage": "end"}, "end"),
        ({"isRunning": True, "stage": "finished"}, "running"),
        ({"isRunning": "yes"}, "start"),
    ],
)
def test_an_old_block_gets_the_stage_that_follows_from_its_fields(old: dict[str, Any], stage: str) -> None:
    new = upgrade({"id": "c", **old})
    assert new == {**{name: value for name, value in old.items() if name != "isRunning"}, "id": "c", "stage": stage}


def test_an_upgraded_block_is_read() -> None:
    old = {name: value for name, value in BLOCK.items() if name != "stage"}
    block = block_from_dict(upgrade({**old, "isRunning": False, "more": 1}))
    assert isinstance(block, ToolBlock)
    assert (block.stage, block.extra) == (Stage.END, {"more": 1})


@pytest.mark.parametrize("other", [COMMAND, {"type": "text", "content": "x"}])
def test_blocks_that_are_no_tool_blocks_are_unchanged(other: dict[str, Any]) -> None:
    assert upgrade(other) == other


@given(st.dictionaries(st.sampled_from([*WHOLE, "isRunning", "result", "error", "success", "other"]), json_values()))
def test_upgrading_twice_is_upgrading_once(old: dict[str, Any]) -> None:
    once = upgrade(old)
    assert upgrade(once) == once
    assert "isRunning" not in once
    assert {name: value for name, value in old.items() if name not in ("isRunning", "stage")}.items() <= once.items()


# Updates to blocks ------------------------------------------------------------------------------------------


def applied(*updates: dict[str, Any]) -> ToolBlock:
    blocks: tuple[ToolBlock, ...] = ()
    for update in updates:
        blocks = apply_update(blocks, {"id": "c", **update})
    (block,) = blocks
    return block


def test_an_unknown_id_makes_a_block() -> None:
    block = applied({})
    assert (block.id, block.name, block.stage, block.content) == ("c", "unknown", Stage.START, "")
    assert applied({"name": "f"}).tool_call == NameAndArguments(name="f", arguments="")


def test_fields_that_are_not_given_and_another_name_change_nothing() -> None:
    first = {"name": "f", "stage": "running", "parameters": "{}", "error": "e", "compactParams": "p", "success": False}
    assert applied(first, {}) == applied(first) == applied(first, {"name": "g", "stage": None, "error": None})


@pytest.mark.parametrize(
    ("update", "written"),
    [
        ({"stage": "streaming", "parameters": "bc"}, "bc"),
        ({"stage": "streaming", "parametersChunk": "b"}, "ab"),
        ({"stage": "streaming", "parameters": "ab", "parametersChunk": "b"}, "ab"),
        ({"stage": "streaming", "parameters": ""}, ""),
        ({"stage": "running", "parameters": ""}, "a"),
        ({"stage": "running", "parameters": "b"}, "b"),
        ({"stage": "end"}, "a"),
    ],
)
def test_parameters_replace_and_chunks_append(update: dict[str, Any], written: str) -> None:
    assert applied({"parameters": "a"}, update).tool_call.arguments == written


def test_a_result_is_the_content_and_other_fields_are_kept_beside() -> None:
    block = applied({"result": "half"}, {"stage": "end", "result": "whole", "shortResult": "w", "images": []})
    assert block.content == "whole"
    assert block_to_dict(block)["shortResult"] == "w"
    assert block_to_dict(block)["images"] == []


def test_blocks_keep_their_places() -> None:
    blocks = apply_update(apply_update((), {"id": "a"}), {"id": "b"})
    blocks = apply_update(blocks, UpdateToolBlockParams(id="a", parameters="x", stage=Stage.END))
    assert [(block.id, block.stage) for block in blocks] == [("a", Stage.END), ("b", Stage.START)]


def test_an_update_with_is_running_is_not_applied() -> None:
    with pytest.raises(WireError, match="isRunning"):
        apply_update((), {"id": "c", "isRunning": False})


def test_fields_of_a_wrong_type_are_not_applied() -> None:
    assert applied({"name": 5, "parameters": [], "result": {}, "success": "x", "stage": 1}) == applied({})


@settings(max_examples=200)
@given(streams())
def test_a_projected_log_makes_blocks_that_are_all_at_their_end(events: list[Event]) -> None:
    blocks: tuple[ToolBlock, ...] = ()
    log = to_stages(events)
    for update in log:
        blocks = apply_update(blocks, update)
        assert blocks == tuple(block_from_dict(block_to_dict(block)) for block in blocks)
    assert [block.stage for block in blocks] == [Stage.END] * len({update["id"] for update in log})


# Events to stages -------------------------------------------------------------------------------------------


@fixtures("stages.md")
def test_events_to_stages(given_text: str, expected: str) -> None:
    events = [event(kind, fields) for kind, fields in lines(given_text)]
    log = to_stages(events)
    assert log == [{"id": "c", "name": "f", **update} for update in lines(expected)]
    assert validate(log) == []


@settings(max_examples=1000)
@given(streams(30))
def test_no_stream_whatever_its_order_makes_a_log_that_breaks_a_rule(events: list[Event]) -> None:
    log = to_stages(events)
    assert validate(log) == []
    for update in log:
        assert block_to_dict(block_from_dict(update)) == update
        assert json.loads(json.dumps(update)) == update


@given(streams())
def test_a_live_projector_gives_the_same_updates(events: list[Event]) -> None:
    projector = StageProjector()
    so_far: list[dict[str, Any]] = []
    for one in events:
        so_far += projector.feed(one)
    assert so_far == to_stages(events)[: len(so_far)]
    assert so_far + projector.close() == to_stages(events)
    assert projector.close() == []


@settings(max_examples=300)
@given(streams())
def test_chunks_add_up_to_the_parameters_and_nothing_streams_while_running(events: list[Event]) -> None:
    written: dict[str, str] = {}
    for update in to_stages(events):
        if "parametersChunk" in update:
            assert update["stage"] == "streaming"
            assert update["parametersChunk"]
            assert written[update["id"]] + update["parametersChunk"] == update["parameters"]
        written[update["id"]] = update["parameters"]


def summary(value: Any) -> str:
    log = to_stages([ev.ToolInputAvailable("c", "f", value)])
    return str(log[0].get("compactParams", ""))


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({}, ""),
        ({"city": "Lyon", "days": 7}, "city: Lyon, days: 7"),
        ({"text": "two\n  lines"}, "text: two lines"),
        ({"a": [1, {"b": None}], "c": True}, 'a: [1,{"b":null}], c: true'),
        ("no object", "no object"),
        ([1, 2], "[1,2]"),
    ],
)
def test_compact_parameters_are_the_arguments_in_one_line(arguments: Any, line: str) -> None:
    assert summary(arguments) == line


@given(json_values())
def test_compact_parameters_are_short_and_of_one_line(value: Any) -> None:
    line = summary({"a": value, "b": value})
    assert len(line) <= 160
    assert line.splitlines() in ([line], [])


def test_what_is_cut_ends_in_dots() -> None:
    assert summary({"text": "x" * 1000}) == f"text: {'x' * 79}…"
    assert len(summary({str(n): "x" * 50 for n in range(100)})) == 160


def test_long_lines_of_a_short_result_are_cut() -> None:
    end = to_stages([ev.ToolInputAvailable("c", "f", {}), ev.ToolOutputAvailable("c", "x" * 1000 + "\ny")])[-1]
    assert end["shortResult"] == "x" * 199 + "…\ny"
    assert len(end["result"]) == 1002


# Stages to events -------------------------------------------------------------------------------------------


def as_line(call: ToolCall) -> list[Any]:
    denied = call.approval.reason if call.approval is not None else None
    output = None if call.output is MISSING else call.output
    written = None if call.input is MISSING else call.input
    return [call.id, call.name, call.state.value, written, call.error or denied or output if output != "" else ""]


def filled(update: Any) -> Any:
    return {"id": "c", **update} if isinstance(update, dict) else update


@fixtures("stage_logs.md")
def test_stages_to_calls(given_text: str, expected: str) -> None:
    log = [filled(update) for update in lines(given_text)]
    transcript = Transcript.from_events(from_stages(log))
    assert [as_line(call) for call in transcript.calls.values()] == lines(expected)
    assert len(transcript.messages) == 1


def test_an_update_may_be_a_value_as_well() -> None:
    updates = [
        UpdateToolBlockParams(id="c", name="f", parameters="", stage=Stage.START),
        UpdateToolBlockParams(id="c", parameters="{}", stage=Stage.END, result="x"),
    ]
    assert from_stages(updates) == from_stages([block_to_dict(update) for update in updates])
    assert validate(updates)[0].rule == "required"


def test_an_update_that_is_left_out_is_a_diagnostic_that_says_why() -> None:
    end = {**WHOLE, "stage": "end"}
    found = [item for item in from_stages([end, 7, {}, end]) if isinstance(item, ev.Diagnostic)]  # type: ignore[list-item] # a foreign log
    assert [item.message for item in found] == [
        "Update 2 of the log is no object.",
        "Update 3 of the log has no id.",
        "Update 4 of the log comes after the end of 'c'.",
    ]


def test_an_update_with_is_running_is_refused_with_its_place() -> None:
    with pytest.raises(WireError, match=r"Update 2: .*upgrade"):
        from_stages([WHOLE, {**WHOLE, "isRunning": True}])


def test_an_old_log_is_read_once_it_is_upgraded() -> None:
    old = [
        {"id": "c", "name": "f", "parameters": "{}", "isRunning": True},
        {"id": "c", "name": "f", "parameters": "{}", "isRunning": False, "result": "x", "success": True},
    ]
    (call,) = Transcript.from_events(from_stages(map(upgrade, old))).calls.values()
    assert (call.state, call.output) == (State.OUTPUT_AVAILABLE, "x")


def test_json_that_is_nested_too_deep_is_text() -> None:
    deep = "[" * 100_000
    log = [{**WHOLE, "stage": "end", "parameters": deep, "result": deep}]
    (call,) = Transcript.from_events(from_stages(log)).calls.values()
    assert (call.input, call.output) == (deep, deep)


def test_an_empty_log_has_no_events() -> None:
    assert from_stages([]) == []


def test_images_come_back_as_what_the_person_sees() -> None:
    bundle = {"image/png": "iVBO", "image/svg+xml": "<svg>é</svg>"}
    log = to_stages([ev.ToolInputAvailable("c", "f", {}), ev.ToolOutputAvailable("c", 1, display=bundle)])
    assert Transcript.from_events(from_stages(log)).calls["c"].display == bundle
    images = [{"data": "a"}, {"data": "b", "mediaType": "image/png"}, {"data": "<svg/>", "mediaType": "image/svg+xml"}]
    (call,) = Transcript.from_events(from_stages([{**WHOLE, "stage": "end", "images": images}])).calls.values()
    assert call.contents == [
        file_piece("image/png", "a"),
        file_piece("image/png", "b"),
        file_piece("image/svg+xml", b"<svg/>"),
    ]
    assert [image["mediaType"] for image in to_stages(call_events(call))[-1]["images"]] == [
        *("image/png", "image/png", "image/svg+xml")
    ]


def test_a_short_result_alone_is_a_status() -> None:
    events = from_stages([WHOLE, {**WHOLE, "shortResult": "3 files"}])
    assert ev.Status("3 files") in events


_FOREIGN = st.dictionaries(
    st.sampled_from(["id", "name", "stage", "parameters", "parametersChunk", "result", "shortResult", "success"]),
    st.one_of(json_values(), texts(2)),
)
_LIKELY = st.fixed_dictionaries(
    {"id": st.sampled_from(["c", "d"])},
    optional={
        "stage": st.sampled_from([*(stage.value for stage in Stage), "finished"]),
        "name": st.sampled_from(["f", "g", ""]),
        "parameters": st.one_of(texts(2), st.sampled_from(["", "{}", '{"a": 1}'])),
        "parametersChunk": texts(2),
        "result": st.one_of(texts(2), st.sampled_from(["42", '{"a":1}'])),
        "shortResult": texts(1),
        "success": st.booleans(),
        "error": st.one_of(
            texts(1), st.sampled_from([ABORTED, DENIED, TAKEN_BACK, UNREADABLE]), st.just({"message": "m"})
        ),
        "images": st.lists(st.fixed_dictionaries({"data": texts(1)}), max_size=2),
        "timestamp": st.integers(0, 3),
    },
)
logs = st.lists(st.one_of(_LIKELY, _LIKELY, _LIKELY, _FOREIGN, json_values()), max_size=12)


@settings(max_examples=500)
@given(logs)
def test_any_log_is_read_and_checked_and_every_call_of_it_is_final(log: list[Any]) -> None:
    transcript = Transcript.from_events(from_stages(log))
    assert all(call.is_final for call in transcript.calls.values())
    assert transcript.diagnostics == tuple(item for item in from_stages(log) if isinstance(item, ev.Diagnostic))
    broken = validate(log, typical=True)
    assert all(0 <= item.position < len(log) and item.rule in RULES for item in broken)
    assert [item.position for item in broken] == sorted(item.position for item in broken)


@given(logs)
def test_a_log_is_read_live_as_it_is_read_whole(log: list[Any]) -> None:
    reader = StageReader()
    assert [item for update in log for item in reader.feed(update)] + reader.close() == from_stages(log)


# There and back ---------------------------------------------------------------------------------------------

Told = tuple[str, str, str, str, str, str]


def as_text(value: Any) -> str:
    return "missing" if value is MISSING else json.dumps(value)


def told(call: ToolCall) -> Told:
    """What is compared; values as JSON, since for Python 1, 1.0 and True are equal."""
    reason = call.approval.reason if call.approval and call.state is State.OUTPUT_DENIED else None
    written = call.input_text if call.input is MISSING else ""
    name = f"{re.sub(r'-[0-9]+$', '', call.id)} {call.name}"  # the number of a second call with one id is left out
    return name, call.state.value, as_text(call.input), as_text(call.output), f"{call.error}, {reason}", written


def as_stages_say_it(call: ToolCall, reply: str | None) -> ToolCall:
    """The call as the table in the docstring of `toolcall_nb.stages` says that it comes back.

    ``reply`` is how its message ended, None where it did not.
    """
    from msgspec.structs import replace

    if not call.is_final:
        if call.input is not MISSING or reply is None:
            call = replace(call, state=State.INTERRUPTED)
        else:
            call = replace(call, state=State.OUTPUT_ERROR, error=TRUNCATED if reply == "length" else UNREADABLE)
    if call.input is MISSING and call.state is not State.INTERRUPTED:
        call = replace(call, input=read_input(call.input_text))
    if isinstance(call.output, str):
        call = replace(call, output=read_output(call.output))
    if call.approval and not (call.approval.approved is False and call.approval.reason):
        call = replace(call, approval=None)
    return call


def read_input(written: str) -> Any:
    try:
        return json.loads(written) if written.strip() else {}
    except ValueError:
        return written


def read_output(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    is_exact = json.dumps(value, separators=(",", ":"), ensure_ascii=False) == text
    return value if is_exact and not isinstance(value, str) else text


def original_calls(events: list[Event]) -> list[ToolCall]:
    """The calls of the transcript, with what each lost by its message's end."""
    transcript = Transcript.from_events(events)
    ends: dict[int, str] = {}
    for number in range(1, len(events) + 1):
        if isinstance(events[number - 1], ev.Finish):
            so_far = Transcript.from_events(events[:number])
            ends[len(so_far.messages) - 1] = so_far.messages[-1].finish_reason or "stop"
    return [
        as_stages_say_it(call, ends.get(place))
        for place, message in enumerate(transcript.messages)
        for call in message.calls
    ]


@settings(max_examples=1000)
@given(streams(30))
def test_calls_read_back_as_far_as_stages_can_express_them(events: list[Event]) -> None:
    expected = sorted(told(call) for call in original_calls(events))
    back = sorted(told(call) for call in Transcript.from_events(from_stages(to_stages(events))).calls.values())
    if not any(isinstance(one, ev.ResetStep) for one in events):
        assert back == expected
    for call in expected:  # a step that is reset takes calls back that have ended; a log cannot
        back.remove(call)


@pytest.mark.parametrize(
    "value", ["", "  ", "text", "null", '"quoted"', '{"a"', '{"a": 1}', None, 0, 1.0, [], {}, {"a": []}]
)
def test_every_input_reads_back_also_one_that_is_no_object(value: Any) -> None:
    log = to_stages([ev.ToolInputAvailable("c", "f", value), ev.ToolOutputAvailable("c", 1)])
    assert as_text(Transcript.from_events(from_stages(log)).calls["c"].input) == as_text(value)


@settings(max_examples=500)
@given(streams(30))
def test_ids_come_back_with_a_number_only_where_the_log_had_them_before(events: list[Event]) -> None:
    ids = list(dict.fromkeys(update["id"] for update in to_stages(events)))
    for number, log_id in enumerate(ids):
        plain = re.sub(r"-[0-9]+$", "", log_id)
        assert log_id == plain or plain in ids[:number]


@pytest.mark.parametrize(
    ("output", "back"),
    [
        ("42", 42),
        ("true", True),
        ("null", None),
        ("[1]", [1]),
        ("[1, 2]", "[1, 2]"),
        ('"x"', '"x"'),
    ],
)
def test_outputs_that_stages_cannot_tell_apart(output: Any, back: Any) -> None:
    log = to_stages([ev.ToolInputAvailable("c", "f", {}), ev.ToolOutputAvailable("c", output)])
    assert as_text(Transcript.from_events(from_stages(log)).calls["c"].output) == as_text(back)


@pytest.mark.parametrize(
    ("words", "state"),
    [
        (ABORTED, State.INTERRUPTED),
        (DENIED, State.OUTPUT_DENIED),
        (f"{DENIED}: no", State.OUTPUT_DENIED),
        (f"{ABORTED}.", State.OUTPUT_ERROR),
        (UNREADABLE, State.OUTPUT_ERROR),
    ],
)
def test_an_error_in_the_words_of_another_end_comes_back_as_that(words: str, state: State) -> None:
    log = to_stages([ev.ToolInputAvailable("c", "f", {}), ev.ToolOutputError("c", words)])
    assert Transcript.from_events(from_stages(log)).calls["c"].state is state


def test_fields_that_stages_cannot_express_are_lost() -> None:
    events: list[Event] = [
        ev.TextDelta("t", "Hello"),
        ev.ToolInputAvailable("c", "f", {"n": 1}, title="T", tool_metadata={"a": 1}),
        ev.ToolApprovalRequest("a", "c"),
        ev.ToolInputAvailable("c", "f", {"n": 2}),
        ev.ToolApprovalResponse("a", True, "fine"),
        ev.ToolLog("c", "printed"),
        ev.ToolOutputAvailable("c", "x", display={"text/html": "<b>x</b>"}, model_text="y"),
    ]
    (message,) = Transcript.from_events(from_stages(to_stages(events))).messages
    assert message.parts == (ToolCall(id="c", name="f", state=State.OUTPUT_AVAILABLE, input={"n": 2}, output="x"),)


# The check --------------------------------------------------------------------------------------------------


@fixtures("broken_stage_logs.md")
def test_broken_rules(given_text: str, expected: str) -> None:
    log = [
        {k: v for k, v in {"id": "c", "name": "f", "parameters": "{}", **update}.items() if v is not None}
        if isinstance(update, dict)
        else update
        for update in lines(given_text)
    ]
    broken = validate(log)
    assert [[item.position, item.rule] for item in broken] == [item[:2] for item in lines(expected)]
    for item, (_, _, words) in zip(broken, lines(expected), strict=True):
        assert words in item.message


def test_every_rule_but_the_typical_ones_has_an_example() -> None:
    shown = {item[1] for _, _, expected in read_fixtures("broken_stage_logs.md") for item in lines(expected)}
    assert shown == set(RULES) - {"typical"}


def test_null_is_no_value() -> None:
    broken = validate([{**WHOLE, "stage": "start", "result": None}, {**WHOLE, "stage": "end", "parameters": None}])
    assert [(item.position, item.rule) for item in broken] == [(0, "type"), (1, "type")]


@pytest.mark.parametrize(
    ("stage", "fields", "is_typical"),
    [
        ("streaming", {"parametersChunk": "{"}, True),
        ("start", {"parametersChunk": "{"}, False),
        ("running", {"parametersChunk": "{"}, False),
        ("end", {"parametersChunk": "{"}, False),
        ("start", {"parametersChunk": "", "result": "", "error": ""}, True),
        ("end", {"result": "x"}, True),
        ("end", {"result": "x", "success": True}, True),
        ("end", {"result": "x", "success": False}, False),
        ("end", {"result": "x", "error": "y"}, False),
        ("running", {"result": "x"}, False),
        ("end", {"error": "y"}, True),
        ("running", {"error": "y"}, False),
    ],
)
def test_untypical_fields_are_reported_on_request(stage: str, fields: dict[str, Any], is_typical: bool) -> None:
    start, end = {**WHOLE, "stage": "start"}, {**WHOLE, "stage": "end"}
    update = {**WHOLE, "stage": stage, **fields}
    log = {"start": [update, end], "end": [start, update]}.get(stage, [start, update, end])
    assert validate(log) == []
    assert [item.rule for item in validate(log, typical=True)] == ([] if is_typical else ["typical"])


def test_no_events_make_an_empty_log_and_nothing_is_wrong_with_it() -> None:
    assert to_stages([]) == []
    assert validate([]) == []


def test_new_output_is_streaming_and_running_brings_none() -> None:
    """Seed 002's table: ``running`` is ongoing work without new output, ``streaming`` incremental results."""
    events: list[Event] = [
        ev.ToolInputStart("c", "f"),
        ev.ToolInputDelta("c", "{}"),
        ev.ToolInputAvailable("c", "f", {}),
        ev.ToolOutputAvailable("c", "one", preliminary=True),
        ev.ToolLog("c", "line\n"),
        ev.ToolOutputAvailable("c", "one two", preliminary=True),
        ev.ToolOutputAvailable("c", "one two three"),
    ]
    told = [(update["stage"], update.get("result", update.get("shortResult"))) for update in to_stages(events)]
    assert told == [
        ("start", None),
        ("streaming", None),
        ("running", None),
        ("streaming", "one"),
        ("streaming", "line"),
        ("streaming", "one two"),
        ("end", "one two three"),
    ]
    read = Transcript.from_events(from_stages(to_stages(events)))
    assert read.calls["c"].output == "one two three"
