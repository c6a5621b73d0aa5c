"""Reading a transcript while it grows: in the middle of a turn, at every step, and from other threads."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.strategies import streams
from toolcall_nb import Chat, Transcript
from toolcall_nb.core import events as ev
from toolcall_nb.core.append_only import AppendOnlyList, AppendOnlyText
from toolcall_nb.core.events import Event
from toolcall_nb.core.reducer import TranscriptBuilder
from toolcall_nb.render import LiveHtml
from toolcall_nb.server.conversations import ServedThreads
from toolcall_nb.server.settings import Settings

PIECES = 1_000
SAID = [f"{number} ".ljust(100, "é") for number in range(PIECES)]
WHOLE = "".join(SAID)


@pytest.fixture(autouse=True)
def threads_that_switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def polled(read: Callable[[], str], run: Callable[[], object]) -> set[str]:
    """What three other threads read while ``run`` goes on."""
    found: set[str] = set()
    errors: list[BaseException] = []
    over = threading.Event()

    def poll() -> None:
        try:
            while not over.is_set():
                found.add(read())
        except BaseException as error:
            errors.append(error)

    readers = [threading.Thread(target=poll) for _ in range(3)]
    for reader in readers:
        reader.start()
    run()
    over.set()
    for reader in readers:
        reader.join()
    assert errors == []
    assert found
    return found


def text_of(transcript: Transcript) -> str:
    return transcript.messages[-1].text if transcript.messages else ""


def beginning(transcript: Transcript) -> str:
    """The last text, or that it is a beginning of what the model says."""
    text = text_of(transcript)
    return "a beginning" if text and WHOLE.startswith(text) else text


def model(messages: Any, tools: Any) -> Iterator[str]:
    for piece in SAID:
        yield piece
        time.sleep(1e-5)  # others have their turn


def test_a_chat_that_is_read_in_other_threads_loses_nothing() -> None:
    chat = Chat(model)

    def run() -> None:
        assert chat.send("Count.").text == WHOLE

    assert polled(lambda: beginning(chat.transcript), run) <= {"", "Count.", "a beginning"}


def test_a_thread_of_the_server_that_is_read_in_other_threads_loses_nothing() -> None:
    threads = ServedThreads(Settings(models={"m": model}), ticking=False)
    chat = threads._chats["t"] = Chat(model, thread="t")
    seen = polled(lambda: beginning(threads.transcript("t")), lambda: chat.send("Count."))
    assert seen <= {"", "Count.", "a beginning"}
    assert text_of(threads.transcript("t")) == WHOLE


def parallel() -> list[Event]:
    """Three calls whose inputs, outputs and logs come among each other, and one that turns out to be none."""
    events: list[Event] = [ev.Start(), ev.TextStart("t"), ev.TextDelta("t", "So: ")]
    names = ["a", "b", "c", "none"]
    events += [ev.ToolInputStart(name, "tool") for name in names]
    events += [ev.ToolInputDelta(names[number % 4], f"{number} ") for number in range(400)]
    events += [ev.ToolRetracted("none", None, "It was none."), ev.TextStart("u")]
    events += [ev.ToolInputAvailable(name, "tool", {}) for name in names[:3]]
    for number in range(400):
        events += [ev.ToolLog(names[number % 3], f"line {number}\r\n"), ev.Diagnostic(f"{number}", "Nothing was done.")]
    events += [ev.ToolOutputAvailable(name, name) for name in names[:3]]
    return [*events, *(ev.TextDelta("u", piece) for piece in SAID[:400]), ev.TextEnd("u"), ev.Abort(reason="stopped")]


@pytest.mark.parametrize("make", [TranscriptBuilder, LiveHtml])
def test_a_reader_in_another_thread_sees_the_transcript_of_the_first_events(
    make: type[TranscriptBuilder] | type[LiveHtml],
) -> None:
    events = parallel()
    growing = make()
    seen = polled(lambda: _written(growing.transcript), lambda: [growing.apply(event) for event in events])
    builder = TranscriptBuilder()
    prefixes = [builder.transcript]
    for event in events:
        builder.apply(event)
        prefixes.append(builder.transcript)
    assert seen <= {_written(prefix) for prefix in prefixes}
    assert growing.transcript == Transcript.from_events(events)


def _written(transcript: Transcript) -> str:
    return repr((transcript.messages, transcript.diagnostics))


@settings(max_examples=300)
@given(streams())
def test_a_transcript_that_was_read_never_changes_and_reading_changes_nothing(events: list[Event]) -> None:
    builder = TranscriptBuilder()
    seen: list[tuple[Transcript, str]] = []
    for event in events:
        builder.apply(event)
        seen.append((builder.transcript, _written(builder.transcript)))
    assert _written(builder.transcript) == _written(Transcript.from_events(events))
    for number, (transcript, written) in enumerate(seen, 1):
        assert _written(transcript) == written == _written(Transcript.from_events(events[:number]))


def test_reading_at_every_step_changes_nothing_of_a_long_message() -> None:
    events = parallel()
    builder, live = TranscriptBuilder(), LiveHtml()
    for event in events:
        builder.apply(event)
        live.apply(event)
        assert live.transcript == builder.transcript
        assert list(live.transcript.calls) == list(builder.transcript.calls)
    assert _written(builder.transcript) == _written(Transcript.from_events(events))


def test_a_tool_may_read_the_chat_that_calls_it() -> None:
    seen: list[str] = []

    def look() -> str:
        """Reads the conversation."""
        seen.append(json.dumps([call.state for call in chat.calls.values()]))
        return "seen"

    def calling(messages: Any, tools: Any) -> Iterator[Event]:
        if len(messages) > 2:
            yield from (ev.TextStart("t"), ev.TextDelta("t", "Done."), ev.TextEnd("t"))
        else:
            yield ev.ToolInputAvailable("c", "look", {})

    chat = Chat(calling, tools=[look])
    chat.send("Look.")
    assert seen == ['["input-available"]']
    assert chat.calls["c"].output == "seen"


def test_an_interrupted_event_is_not_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = TranscriptBuilder()
    for event in (ev.Start(), ev.ToolInputStart("a", "tool"), ev.ToolInputStart("b", "tool")):
        builder.apply(event)
    before = builder.transcript
    steps = 0
    set_call = TranscriptBuilder._set_call

    def interrupted(self: TranscriptBuilder, *args: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == 2:
            raise KeyboardInterrupt
        return set_call(self, *args)

    monkeypatch.setattr(TranscriptBuilder, "_set_call", interrupted)
    with pytest.raises(KeyboardInterrupt):
        builder.apply(ev.Abort(reason="stopped"))
    assert builder.transcript == before
    builder.apply(ev.Abort(reason="stopped"))
    assert {call.state for call in builder.transcript.calls.values()} == {"interrupted"}


@given(st.lists(st.text(max_size=3), max_size=200), st.integers(0, 200))
def test_two_continuations_of_one_text_are_independent(pieces: list[str], cut: int) -> None:
    text, numbers = AppendOnlyText(), AppendOnlyList[str]()
    versions = [(text, numbers)]
    for piece in pieces:
        text, numbers = text.add(piece), numbers.add(piece)
        versions.append((text, numbers))
    text, numbers = versions[min(cut, len(pieces))]
    other, others = text.add("other"), numbers.add("other")
    assert str(other) == "".join(pieces[:cut]) + "other"
    assert [*others] == [*pieces[:cut], "other"]
    for number, (text, numbers) in enumerate(versions):
        assert (str(text), [*numbers]) == ("".join(pieces[:number]), pieces[:number])


def test_a_delta_costs_the_same_after_a_million_characters_and_beside_a_thousand_calls() -> None:
    """Counted in copied items, not in seconds: what a change makes anew is a row and the list of rows."""
    events = [ev.ToolInputStart(f"c{number}", "tool") for number in range(2_000)]
    builder = TranscriptBuilder()
    for event in events:
        builder.apply(event)
    rows = builder._current.slots.rows if builder._current is not None else ()
    builder.apply(ev.ToolInputDelta("c5", "x"))
    again = builder._current.slots.rows if builder._current is not None else ()
    assert len(rows) < 40
    assert [old is new for old, new in zip(rows, again, strict=True)].count(False) == 1
