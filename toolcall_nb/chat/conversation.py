"""A conversation, and the loop of its turns.

A turn is one prompt and all that it leads to. Each step of it is one request: the model's events pass through
`Reply`, which gives every call an id of its own and finds the calls in text; then the calls run (`CallRunner`);
their results are the next request's. However a turn ends (well, by an error, a limit, a stop, an interrupt, or
because nobody reads on), the transcript is one that the next turn can send.
"""

from __future__ import annotations

import inspect
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from toolcall_nb import dialects, models
from toolcall_nb import tools as tooling
from toolcall_nb.approvals import APPROVAL_MODES, ApprovalMode, Approver, RememberedApprovals
from toolcall_nb.approvals.gate import ApprovalGate
from toolcall_nb.chat.asking import Asking
from toolcall_nb.chat.calls import CallRunner
from toolcall_nb.chat.messages import said, settled, text_block
from toolcall_nb.chat.reports import reports, results
from toolcall_nb.chat.request import request
from toolcall_nb.chat.turn import Turn
from toolcall_nb.chat.watch import ToolWatch
from toolcall_nb.core import events as ev
from toolcall_nb.core.deprecated_names import RenamedAttribute, renamed_parameters
from toolcall_nb.core.events import Event
from toolcall_nb.core.reducer import TranscriptBuilder
from toolcall_nb.core.transcript import Message, ToolCalls, Transcript
from toolcall_nb.core.usage import Account, account
from toolcall_nb.errors import UsageError
from toolcall_nb.models import Model, model_name
from toolcall_nb.models.reply import Reply
from toolcall_nb.tools import Outcome, Registry, ToolSource, as_tools

__all__ = ["Chat"]

_COUNTED = {"inputTokens": "in", "outputTokens": "out"}


class Chat:
    """A conversation with a model that may call tools.

    ``model`` is whatever `toolcall_nb.models.model` takes. ``tools`` is whatever `toolcall_nb.tools.as_tools` takes:
    functions, names, a registry, an MCP server, tools of LangChain or pydantic-ai, or a list of these; None means the
    session's registry, as it is at each turn. ``approval_mode`` says whether calls run unasked (``auto``), after
    ``ask_approval`` has approved them (``ask``), or not at all (``never``); ``remembered_approvals`` holds the
    approvals that last longer than one call. With ``once`` the model is not asked again: the results take the place of
    its reply (seed 004). ``speed`` is for the mock: 1 as usual, None without waits. ``retries`` says how often a
    request that failed is made again, which is only done while nothing of its reply has come. ``clock`` gives seconds,
    ``pause`` lets them pass.
    """

    approve = RenamedAttribute("approval_mode")
    approver = RenamedAttribute("ask_approval")
    grants = RenamedAttribute("remembered_approvals")

    @renamed_parameters(approve="approval_mode", approver="ask_approval", grants="remembered_approvals")
    def __init__(
        self,
        model: Any = "mock",
        *,
        tools: ToolSource | None = None,
        system: str | None = None,
        max_steps: int = 10,
        dialect: str = "native",
        approval_mode: ApprovalMode = "auto",
        ask_approval: Approver | None = None,
        remembered_approvals: RememberedApprovals | None = None,
        once: bool = False,
        thread: str = "main",
        speed: float | None = 1.0,
        retries: int = 2,
        clock: Callable[[], float] = time.perf_counter,
        pause: Callable[[float], object] | None = None,
    ) -> None:
        self.dialect, self.speed, self.max_steps, self.retries = dialect, speed, max_steps, retries
        self.system, self.thread = system, thread
        is_asking = ask_approval is not None and approval_mode == "auto"
        self.approval_mode: ApprovalMode = "ask" if is_asking else approval_mode
        self.ask_approval = ask_approval
        self.remembered_approvals = remembered_approvals or RememberedApprovals()
        self.once = once
        self.model = model
        self.tools = tools
        self.timings: dict[str, float] = {}
        self.outcomes: dict[str, Outcome] = {}
        self.last_error: BaseException | None = None
        self._clock = clock
        self._builder = TranscriptBuilder()
        self._applying = threading.RLock()  # a tool's threads tell of it too
        self._stopping = threading.Event()
        self._pause = pause if pause is not None else self._stopping.wait
        self._turn: Turn | None = None
        self._check()

    def __repr__(self) -> str:
        return f"<Chat {self.thread!r} with {self.model_name}: {len(self.transcript.messages)} messages>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """As a cell's value: what was said, and below it what is set."""
        from toolcall_nb.redaction.saved_output import saved_bundle

        return saved_bundle(self.transcript, include=include, exclude=exclude, line=self._line())

    def _line(self) -> str:
        tools = ", ".join(self.tools) or "none"
        taken = [f"{round(self.usage[name]):,} {word}" for name, word in _COUNTED.items() if self.usage.get(name)]
        return " · ".join(
            [f"Thread {self.thread}", self.model_name, f"tools: {tools}", f"approve: {self.approval_mode}", *taken]
        )

    # What is set

    @property
    def model(self) -> Model:
        """The model; a name that is set here becomes the model of that name."""
        return models.model(self._model, dialect=self.dialect, speed=self.speed)

    @model.setter
    def model(self, name_or_object: Any) -> None:
        models.model(name_or_object, dialect=self.dialect, speed=self.speed)  # raises for what is none
        self._model = name_or_object

    @property
    def model_name(self) -> str:
        """How the model is called: the name that was set, or the object's own."""
        return self._model if isinstance(self._model, str) else model_name(self.model)

    @property
    def tools(self) -> Registry:
        """The tools that the model may call."""
        return tooling.registry if self._tools is None else self._tools

    @tools.setter
    def tools(self, tools: ToolSource | None) -> None:
        self._tools = tools if tools is None or isinstance(tools, Registry) else Registry(as_tools(tools))

    # What was said

    @property
    def transcript(self) -> Transcript:
        """All that was said so far, also in the middle of a turn."""
        return self._builder.transcript

    @property
    def calls(self) -> ToolCalls:
        """The tool calls by id, in order."""
        return self.transcript.calls

    @property
    def account(self) -> Account:
        """What the chat took, request by request: ``.requests``, ``.usage``, ``.cost``, and ``.added`` by call."""
        return account(self.transcript.messages)

    @property
    def usage(self) -> dict[str, int | float]:
        """Tokens of the whole chat, as its model reports them: ``inputTokens``, ``outputTokens`` and more."""
        return self.account.usage

    def send(self, prompt: str) -> Message:
        """One whole turn; the message that answers."""
        for _ in self.stream(prompt):
            pass
        return self.transcript.messages[-1]

    def stream(
        self, prompt: str, live: Callable[[Event], None] | None = None, *, files: Sequence[ev.File] = ()
    ) -> Generator[Event, None, None]:
        """The events of one whole turn, live, from the user's ``start`` to the assistant's ``finish`` or ``abort``.

        While a tool holds the thread nothing can be handed out: what it prints and its preliminary outputs go to
        ``live`` at once, from whichever thread, and are left out of the stream; without ``live`` they come when the
        tool has ended. ``files`` are sent beside the prompt. Raises `UsageError` at once where the chat cannot begin a
        turn. A model's and a tool's errors are events.
        """
        if not isinstance(prompt, str):
            raise UsageError(f"A prompt is text, but got {prompt!r:.100}.")
        self._check()
        self._free()
        self._stopping.clear()
        turn = Turn(ToolWatch(self.dialect, self._clock, self.timings, self.outcomes, self._teller(live)))
        events = self._drive(turn, prompt, files)
        turn.events = weakref.ref(events)
        self._turn = turn
        return events

    def stop(self) -> None:
        """End the turn that is running, at its next event; from any thread. Without one, nothing happens."""
        self._stopping.set()

    @property
    def is_stopping(self) -> bool:
        """Whether the turn that is running was told to end; who waits for a person in it can wait no longer."""
        return self._stopping.is_set()

    def reset(self) -> None:
        """Forget all that was said; what is set stays."""
        self.load(Transcript())

    def load(self, transcript: Transcript) -> None:
        """Go on from this transcript. Calls that it holds open are taken as interrupted."""
        self._free()
        messages = tuple(map(settled, transcript.messages))
        self._builder = TranscriptBuilder(replace(transcript, messages=messages))
        self.timings, self.outcomes, self.last_error = {}, {}, None

    def _check(self) -> None:
        if self.dialect != "native":
            dialects.detector(self.dialect)  # raises for a name that is none
        if self.retries < 0:
            raise UsageError(f"retries is at least 0, but is {self.retries!r}.")
        if self.max_steps < 1:
            raise UsageError(f"max_steps is at least 1, but is {self.max_steps!r}.")
        if self.approval_mode not in APPROVAL_MODES:
            raise UsageError(f"approval_mode is 'auto', 'ask' or 'never', but is {self.approval_mode!r}.")
        if self.approval_mode == "ask" and self.ask_approval is None:
            raise UsageError(
                "approval_mode='ask' needs someone to ask. Give Chat(ask_approval=…), or use 'auto' or 'never'."
            )

    def _free(self) -> None:
        """End a turn that nobody reads on; refuse where somebody does."""
        turn = self._turn
        events = turn.events() if turn is not None else None
        if turn is None or events is None:
            return
        elsewhere = turn.thread is not None and turn.thread is not threading.current_thread()
        state = inspect.getgeneratorstate(events)
        if state == inspect.GEN_RUNNING or (
            state == inspect.GEN_SUSPENDED and elsewhere and turn.thread is not None and turn.thread.is_alive()
        ):
            raise UsageError("The chat is still answering. Wait for it, or end it with chat.stop().")
        events.close()

    # The turn

    def _drive(self, turn: Turn, prompt: str, files: Sequence[ev.File]) -> Generator[Event, None, None]:
        """Hand out each event once it is in the transcript; close the transcript whatever happens."""
        turn.thread = threading.current_thread()
        prologue = list(self._prologue(prompt, files))
        self._apply(*prologue)
        answer = self._answer(turn)
        reason = None
        try:
            yield from prologue
            for event in answer:
                turn.note(event)
                self._apply(event)
                yield event
                if self._stopping.is_set() and not turn.ended:
                    reason = "stopped"
                    break
        except KeyboardInterrupt:
            reason = "stopped" if self._stopping.is_set() else "interrupted"
        except BaseException:  # nobody reads on (GeneratorExit), or a fault of ours: the transcript is closed first
            self._apply(*(turn.closing("stopped") if turn.began else ()))
            raise
        finally:
            answer.close()  # the tools that still run beside each other end with it
        if reason is not None:
            closing = turn.closing(reason)
            self._apply(*closing)
            yield from closing

    def _apply(self, *events: Event) -> None:
        with self._applying:
            for event in events:
                self._builder.apply(event)

    def _teller(self, live: Callable[[Event], None] | None) -> Callable[[Event], None] | None:
        if live is None:
            return None

        def tell(event: Event) -> None:
            self._apply(event)
            live(event)

        return tell

    def _prologue(self, prompt: str, files: Sequence[ev.File]) -> Iterator[Event]:
        """What is said before the answer: the system prompt where it is new, and the prompt."""
        prompts = [message.text for message in self.transcript.messages if message.role == "system"]
        if self.system and (not prompts or prompts[-1] != self.system):
            yield from said("system", self.system)
        yield from said("user", prompt, files)

    def _answer(self, turn: Turn) -> Generator[Event, None, None]:
        yield ev.Start()
        reason: str | None = "other"
        for _ in range(self.max_steps):
            yield ev.StartStep()
            reply = turn.reply = Reply(self.dialect, set(self.calls))
            yield from self._said_once(reply) if self.once else self._reply(reply)
            if reply.abort is not None:
                yield from (*turn.told(), reply.abort)
                return
            turn.meter.add(reply.finish.message_metadata, reply.calls, self.calls)
            answered = yield from self._run_calls(reply, turn.watch)
            yield from self._reports(reply)
            yield ev.FinishStep()
            if self.once or not answered:
                reason = "error" if reply.failed else reply.finish.finish_reason or "stop"
                break
        else:
            yield ev.Error(
                f"The model still calls tools after {self.max_steps} steps, which is the limit. "
                "Raise max_steps (--max-steps) to let it go on."
            )
        yield ev.Finish(finish_reason=reason, message_metadata=turn.meter.metadata or None)

    def _reply(self, reply: Reply) -> Iterator[Event]:
        """One request to the model, tried again where that is safe."""

        def ask() -> Iterator[Event]:
            messages = request(self.transcript, self.dialect, self.tools)
            return self.model.stream(messages, tuple(self.tools.values()))

        asking = Asking(self.model_name, self.retries, self._pause, self._failed)
        for event in asking.events(ask, reply):
            if (
                isinstance(event, ev.ToolInputAvailable)
                and not event.provider_executed
                and event.tool_name in self.tools
            ):
                yield ev.ToolExecution(event.tool_call_id, "queued")  # first, so that no face shows a state between
            yield event

    def _failed(self, error: Exception) -> None:
        self.last_error = error

    def _said_once(self, reply: Reply) -> Iterator[Event]:
        """The reply without its text where it has calls: their results will stand there."""
        said: list[Event] = []
        for event in self._reply(reply):
            if isinstance(event, ev.TextStart | ev.TextDelta | ev.TextEnd):
                said.append(event)
            else:
                yield event
        if not reply.calls:
            yield from said

    # The calls

    def _run_calls(self, reply: Reply, watch: ToolWatch) -> Generator[Event, None, bool]:
        """Run what can be run, and end what cannot; whether the model has results to answer."""
        known = self.calls
        calls = [known[call_id] for call_id in reply.calls if call_id in known]
        unfinished = [call for call in calls if not call.is_final]
        if reply.failed:
            yield from (ev.ToolInterrupted(call.id) for call in unfinished)
            return False
        gate = ApprovalGate(self.approval_mode, self.ask_approval, self.remembered_approvals)
        asks = getattr(self.model, "asks_permission", False)
        yield from CallRunner(self.tools, gate, watch, asks is True).run(unfinished)
        return bool(unfinished) or any(reply.calls[call.id].is_wrong for call in calls)

    def _reports(self, reply: Reply) -> Iterator[Event]:
        """What is added to the message, now that the calls of the reply have ended."""
        known = self.calls
        calls = [known[call_id] for call_id in reply.calls if call_id in known]
        if self.once:
            texts = results(calls, self.outcomes, self.tools)
        else:
            texts = reports(self.dialect, calls, reply.unreadable, self.tools)
        for number, text in enumerate(filter(None, texts), 1):
            yield from text_block(f"report-{number}", text)
