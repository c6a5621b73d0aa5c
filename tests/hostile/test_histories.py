"""The laws hold for random interleavings of what models, tools, people, pages and kernels do."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from typing import Any, ClassVar

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.hostile.history_chats import Cell, Lane
from tests.support.history_calls import IDS, NAMES, ODD, TEXTS
from tests.support.history_gates import OVER, only, until
from tests.support.history_pages import Page
from tests.support.profile import share_of
from toolcall_nb.approvals import page as approval_page
from toolcall_nb.core import events as ev
from toolcall_nb.errors import ModelError, UsageError
from toolcall_nb.live_runs import run as running
from toolcall_nb.notebook.widget import close_all
from toolcall_nb.tools import stop_thread
from toolcall_nb.tools.execution import parallel, workers

PICK = st.integers(0, 5)
_ANSWERS = st.sampled_from(["approve", "approve", "edit", "edit", "deny", "deny", "break", "old", "half"])
_SCOPES = st.sampled_from([*["once"] * 6, "chat", "always"])


_GOING_ON = re.compile(
    r"tc-call tc-[a-z-]+|(?<=<span class=\"tc-state\">)(?:Writing arguments…|Queued|Running|Called)(?=</span>)"
)


def without_live_state(html: str) -> str:
    """Returns the HTML without the state of calls that have not ended, which only a live view shows."""
    return _GOING_ON.sub("", html)


class Histories(RuleBasedStateMachine):
    """Two chats of a notebook, each with cells and pages, which run one step at a time."""

    histories = 0
    steps = 0
    ends: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self._patched = pytest.MonkeyPatch()
        polls = [(workers, "POLL_SECONDS"), (parallel, "POLL_SECONDS"), (approval_page, "_POLL_SECONDS")]
        for module, name in [*polls, (running, "_GRACE")]:
            self._patched.setattr(module, name, 0.01 if name == "_GRACE" else 0.002)
        always: list[Any] = []
        self.lanes = [Lane("main", always), Lane("second", always)]
        self.number = 0
        self._before = set(threading.enumerate())
        Histories.histories += 1

    def teardown(self) -> None:
        try:
            for lane in self.lanes:
                if lane.is_running:
                    lane.stop()
                lane.check_requests()
                Histories.ends.update(lane.ends)
            until(lambda: not self._left(), lambda: f"threads did not end: {self._left()}")
        finally:
            close_all()
            self._patched.undo()

    def _left(self) -> list[threading.Thread]:
        ours = ("toolcall_nb-tool", "toolcall_nb-run", "toolcall_nb-parallel", "cell")
        return [each for each in threading.enumerate() if each not in self._before and each.name.startswith(ours)]

    # Chats by state

    def running(self) -> list[Lane]:
        return [lane for lane in self.lanes if lane.is_running]

    def at_model(self) -> list[Lane]:
        return [lane for lane in self.running() if "model" in lane.gates.waiting]

    def at_tools(self) -> list[Lane]:
        return [lane for lane in self.running() if lane.tools]

    def asked(self) -> list[Lane]:
        return [lane for lane in self.running() if self.cell(lane).asks]

    def shown(self) -> list[Lane]:
        return [lane for lane in self.lanes if lane.cell is not None]

    def cell(self, lane: Lane) -> Cell:
        assert lane.cell is not None
        return lane.cell

    def next_number(self) -> int:
        self.number += 1
        return self.number

    @invariant()
    def a_step_was_taken(self) -> None:
        Histories.steps += 1

    # Turns

    @initialize(approve=st.sampled_from(["ask", "ask", "auto"]), background=st.booleans())
    def a_first_prompt(self, approve: Any, background: bool) -> None:
        self.prompt(self.lanes[0], approve, background)

    @rule(pick=PICK, approve=st.sampled_from(["ask", "ask", "ask", "auto", "never"]), background=st.booleans())
    def a_prompt(self, pick: int, approve: Any, background: bool) -> None:
        lane = self.lanes[pick % 2]
        if lane.is_running:
            self.prompt_in_vain(lane)
        else:
            self.prompt(lane, approve, background)

    def prompt(self, lane: Lane, approve: Any, background: bool) -> None:
        if approve == "auto":
            lane.granted |= {"plain", "beside", "counts"}
        else:
            lane.granted = set(self.granted_tools(lane))
        lane.begin(approve, background)

    def granted_tools(self, lane: Lane) -> list[str]:
        tools = lane.chat.tools
        return [name for name in tools if lane.chat.remembered_approvals.reason(tools[name]) is not None]

    def prompt_in_vain(self, lane: Lane) -> None:
        with pytest.raises(UsageError, match="still answering"):
            lane.chat.stream("Another")
        with pytest.raises(UsageError, match="still answering"):
            lane.chat.reset()

    # The model

    def model_says(self, pick: int, *things: Any) -> None:
        lane = self.at_model()[pick % len(self.at_model())]
        for thing in things:
            if "model" not in lane.gates.waiting:
                break
            lane.gates.give("model", thing)
            lane.settle()

    @rule(pick=PICK, text=TEXTS, block=st.sampled_from(["t", "u"]), is_reasoning=st.booleans())
    @only(lambda self: self.at_model())
    def the_model_writes(self, pick: int, text: str, block: str, is_reasoning: bool) -> None:
        kind = ev.ReasoningDelta if is_reasoning else ev.TextDelta
        self.model_says(pick, kind(block, text))

    @rule(pick=PICK, call_id=IDS, name=NAMES)
    @only(lambda self: self.at_model())
    def the_model_begins_a_call(self, pick: int, call_id: str, name: str) -> None:
        self.model_says(pick, ev.ToolInputStart(call_id, name))

    @rule(pick=PICK, call_id=IDS, text=st.sampled_from(['{"n"', ": 1}", "{", "é"]))
    @only(lambda self: self.at_model())
    def the_model_writes_arguments(self, pick: int, call_id: str, text: str) -> None:
        self.model_says(pick, ev.ToolInputDelta(call_id, text))

    @rule(
        pick=PICK,
        call_id=IDS,
        names=st.lists(NAMES, min_size=1, max_size=3),
        is_good=st.sampled_from([1, 1, 1, 0]),
        is_all=st.sampled_from([1, 1, 1, 0]),
    )
    @only(lambda self: self.at_model())
    def the_model_calls(self, pick: int, call_id: str, names: list[str], is_good: int, is_all: int) -> None:
        inputs: list[Any] = [{"n": self.next_number()} if is_good else {"m": 1} for _ in names]
        calls = [ev.ToolInputAvailable(call_id, name, each) for name, each in zip(names, inputs, strict=True)]
        self.model_says(pick, *calls, *([OVER] if is_all else []))

    @rule(pick=PICK, call_id=IDS, name=NAMES, ends=st.booleans())
    @only(lambda self: self.at_model())
    def the_provider_runs_a_call(self, pick: int, call_id: str, name: str, ends: bool) -> None:
        call = ev.ToolInputAvailable(call_id, name, {"n": 0, "of": self.next_number()}, provider_executed=True)
        self.model_says(pick, call, *([ev.ToolOutputAvailable(call_id, "done")] if ends else []))

    @rule(pick=PICK, steps=st.integers(1, 3))
    @only(lambda self: self.running())
    def several_steps_succeed(self, pick: int, steps: int) -> None:
        lane = self.running()[pick % len(self.running())]
        for _ in range(steps):
            if "model" in lane.gates.waiting:
                lane.gates.give("model", OVER)
            elif lane.is_running and self.cell(lane).asks:
                self.answer_twice(lane, 0, "approve", None, "once")
            elif lane.tools:
                lane.gates.give(lane.tools[0], 7)
            lane.settle()

    @rule(pick=PICK, what=st.sampled_from(ODD))
    @only(lambda self: self.at_model())
    def the_model_sends_an_odd_event(self, pick: int, what: Any) -> None:
        self.model_says(pick, what)

    @rule(
        pick=PICK,
        error=st.sampled_from([ConnectionResetError("lost"), ModelError("lost", may_retry=True), KeyboardInterrupt()]),
    )
    @only(lambda self: self.at_model())
    def the_connection_to_the_model_is_lost(self, pick: int, error: BaseException) -> None:
        if pick < 3:
            self.model_says(pick, error)

    # The tools

    @rule(
        pick=PICK,
        which=PICK,
        what=st.sampled_from(
            [0, 7, 7, "printed", "a\rb", -1, ValueError("no"), SystemExit(1), KeyboardInterrupt(), RecursionError()]
        ),
    )
    @only(lambda self: self.at_tools())
    def a_tool_continues(self, pick: int, which: int, what: Any) -> None:
        lane = self.at_tools()[pick % len(self.at_tools())]
        lane.gates.give(lane.tools[which % len(lane.tools)], what)
        lane.settle()

    # The person

    @rule(pick=PICK, which=PICK, how=_ANSWERS, then=st.none() | _ANSWERS, scope=_SCOPES)
    @only(lambda self: self.asked())
    def a_person_answers(self, pick: int, which: int, how: str, then: str | None, scope: str) -> None:
        self.answer_twice(self.asked()[pick % len(self.asked())], which, how, then, scope)

    @rule(pick=PICK, name=st.sampled_from(["plain", "beside", "counts"]), how=_ANSWERS, then=st.none() | _ANSWERS)
    @only(lambda self: self.at_model())
    def a_call_is_asked_about_and_answered(self, pick: int, name: str, how: str, then: str | None) -> None:
        lane = self.at_model()[pick % len(self.at_model())]
        for thing in (ev.ToolInputAvailable("", name, {"n": self.next_number()}), OVER):
            if "model" in lane.gates.waiting:
                lane.gates.give("model", thing)
                lane.settle()
        if lane.is_running and self.cell(lane).asks:
            self.answer_twice(lane, pick, how, then, "once")

    def answer_twice(self, lane: Lane, which: int, how: str, then: str | None, scope: str) -> None:
        """Answers in one page, and then in another page that has not received the effect of the first answer."""
        pages = self.cell(lane).pages
        stale = [(page, dict(page.asks)) for page in pages]
        page, forms = stale[which % len(stale)]
        self.answer(lane, page, forms, how, scope)
        if then is not None:
            page, forms = stale[(which + 1) % len(stale)]
            self.answer(lane, page, forms, then, scope)
        lane.settle()

    def answer(self, lane: Lane, page: Page, forms: dict[str, Any], how: str, scope: str) -> None:
        """Answers all the questions in ``forms``, also those that are no longer open."""
        for form in forms.values():
            answer: dict[str, Any] = {"type": "answer", "approval": form["approval"], "approved": True, "scope": scope}
            answer["text"] = form["text"]
            if how == "edit":
                answer["text"] = json.dumps({"n": self.next_number()})
            elif how == "break":
                answer["text"] = form["text"] + "}"
            elif how == "deny":
                answer |= {"approved": False, "reason": "no"}
            elif how == "old":
                answer["approval"] = "approval-of-long-ago"
            elif how == "half":
                del answer["text"]
            self.expect(lane, page.is_connected, form, answer, how, scope)
            page.say(answer)

    def expect(self, lane: Lane, is_heard: bool, form: Any, answer: Any, how: str, scope: str) -> None:
        """Records the input that may run after this answer: exactly the approved text that the page sent."""
        is_open = any(form["approval"] == each["approval"] for each in self.cell(lane).asks.values())
        if is_heard and is_open and how in ("approve", "edit"):
            lane.allowed[json.dumps(json.loads(answer["text"]))] += 1
            if scope != "once":
                for other in self.lanes if scope == "always" else [lane]:
                    other.granted.add(form["name"])

    @rule(pick=PICK, by=st.sampled_from(["page", "chat", "run", "interrupt", "interrupt"]))
    @only(lambda self: self.running())
    def a_run_is_stopped(self, pick: int, by: str) -> None:
        lane = self.running()[pick % len(self.running())]
        if pick > (0 if "model" in lane.gates.waiting else 2):  # more often during tools and questions
            return
        if by == "interrupt":
            stop_thread(lane.thread)
            until(
                lambda: not lane.is_running or bool(lane.cell and lane.cell.static), lambda: "an interrupt did nothing"
            )
        elif by == "page" and self.cell(lane).pages[0].is_connected:
            self.cell(lane).pages[0].say({"type": "stop"})
        else:
            assert lane.run is not None
            is_asked = bool(self.cell(lane).asks)
            (lane.chat.stop if by == "chat" else lane.run.stop)()
            if by == "chat" and not is_asked:  # the chat notices the stop at the next event
                return
        until(lambda: not lane.is_running, lambda: f"a stop by {by} did nothing: {lane.gates.waiting}")
        lane.settle()

    # Pages

    @rule(pick=PICK, which=PICK, what=st.sampled_from(["flush", "flush", "leave", "back", "reload", "another", "miss"]))
    @only(lambda self: self.shown())
    def a_page_comes_and_goes(self, pick: int, which: int, what: str) -> None:
        lane = self.shown()[pick % len(self.shown())]
        cell = self.cell(lane)
        page = cell.pages[which % len(cell.pages)]
        match what:
            case "flush":
                cell.flush()
            case "leave":
                page.is_connected = False
            case "back" if not page.is_connected:
                page.connect()
            case "reload":
                cell.reload(page)
            case "another" if len(cell.pages) < 3:
                cell.open_page()
            case "miss":
                page.misses = 1
        self.check_page(lane, which)

    @rule(pick=PICK, which=PICK, node=st.integers(0, 30), is_open=st.booleans())
    @only(lambda self: self.shown())
    def a_reader_opens_or_closes(self, pick: int, which: int, node: int, is_open: bool) -> None:
        lane = self.shown()[pick % len(self.shown())]
        page = self.cell(lane).pages[which % len(self.cell(lane).pages)]
        nodes = sorted(page.document.html)
        if nodes:
            page.say({"type": "open", "node": nodes[node % len(nodes)], "open": is_open})
        self.check_page(lane, which)

    def check_page(self, lane: Lane, which: int) -> None:
        """Checks that a connected page shows the current state after a sync, also during a run."""
        cell = self.cell(lane)
        page = cell.pages[which % len(cell.pages)]
        if page.is_connected and not page.misses:
            cell.flush()
            page.sync()
            assert without_live_state(page.html) == without_live_state(cell.html())
            assert page.asks == cell.all_asks()
            assert {form["approval"] for form in page.asks.values()} == cell.open_questions()

    # The kernel

    @rule(pick=PICK)
    @only(lambda self: self.number > 2)
    def the_kernel_is_restarted(self, pick: int) -> None:
        if pick == 0:  # rarely, since it ends the runs that other rules started
            for lane in self.lanes:
                lane.restart()


Histories.TestCase.settings = settings(
    max_examples=share_of(96),
    stateful_step_count=50,
    phases=[Phase.generate],  # shrinking takes minutes, since histories use threads; the report lists every step anyway
)
TestHistories = Histories.TestCase
