"""A notebook's chat, its cells and the pages that show them, driven step by step."""

from __future__ import annotations

import itertools
import json
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from tests.support.history_calls import is_end, life_of, state_after
from tests.support.history_gates import GatedModel, Gates, until
from tests.support.history_pages import Page
from tests.support.strict_providers import PROVIDERS, refusals
from toolcall_nb.approvals import ApprovalMode, Decision, RememberedApprovals
from toolcall_nb.chat import Chat
from toolcall_nb.core.events import Event, ToolExecution
from toolcall_nb.core.transcript import Message, State, TextPart, ToolCall, Transcript
from toolcall_nb.live_runs.run import Run
from toolcall_nb.notebook.live_display import LiveDisplay
from toolcall_nb.notebook.widget import TranscriptWidget
from toolcall_nb.render import to_html
from toolcall_nb.tools import Tool

__all__ = ["Cell", "Lane"]


class Cell(LiveDisplay):
    """The notebook's own live display of one cell. Its widget sends to ``pages``; `flush` sends the pending step.

    ``static`` is the MIME bundle that stays in the saved notebook; None while the cell runs.
    """

    how_to_stop = ""
    page_may_miss_steps = False

    def __init__(self, run: Run, chat: Chat) -> None:
        self.events: list[Event] = []
        self.pages: list[Page] = []
        self.static: dict[str, str] | None = None
        super().__init__(self, info="gated", on_stop=run.stop, timings=chat.timings)
        self._pacer.close()
        setattr(self._widget, "send", self._broadcast)  # noqa: B010 - there is no comm without a kernel

    def show_widget(self, widget: TranscriptWidget) -> None:
        """Shows nothing: `open_page` makes the pages."""

    def show_static(self, bundle: dict[str, str]) -> None:
        """Stores the static form."""
        self.static = bundle

    def show(self, event: Event) -> None:
        super().show(event)
        self.events.append(event)

    def _broadcast(self, message: dict[str, Any]) -> None:
        for page in self.pages:
            page.receive(message)

    def _hear(self, _: Page, message: dict[str, Any]) -> None:
        self._widget.receive(message)

    def open_page(self) -> Page:
        """Opens a page, which starts from the widget's synced state."""
        page = Page(self._hear)
        self.pages.append(page)
        self.reload(page)
        return page

    def reload(self, page: Page) -> None:
        """Reloads a page: it loses its state and starts from the widget's synced state."""
        page.__init__(self._hear)  # type: ignore[misc]  # resets the same object, which others refer to
        page.begin(self._widget.get_state(["snapshot"])["snapshot"])

    def flush(self) -> None:
        """Sends the pending step, as the pacer would."""
        self._document.flush()

    @property
    def asks(self) -> dict[str, Any]:
        """The questions to a person that are not answered yet."""
        return dict(self._document._asks) if self.open_questions() else {}

    def open_questions(self) -> set[str]:
        """Returns the approvals that wait for an answer."""
        return {name for name, each in tuple(self._questions._pending.items()) if not each.answered.is_set()}

    def all_asks(self) -> dict[str, Any]:
        """Returns the questions that the pages must show."""
        asks: dict[str, Any] = json.loads(json.dumps(self._document._asks))
        return asks

    def html(self) -> str:
        """Returns the expected HTML: the rendered transcript, with the sections that readers have opened."""
        return to_html(self.transcript, opened=self._document.opened)

    def close_widget(self) -> None:
        self._widget.close()


class Lane:
    """A chat, its tools, and the run of its last cell.

    ``runs`` lists the tools that ran, with their input. ``allowed`` are the inputs that a person approved, as JSON.
    """

    def __init__(self, name: str, always: list[Any]) -> None:
        self.name, self._always = name, always
        self.gates = Gates()
        self.runs: list[tuple[str, str]] = []
        self.allowed: Counter[str] = Counter()
        self.granted: set[str] = set()
        self.wrong: list[str] = []
        self.ends: Counter[str] = Counter()  # number of calls by final state, over all turns
        self.cell: Cell | None = None
        self.run: Run | None = None
        self._thread: threading.Thread | None = None
        self._was_checked = True
        self.turns = 0
        self.model = GatedModel(self.gates)
        self.chat = self._new_chat()

    def _new_chat(self) -> Chat:
        return Chat(
            self.model,
            tools=[
                Tool.from_function(self.plain),
                Tool.from_function(self.counts),
                Tool.from_function(self.beside, parallel=True),
            ],
            thread=self.name,
            remembered_approvals=RememberedApprovals(self._always),
            ask_approval=self._ask,
            clock=lambda: 0.0,
            pause=lambda _: None,
            max_steps=5,
        )

    def _ask(self, call: ToolCall) -> Decision:
        assert self.cell is not None
        return self.cell.ask(call, lambda: self.chat.is_stopping)

    # Tools

    def plain(self, n: int) -> int:
        """A tool."""
        return self._work("plain", {"n": n})

    def beside(self, n: int) -> int:
        """A tool that runs in parallel with others."""
        return self._work("beside", {"n": n})

    def counts(self, n: int) -> Iterator[int]:
        """A tool that reports progress."""
        for step in itertools.count():
            value = self._work("counts", {"n": n}, is_first=step == 0)
            yield step if value < 0 else value
            if value >= 0:
                return

    def _work(self, name: str, arguments: dict[str, Any], is_first: bool = True) -> int:
        if is_first:
            written = json.dumps(arguments)
            self.runs.append((name, written))
            if not self.allowed[written] and name not in self.granted:
                self.wrong.append(f"{name} ran with {written}, which was not approved")
        while True:
            what: Any = self.gates.wait(f"tool {name} {arguments['n']}")
            if isinstance(what, BaseException):
                raise what
            if isinstance(what, int):
                return what
            print(what)

    # Turns

    def begin(self, approve: ApprovalMode, background: bool) -> None:
        """Runs a cell with a prompt."""
        self.chat.approval_mode = approve
        self.turns += 1
        run = Run(lambda live: self.chat.stream("Go on", live), stop=self.chat.stop, info=lambda _: "gated")
        cell = Cell(run, self.chat)
        cell.open_page()
        self.run, self.cell, self._was_checked = run, cell, False
        self.chat.timings.clear()
        self.chat.outcomes.clear()
        if background:
            run.play_in_background(cell)
            self._thread = run._thread
        else:
            self._thread = threading.Thread(target=run.play, args=(cell,), name="cell", daemon=True)
            self._thread.start()
        self.settle()

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    @property
    def thread(self) -> threading.Thread:
        assert self._thread is not None
        return self._thread

    @property
    def tools(self) -> list[str]:
        """The tools that wait at a gate."""
        return [name for name in self.gates.waiting if name.startswith("tool")]

    def settle(self) -> None:
        """Waits until the turn cannot continue by itself; checks the laws if it is over."""
        until(
            self._is_settled, lambda: f"{self.name} hangs: {self.gates.waiting}, {self.chat.transcript.to_markdown()}"
        )
        if not self.is_running and not self._was_checked:
            self._was_checked = True
            self.check_turn()

    def _is_settled(self) -> bool:
        if not self.is_running:
            return True
        assert self.cell is not None
        if "model" in self.gates.waiting or self.cell.asks:
            return True
        calls, outcomes = self.cell.transcript.calls, tuple(self.chat.outcomes)
        starts = [event for event in self.cell.events if isinstance(event, ToolExecution) and event.status == "running"]
        begun = len(starts) - len(outcomes)
        return (
            begun > 0 and begun == len(self.tools) and all(calls[each].is_final for each in outcomes if each in calls)
        )

    # Laws

    def check_turn(self) -> None:
        """Checks the laws that hold after each turn, however it ended."""
        cell = self.cell
        assert cell is not None
        until(lambda: not self.gates.waiting, lambda: f"still waiting: {self.gates.waiting}")
        self._check_calls(cell)
        self._check_transcript(cell)
        self._check_pages(cell)
        self._check_request((*self.chat.transcript.messages, _NEXT), PROVIDERS[self.turns % 2 :: 2])

    def _check_calls(self, cell: Cell) -> None:
        """Checks that each call has one start, end and final state, and ran at most once, with approved input."""
        for call in self.chat.calls.values():
            assert call.is_final, call
        shown = cell.transcript.calls
        self.ends.update(call.state.value for call in shown.values())
        for call in shown.values():
            life = life_of(call.id, cell.events)
            ends = [event for event in life if is_end(event)]
            aborted = call.state is State.INTERRUPTED and not ends  # by the end of its message
            assert aborted or state_after(ends[0]) is call.state, life  # later events have no effect
        ran = Counter(self.runs)
        assert all(times == 1 for times in ran.values()), ran
        assert not self.wrong

    def _check_transcript(self, cell: Cell) -> None:
        """Checks that the cell shows the chat's messages, and that the Markdown of both reads back."""
        shown, whole = cell.transcript, self.chat.transcript
        assert shown.messages == whole.messages[len(whole.messages) - len(shown.messages) :]
        assert Transcript.from_markdown(whole.to_markdown()) == whole
        assert cell.static is not None
        assert Transcript.from_markdown(cell.static["text/markdown"]).messages == shown.messages
        ids = [call.id for message in whole.messages for call in message.calls]
        assert len(ids) == len(set(ids))

    def _check_pages(self, cell: Cell) -> None:
        """Checks that each connected page shows the whole transcript, asks nothing, and receives the static form."""
        html = cell.html()
        for page in cell.pages:
            if page.is_connected:
                page.misses = 0
                page.sync()
                assert page.html == html
                assert (page.done, page.asks) == (True, {})
                page.say({"type": "final"})
                assert page.final == cell.static

    def check_requests(self) -> None:
        """Checks that a strict provider accepts each request that was sent."""
        for number, messages in enumerate(self.model.asked):
            self._check_request(messages, [PROVIDERS[number % len(PROVIDERS)]])
        self._check_request((*self.chat.transcript.messages, _NEXT), PROVIDERS)

    def _check_request(self, messages: Sequence[Message], providers: Sequence[str]) -> None:
        for provider in providers:
            found = refusals(provider, messages, tuple(self.chat.tools.values()))
            assert not found, (found, Transcript(tuple(messages)).to_markdown())

    # Ends

    def stop(self) -> None:
        assert self.run is not None
        self.run.stop()
        self.settle()

    def restart(self) -> None:
        """Restarts the kernel at any point: only the saved transcript is left."""
        saved = self.chat.transcript.to_markdown()
        if self.is_running:
            assert self.run is not None
            self.run.stop()
            until(lambda: not self.is_running, lambda: f"the run of {self.name} does not end")
        if self.cell is not None:
            self.cell.close_widget()
        self._thread = self.cell = self.run = None
        self._was_checked = True
        self.granted.clear()
        self.chat = self._new_chat()
        self.chat.load(Transcript.from_markdown(saved))
        assert all(call.is_final for call in self.chat.calls.values())


_NEXT = Message("user", (TextPart("And now?"),))
