"""Every output, as a function that takes the runs of some scenarios through it: `OUTPUTS`.

An output that is read back gives a transcript. One that is only looked at gives its text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from tests.crossings.played_runs import PlayedChat, folder_in_memory
from tests.crossings.scenarios import SCENARIOS
from tests.support.wire_round_trips import decoded_transcript
from toolcall_nb import Transcript, read, read_many
from toolcall_nb.adapters import events_of
from toolcall_nb.core.events import Diagnostic
from toolcall_nb.core.recording import Recording
from toolcall_nb.errors import ToolcallError
from toolcall_nb.markdown.reading import read_transcript
from toolcall_nb.models.providers.history import history_of
from toolcall_nb.render import LiveHtml, to_text
from toolcall_nb.render.saved_output import saved_bundle
from toolcall_nb.runs.difference import diff
from toolcall_nb.runs.formats.notebook_outputs import NOTEBOOK_OUTPUTS
from toolcall_nb.stages import from_stages, to_stages
from toolcall_nb.testing import assert_calls, cassette
from toolcall_nb.testing.differences import compare_transcripts

__all__ = ["OUTPUTS", "Crossed", "Output"]

Crossed: TypeAlias = "Transcript | str"
"""What came out: a transcript that was read back, or the text that a person or a test sees."""
Runs: TypeAlias = Sequence[tuple[str, Transcript]]
"""The runs that cross, each with the name of its scenario."""


class Output(NamedTuple):
    """An output: its title, and the function that takes runs through it."""

    title: str
    cross: Callable[[Runs], Iterable[Crossed]]
    is_read_back: bool = True


def _each(cross: Callable[[Transcript], Crossed]) -> Callable[[Runs], Iterable[Crossed]]:
    return lambda runs: (cross(transcript) for _, transcript in runs)


def _tried(cross: Callable[[], Transcript]) -> Transcript:
    """What comes out; where nothing does, an empty transcript that says why."""
    try:
        return cross()
    except (ToolcallError, AssertionError) as error:
        return Transcript((), {}, (Diagnostic(f"{error}", "Nothing came out."),))


# Files and texts --------------------------------------------------------------------------------------------------


def _file(suffix: str) -> Callable[[Runs], Iterable[Crossed]]:
    def cross(runs: Runs) -> Iterator[Crossed]:
        with folder_in_memory() as folder:
            path = folder / f"run{suffix}"
            for _, transcript in runs:
                path.unlink(missing_ok=True)
                transcript.write(path)
                yield _tried(partial(read, path))

    return cross


def _recording(runs: Runs) -> Iterator[Crossed]:
    with folder_in_memory() as folder:
        path = folder / "run.jsonl"
        for _, transcript in runs:
            recording = Recording(began=0.0)
            for seconds, event in enumerate(transcript.events()):
                recording.add(float(seconds), event)
            recording.write(path)
            yield read(path)


def _live_html(transcript: Transcript) -> str:
    live = LiveHtml()
    for event in transcript.events():
        live.apply(event)
    live.close()
    return live.html


def _terminal(transcript: Transcript) -> str:
    from io import StringIO

    from rich.console import Console

    from toolcall_nb.render.terminal import TerminalFace

    console = Console(file=StringIO(), width=2000, force_terminal=False, color_system=None)
    with TerminalFace(console) as face:
        for event in transcript.events():
            face.apply(event)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def _saved_output(transcript: Transcript) -> Transcript:
    output = {"output_type": "display_data", "data": saved_bundle(transcript), "metadata": {}}
    notebook = {"nbformat": 4, "cells": [{"cell_type": "code", "id": "a", "source": "", "outputs": [output]}]}
    [run] = NOTEBOOK_OUTPUTS.read([notebook])
    return run.transcript


# Requests and streams ---------------------------------------------------------------------------------------------


def _as_json(value: Any) -> Any:
    """The value as it is after a request: as JSON."""
    return json.loads(json.dumps(value))


def _read_messages(messages: Any) -> Transcript:
    return Transcript.from_events(events_of(messages))


def _provider_request(transcript: Transcript) -> Transcript:
    return _read_messages(history_of(transcript.messages, "openai", pictures=True))


def _stages(transcript: Transcript) -> Transcript:
    return Transcript.from_events(from_stages([*to_stages(transcript.events())]))


# Chats ------------------------------------------------------------------------------------------------------------


def _cassettes(runs: Runs) -> Iterator[Crossed]:
    with folder_in_memory() as folder:
        for number, (_, transcript) in enumerate(runs):
            yield _tried(partial(_replayed, transcript, folder / f"{number}.jsonl"))


def _replayed(transcript: Transcript, path: Path) -> Transcript:
    with cassette(path, PlayedChat(transcript).model, record="all") as tape:
        PlayedChat(transcript, tape, tape.tools).play()
    with cassette(path) as tape:
        return PlayedChat(transcript, tape, tape.tools).play()


@contextmanager
def _spans() -> Iterator[Any]:
    """Collects the spans of chats, with their contents."""
    import os

    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    setting = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    before, trace._TRACER_PROVIDER = trace._TRACER_PROVIDER, provider
    allowed, os.environ[setting] = os.environ.get(setting), "span_only"
    try:
        yield exporter
    finally:
        trace._TRACER_PROVIDER = before
        os.environ.pop(setting) if allowed is None else os.environ.update({setting: allowed})


def _emitted_spans(runs: Runs) -> Iterator[Crossed]:
    from toolcall_nb.runs.formats.spans import SPAN_FORMATS

    with _spans() as exporter:
        for _, transcript in runs:
            exporter.clear()
            PlayedChat(transcript).play()
            spans = sorted(exporter.get_finished_spans(), key=lambda span: span.start_time or 0)
            records = [[json.loads(span.to_json()) for span in spans]]
            format = next(each for each in SPAN_FORMATS if each.recognises(records))
            yield [*format.read(records)][-1].transcript


# Tables and checks ------------------------------------------------------------------------------------------------


@contextmanager
def _as_files(runs: Runs) -> Iterator[Any]:
    """Writes each run as a recording, which has an id: the number of the run."""
    with folder_in_memory() as folder:
        for number, (_, transcript) in enumerate(runs):
            recording = Recording(transcript, began=0.0)
            recording.run = {"id": f"{number:03}"}
            recording.write(folder / f"{number:03}.jsonl")
        yield read_many(folder)


def _rows(frames: Iterable[Any]) -> Mapping[int, str]:
    """The rows of each run, as text, by its number."""
    rows: dict[int, list[str]] = {}
    for frame in frames:
        for row in frame.to_dict("records"):
            run = int(row.pop("run") if "run" in row else row.pop("id"))
            is_run = "prompt" in row
            values = (
                f"{key}={value}" for key, value in row.items() if key not in _NOT_SHOWN and not (is_run and key == "id")
            )
            rows.setdefault(run, []).append(" ".join(values))
    return {run: "\n".join(lines) for run, lines in rows.items()}


_NOT_SHOWN = ("path", "events", "record")
"""The columns of files, and those that hold the whole run as JSON, from which it reads back."""


def _frames(runs: Runs) -> Iterator[Crossed]:
    with _as_files(runs) as many:
        rows = _rows([many.df, many.calls.df])
    yield from [rows[number] for number in range(len(runs))]


def _parquet(runs: Runs) -> Iterator[Crossed]:
    with folder_in_memory() as folder, _as_files(runs) as many:
        many.to_parquet(folder)
        yield from [run.transcript for run in read_many(folder)]


def _sql(runs: Runs) -> Iterator[Crossed]:
    with _as_files(runs) as many:
        rows = _rows(many.sql(f"select * from {table}") for table in ("runs", "calls", "messages"))
    yield from [rows[number] for number in range(len(runs))]


def _search(runs: Runs) -> Iterator[Crossed]:
    with _as_files(runs) as many:
        for number, (name, _) in enumerate(runs):
            words = [word for fact in SCENARIOS[name].facts for word in fact.words]
            yield " ".join(word for word in words if many[number : number + 1].search(word))


def _difference(runs: Runs) -> Iterator[Crossed]:
    for name, transcript in runs:
        yield diff(SCENARIOS[name].without, transcript).to_text()


def _assertions(runs: Runs) -> Iterator[Crossed]:
    for name, transcript in runs:
        without = SCENARIOS[name].without
        lines = compare_transcripts(transcript, without) or []
        try:
            assert_calls(transcript, [*without.calls.values()])
        except AssertionError as error:
            lines.append(str(error))
        yield "\n".join(lines)


OUTPUTS: Mapping[str, Output] = {
    "Markdown": Output("portable Markdown", _each(lambda t: read_transcript(t.to_markdown()))),
    "Markdown file": Output("a `.md` file", _file(".md")),
    "JSON": Output("a `.json` file", _file(".json")),
    "JSON lines": Output("a `.jsonl` file", _file(".jsonl")),
    "recording": Output("a chat's recording", _recording),
    "saved output": Output("the output that a notebook keeps", _each(_saved_output)),
    "cassette": Output("a cassette and its replay", _cassettes),
    "OpenAI": Output("`Transcript.to_openai()`", _each(lambda t: _read_messages(_as_json(t.to_openai())))),
    "Anthropic": Output(
        "`Transcript.to_anthropic()`", _each(lambda t: _read_messages(_as_json(t.to_anthropic())["messages"]))
    ),
    "UI messages": Output(
        "`Transcript.to_ui_messages()`", _each(lambda t: _read_messages(_as_json(t.to_ui_messages())))
    ),
    "request": Output("a request to a provider, as pydantic-ai sends it", _each(_provider_request)),
    "AI SDK stream": Output("the AI SDK's UI message stream", _each(lambda t: decoded_transcript("ui", t.events()))),
    "AG-UI": Output("AG-UI events", _each(lambda t: decoded_transcript("ag-ui", t.events()))),
    "chat contract": Output("the chat contract", _each(lambda t: decoded_transcript("chat", t.events()))),
    "envelopes": Output("provider envelopes", _each(lambda t: decoded_transcript("provider", t.events()))),
    "stages": Output("a log of stages", _each(_stages)),
    "spans": Output("the spans that a chat emits", _emitted_spans),
    "Parquet": Output("Parquet files, read back", _parquet),
    "live HTML": Output("the live view", _each(_live_html), is_read_back=False),
    "HTML": Output("static HTML", _each(lambda t: t.to_html()), is_read_back=False),
    "text": Output("plain text", _each(to_text), is_read_back=False),
    "terminal": Output("the terminal", _each(_terminal), is_read_back=False),
    "frame": Output("`runs.df` and `runs.calls.df`", _frames, is_read_back=False),
    "SQL": Output("`runs.sql(…)`", _sql, is_read_back=False),
    "diff": Output("`diff(a, b)`", _difference, is_read_back=False),
    "search": Output("`runs.search(…)`", _search, is_read_back=False),
    "assertions": Output("`assert_calls` and a failed `==` under pytest", _assertions, is_read_back=False),
}
"""All outputs by their short names."""
