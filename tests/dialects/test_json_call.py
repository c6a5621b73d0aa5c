"""The JSON dialect: every example and error of seed 004, whole and at every cut."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.dialect_texts import cut_everywhere, detect, event_summary, steps
from tests.support.fixture_files import read_fixtures
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Object
from toolcall_nb.core.transcript import Approval, Message, State, ToolCall, Transcript
from toolcall_nb.dialects import detector, find_dialect, instructions
from toolcall_nb.dialects.base import PATH_RULE
from toolcall_nb.dialects.json_call import JSON_DIALECT

FIXTURES = read_fixtures("json_calls.md")


@pytest.mark.parametrize(("title", "text", "wanted"), FIXTURES, ids=[title for title, _, _ in FIXTURES])
def test_example(title: str, text: str, wanted: str) -> None:
    text = text.removesuffix("\n")
    whole = detect("json", text)
    assert event_summary(whole) == json.loads(wanted)
    for pieces in cut_everywhere(text):
        events = detect("json", *pieces)
        assert steps(events) == steps(whole)
        assert event_summary(events) == event_summary(whole)


@pytest.mark.parametrize("opening", ["", "Text.\n\n```json\n", "```\n"])
def test_the_card_appears_with_the_name_and_the_beginning_of_the_params(opening: str) -> None:
    found = detector("json")
    found.feed(opening)
    assert found.feed('{"tool": "a", "params": ') == []
    assert found.feed('{"ci')[-2:] == [ev.ToolInputStart("tool-call-1", "a"), ev.ToolInputDelta("tool-call-1", '{"ci')]
    assert found.feed('ty": 1}') == [ev.ToolInputDelta("tool-call-1", 'ty": 1}')]
    assert found.feed("}") == [ev.ToolInputAvailable("tool-call-1", "a", {"city": 1})]


def test_params_before_the_name_appear_together_with_it() -> None:
    found = detector("json")
    assert found.feed('{"params": {"n": 1}, "tool": "a') == []
    assert found.feed('"') == [ev.ToolInputStart("tool-call-1", "a"), ev.ToolInputDelta("tool-call-1", '{"n": 1}')]


def test_calls_before_a_json_fence_become_text_in_their_place() -> None:
    events = detect("json", '{"tool": "a", "params": {}}\n\n```json\n{"tool": "b", "params": {}}\n```')
    assert ev.ToolRetracted("tool-call-1", text='{"tool": "a", "params": {}}') in events
    assert event_summary(events) == ['{"tool": "a", "params": {}}', ["tool-call-2", "b", {}]]


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("{", 1),
        ("{x", 0),
        ('{ "tool"', 8),
        ('{ "tool": 5', 0),
        ('{ "tool": 5, "x": [1, 2', 0),
        ('{"params": [', 0),
        ('{"params": {', 12),
        ('{"tool": " "', 0),
        ("``", 2),
        ("```", 3),
        ("```py", 0),
        ("```json", 7),
        ("```json\n", 8),
        ("```json\n[", 0),
        ("text ```json\n{", 2),
    ],
)
def test_text_is_withheld_only_while_it_may_be_a_call(text: str, held: int) -> None:
    for pieces in cut_everywhere(text):
        found = detector("json")
        for piece in pieces:
            found.feed(piece)
        assert found.held == held


def test_a_diagnostic_has_the_position_where_the_call_began() -> None:
    (found,) = Transcript.from_events(detect("json", 'a\r\nbc {"tool": "t", "params": {,')).diagnostics
    assert (found.line, found.column, found.action) == (2, 4, "It was kept as text.")


# The texts of the document ----------------------------------------------------------------------------------


def call(state: State = State.OUTPUT_AVAILABLE, **about: Any) -> ToolCall:
    return ToolCall(id="c", name="edit", state=state, input={"file_path": "a.md"}, **about)


INPUT = '\n\nInput: {\n  "file_path": "a.md"\n}'


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (call(output="File edited successfully: /w/a.md"), "File edited successfully: /w/a.md\n\nData: None"),
        (call(output={"message": "Done", "data": {"n": [1]}}), 'Done\n\nData: {\n  "n": [\n    1\n  ]\n}'),
        (call(output={"success": True, "message": "Done", "n": 1}), 'Done\n\nData: {\n  "n": 1\n}'),
        (call(output={"success": True, "message": "Done"}), "Done\n\nData: None"),
        (call(output={"message": "Done", "data": None}), "Done\n\nData: None"),
        (call(output={"n": 1}), '\nData: {\n  "n": 1\n}'),
        (call(output=[1]), "\nData: [\n  1\n]"),
        (call(output=None), "\nData: None"),
        (call(output="a long text", model_text="a long"), "a long\n\nData: None"),
    ],
)
def test_a_success_has_message_and_data(given: ToolCall, says: str) -> None:
    assert JSON_DIALECT.write_result(given, {"edit"}) == f"Tool 'edit' executed successfully:\n{says}"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (call(output={"success": False, "message": "No such file"}), "Tool 'edit' failed:\nNo such file"),
        (call(output={"success": False, "code": 2}), "Tool 'edit' failed:\n{\n  \"code\": 2\n}"),
        (call(output={"success": False}), "Tool 'edit' failed:"),
        (call(State.OUTPUT_ERROR, error="Invalid input: x"), "Tool execution failed: Invalid input: x"),
        (
            call(State.OUTPUT_DENIED, approval=Approval(id="a", approved=False, reason="Not now.")),
            "Tool execution failed: The call was denied: Not now.",
        ),
        (call(State.INTERRUPTED), "Tool execution failed: The call was interrupted before it had a result."),
    ],
)
def test_a_failure_has_the_input(given: ToolCall, says: str) -> None:
    assert JSON_DIALECT.write_result(given, {"edit"}) == says + INPUT


def test_the_output_of_a_failed_tool_is_written_as_the_document_says() -> None:
    failed = call(output={"success": False, "message": "Exit code 1", "data": {"stderr": "no such file"}})
    assert JSON_DIALECT.write_result(failed, {"edit"}) == (
        f'Tool \'edit\' failed:\nExit code 1{INPUT}\n\nData: {{\n  "stderr": "no such file"\n}}'
    )
    stopped = call(State.OUTPUT_ERROR, error="Command timed out", output={"stdout": "so far"})
    assert JSON_DIALECT.write_result(stopped, {"edit"}) == (
        f'Tool execution failed: Command timed out\n\nUntil then it gave:\n{{"stdout":"so far"}}{INPUT}'
    )


def test_a_tool_that_is_not_there_is_not_found() -> None:
    given = call(State.OUTPUT_ERROR, error="whatever")
    assert JSON_DIALECT.write_result(given, ()) == f"Tool execution failed: Tool not found: edit{INPUT}"


def test_the_input_is_the_one_that_the_tool_got_where_that_is_known() -> None:
    arguments: Object = {"file_path": "/workspace/testing.md", "start_line": 1, "end_line": 10}
    error = "Invalid input: File does not exist: /workspace/testing.md"
    given = ToolCall(id="c", name="show", state=State.OUTPUT_ERROR, input={"file_path": "testing.md"}, error=error)
    assert JSON_DIALECT.write_result(given, {"show"}, arguments) == (
        f"Tool execution failed: {error}\n\n"
        'Input: {\n  "file_path": "/workspace/testing.md",\n  "start_line": 1,\n  "end_line": 10\n}'
    )


def test_a_call_without_input_had_an_empty_one() -> None:
    given = ToolCall(id="c", name="show", state=State.INTERRUPTED, input=MISSING)
    assert JSON_DIALECT.write_result(given).endswith("\n\nInput: {}")


def test_results_are_sent_back_in_these_texts() -> None:
    (asked, results) = find_dialect("json").write_history(
        [Message("assistant", (call(output="done"), call(output="again")))]
    )
    assert event_summary(detect("json", asked.text)) == [
        ["tool-call-1", "edit", {"file_path": "a.md"}],
        ["tool-call-2", "edit", {"file_path": "a.md"}],
    ]
    text = "Tool 'edit' executed successfully:\n{}\n\nData: None"
    assert results.text == "\n\n".join((text.format("done"), text.format("again")))


# The prompt -------------------------------------------------------------------------------------------------


class Described:
    def __init__(self, **properties: Any) -> None:
        self.name, self.description = "edit", "Edit a file by replacing old_string with new_string..."
        self.parameters = {"type": "object", "properties": properties}


HOW = """\
To use a tool, respond with a JSON object in the following format:
```json
{
  "tool": "tool_name",
  "params": {
    "param1": "value1"
  }
}
```"""


def test_the_prompt_is_the_document_s() -> None:
    text = instructions("json", [Described(), Described()])
    tool = (
        "## edit\nEdit a file by replacing old_string with new_string...\n\n"
        'Parameters (JSON Schema): {"type": "object", "properties": {}}\n\n'
    )
    assert text == f"# Available Tools\n\n{tool}{tool}{HOW}"
    assert event_summary(detect("json", text))[1:] == [["tool-call-1", "tool_name", {"param1": "value1"}]]


def test_the_path_rule_is_the_document_s() -> None:
    assert PATH_RULE == (
        "IMPORTANT: For file_path parameters, ALWAYS use the full relative path from the workspace root.\n"
        "Examples:\n"
        '- CORRECT: "crates/merlin-tools/src/lib.rs"\n'
        '- CORRECT: "benchmarks/testing.md"\n'
        '- WRONG: "lib.rs" (ambiguous - which lib.rs?)\n'
        '- WRONG: "testing.md" (ambiguous - which directory?)'
    )


@pytest.mark.parametrize("dialect", ["callout", "signature", "json"])
@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"file_path": {"type": "string"}}, True),
        ({"where": {"type": "string", "format": "path"}}, True),
        ({"where": {"anyOf": [{"type": "string", "format": "path"}, {"type": "null"}]}}, True),
        ({"where": {"type": "array", "items": {"type": "string", "format": "path"}}}, True),
        ({"path": {"type": "string"}}, False),
        ({"url": {"type": "string", "format": "uri"}}, False),
        ({}, False),
    ],
)
def test_the_path_rule_is_given_if_a_tool_takes_a_path(dialect: str, properties: Object, told: bool) -> None:
    text = instructions(dialect, [Described(), Described(**properties)])
    assert text.endswith(f"\n\n{PATH_RULE}") is told
    assert (PATH_RULE in text) is told
