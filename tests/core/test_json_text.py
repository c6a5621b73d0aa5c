"""NaN and the infinities, which JSON has no word for, survive every text form; so does everything else."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests.support.strategies import json_values
from toolcall_nb import show
from toolcall_nb.adapters.ai_sdk.messages import from_ui, to_ui
from toolcall_nb.adapters.openai.messages import to_openai
from toolcall_nb.core import events as ev
from toolcall_nb.core.json_text import json_text, read_json
from toolcall_nb.core.result_text import format_result
from toolcall_nb.core.transcript import DataPart, Message, State, TextPart, ToolCall, Transcript
from toolcall_nb.dialects import find_dialect
from toolcall_nb.markdown.yaml_text import yaml_scalar
from toolcall_nb.stages import from_stages, to_stages
from toolcall_nb.wire import WIRE_NAMES, decoder, encoder

ODD: dict[str, Any] = {
    "numbers": [float("nan"), float("inf"), float("-inf"), 1.5, {"deep": (float("nan"),)}],
    "looks like one": {"$numberDouble": "NaN"},
    "twice": {"$numberDouble": {"$numberDouble": float("nan")}},
}


def transcript() -> Transcript:
    """One with such numbers in every place that holds JSON; each made anew, so that none is the same object."""
    call = ToolCall(
        id="c1",
        name="measure",
        state=State.OUTPUT_AVAILABLE,
        input={"limit": float("inf"), **ODD},
        output=ODD,
        extra={"more": float("nan")},
        display={"application/json": float("nan")},
        provider_metadata={"p": {"x": float("nan")}},
    )
    parts = (call, DataPart("points", [float("nan")]))
    message = Message("assistant", parts, metadata={"score": float("nan")})
    return Transcript((message,), {"best": float("-inf"), "worst": float("nan")})


def strict(text: str) -> Any:
    """JSON as other readers read it: the bare words of Python are refused."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_values_with_nan_are_equal() -> None:
    assert transcript() == transcript()
    assert transcript().messages == transcript().messages
    assert ev.ToolOutputAvailable("c", [float("nan")]) == ev.ToolOutputAvailable("c", [float("nan")])
    assert ToolCall(id="c", name="f", output=math.nan) != ToolCall(id="c", name="f", output=0.0)


def test_a_transcript_with_nan_reads_back_from_markdown() -> None:
    assert Transcript.from_markdown(transcript().to_markdown()) == transcript()


@pytest.mark.parametrize("name", [name for name in WIRE_NAMES if name in ("ui", "ag-ui")])
def test_a_wire_that_loses_nothing_carries_nan_as_json_that_others_accept(name: str) -> None:
    written = encoder(name)
    data = b"".join([*map(written.encode, transcript().events()), written.close()])
    for line in data.decode().splitlines():
        if line.startswith("data: {"):
            frame = strict(line.removeprefix("data: "))
            for text in (frame.get("delta"), frame.get("content")):
                assert text is None or strict(text) is not None
    read = decoder(name)
    back = Transcript.from_events([*read.feed(data), *read.close()])
    assert back.messages == transcript().messages


def test_provider_envelopes_carry_nan_in_inputs_and_results() -> None:
    written = encoder("provider")
    data = b"".join([*map(written.encode, transcript().events()), written.close()])
    read = decoder("provider")
    found = Transcript.from_events([*read.feed(data), *read.close()]).calls["c1"]
    (given,) = transcript().calls.values()
    assert (found.input, found.output) == (given.input, given.output)


def test_a_stage_log_carries_nan() -> None:
    log = [strict(json_text(update)) for update in to_stages(transcript().events())]
    found = Transcript.from_events(from_stages(log)).calls["c1"]
    assert found.input == transcript().calls["c1"].input
    assert strict(to_stages(transcript().events())[-1]["result"]) == strict(json_text(ODD))


def test_files_of_messages_and_of_chunks_carry_nan(tmp_path: Path) -> None:
    whole = tmp_path / "messages.json"
    whole.write_text(json_text(to_ui(transcript().messages)))
    chunks = tmp_path / "chunks.jsonl"
    chunks.write_text("".join(f"{json_text(ev.to_dict(event))}\n" for event in transcript().events()))
    for file in (whole, chunks):
        assert show(file).transcript.calls["c1"].output == transcript().calls["c1"].output
        for line in file.read_text().splitlines():
            strict(line)
    assert from_ui(to_ui(transcript().messages)[0]).calls == transcript().messages[0].calls


@pytest.mark.parametrize("dialect", ["callout", "signature", "json"])
def test_a_model_is_sent_nan_as_a_string_in_valid_json(dialect: str) -> None:
    (call,) = transcript().calls.values()
    assert strict(format_result(call))["numbers"][:3] == ["NaN", "Infinity", "-Infinity"]
    request = to_openai(transcript().messages)
    assert strict(request[0]["tool_calls"][0]["function"]["arguments"])["limit"] == "Infinity"
    said = [Message("user", (TextPart("hi"),)), *transcript().messages]
    texts = "\n".join(message.text for message in find_dialect(dialect).write_history(said))
    assert "limit" in texts
    assert dialect == "callout" or "NaN" not in texts.replace('"NaN"', "")


def test_a_provider_is_sent_arguments_that_every_json_writer_accepts() -> None:
    parts = pytest.importorskip("toolcall_nb.models.providers.parts")
    (call,) = transcript().calls.values()
    assert json.dumps(parts.tool_call_part(call).args, allow_nan=False)


@given(json_values())
def test_any_json_value_reads_back_from_its_text(value: Any) -> None:
    text = json_text(value)
    strict(text)
    given_call, read_call = (ToolCall(id="c", name="f", output=each) for each in (value, read_json(text)))
    assert given_call == read_call


def test_a_long_number_stays_a_number() -> None:
    assert read_json(json_text(10**30)) == 10**30
    assert yaml_scalar(10**30) == str(10**30)
