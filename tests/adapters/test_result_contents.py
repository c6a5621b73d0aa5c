"""The result of a tool with a text and two pictures has the same contents, in order, from every provider's format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from pydantic_ai import messages as pm

from tests.support.adapter_streams import read_whole
from toolcall_nb.core.contents import contents_text, file_piece, text_piece
from toolcall_nb.core.transcript import Message, State, ToolCall, Transcript

Item = dict[str, Any]

RED, BLUE = "cmVk", "Ymx1ZQ=="
PNG = "image/png"
PIECES = [file_piece(PNG, RED), text_piece("between"), file_piece(PNG, BLUE)]
TEXT = "<image/png, 3 bytes>\nbetween\n<image/png, 4 bytes>"


def anthropic(failed: bool) -> list[Item]:
    def image(data: str) -> Item:
        return {"type": "image", "source": {"type": "base64", "media_type": PNG, "data": data}}

    content = [image(RED), {"type": "text", "text": "between"}, image(BLUE)]
    result = {"type": "tool_result", "tool_use_id": "c", "content": content, **({"is_error": True} if failed else {})}
    call = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def openai_responses(failed: bool) -> list[Item]:
    def image(data: str) -> Item:
        return {"type": "input_image", "image_url": f"data:{PNG};base64,{data}"}

    output = [image(RED), {"type": "input_text", "text": "between"}, image(BLUE)]
    call = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
    status = {"status": "failed"} if failed else {}
    return [call, {"type": "function_call_output", "call_id": "c", "output": output, **status}]


def openai_chat(_: bool) -> list[Item]:
    def image(data: str) -> Item:
        return {"type": "image_url", "image_url": {"url": f"data:{PNG};base64,{data}"}}

    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    content = [image(RED), {"type": "text", "text": "between"}, image(BLUE)]
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": content},
    ]


def bedrock(failed: bool) -> list[Item]:
    content = [
        {"image": {"format": "png", "source": {"bytes": b"red"}}},
        {"text": "between"},
        {"image": {"format": "png", "source": {"bytes": b"blue"}}},
    ]
    result = {"toolUseId": "c", "status": "error" if failed else "success", "content": content}
    call = {"toolUse": {"toolUseId": "c", "name": "look", "input": {}}}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [{"toolResult": result}]}]


def google_interaction(failed: bool) -> Item:
    def image(data: str) -> Item:
        return {"type": "image", "mime_type": PNG, "data": data}

    result = [image(RED), {"type": "text", "text": "between"}, image(BLUE)]
    more = {"is_error": True} if failed else {}
    steps = [
        {"type": "function_call", "id": "c", "name": "look", "arguments": {}},
        {"type": "function_result", "call_id": "c", "name": "look", "result": result, **more},
    ]
    return {"object": "interaction", "id": "i", "status": "completed", "steps": steps}


def langchain(failed: bool) -> list[Any]:
    def image(data: str) -> Item:
        return {"type": "image", "base64": data, "mime_type": PNG}

    content: list[Any] = [image(RED), {"type": "text", "text": "between"}, image(BLUE)]
    call = AIMessage("", tool_calls=[{"id": "c", "name": "look", "args": {}}])
    return [call, ToolMessage(content, tool_call_id="c", status="error" if failed else "success")]


def pydantic_ai(failed: bool) -> list[Any]:
    content = [pm.BinaryContent(b"red", media_type=PNG), "between", pm.BinaryContent(b"blue", media_type=PNG)]
    result = pm.ToolReturnPart("look", content, "c", outcome="failed" if failed else "success")
    return [pm.ModelResponse([pm.ToolCallPart("look", {}, "c")]), pm.ModelRequest([result])]


FORMATS = [anthropic, openai_responses, openai_chat, bedrock, google_interaction, langchain, pydantic_ai]


def only_call(source: Any) -> ToolCall:
    (call,) = read_whole(source).calls.values()
    return call


@pytest.mark.parametrize("source", FORMATS)
def test_the_pieces_of_a_result_are_kept_in_order(source: Any) -> None:
    call = only_call(source(False))
    assert (call.state, call.output, call.contents) == (State.OUTPUT_AVAILABLE, TEXT, PIECES)


@pytest.mark.parametrize("source", [source for source in FORMATS if source is not openai_chat])
def test_so_are_those_of_an_error(source: Any) -> None:
    call = only_call(source(True))
    assert (call.state, call.error, call.contents) == (State.OUTPUT_ERROR, TEXT, PIECES)


@pytest.mark.parametrize("error", [False, True])
def test_google_has_files_beside_the_response(error: bool) -> None:
    parts = [{"inlineData": {"mimeType": PNG, "data": data, "displayName": f"{data}.png"}} for data in (RED, BLUE)]
    response = {"error": "it broke"} if error else {"sum": 3}
    call = only_call(
        [
            {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": response, "parts": parts}}]},
        ]
    )
    assert call.contents == [file_piece(PNG, data, filename=f"{data}.png") for data in (RED, BLUE)]
    assert call.error == "it broke" if error else call.output == {"sum": 3}


def test_bedrock_has_json_beside_text() -> None:
    call = {"toolUse": {"toolUseId": "c", "name": "look", "input": {}}}
    result = {"toolResult": {"toolUseId": "c", "content": [{"text": "sum"}, {"json": {"sum": 3}}]}}
    found = only_call([{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}])
    assert found.contents == [text_piece("sum"), {"type": "json", "value": {"sum": 3}}]
    assert found.output == 'sum\n{"sum":3}'


def test_a_screenshot_of_openais_computer_is_a_picture() -> None:
    call = {"type": "computer_call", "call_id": "c", "id": "i", "action": {"type": "screenshot"}}
    shot = {"type": "computer_screenshot", "image_url": f"data:{PNG};base64,{RED}"}
    found = only_call([call, {"type": "computer_call_output", "call_id": "c", "output": shot}])
    assert found.contents == [file_piece(PNG, RED)]


# The AI SDK's tools give what they like; results of MCP and lists of content are among it.

MCP = [
    {"type": "image", "data": RED, "mimeType": PNG},
    {"type": "text", "text": "between"},
    {"type": "image", "data": BLUE, "mimeType": PNG},
]
CONTENT = [
    {"type": "file", "data": {"type": "data", "data": RED}, "mediaType": PNG},
    {"type": "text", "text": "between"},
    {"type": "media", "data": BLUE, "mediaType": PNG},
]


@pytest.mark.parametrize("output", [{"content": MCP, "isError": False}, MCP, {"type": "content", "value": CONTENT}])
def test_a_ui_message_keeps_the_output_and_has_its_pieces(output: Any) -> None:
    part = {"type": "tool-look", "toolCallId": "c", "state": "output-available", "input": {}, "output": output}
    message = {"id": "m", "role": "assistant", "parts": [{"type": "step-start"}, part]}
    transcript = read_whole([message])
    (call,) = transcript.calls.values()
    assert (call.output, call.contents) == (output, PIECES)
    assert transcript.to_ui_messages()[0]["parts"][-1] == part  # nothing is written twice


@pytest.mark.parametrize(
    "output", ["text", {"content": "text"}, [{"a": 1}], [], {"content": [{"type": "text"}]}, MCP[1:2]]
)
def test_another_output_has_no_pieces(output: Any) -> None:
    part = {"type": "tool-look", "toolCallId": "c", "state": "output-available", "input": {}, "output": output}
    (call,) = read_whole([{"id": "m", "role": "assistant", "parts": [part]}]).calls.values()
    assert (call.output, call.contents) == (output, None)


# Round trips

CALL: Mapping[str, Any] = {"id": "c", "name": "look", "input": {}, "contents": PIECES}
CALLS = [
    ToolCall(**CALL, state=State.OUTPUT_AVAILABLE, output=contents_text(filter(None, PIECES))),
    ToolCall(**CALL, state=State.OUTPUT_AVAILABLE, output={"sum": 3}),
    ToolCall(**CALL, state=State.OUTPUT_ERROR, error="it broke"),
]


@pytest.mark.parametrize("call", CALLS, ids=["output", "beside an output", "error"])
def test_contents_read_back(call: ToolCall) -> None:
    transcript = Transcript((Message("assistant", (call,)),))
    assert Transcript.from_events(transcript.events()) == transcript
    assert Transcript.from_markdown(transcript.to_markdown()) == transcript
    assert [*read_whole(transcript.to_ui_messages()).calls.values()] == [call]


def test_contents_that_are_none_stay_a_field_of_the_callout() -> None:
    transcript = Transcript.from_markdown("> [!tool look c]\n> output: 1\n> contents: [1, 2]\n")
    (call,) = transcript.calls.values()
    assert (call.contents, call.extra) == (None, {"contents": [1, 2]})
