"""pydantic-ai as events: real agents with models that need no network, and messages written by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from pydantic import BaseModel, TypeAdapter
from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, DeferredToolResults, ModelRetry, ToolDenied
from pydantic_ai import messages as pm
from pydantic_ai.direct import model_request_stream, model_request_stream_sync
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.run import AgentRunResultEvent
from pydantic_ai.usage import RequestUsage

from tests.support.adapter_streams import (
    broken_streams,
    prefixes,
    read_events,
    read_items,
    read_stream,
    read_stream_async,
    read_whole,
)
from toolcall_nb.adapters import SourceKind, format_of_item, format_of_whole, items_of, recognise_source
from toolcall_nb.adapters.pydantic_ai.stream import PydanticAIAdapter
from toolcall_nb.core import events as ev
from toolcall_nb.core.transcript import (
    CustomPart,
    FilePart,
    ReasoningPart,
    SourceUrlPart,
    State,
    TextPart,
    ToolCall,
    Transcript,
)

MESSAGES = pm.ModelMessagesTypeAdapter
EVENTS: TypeAdapter[Any] = TypeAdapter(list[pm.AgentStreamEvent])


def as_json(messages: list[pm.ModelMessage]) -> Any:
    return json.loads(MESSAGES.dump_json(messages))


def call(transcript: Transcript, call_id: str) -> ToolCall:
    return transcript.calls[call_id]


# An agent with tools ------------------------------------------------------------------------------------------

CITIES = {"Lyon": 21, "Oslo": 9}


async def _weather_model(messages: list[pm.ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
    """Thinks, calls the tool for two cities in parallel, then answers."""
    returns = [part for message in messages for part in message.parts if part.part_kind == "tool-return"]
    if returns:
        yield "Lyon is "
        yield "warmer."
        return
    yield {0: DeltaThinkingPart(content="Two cities.", signature="sig")}
    yield "Let me look."
    yield {1: DeltaToolCall(name="weather", json_args='{"ci', tool_call_id="c1")}
    yield {2: DeltaToolCall(name="weather", json_args='{"city": "Atlan', tool_call_id="c2")}
    yield {1: DeltaToolCall(json_args='ty": "Lyon"}')}
    yield {2: DeltaToolCall(json_args='tis"}')}


def weather_agent() -> Agent[None, str]:
    agent = Agent(FunctionModel(stream_function=_weather_model), system_prompt="Be brief.")

    @agent.tool_plain
    def weather(city: str) -> dict[str, int]:
        """The temperature in a city."""
        if city not in CITIES:
            raise ModelRetry(f"No city {city}.")
        return {"high": CITIES[city]}

    return agent


async def events_of_run(agent: Agent[None, Any], prompt: str = "Where is it warmer?", **options: Any) -> list[Any]:
    async with agent.run_stream_events(prompt, **options) as stream:
        return [event async for event in stream]


@pytest.fixture(scope="module")
def run_events() -> list[Any]:
    return asyncio.run(events_of_run(weather_agent()))


@pytest.fixture(scope="module")
def run_messages(run_events: list[Any]) -> list[pm.ModelMessage]:
    result: list[pm.ModelMessage] = run_events[-1].result.all_messages()
    return result


def the_answer(transcript: Transcript) -> None:
    """Checks the transcript of the run, however it was read."""
    message = transcript.messages[-1]
    thought, text, first, second, answer = message.parts
    assert thought == ReasoningPart("Two cities.", {"function": {"signature": "sig"}})
    assert text == TextPart("Let me look.")
    assert (first.id, first.name, first.input, first.output) == ("c1", "weather", {"city": "Lyon"}, {"high": 21})
    assert (second.id, second.input, second.state) == ("c2", {"city": "Atlantis"}, State.OUTPUT_ERROR)
    assert "No city Atlantis." in str(second.error)
    assert answer == TextPart("Lyon is warmer.")
    assert not transcript.diagnostics


def test_an_agents_events_are_one_message_with_the_results_in_it(run_events: list[Any]) -> None:
    transcript = read_items(run_events)
    assert [message.role for message in transcript.messages] == ["assistant"]
    the_answer(transcript)


def test_each_request_is_a_step(run_events: list[Any]) -> None:
    kinds = [event.type for event in read_events(run_events)]
    assert (kinds.count("finish-step"), kinds.count("start-step")) == (2, 1)
    assert kinds.index("start-step") > kinds.index("tool-output-available")


def test_the_start_of_an_agents_tool_is_an_event(run_events: list[Any]) -> None:
    told = [(event.type, event.tool_call_id) for event in read_events(run_events) if hasattr(event, "tool_call_id")]
    for call_id, end in (("c1", "tool-output-available"), ("c2", "tool-output-error")):
        of_call = [kind for kind, known in told if known == call_id and kind != "tool-input-delta"]
        assert of_call == ["tool-input-start", "tool-input-available", "data-tool-execution", end]


def test_every_event_and_its_json_are_recognised(run_events: list[Any]) -> None:
    assert {format_of_item(event).name for event in run_events} == {"pydantic-ai"}
    as_dicts = json.loads(EVENTS.dump_json([event for event in run_events if event.event_kind != "agent_run_result"]))
    assert {format_of_item(event).name for event in as_dicts} == {"pydantic-ai"}
    the_answer(read_items(as_dicts))


def test_the_arguments_of_parallel_calls_are_kept_apart(run_events: list[Any]) -> None:
    deltas = [event for event in read_events(run_events) if isinstance(event, ev.ToolInputDelta)]
    assert [delta.tool_call_id for delta in deltas] == ["c1", "c2", "c1", "c2"]


def test_a_run_has_its_model_and_the_usage_of_all_requests(run_events: list[Any]) -> None:
    usage = run_events[-1].result.usage
    [message] = read_items(run_events).messages
    assert message.metadata["model"] == message.steps[-1].model == "function::_weather_model"
    assert message.metadata["usage"] == {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": usage.input_tokens + usage.output_tokens,
    }


def test_a_result_is_the_whole_conversation(run_events: list[Any]) -> None:
    result = run_events[-1].result
    assert recognise_source(result).kind is SourceKind.WHOLE
    transcript = read_whole(result)
    assert [(message.role, message.text) for message in transcript.messages[:2]] == [
        ("system", "Be brief."),
        ("user", "Where is it warmer?"),
    ]
    the_answer(transcript)


def test_a_list_of_messages_and_its_json_are_the_same_conversation(run_messages: list[pm.ModelMessage]) -> None:
    the_answer(read_whole(run_messages))
    assert read_whole(as_json(run_messages)) == read_whole(run_messages)
    assert read_items(iter(run_messages)) == read_whole(run_messages)


def test_an_event_stream_handler_reads_the_same() -> None:
    found: list[ev.Event] = []

    async def handler(_: Any, stream: Any) -> None:
        found.extend([event async for event in read_stream_async(stream)])

    asyncio.run(weather_agent().run("Where is it warmer?", event_stream_handler=handler))
    transcript = Transcript.from_events(found)
    assert [(call.id, call.state) for call in transcript.calls.values()] == [
        ("c1", State.OUTPUT_AVAILABLE),
        ("c2", State.OUTPUT_ERROR),
    ]
    assert [message.text for message in transcript] == ["Let me look.", "Lyon is warmer."]  # a stream of a reply each
    assert not transcript.diagnostics


def test_the_stream_of_the_tools_alone_has_their_calls(run_events: list[Any]) -> None:
    tools = [event for event in run_events if event.event_kind.startswith("function_tool")]
    transcript = read_items(tools)
    assert [(call.id, call.name, call.is_final) for call in transcript.calls.values()] == [
        ("c1", "weather", True),
        ("c2", "weather", True),
    ]
    assert [message.role for message in transcript] == ["assistant"]


def counting_agent() -> Agent[None, str]:
    agent = Agent(TestModel(custom_output_text="One two three"))

    @agent.tool_plain
    def count(to: int) -> list[int]:
        """Count to a number."""
        return [*range(to + 1)]

    return agent


def the_count(transcript: Transcript) -> None:
    """Checks the transcript of that agent's run, however it was read."""
    asked, answer = transcript.messages
    assert (asked.role, asked.text) == ("user", "Count.")
    found, text = answer.parts
    assert (found.name, found.input, found.output, text.text) == ("count", {"to": 0}, [0], "One two three")
    assert not transcript.diagnostics


def test_the_nodes_of_a_run_are_read_too() -> None:
    async def nodes() -> list[Any]:
        async with counting_agent().iter("Count.") as run:
            assert recognise_source(run).kind is SourceKind.ASYNC_STREAM
            return [node async for node in run]

    found = asyncio.run(nodes())
    assert format_of_item(found[0]).name == "pydantic-ai"
    the_count(read_items(found))


def test_a_streamed_result_is_entered_and_read_as_it_grows() -> None:
    async def streamed() -> tuple[list[ev.Event], Transcript]:
        manager = counting_agent().run_stream("Count.")
        assert recognise_source(manager).kind is SourceKind.ASYNC_MANAGER
        async with manager as result:
            assert recognise_source(result).kind is SourceKind.ASYNC_STREAM
            found = [event async for event in read_stream_async(items_of(result))]  # type: ignore[arg-type]
            assert recognise_source(result).kind is SourceKind.WHOLE
            return found, read_whole(result)

    found, whole = asyncio.run(streamed())
    assert len([event for event in found if isinstance(event, ev.TextDelta)]) > 2, "it grows"
    the_count(Transcript.from_events(found))
    the_count(whole)


@pytest.fixture
def event_loop_of_its_own() -> Iterator[None]:
    """A loop for requests without ``async``, which run on the thread's loop; it is closed afterwards."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()
    asyncio.set_event_loop(None)


@pytest.mark.usefixtures("event_loop_of_its_own")
def test_a_streamed_result_without_async_is_read_too() -> None:
    with counting_agent().run_stream_sync("Count.") as result:
        assert recognise_source(result).kind is SourceKind.STREAM
        the_count(Transcript.from_events(read_stream(items_of(result))))  # type: ignore[arg-type]


# One request --------------------------------------------------------------------------------------------------


async def _request(model: Any) -> tuple[list[Any], pm.ModelResponse]:
    async with model_request_stream(model, [pm.ModelRequest.user_text_prompt("Go.")]) as stream:
        assert recognise_source(stream).kind is SourceKind.ASYNC_STREAM
        return [event async for event in stream], stream.get()


def test_a_request_to_a_model_is_read_and_described_by_its_response() -> None:
    found, response = asyncio.run(_request(TestModel(custom_output_text="Hello there")))
    adapter = PydanticAIAdapter()
    events = [event for item in found for event in adapter.take(item)]
    adapter.describe(response)
    [message] = Transcript.from_events([*events, *adapter.close()]).messages
    assert message.text == "Hello there"
    assert message.metadata["model"] == "test"
    assert message.metadata["usage"]["outputTokens"] == response.usage.output_tokens


@pytest.mark.usefixtures("event_loop_of_its_own")
def test_a_request_without_async_is_entered_and_read() -> None:
    stream = model_request_stream_sync(TestModel(), [pm.ModelRequest.user_text_prompt("Go.")])
    assert recognise_source(stream).kind is SourceKind.MANAGER
    with stream as opened:
        assert Transcript.from_events(read_stream(opened)).messages[0].text == "success (no tool calls)"


def start(index: int, part: Any) -> pm.PartStartEvent:
    return pm.PartStartEvent(index=index, part=part)


def test_a_stream_without_ends_of_parts_is_ended() -> None:
    transcript = read_items(
        [
            start(0, pm.ToolCallPart("search", '{"q": ', "c1")),
            pm.PartDeltaEvent(index=0, delta=pm.ToolCallPartDelta(args_delta='"x"}')),
        ]
    )
    assert call(transcript, "c1").input == {"q": "x"}


def test_a_part_that_starts_again_is_replaced() -> None:
    transcript = read_items(
        [start(0, pm.ToolCallPart("search", '{"q": 1', "c1")), start(0, pm.ToolCallPart("search", '{"q": 2}', "c1"))]
    )
    assert call(transcript, "c1").input == {"q": 2}
    assert len(transcript.calls) == 1


def test_a_name_and_arguments_that_come_in_pieces_are_joined() -> None:
    pieces = [
        start(0, pm.ToolCallPart("sea", None, "c1")),
        pm.PartDeltaEvent(index=0, delta=pm.ToolCallPartDelta(tool_name_delta="rch", args_delta={"q": 1})),
        pm.PartDeltaEvent(index=0, delta=pm.ToolCallPartDelta(args_delta={"n": 2})),
    ]
    found = call(read_items(pieces), "c1")
    assert (found.name, found.input) == ("search", {"q": 1, "n": 2})


def test_arguments_that_are_not_json_are_a_failed_call() -> None:
    found = call(read_items([start(0, pm.ToolCallPart("search", '{"q": ', "c1"))]), "c1")
    assert (found.state, found.input) == (State.OUTPUT_ERROR, '{"q": ')


def test_a_call_of_a_builtin_tool_is_marked_as_run_by_the_provider() -> None:
    parts = [
        pm.NativeToolCallPart("web_search", {"q": "x"}, "c1", provider_name="openai"),
        pm.NativeToolReturnPart("web_search", {"hits": 2}, "c1", provider_name="openai"),
        pm.TextPart("Found."),
    ]
    [message] = read_items([start(index, part) for index, part in enumerate(parts)]).messages
    found = message.calls[0]
    assert (found.provider_executed, found.input, found.output) == (True, {"q": "x"}, {"hits": 2})


def test_metadata_for_the_provider_stays_with_its_part() -> None:
    response = pm.ModelResponse(
        [
            pm.ThinkingPart("", id="rs_1", signature="enc", provider_name="openai"),
            pm.TextPart("Hi", id="msg_1", provider_name="openai", provider_details={"phase": "final"}),
            pm.ToolCallPart("f", {}, "c1", provider_name="google", provider_details={"thought_signature": "t"}),
        ]
    )
    thought, text, found = read_whole(response).messages[0].parts
    assert thought == ReasoningPart("", {"openai": {"id": "rs_1", "signature": "enc"}})
    assert text == TextPart("Hi", {"openai": {"phase": "final", "id": "msg_1"}})
    assert found.provider_metadata == {"google": {"thought_signature": "t"}}


def grown(index: int, delta: Any) -> Any:
    return pm.PartDeltaEvent(index=index, delta=delta)


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_signature_belongs_to_the_provider_that_its_part_names(is_whole: bool) -> None:
    """The delta has no name, since pydantic-ai does not repeat the part's."""
    items = [
        start(0, pm.ThinkingPart("h", provider_name="anthropic")),
        grown(0, pm.ThinkingPartDelta(content_delta="m")),
        grown(0, pm.ThinkingPartDelta(signature_delta="s")),
        pm.PartEndEvent(index=0, part=pm.ThinkingPart("hm", signature="s", provider_name="anthropic")),
    ]
    found = read_items(items if is_whole else items[:-1])
    assert found.messages[0].parts == (ReasoningPart("hm", {"anthropic": {"signature": "s"}}),)


def test_a_thought_may_be_signed_when_later_thoughts_have_come() -> None:
    first, second = (pm.ThinkingPart(text, id="rs_1", provider_name="openai") for text in ("a", "b"))
    items = [
        start(0, first),
        pm.PartEndEvent(index=0, part=first),
        start(1, second),
        grown(0, pm.ThinkingPartDelta(signature_delta="s")),
        grown(1, pm.ThinkingPartDelta(content_delta="c")),
        start(2, pm.TextPart("So")),
    ]
    assert read_items(items).messages[0].parts == (
        ReasoningPart("a", {"openai": {"id": "rs_1", "signature": "s"}}),
        ReasoningPart("bc", {"openai": {"id": "rs_1"}}),
        TextPart("So"),
    )


def test_raw_reasoning_is_reasoning_as_it_comes() -> None:
    def more(text: str) -> Any:
        def told(details: Any) -> dict[str, Any]:
            return {**(details or {}), "raw_content": [(details or {}).get("raw_content", [""])[0] + text]}

        return grown(0, pm.ThinkingPartDelta(provider_details=told))

    adapter = PydanticAIAdapter()
    items = [start(0, pm.ThinkingPart("", id="rs_1", provider_name="openai")), more("Let me"), more(" see.")]
    events = [event for item in items for event in adapter.take(item)]
    assert [event.delta for event in events if isinstance(event, ev.ReasoningDelta)] == ["Let me", " see."]


def test_a_call_that_is_repeated_when_complete_is_one_call() -> None:
    def search(args: Any) -> pm.NativeToolCallPart:
        return pm.NativeToolCallPart("tool_search", args, "s1", provider_name="anthropic", tool_kind="tool-search")

    found = pm.NativeToolReturnPart("tool_search", {"discovered_tools": []}, "s1", provider_name="anthropic")
    items = [
        start(0, search(None)),
        grown(0, pm.ToolCallPartDelta(args_delta='{"query": "a"}')),
        pm.PartEndEvent(index=0, part=search('{"query": "a"}')),
        start(0, search({"queries": ["a"]})),
        pm.PartEndEvent(index=0, part=search({"queries": ["a"]})),
        start(1, found),
    ]
    [call] = read_items(items).calls.values()
    assert (call.input, call.output) == ({"queries": ["a"]}, {"discovered_tools": []})


def test_files_citations_and_unknown_parts_are_kept() -> None:
    response = pm.ModelResponse(
        [
            pm.TextPart("See.", citations=[pm.Citation([pm.WebCitationSource("https://h", title="T")])]),
            pm.FilePart(pm.BinaryContent(b"\xfb\xff\xfe", media_type="image/png")),
            pm.CompactionPart("Short.", provider_name="anthropic"),
        ]
    )
    text, source, file, other = read_whole(response).messages[0].parts
    assert (text.text, source) == ("See.", SourceUrlPart("source-1", "https://h", "T"))
    assert file == FilePart("data:image/png;base64,+//+", "image/png")
    assert isinstance(other, CustomPart)
    assert other.kind == "anthropic.compaction"
    assert read_whole(as_json([response])) == read_whole([response])


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("stop", None),
        ("tool_call", None),
        ("length", "length"),
        ("content_filter", "content-filter"),
        ("error", "error"),
        (None, None),
    ],
)
def test_the_finish_reason_of_a_response_is_translated(given: Any, found: str | None) -> None:
    response = pm.ModelResponse([pm.TextPart("x")], finish_reason=given)
    assert read_whole(response).messages[0].finish_reason == found


def test_usage_has_our_names() -> None:
    usage = RequestUsage(
        input_tokens=10, cache_read_tokens=4, cache_write_tokens=2, output_tokens=5, output_reasoning_tokens=3
    )
    response = pm.ModelResponse([pm.TextPart("x")], usage=usage)
    expected = {
        "inputTokens": 10,
        "outputTokens": 5,
        "totalTokens": 15,
        "cachedInputTokens": 4,
        "cacheWriteTokens": 2,
        "reasoningTokens": 3,
    }
    assert read_whole(response).messages[0].metadata["usage"] == expected
    assert read_whole(as_json([response])).messages[0].metadata["usage"] == expected


@pytest.mark.parametrize("counts", [{}, {"output_reasoning_tokens": 3}])
def test_reasoning_tokens_among_the_details_count_once(counts: Any) -> None:
    """OpenAI's are only there."""
    usage = RequestUsage(input_tokens=10, output_tokens=5, details={"reasoning_tokens": 3}, **counts)
    [message] = read_whole(pm.ModelResponse([pm.TextPart("x")], usage=usage))
    assert message.metadata["usage"]["reasoningTokens"] == 3


# What a person said, what tools gave --------------------------------------------------------------------------


def test_a_user_prompt_has_its_texts_and_files() -> None:
    prompt = pm.UserPromptPart(
        [
            "Look:",
            pm.ImageUrl("https://h/a.png"),
            pm.BinaryContent(b"x", media_type="text/plain"),
            pm.UploadedFile("f1", provider_name="openai"),
        ]
    )
    text, image, data, other = read_whole(pm.ModelRequest([prompt])).messages[0].parts
    assert (text, image) == (TextPart("Look:"), FilePart("https://h/a.png", "image/png"))
    assert data == FilePart("data:text/plain;base64,eA==", "text/plain")
    assert other.kind == "pydantic_ai.uploaded-file"


def test_the_identifier_of_a_file_is_its_name_unless_pydantic_ai_has_made_it() -> None:
    files: list[pm.UserContent] = [
        pm.BinaryContent(b"x", media_type="text/plain", identifier="a.txt"),
        pm.BinaryContent(b"x", media_type="text/plain"),
        pm.DocumentUrl("https://h/b.pdf", identifier="b.pdf"),
        pm.DocumentUrl("https://h/b.pdf"),
    ]
    request = pm.ModelRequest([pm.UserPromptPart(["Look:", *files])])
    for prompt in (request, as_json([request])):
        _, *parts = read_whole(prompt).messages[0].parts
        assert [part.filename for part in parts if isinstance(part, FilePart)] == ["a.txt", None, "b.pdf", None]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("Too cloudy.", "Too cloudy."),
        ("The call was denied: Too cloudy.", "Too cloudy."),
        ("The call was denied.", None),
        (ToolDenied().message, None),
        ({"a": 1}, None),
    ],
)
def test_a_denied_call_of_a_list_has_the_reason(content: Any, reason: str | None) -> None:
    """The words of the package and of pydantic-ai around a reason, or without one, are no reason."""
    messages = [
        pm.ModelResponse([pm.ToolCallPart("f", {}, "c1")]),
        pm.ModelRequest([pm.ToolReturnPart("f", content, "c1", outcome="denied")]),
    ]
    denied = call(read_whole(messages), "c1")
    assert denied.approval is not None
    assert (denied.state, denied.approval.approved, denied.approval.reason) == (State.OUTPUT_DENIED, False, reason)


def test_a_denied_result_without_its_call_is_no_answer_to_anything() -> None:
    denied = pm.ModelRequest([pm.ToolReturnPart("f", "No.", "c1", outcome="denied")])
    assert [found.state for found in read_whole([denied]).calls.values()] == [State.OUTPUT_DENIED]
    call_part = pm.ModelResponse([pm.ToolCallPart("f", {}, "c1")])
    assert [found.state for found in read_whole([call_part, denied, denied]).calls.values()] == [State.OUTPUT_DENIED]


def test_repeated_instructions_are_read_once() -> None:
    asked = [pm.ModelRequest.user_text_prompt(text, instructions="Be kind.") for text in ("a", "b")]
    assert [(m.role, m.text) for m in read_whole(asked).messages] == [
        ("system", "Be kind."),
        ("user", "a"),
        ("user", "b"),
    ]


class Report(BaseModel):
    title: str
    pages: list[int]


@pytest.mark.parametrize(
    ("content", "output"),
    [
        ("text", "text"),
        ({"a": [1]}, {"a": [1]}),
        (Report(title="T", pages=[1]), {"title": "T", "pages": [1]}),
        ([Report(title="T", pages=[])], [{"title": "T", "pages": []}]),
        (None, None),
    ],
)
def test_any_tool_result_becomes_json(content: Any, output: Any) -> None:
    messages = [
        pm.ModelResponse([pm.ToolCallPart("f", {}, "c1")]),
        pm.ModelRequest([pm.ToolReturnPart("f", content, "c1")]),
    ]
    assert call(read_whole(messages), "c1").output == output


def test_an_image_from_a_tool_is_its_contents() -> None:
    image = pm.BinaryContent(b"png", media_type="image/png")
    parts = [pm.ToolReturnPart("draw", image, "c1")]
    found = call(read_whole([pm.ModelResponse([pm.ToolCallPart("draw", {}, "c1")]), pm.ModelRequest(parts)]), "c1")
    assert found.contents == [{"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,cG5n"}]


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        ("success", State.OUTPUT_AVAILABLE),
        ("failed", State.OUTPUT_ERROR),
        ("retried", State.OUTPUT_ERROR),
        ("denied", State.OUTPUT_DENIED),
        ("interrupted", State.INTERRUPTED),
    ],
)
def test_each_outcome_of_a_call_is_a_state(outcome: Any, state: State) -> None:
    asked = pm.ModelResponse([pm.ToolCallPart("f", {}, "c1")])
    messages: list[pm.ModelMessage] = [asked, pm.ModelRequest([pm.ToolReturnPart("f", "so", "c1", outcome=outcome)])]
    assert call(read_whole(messages), "c1").state is state
    assert read_whole(as_json(messages)) == read_whole(messages)


def test_the_return_of_a_call_that_is_missing_in_the_history_is_kept() -> None:
    transcript = read_whole([pm.ModelRequest([pm.ToolReturnPart("search", 3, "c9")])])
    assert (call(transcript, "c9").name, call(transcript, "c9").output) == ("search", 3)


def test_a_result_after_the_next_user_message_goes_to_its_call() -> None:
    messages = [
        pm.ModelResponse([pm.ToolCallPart("slow", {}, "c1")]),
        pm.ModelRequest([pm.UserPromptPart("Still there?"), pm.ToolReturnPart("slow", "yes", "c1")]),
    ]
    transcript = read_whole(messages)
    assert [message.role for message in transcript.messages] == ["assistant", "user"]
    assert call(transcript, "c1").output == "yes"


def test_feedback_about_an_answer_is_a_system_message() -> None:
    async def answer(messages: list[pm.ModelMessage], _: AgentInfo) -> AsyncIterator[str]:
        yield "good" if len(messages) > 1 else "bad"

    agent = Agent(FunctionModel(stream_function=answer))

    @agent.output_validator
    def check(text: str) -> str:
        if text == "bad":
            raise ModelRetry("Better.")
        return text

    found = asyncio.run(events_of_run(agent, "Go."))
    kinds = [event.type for event in read_events(found)]
    assert kinds.count("start-step") == 1, "an answer that was refused is a step of its own"
    roles = [message.role for message in read_whole(found[-1].result).messages]
    assert roles == ["user", "assistant", "system", "assistant"]


# A person is asked --------------------------------------------------------------------------------------------


def careful_agent() -> Agent[None, Any]:
    agent: Agent[None, Any] = Agent(TestModel(), output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def remove(path: str) -> str:
        """Remove a file."""
        return f"removed {path}"

    return agent


def test_a_call_that_needs_approval_asks_for_it() -> None:
    found = asyncio.run(events_of_run(careful_agent(), "Clean up."))
    [asked] = read_items(found).calls.values()
    assert asked.state is State.APPROVAL_REQUESTED
    assert asked.input == {"path": "a"}
    [whole] = read_whole(found[-1].result).calls.values()
    assert whole.state is State.APPROVAL_REQUESTED


@pytest.mark.parametrize(
    ("answer", "state"), [(True, State.OUTPUT_AVAILABLE), (ToolDenied("Not now."), State.OUTPUT_DENIED)]
)
def test_the_resumed_run_contains_the_calls_outcome(answer: Any, state: State) -> None:
    agent = careful_agent()
    asked = asyncio.run(events_of_run(agent, "Clean up."))[-1].result
    [request] = asked.output.approvals
    results = DeferredToolResults(approvals={request.tool_call_id: answer})
    found = asyncio.run(
        events_of_run(agent, None, message_history=asked.all_messages(), deferred_tool_results=results)  # type: ignore[arg-type]
    )
    [ended] = read_items(found).calls.values()
    assert (ended.name, ended.input, ended.state) == ("remove", {"path": "a"}, state)


def test_an_approval_request_and_its_answer_may_be_in_one_stream() -> None:
    part = pm.ToolCallPart("remove", {"path": "a"}, "c1")
    asked = [start(0, part), pm.DeferredToolRequestsEvent(DeferredToolRequests(approvals=[part]))]
    assert call(read_items(asked), "c1").state is State.APPROVAL_REQUESTED
    answers = pm.DeferredToolResultsEvent(DeferredToolResults(approvals={"c1": ToolDenied("Not now.")}))
    ended = pm.FunctionToolResultEvent(pm.ToolReturnPart("remove", "Not now.", "c1", outcome="denied"))
    found = call(read_items([*asked, answers, ended]), "c1")
    assert (found.state, found.approval.approved, found.approval.reason) == (State.OUTPUT_DENIED, False, "Not now.")


def test_a_tool_that_requires_approval_at_run_time_asks_for_it() -> None:
    agent: Agent[None, Any] = Agent(TestModel(), output_type=[str, DeferredToolRequests])

    @agent.tool_plain
    def pay(amount: int) -> str:
        raise ApprovalRequired

    [asked] = read_items(asyncio.run(events_of_run(agent, "Pay."))).calls.values()
    assert asked.state is State.APPROVAL_REQUESTED


# Whatever comes -----------------------------------------------------------------------------------------------


def test_an_output_tools_call_is_a_call() -> None:
    agent = Agent(TestModel(), output_type=Report)
    [found] = read_items(asyncio.run(events_of_run(agent, "Write."))).calls.values()
    assert found.name == "final_result"
    assert found.input == {"title": "a", "pages": [0]}
    assert found.is_final


def test_a_stream_may_be_cut_off_anywhere(run_events: list[Any]) -> None:
    for items in prefixes(run_events):
        transcript = read_items(items)
        assert not transcript.diagnostics
        assert all(item.state is not State.INPUT_STREAMING for item in transcript.calls.values())


def test_an_item_of_another_stream_gives_a_diagnostic() -> None:
    transcript = read_items([start(0, pm.TextPart("Hi")), 5, {"type": "pong"}])
    assert transcript.messages[0].text == "Hi"
    assert len(transcript.diagnostics) == 2


def test_events_without_content_are_ignored() -> None:
    quiet = [start(0, pm.TextPart("Hi")), pm.FinalResultEvent(tool_name=None, tool_call_id=None)]
    assert not read_items(quiet).diagnostics


def test_an_event_class_derived_by_an_application_is_recognised() -> None:
    result = AgentRunResultEvent
    assert format_of_item(result.__new__(result)).name == "pydantic-ai"


PARTS: list[Callable[[], Any]] = [
    lambda: start(0, pm.ThinkingPart("h", signature="s", provider_name="p")),
    lambda: pm.PartDeltaEvent(index=0, delta=pm.ThinkingPartDelta(content_delta="m")),
    lambda: start(1, pm.TextPart("t", citations=[pm.Citation([pm.WebCitationSource("https://h")])])),
    lambda: pm.PartEndEvent(index=1, part=pm.TextPart("t")),
    lambda: start(2, pm.ToolCallPart("f", '{"a":', "c1")),
    lambda: pm.PartDeltaEvent(index=2, delta=pm.ToolCallPartDelta(args_delta="1}")),
    lambda: pm.PartEndEvent(index=2, part=pm.ToolCallPart("f", '{"a":1}', "c1")),
    lambda: pm.FunctionToolCallEvent(pm.ToolCallPart("f", '{"a":1}', "c1")),
    lambda: pm.DeferredToolRequestsEvent(DeferredToolRequests(approvals=[pm.ToolCallPart("f", '{"a":1}', "c1")])),
    lambda: pm.DeferredToolResultsEvent(DeferredToolResults(approvals={"c1": True})),
    lambda: pm.FunctionToolResultEvent(pm.ToolReturnPart("f", {"x": 1}, "c1")),
    lambda: start(0, pm.FilePart(pm.BinaryContent(b"x", media_type="image/png"))),
]
AS_JSON: list[Any] = json.loads(EVENTS.dump_json([make() for make in PARTS]))
HISTORY: list[Any] = as_json(
    [
        pm.ModelRequest([pm.SystemPromptPart("s"), pm.UserPromptPart(["u", pm.ImageUrl("https://h/a.png")])]),
        pm.ModelResponse([pm.TextPart("t"), pm.ToolCallPart("f", {"a": 1}, "c1")], usage=RequestUsage(input_tokens=1)),
        pm.ModelRequest([pm.ToolReturnPart("f", {"x": 1}, "c1")]),
        pm.ModelResponse([pm.ThinkingPart("h"), pm.TextPart("t")], finish_reason="stop"),
    ]
)


@given(broken_streams(AS_JSON))
def test_malformed_events_do_not_raise(items: list[Any]) -> None:
    Transcript.from_events(read_events(items, PydanticAIAdapter()))


@given(broken_streams(HISTORY))
def test_malformed_messages_do_not_raise(items: list[Any]) -> None:
    Transcript.from_events(read_events(items, PydanticAIAdapter()))


def test_a_single_response_and_an_empty_one_are_complete() -> None:
    assert format_of_whole(pm.ModelResponse([])).name == "pydantic-ai"
    assert read_whole(pm.ModelResponse([])).messages[0].parts == ()
