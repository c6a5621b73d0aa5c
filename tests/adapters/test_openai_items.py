"""The items of the Responses API: calls of either side with their results, and all other items."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.adapter_streams import read_items, read_whole
from tests.support.openai_shapes import Item, call_item, items_done, whole_response
from toolcall_nb.core.transcript import Approval, CustomPart, FilePart, State, ToolCall


def _one_call(item: Item) -> ToolCall:
    """The only call in a response of this item, as a stream and as a whole."""
    (call,) = read_items(items_done(item)).messages[0].calls
    assert read_whole(whole_response(item)).messages[0].calls == (call,)
    return call


@pytest.mark.parametrize(
    ("item", "name", "given"),
    [
        (call_item(""), "search", {}),
        ({"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": "SELECT"}, "sql", "SELECT"),
        (
            {"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["ls"]}},
            "local_shell",
            {"type": "exec", "command": ["ls"]},
        ),
        ({"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}}, "shell", {"commands": ["ls"]}),
        (
            {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file", "path": "a"}},
            "apply_patch",
            {"type": "delete_file", "path": "a"},
        ),
        (
            {"type": "computer_call", "call_id": "c", "action": {"type": "click", "x": 1}, "status": "completed"},
            "computer",
            {"action": {"type": "click", "x": 1}},
        ),
        (
            {"type": "tool_search_call", "call_id": "c", "arguments": {"goal": "x"}, "execution": "client"},
            "tool_search",
            {"goal": "x"},
        ),
    ],
)
def test_calls_of_the_callers_tools_stay_open(item: Item, name: str, given: Any) -> None:
    call = _one_call(item)
    assert (call.name, call.input, call.state, call.provider_executed) == (name, given, State.INPUT_AVAILABLE, None)
    assert call.id == item["call_id"]


_LOGS = [{"type": "logs", "logs": "1"}]


@pytest.mark.parametrize(
    ("item", "name", "given", "output"),
    [
        (
            {"type": "web_search_call", "action": {"type": "search", "query": "x", "sources": [{"url": "u"}]}},
            "web_search",
            {"type": "search", "query": "x"},
            [{"url": "u"}],
        ),
        ({"type": "web_search_call", "status": "completed"}, "web_search", {}, {"status": "completed"}),
        (
            {
                "type": "web_search_call",
                "name": "web_search",
                "call_id": "",
                "arguments": '{"query": "x"}',
                "status": "completed",
            },
            "web_search",
            {"query": "x"},
            {"status": "completed"},
        ),
        (
            {"type": "file_search_call", "queries": ["x"], "results": [{"text": "y"}]},
            "file_search",
            {"queries": ["x"]},
            [{"text": "y"}],
        ),
        (
            {"type": "code_interpreter_call", "code": "1", "container_id": "k", "outputs": _LOGS},
            "code_interpreter",
            {"code": "1"},
            _LOGS,
        ),
        (
            {"type": "mcp_call", "name": "ask", "server_label": "s", "arguments": '{"q": 1}', "output": "yes"},
            "ask",
            {"q": 1},
            "yes",
        ),
        (
            {"type": "x_search_call", "name": "x_semantic_search", "arguments": '{"q": 1}', "status": "completed"},
            "x_semantic_search",
            {"q": 1},
            {"status": "completed"},
        ),
        (
            {
                "type": "custom_tool_call",
                "call_id": "xs_call_1",
                "name": "x_user_search",
                "input": "x",
                "status": "completed",
            },
            "x_user_search",
            "x",
            {"status": "completed"},
        ),
        (
            {"type": "some_new_call", "target": "x", "status": "completed"},
            "some_new",
            {"target": "x"},
            {"status": "completed"},
        ),
    ],
)
def test_calls_that_the_provider_ran_have_their_result(item: Item, name: str, given: Any, output: Any) -> None:
    call = _one_call({"id": "i1", **item})
    assert (call.name, call.input, call.output, call.provider_executed) == (name, given, output, True)
    assert call.state is State.OUTPUT_AVAILABLE


@pytest.mark.parametrize(
    ("item", "error"),
    [
        ({"type": "mcp_call", "name": "ask", "arguments": "{}", "error": "No such page"}, "No such page"),
        ({"type": "mcp_call", "name": "ask", "arguments": "{}", "error": {"type": "http", "message": "404"}}, "404"),
        ({"type": "web_search_call", "status": "failed"}, "The tool failed."),
        ({"type": "image_generation_call", "status": "failed", "error": {"message": "Blocked"}}, "Blocked"),
    ],
)
def test_calls_that_failed_at_the_provider_have_the_error(item: Item, error: str) -> None:
    call = _one_call({"id": "i1", **item})
    assert (call.state, call.error, call.provider_executed) == (State.OUTPUT_ERROR, error, True)


@pytest.mark.parametrize(
    ("call", "output", "value", "is_providers"),
    [
        (
            {
                "type": "shell_call",
                "call_id": "c",
                "action": {"commands": ["ls"]},
                "environment": {"type": "container_reference"},
            },
            {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "a"}]},
            [{"stdout": "a"}],
            True,
        ),
        (
            {"type": "tool_search_call", "call_id": None, "id": "t", "execution": "server", "arguments": {"paths": []}},
            {"type": "tool_search_output", "call_id": None, "id": "o", "tools": [{"name": "x"}]},
            [{"name": "x"}],
            True,
        ),
        (
            {"type": "program", "call_id": "c", "code": "1"},
            {"type": "program_output", "call_id": "c", "result": "2"},
            "2",
            True,
        ),
        (
            call_item(call_id="c"),
            {
                "type": "function_call_output",
                "call_id": "c",
                "output": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}],
            },
            "a\n\nb",
            None,
        ),
        (
            call_item(call_id="c"),
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": "u"}]},
            "<image/*: u>",
            None,
        ),
    ],
)
def test_results_that_are_items_go_to_their_calls(
    call: Item, output: Item, value: Any, is_providers: bool | None
) -> None:
    (found,) = read_items(items_done(call, output)).messages[0].calls
    assert (found.state, found.output, found.provider_executed) == (State.OUTPUT_AVAILABLE, value, is_providers)


def test_an_output_item_that_failed_is_an_error() -> None:
    patch = {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file", "path": "a"}}
    output = {"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "No such file"}
    (found,) = read_items(items_done(patch, output)).messages[0].calls
    assert (found.state, found.error) == (State.OUTPUT_ERROR, "No such file")


@pytest.mark.parametrize(
    "item",
    [
        {"type": "mcp_list_tools", "id": "l", "tools": []},
        {"type": "compaction", "id": "c", "encrypted_content": "x"},
        {"type": "something_new", "id": "n", "x": 1},
        {"type": "function_call_output", "call_id": "unknown", "output": "x"},
    ],
)
def test_items_of_other_kinds_are_kept(item: Item) -> None:
    found = read_items(items_done(item))
    assert found.messages[0].parts == (CustomPart(f"openai.{item['type']}", {"openai": item}),)
    assert not found.diagnostics


def test_an_image_is_a_call_and_a_file() -> None:
    item = {
        "type": "image_generation_call",
        "id": "ig",
        "status": "generating",
        "result": "AA==",
        "output_format": "webp",
        "revised_prompt": "A cat",
    }
    call, file = read_items(items_done(item)).messages[0].parts
    assert isinstance(call, ToolCall)
    assert (call.name, call.output) == ("image_generation", {"output_format": "webp", "revised_prompt": "A cat"})
    assert file == FilePart("data:image/webp;base64,AA==", "image/webp")


def test_an_approval_request_item_asks_for_approval() -> None:
    call = _one_call(
        {"type": "mcp_approval_request", "id": "ap", "name": "ask", "server_label": "s", "arguments": '{"q": 1}'}
    )
    assert (call.id, call.name, call.input, call.state) == ("ap", "ask", {"q": 1}, State.APPROVAL_REQUESTED)
    assert call.approval is not None
    assert call.approval == Approval(id="ap", asked_by="s", rule="require_approval")
