"""Calls that start while the model still writes (`Chat(eager=True)`): when, which, and what becomes of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.profile import share_of
from toolcall_nb.approvals import Decision, RememberedApprovals
from toolcall_nb.chat import Chat
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.reducer import TranscriptBuilder
from toolcall_nb.core.transcript import ErrorPart, Message, State, ToolCall
from toolcall_nb.dialects import DIALECTS
from toolcall_nb.errors import ModelError
from toolcall_nb.live_runs.document import LiveDocument
from toolcall_nb.models import MockModel, ReplayModel, model
from toolcall_nb.render import LiveHtml
from toolcall_nb.testing import faults
from toolcall_nb.tools import Registry, Tool, tool
from toolcall_nb.tools.execution.parallel import MAX_THREADS

WITHIN = 30
"""Seconds that a test waits for what must happen, before it fails."""


class Script:
    """A model that yields the given items, one list for each request. A function among them is called in its place."""

    name = "script"

    def __init__(self, *replies: Sequence[Event | Callable[[], object]]) -> None:
        self._replies = iter(replies)

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        for item in next(self._replies, ()):
            if isinstance(item, Event):
                yield item
            else:
                item()


def call(call_id: str, name: str, **arguments: Any) -> ev.ToolInputAvailable:
    return ev.ToolInputAvailable(call_id, name, arguments)


def text(words: str, block: str = "1") -> list[Event]:
    return [ev.TextStart(block), ev.TextDelta(block, words), ev.TextEnd(block)]


class Steps:
    """Steps that happened, in any thread. `wait` waits for one of them."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._changed = threading.Condition()

    def add(self, name: str) -> None:
        with self._changed:
            self.names.append(name)
            self._changed.notify_all()

    def wait(self, name: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: name in self.names, WITHIN), (name, self.names)


def wait_for(steps: Steps, name: str) -> Callable[[], None]:
    return lambda: steps.wait(name)


def step_names(event: Event) -> list[str]:
    """The names of what an event shows: ``a running``, ``a: 1`` for a result, and the text of a delta."""
    match event:
        case ev.ToolExecution():
            return [f"{event.tool_call_id} {event.status}"]
        case ev.ToolOutputAvailable():
            return [f"{event.tool_call_id}{'…' if event.preliminary else ':'} {event.output}"]
        case ev.ToolOutputError() | ev.ToolInputError():
            return [f"{event.tool_call_id} failed"]
        case ev.ToolLog():
            return [f"{event.tool_call_id} printed {event.text.strip()}"]
        case ev.TextDelta():
            return [event.delta]
        case ev.Finish() | ev.Abort():
            return [event.type]
    return []


def watched(chat: Chat, steps: Steps) -> list[str]:
    """Runs a turn whose events a reader and a listener note, as a cell does. Returns the steps."""

    def show(event: Event) -> None:
        for name in step_names(event):
            steps.add(name)

    for event in chat.stream("Go", live=show):
        show(event)
    return steps.names


# While the model writes -----------------------------------------------------------------------------------------


def test_a_call_runs_and_ends_while_the_model_still_writes() -> None:
    """The model goes on only after the result: without an early start it would wait for ever."""
    steps = Steps()

    def double(n: int) -> Iterator[int]:
        yield n
        print("doubling", end="")
        yield 2 * n

    reply = [call("a", "double", n=4), *text("Let me see. "), wait_for(steps, "a: 8"), *text("And now", "2")]
    chat = Chat(Script(reply, text("It is 8.", "3")), tools=[double], eager=True)
    names = [name for name in watched(chat, steps) if name != "Let me see. "]
    assert names == [
        *["Go", "finish", "a queued", "a running", "a… 4", "a printed doubling", "a… 8", "a: 8"],
        *["And now", "It is 8.", "finish"],
    ]
    assert chat.calls["a"].output == 8


def test_a_slow_model_and_a_slow_tool_take_turns() -> None:
    """Each piece of the mock's text waits for the tool's next value, and the other way round."""
    steps = Steps()

    def count() -> Iterator[int]:
        for number in range(3):
            yield number
            steps.wait("abc"[number])
        yield 3

    reply: list[Any] = [call("a", "count"), ev.TextStart("1")]
    for number, piece in enumerate("abc"):
        reply += [wait_for(steps, f"a… {number}"), ev.TextDelta("1", piece)]
    chat = Chat(Script([*reply, ev.TextEnd("1")], text("Done.", "2")), tools=[count], eager=True)
    shown = [name for name in watched(chat, steps) if name in ("a… 0", "a", "a… 1", "b", "a… 2", "c", "a: 3")]
    assert shown == ["a… 0", "a", "a… 1", "b", "a… 2", "c", "a: 3"]


def test_what_a_page_shows_at_the_end_is_the_whole_transcript() -> None:
    steps, live, whole = Steps(), LiveHtml(), LiveHtml()
    document = LiveDocument(live, lambda step: None)

    def count(n: int) -> Iterator[int]:
        print("counting")
        yield from range(n)

    def show(event: Event) -> None:
        document.apply(event)
        document.flush()
        for name in step_names(event):
            steps.add(name)

    reply = [
        call("a", "count", n=3),
        *text("One. "),
        wait_for(steps, "a: 2"),
        *text("Two.", "2"),
        call("b", "count", n=2),
    ]
    chat = Chat(Script(reply, text("Done.", "3")), tools=[count], eager=True)
    for event in chat.stream("Go", live=show):
        show(event)
    document.finish("")
    for event in chat.transcript.events():
        whole.apply(event)
    whole.close()
    assert live.html == whole.html


def test_without_a_listener_the_events_come_between_the_deltas() -> None:
    seen = threading.Event()

    def quick() -> str:
        return "quick"

    def reply() -> Iterator[Event]:
        yield call("a", "quick")
        yield ev.TextStart("1")
        while not seen.wait(0.001):
            yield ev.TextDelta("1", ".")
        yield ev.TextDelta("1", "seen")

    class Dots:
        def stream(self, messages: Any, tools: Any) -> Iterator[Event]:
            return iter(text("Done.")) if seen.is_set() else reply()

    names: list[str] = []
    for event in Chat(Dots(), tools=[quick], eager=True).stream("Go"):
        names += step_names(event)
        if "a: quick" in names:
            seen.set()
    assert names.index("a running") < names.index("a: quick") < names.index("seen")


def test_the_model_is_read_on_while_a_tool_runs() -> None:
    written = threading.Event()

    def patient() -> str:
        assert written.wait(WITHIN)
        return "at last"

    chat = Chat(
        Script([call("a", "patient"), *text("Words."), written.set], text("Done.")), tools=[patient], eager=True
    )
    assert watched(chat, Steps())[-2:] == ["Done.", "finish"]
    assert chat.calls["a"].output == "at last"


def test_it_is_off_unless_asked_for() -> None:
    steps = Steps()
    chat = Chat(
        Script([call("a", "now"), *text("Words.")], text("Done.")), tools=[Tool.from_function(lambda: 1, name="now")]
    )
    assert watched(chat, steps).index("Words.") < steps.names.index("a running")


# Which calls, and when -------------------------------------------------------------------------------------------


def test_calls_of_usual_tools_run_one_after_the_other_in_their_order() -> None:
    steps, running, most = Steps(), 0, 0

    def note(n: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        steps.add(f"ran {n}")
        running -= 1
        return n

    reply = [*[call(str(n), "note", n=n) for n in range(5)], wait_for(steps, "4: 4"), *text("After.")]
    chat = Chat(Script(reply, text("Done.")), tools=[note], eager=True)
    names = watched(chat, steps)
    assert most == 1
    assert [name for name in names if name.startswith("ran")] == [f"ran {n}" for n in range(5)]
    assert names.index("4: 4") < names.index("After.")


def test_neighbours_that_allow_it_run_at_the_same_time_and_others_wait_for_them() -> None:
    steps, meeting = Steps(), threading.Barrier(2)
    tools = Registry()

    @tool(into=tools, parallel=True)
    def meet(n: int) -> int:
        meeting.wait(WITHIN)
        return n

    @tool(into=tools)
    def alone() -> str:
        return "alone"

    calls = [call("a", "meet", n=1), call("b", "meet", n=2), call("c", "alone"), call("d", "meet", n=3)]
    reply = [*calls, call("e", "meet", n=4), wait_for(steps, "e: 4"), wait_for(steps, "d: 3"), *text("After.")]
    names = watched(Chat(Script(reply, text("Done.")), tools=tools, eager=True), steps)
    ends = [name for name in names if name in ("a: 1", "b: 2", "c: alone", "d: 3", "e: 4")]
    assert (set(ends[:2]), ends[2], set(ends[3:])) == ({"a: 1", "b: 2"}, "c: alone", {"d: 3", "e: 4"})
    assert max(names.index("a: 1"), names.index("b: 2")) < names.index("c running")
    assert names.index("c: alone") < min(names.index("d running"), names.index("e running"))


def test_no_more_calls_run_at_once_than_without_it() -> None:
    steps, gate, lock, running, most = Steps(), threading.Event(), threading.Lock(), 0, 0
    tools = Registry()

    @tool(into=tools, parallel=True)
    def crowd(n: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        steps.add(f"{n} began")
        assert gate.wait(WITHIN)
        with lock:
            running -= 1
        return n

    number = MAX_THREADS + 3
    calls = [call(str(n), "crowd", n=n) for n in range(number)]
    reply = [*calls, *[wait_for(steps, f"{n} began") for n in range(MAX_THREADS)], gate.set, *text("After.")]
    chat = Chat(Script(reply, text("Done.")), tools=tools, eager=True)
    watched(chat, steps)
    assert most == MAX_THREADS
    assert [found.output for found in chat.calls.values()] == [*range(number)]


def test_a_tool_can_refuse_and_then_runs_in_the_turn_s_thread_after_the_reply() -> None:
    steps, threads = Steps(), list[threading.Thread]()
    tools = Registry()

    @tool(into=tools, eager=False)
    def careful() -> str:
        threads.append(threading.current_thread())
        return "done"

    @tool(into=tools)
    def quick() -> str:
        return "quick"

    reply = [call("a", "quick"), call("b", "careful"), call("c", "quick"), wait_for(steps, "a: quick"), *text("Words.")]
    names = watched(Chat(Script(reply, text("Done.")), tools=tools, eager=True), steps)
    assert threads == [threading.current_thread()]
    order = [name for name in names if name in ("a: quick", "Words.", "b: done", "c: quick")]
    assert order == ["a: quick", "Words.", "b: done", "c: quick"]


def test_a_call_that_needs_an_approval_neither_asks_nor_starts_early() -> None:
    steps, tools = Steps(), Registry()

    @tool(into=tools)
    def known() -> str:
        return "known"

    @tool(into=tools)
    def unknown() -> str:
        return "unknown"

    def ask(found: ToolCall) -> Decision:
        steps.add(f"asked about {found.id}")
        return Decision(True)

    remembered = RememberedApprovals()
    remembered.add(tools["known"], "chat")
    reply = [call("a", "known"), call("b", "unknown"), call("c", "known"), wait_for(steps, "a: known"), *text("Words.")]
    chat = Chat(
        Script(reply, text("Done.")), tools=tools, ask_approval=ask, remembered_approvals=remembered, eager=True
    )
    names = [name for name in watched(chat, steps) if " " in name and not name.endswith(("queued", "running"))]
    assert names == ["a: known", "asked about b", "b: unknown", "c: known"]
    assert steps.names.index("a: known") < steps.names.index("Words.") < steps.names.index("asked about b")
    approval = chat.calls["a"].approval
    assert approval is not None
    assert approval.is_automatic


def test_an_incomplete_call_holds_up_those_after_it() -> None:
    def f(n: int = 0) -> int:
        return n

    reply = [ev.ToolInputStart("a", "f"), call("b", "f", n=2), ev.ToolInputDelta("a", "{"), *text("Words.")]
    chat = Chat(Script(reply, text("Done.")), tools=[f], eager=True)
    steps = Steps()
    names = watched(chat, steps)
    assert names.index("Words.") < names.index("b running")
    assert chat.calls["a"].error == "The reply ended before the arguments were complete."


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_a_call_in_text_is_complete_when_its_block_is_closed(dialect: str) -> None:
    steps, chat_tools = Steps(), Registry()

    @tool(into=chat_tools)
    def double(n: int) -> int:
        return 2 * n

    written = MockModel(script=[[("double", {"n": 4}, "a")]], dialect=dialect).stream((), ())
    block = "".join(event.delta for event in written if isinstance(event, ev.TextDelta))
    pieces: list[Any] = [ev.TextStart("1"), *(ev.TextDelta("1", letter) for letter in block)]
    after = [ev.TextDelta("1", "\n\nwait "), ev.TextDelta("1", "for it "), wait_for(steps, "done"), *text(" End.", "2")]

    def show(event: Event) -> None:
        if isinstance(event, ev.ToolOutputAvailable):
            steps.add("done")
        for name in step_names(event):
            steps.add(name)

    chat = Chat(Script([*pieces, *after], text("8")), tools=chat_tools, dialect=dialect, eager=True)
    for event in chat.stream("Go", live=show):
        show(event)
    (found,) = chat.calls.values()
    assert (found.output, steps.names.count("done")) == (8, 1)
    assert steps.names.index(f"{found.id}: 8") < steps.names.index(" End.")


def test_a_result_that_the_model_wrote_itself_is_not_run_over() -> None:
    ran: list[int] = []

    def f(n: int) -> None:
        ran.append(n)

    reply = text("> [!tool f a]\n> input:\n>   n: 1\n> output: 5\n\nSo it is 5.")
    chat = Chat(Script(reply, text("Done.")), tools=[f], dialect="callout", eager=True)
    chat.send("Go")
    assert (ran, chat.calls["a"].output) == ([], 5)


def test_a_call_in_text_that_is_changed_after_its_start_is_another_call() -> None:
    ran: list[int] = []

    def f(n: int) -> int:
        ran.append(n)
        return n

    callout = "> [!tool f a]\n> input:\n>   n: {}\n\n"
    reply = text(callout.format(1) + "No.\n\n" + callout.format(2) + "Yes.\n\n" + callout.format(2) + "Fine.")
    chat = Chat(Script(reply, text("Done.")), tools=[f], dialect="callout", eager=True)
    chat.send("Go")
    assert ran == [1, 2]
    assert [(found.input, found.output) for found in chat.calls.values()] == [({"n": 1}, 1), ({"n": 2}, 2)]


def test_what_the_model_says_about_a_call_that_runs_is_a_diagnostic() -> None:
    goes_on = threading.Event()

    def f() -> str:
        assert goes_on.wait(WITHIN)
        return "ours"

    wrong = [ev.ToolOutputAvailable("a", "theirs"), ev.ToolRetracted("a"), ev.ResetStep(), ev.ToolInputDelta("a", "{")]
    reply: list[Any] = [call("a", "f"), *wrong, call("a", "f"), goes_on.set, *text("Words.")]
    chat = Chat(Script(reply, text("Done.")), tools=[f], eager=True)
    chat.send("Go")
    assert [found.output for found in chat.calls.values()] == ["ours"]
    assert len(chat.transcript.diagnostics) == len(wrong)
    assert chat.transcript.diagnostics[0].message == (
        "tool-output-available for the tool call 'a', which may run already."
    )


# Models whose calls are not the chat's alone -------------------------------------------------------------------


def test_a_model_that_may_run_its_calls_itself_starts_none_early() -> None:
    ran: list[int] = []

    def f(n: int = 0) -> int:
        ran.append(n)
        return n

    def events(messages: Any) -> Iterator[Event]:
        yield call("a", "f")
        yield ev.ToolOutputAvailable("a", 7)

    first = Chat(events, tools=[f], eager=True)
    first.send("Go")
    again = Chat(ReplayModel(first.transcript, None), tools=[f], eager=True)
    again.send("Go")
    assert (ran, first.calls["a"].output, again.calls["a"].output) == ([], 7, 7)


def test_a_function_that_takes_the_tools_leaves_the_calls_to_the_chat() -> None:
    steps = Steps()

    def f() -> str:
        return "f"

    def events(messages: Any, tools: Any) -> Iterator[Any]:
        if not steps.names or "a: f" not in steps.names:
            yield call("a", "f")
            steps.wait("a: f")
        yield from text("Done.")

    chat = Chat(events, tools=[f], eager=True)
    assert watched(chat, steps).index("a: f") < steps.names.index("Done.")


def test_models_that_may_run_calls_say_so() -> None:
    server: Any = model("http://127.0.0.1:1")
    assert server.may_run_calls is True
    assert not getattr(model("mock"), "may_run_calls", False)


# Ends -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["error", "raise", "abort"])
def test_when_the_model_fails_a_call_that_has_begun_is_shown_with_its_result(how: str) -> None:
    begun, goes_on = threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        assert goes_on.wait(WITHIN)
        return "done"

    def fail() -> None:
        assert begun.wait(WITHIN)
        goes_on.set()
        if how == "raise":
            raise ModelError("The line went dead.")

    end: dict[str, list[Event]] = {"error": [ev.Error("It broke.")], "raise": [], "abort": [ev.Abort(reason="gone")]}
    later = Tool.from_function(lambda: None, name="later", eager=False)
    reply = [call("a", "slow"), call("b", "later"), fail, *end[how]]
    chat = Chat(Script(reply, text("Yes.")), tools=[slow, later], eager=True)
    answer = chat.send("Go")
    assert [(found.state, found.output) for found in answer.calls[:1]] == [(State.OUTPUT_AVAILABLE, "done")]
    assert answer.calls[1].state is State.INTERRUPTED
    assert (answer.aborted is not None) == (how == "abort")
    assert chat.send("And now?").text == "Yes."


def test_stop_ends_the_tools_that_run_and_keeps_what_has_ended() -> None:
    steps, ended = Steps(), threading.Event()

    def quick() -> str:
        return "quick"

    def endless() -> Iterator[str]:
        try:
            while True:
                yield "on"
                threading.Event().wait(0.01)
        finally:
            ended.set()

    reply = [call("a", "quick"), call("b", "endless"), wait_for(steps, "b running"), *text("Words."), *text("More.")]
    chat = Chat(Script(reply, text("Yes.")), tools=[quick, endless], eager=True)

    def show(event: Event) -> None:
        for name in step_names(event):
            steps.add(name)
            if name == "Words.":
                chat.stop()

    for event in chat.stream("Go", live=show):
        show(event)
    assert steps.names[-1] == "abort"
    assert ended.wait(WITHIN)
    assert [(found.state) for found in chat.calls.values()] == [State.OUTPUT_AVAILABLE, State.INTERRUPTED]
    assert chat.send("And now?").text == "Yes."


@pytest.mark.parametrize("how", ["close", "interrupt"])
def test_an_interrupt_and_a_reader_that_leaves_end_the_tools(how: str) -> None:
    begun, ended = threading.Event(), threading.Event()

    def endless() -> None:
        begun.set()
        try:
            while True:
                threading.Event().wait(0.01)
        finally:
            ended.set()

    def interrupt() -> None:
        assert begun.wait(WITHIN)
        if how == "interrupt":
            raise KeyboardInterrupt

    reply = [call("a", "endless"), interrupt, *text("Words.")]
    chat = Chat(Script(reply, text("Yes.")), tools=[endless], eager=True)
    stream = chat.stream("Go")
    for event in stream:
        if isinstance(event, ev.TextDelta) and event.delta == "Words.":
            break
    stream.close()
    assert ended.wait(WITHIN)
    assert chat.calls["a"].state is State.INTERRUPTED
    assert chat.send("And now?").text == "Yes."


def test_the_error_of_a_listener_reaches_the_reader() -> None:
    begun = threading.Event()

    def slow() -> str:
        return "done"

    def listen(event: Event) -> None:
        begun.set()
        raise ValueError("The listener broke.")

    reply: list[Any] = [call("a", "slow"), lambda: begun.wait(WITHIN), *text("Words.")]
    chat = Chat(Script(reply, text("Yes.")), tools=[slow], eager=True)
    with pytest.raises(ValueError, match="The listener broke"):
        list(chat.stream("Go", live=listen))
    assert all(found.is_final for found in chat.calls.values())


def test_arguments_that_do_not_fit_are_refused_while_the_model_writes() -> None:
    steps = Steps()

    def f(n: int) -> int:
        return n

    reply = [call("a", "f", n="x"), wait_for(steps, "a failed"), *text("Words.")]
    chat = Chat(Script(reply, text("Done.")), tools=[f], eager=True)
    assert watched(chat, steps)[-2:] == ["Done.", "finish"]
    assert "n" in (chat.calls["a"].error or "")


def test_the_limit_of_calls_counts_those_that_start_early() -> None:
    def f(n: int) -> int:
        return n

    reply = [*[call(str(n), "f", n=n) for n in range(4)], *text("Words.")]
    chat = Chat(Script(reply, text("Done.")), tools=[f], eager=True, max_calls=2)
    answer = chat.send("Go")
    assert [found.output for found in answer.calls[:2]] == [0, 1]
    assert [found.state for found in answer.calls[2:]] == [State.INTERRUPTED] * 2
    assert chat.account.calls == 2


def test_the_limit_of_seconds_cuts_the_reply_and_not_the_tool_that_runs() -> None:
    now, begun, goes_on = [0.0], threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        assert goes_on.wait(WITHIN)
        return "done"

    def pass_time() -> None:
        assert begun.wait(WITHIN)
        now[0] = 100.0
        goes_on.set()

    reply = [call("a", "slow"), call("b", "slow"), pass_time, *text("Cut."), *text("Never.", "2")]
    chat = Chat(Script(reply), tools=[slow], eager=True, max_seconds=50, clock=lambda: now[0])
    answer = chat.send("Go")
    assert answer.calls[0].output == "done"
    assert answer.calls[1].state is State.INTERRUPTED
    assert "Never." not in answer.text
    assert "The turn ended: the limit of 50 s is reached." in next(
        part.text for part in answer.parts if isinstance(part, ErrorPart)
    )


@pytest.mark.parametrize("limit", [{"max_tokens": 10}, {"max_cost": 0.1}])
def test_with_a_limit_that_a_reply_may_reach_no_call_starts_before_its_end(limit: Any) -> None:
    ran: list[str] = []

    def f() -> None:
        ran.append("f")

    usage = {"usage": {"inputTokens": 50, "outputTokens": 1}, "cost": {"USD": "5"}}
    reply = [call("a", "f"), *text("Words."), ev.Finish(message_metadata=usage)]
    chat = Chat(Script(reply), tools=[f], eager=True, **limit)
    assert chat.send("Go").calls[0].state is State.INTERRUPTED
    assert ran == []


def test_a_typed_answer_is_taken_beside_calls_that_start_early() -> None:
    steps = Steps()

    def f(n: int) -> int:
        steps.add("ran")
        return n

    reply: list[Any] = [call("a", "f", n=1), wait_for(steps, "ran"), call("b", "final_answer", answer=5)]
    chat = Chat(Script(reply), tools=[f], eager=True)
    assert chat.send("Go", output=int).output == 5
    assert chat.calls["a"].output == 1


def test_it_works_in_a_running_loop() -> None:
    seen = threading.Event()

    def f() -> str:
        return "f"

    def later() -> None:
        assert seen.wait(WITHIN)

    async def run() -> list[str]:
        chat = Chat(Script([call("a", "f"), later, *text("Words.")], text("Done.")), tools=[f], eager=True)
        names: list[str] = []
        async for event in chat.astream("Go"):
            names += step_names(event)
            if "a: f" in names:
                seen.set()
        return names

    names = asyncio.run(run())
    assert names.index("a: f") < names.index("Words.")


# The law -----------------------------------------------------------------------------------------------------------

_CALLS = st.tuples(
    st.sampled_from(["alone", "beside", "careful", "fails", "streams", "unknown"]),
    st.sampled_from([{"n": 1}, {"n": 2}, {"n": 3}, {"n": "x"}, {}]),
)
_PARTS = st.lists(st.one_of(st.sampled_from(["Let me see. ", "Words\n\nand more."]), _CALLS), min_size=1, max_size=6)


def run_script(
    replies: list[list[Any]], eager: bool, pieces: int, dialect: str, **options: Any
) -> tuple[Chat, list[Any]]:
    """Runs a turn of the mock with these replies. Returns the chat, and the runs of tools that are not parallel."""
    ran, tools = list[Any](), Registry()

    @tool(into=tools)
    def alone(n: int) -> int:
        ran.append(n)
        return n

    @tool(into=tools, parallel=True)
    def beside(n: int) -> str:
        print("beside", n)
        return f"beside {n}"

    @tool(into=tools, eager=False)
    def careful(n: int) -> int:
        ran.append(n)
        return -n

    @tool(into=tools)
    def fails(n: int) -> None:
        ran.append(n)
        raise ValueError(n)

    @tool(into=tools)
    def streams(n: int) -> Iterator[int]:
        ran.append(n)
        yield from range(n + 1)

    def ask(found: ToolCall) -> Decision:
        return Decision(found.input != {"n": 2}, scope="chat" if found.name == "beside" else "once")

    number = iter(range(1, 100))
    script = [
        [part if isinstance(part, str) else (*part, f"call-{next(number)}") for part in reply] for reply in replies
    ]
    mock = MockModel(script=[*script, "Done."], dialect=dialect, faults=[faults.cut(pieces)])
    chat = Chat(mock, tools=tools, dialect=dialect, eager=eager, ask_approval=ask, **options)
    chat.send("Go")
    return chat, ran


@settings(max_examples=share_of(400), deadline=None)
@given(
    replies=st.lists(_PARTS, min_size=1, max_size=3),
    pieces=st.sampled_from([1, 7, 1000]),
    dialect=st.sampled_from(["native", *DIALECTS]),
    mode=st.sampled_from(["auto", "ask", "never"]),
    once=st.booleans(),
    max_calls=st.sampled_from([None, 0, 3]),
)
def test_the_transcript_is_the_one_without_early_starts(
    replies: list[list[Any]], pieces: int, dialect: str, mode: Any, once: bool, max_calls: int | None
) -> None:
    options: dict[str, Any] = {"once": once, "max_calls": max_calls, "clock": lambda: 0.0}
    chats = []
    for eager in (False, True):
        chat, ran = run_script(replies, eager, pieces, dialect, approval_mode=mode, **options)
        rebuilt = TranscriptBuilder()
        for _, event in chat.recording.events:
            rebuilt.apply(event)
        assert rebuilt.transcript == chat.transcript
        chats.append((chat.transcript, ran, chat.account.calls))
    assert chats[0] == chats[1]
