"""The chats of a notebook by name, what is set for them, and which of them are running."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any
from weakref import WeakSet

from msgspec import Struct
from msgspec.structs import replace

from toolcall_nb import models
from toolcall_nb.approvals import ApprovalMode, Decision, RememberedApprovals
from toolcall_nb.chat import Chat
from toolcall_nb.core.transcript import Message, ToolCall, Transcript
from toolcall_nb.errors import UsageError
from toolcall_nb.notebook import named_models as answering
from toolcall_nb.notebook import toolbox
from toolcall_nb.notebook.config import ModelSettings
from toolcall_nb.notebook.environment import Place, place_of
from toolcall_nb.notebook.faces import approver_of, make_face
from toolcall_nb.redaction.registered_secrets import saved_value
from toolcall_nb.runs.footer import counted, info_line, tokens
from toolcall_nb.runs.run import Run, Stoppable
from toolcall_nb.tools import Tool, registry, remember
from toolcall_nb.tools.naming import tool_names, tools_named, unknown_name

__all__ = ["Settings", "Threads"]

_ALL = "all"
_REPLAY = "replay"
_VARIABLE = "chat"
_OTHER_VARIABLE = "toolchat"
_STOP_WITHIN = 2.0
_POLL = 0.1
"""Seconds between looks at a run that a cell waits for; an interrupt is heard between them, on every system."""

_made: WeakSet[Chat] = WeakSet()
"""The chats that the magic has made. A variable that holds one may be given another; any other value is the user's."""


class Settings(Struct, frozen=True):
    """What a turn is made with. ``tools`` None: all that are registered."""

    model: str = "mock"
    tools: str | None = None
    dialect: str = "native"
    approve: ApprovalMode = "auto"
    max_steps: int = 10
    retries: int = 2
    system: str | None = None
    once: bool = False

    def changed(self, options: Namespace) -> Settings:
        """With what the options of one cell say."""
        wishes = {name: getattr(options, name) for name in self.__struct_fields__}
        return replace(self, **{name: wish for name, wish in wishes.items() if wish is not None})


class Threads:
    """The chats by name. Options of a cell hold for that cell; what is set here for all that follow."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._settings = Settings()
        self._asking = ModelSettings()
        self._chats: dict[str, Chat] = {}
        self._runs: dict[str, Run] = {}
        self._replays: list[Run] = []
        self._always: list[Any] = []  # what is allowed in every thread; see RememberedApprovals
        self._variable = _VARIABLE
        self.current = "main"

    @property
    def namespace(self) -> dict[str, Any]:
        """The notebook's variables."""
        namespace: dict[str, Any] = self._shell.user_ns
        return namespace

    # Runs

    def ask(self, prompt: str, options: Namespace) -> None:
        """One turn, shown in the cell that is running, in the thread that the options name or else the current one.

        Where that thread still answers in the background, the turn begins when it has ended. Raises `UsageError`, and
        changes nothing, where the turn cannot begin.
        """
        place = place_of(self._shell)
        name = options.thread or self.current
        self._wait_until_free(name)
        chat = self._new_chat(name) if options.new else self.chat(name)
        self._set_up(chat, self._settings.changed(options), _speed(options.speed, place))
        run = Run(
            lambda live: chat.stream(prompt, live),
            stop=chat.stop,
            info=lambda run: info_line(chat.model_name, run.face.transcript),
        )
        self._runs[name] = run
        self._put(name, chat)
        self._play(run, place, info=chat.model_name, timings=chat.timings, background=options.background)
        if not run.is_running:
            _remember_failure(chat, run.face.transcript)

    def replay(self, transcript: Transcript, options: Namespace) -> None:
        """Play a transcript as if it were live."""
        place = place_of(self._shell)
        events = Stoppable(models.replay(transcript, _speed(options.speed, place)))
        run = Run(lambda _: iter(events), stop=events.stop, info=lambda run: info_line(_REPLAY, run.face.transcript))
        self._replays = [*(replay for replay in self._replays if replay.is_running), run]
        self._play(run, place, info=_REPLAY, timings={}, background=options.background)

    def _play(self, run: Run, place: Place, *, info: str, timings: Mapping[str, float], background: bool) -> None:
        background = background and place is Place.LIVE  # elsewhere nobody looks on, or it would write over the prompt
        face = make_face(place, info=info, on_stop=run.stop, timings=timings, background=background)
        if background:
            run.play_in_background(face)
        else:
            run.play(face)

    def stop(self, name: str | None = None) -> str:
        """End what runs in the background: a thread's answer, or all answers and replays. Returns what to print."""
        runs = {f"the thread {key!r}": run for key, run in self._runs.items() if name in (None, key)}
        if name is None:
            runs |= {f"replay {number}": run for number, run in enumerate(self._replays, 1)}
        running = {key: run for key, run in runs.items() if run.is_running}
        for run in running.values():
            run.stop()
        late = [key for key, run in running.items() if not run.wait(_STOP_WITHIN)]
        if late:
            return f"{', '.join(late)} will stop as soon as the model or the tool lets it."
        return "" if running else "Nothing is running."

    def _wait_until_free(self, name: str) -> None:
        """Wait until the thread has answered in the background. Raises `UsageError` when the wait is interrupted."""
        run = self._runs.get(name)
        if run is None or not run.is_running:
            return
        from IPython.display import display

        from toolcall_nb.notebook.live_cell import LiveFace

        def note(text: str) -> dict[str, str]:
            return {"text/plain": f"{text} the answer in the thread {name!r}."}

        shown: Any = display(note("Waiting for"), raw=True, display_id=True)  # type: ignore[no-untyped-call]
        try:
            while not run.wait(_POLL):
                if isinstance(run.face, LiveFace) and run.face.needs_a_free_kernel:
                    shown.update(note("Did not wait for"), raw=True)
                    raise UsageError(
                        f"The thread {name!r} asks in its card whether a call may run, and this kernel hears no click "
                        "while it runs a cell. Answer there, and run this cell again."
                    )
        except KeyboardInterrupt:
            shown.update(note("Did not wait for"), raw=True)
            raise UsageError(
                f"The thread {name!r} is still answering, and this cell was interrupted while it waited for that. "
                "Nothing was asked. %toolchat stop ends the answer; --thread NAME asks in another thread."
            ) from None
        shown.update(note("Waited for"), raw=True)

    # Chats

    def chat(self, name: str | None = None) -> Chat:
        """The chat of a thread, the current one if none is named; a new chat where there is none."""
        return self._chats.get(name or self.current) or self._new_chat(name or self.current)

    def switch(self, name: str) -> None:
        """Make a thread the current one, in which the cells that follow go on."""
        self.current = name
        self._put(name, self.chat(name))

    def forget(self, name: str | None = None) -> None:
        """Begin anew in a thread, the current one if none is named; it is the current one from then on."""
        self._wait_until_free(name or self.current)
        self.current = name or self.current
        self._put(self.current, self._new_chat(self.current))

    def load(self, transcript: Transcript, origin: str) -> str:
        """Go on from a transcript in the current thread; says what was loaded, from ``origin``, and what it replaced.

        A conversation that is replaced becomes a thread of its own, so that nothing is lost.
        """
        name = self.current
        self._wait_until_free(name)
        before, chat = self._chats.get(name), self._new_chat(name)
        chat.load(transcript)
        said = f"Loaded {origin} into the thread {name!r}: {_counts(chat.transcript)}."
        if before is not None and before.transcript.messages and before.transcript != chat.transcript:
            before.thread = next(other for other in _copies(name) if other not in self._chats)
            self._chats[before.thread] = before
            said += f" What was there ({_counts(before.transcript)}) is now the thread {before.thread!r}."
        self._put(name, chat)
        return said

    def _new_chat(self, name: str) -> Chat:
        chat = Chat(thread=name, remembered_approvals=RememberedApprovals(self._always))
        _made.add(chat)
        return chat

    def _put(self, name: str, chat: Chat) -> None:
        """Make it the thread's chat, and give it to the notebook: as `chat`, unless the notebook has its own `chat`."""
        self._chats[name] = chat
        variable = next(each for each in _variables() if self._is_free(each))
        if variable != self._variable:
            if self._is_free(self._variable):
                self.namespace.pop(self._variable, None)
            self._variable = variable
            print(f"The conversation is the variable {self._whereabouts()}.")
        self.namespace[variable] = chat

    def _is_free(self, variable: str) -> bool:
        """Whether the variable may be set: nobody has it, or it holds a chat of the magic."""
        value = self.namespace.get(variable)
        return variable not in self.namespace or (isinstance(value, Chat) and value in _made)

    def _whereabouts(self) -> str:
        """The variable that holds the chat, and why it is not `chat`."""
        is_usual = self._variable == _VARIABLE
        return f"`{self._variable}`" + ("" if is_usual else f", since `{_VARIABLE}` is a variable of your own")

    def find(self, name: str) -> Transcript:
        """The transcript of a thread (of the current one without a name), or one with nothing but a call."""
        if not name or name == self.current:
            return self.chat().transcript
        if name in self._chats:
            return self._chats[name].transcript
        call = self._find_call(name)
        if call is None:
            raise UsageError(unknown_name("thread or call", name, [*self.names(), *self.call_ids()]))
        return Transcript((Message("assistant", (call,)),))

    def put_code(self, name: str) -> None:
        """Put a call into a new cell, as Python: the one of this id, in any thread, or the current thread's last."""
        call = self._find_call(name or next(reversed(self.call_ids()), ""))
        if call is None:
            raise UsageError(unknown_name("call", name, self.call_ids()) if name else "There is no call yet.")
        code = saved_value(call)[0].to_code()
        self._shell.set_next_input(code, replace=False)
        if place_of(self._shell) is not Place.LIVE:  # where no new cell appears
            print(code)

    def _find_call(self, name: str) -> ToolCall | None:
        chats = (self.chat(), *self._chats.values())
        return next((chat.calls[name] for chat in chats if name in chat.calls), None)

    def _set_up(self, chat: Chat, settings: Settings, speed: float | None) -> None:
        """Set the chat up for a turn. Raises `UsageError`, and changes nothing, for a model or a tool that is none."""
        model = self._model(settings.model, settings.dialect, speed)
        models.model(model, dialect=settings.dialect, speed=speed)
        tools = None if settings.tools is None else self._tools(settings.tools)
        chat.dialect, chat.speed, chat.approval_mode = settings.dialect, speed, settings.approve
        chat.ask_approval = lambda call: self._answer(chat, call)
        chat.max_steps, chat.retries = settings.max_steps, settings.retries
        chat.system, chat.once = settings.system, settings.once
        chat.model, chat.tools = model, tools

    def _answer(self, chat: Chat, call: ToolCall) -> Decision:
        """Whether a call may run: the person before the run's own output is asked, or whoever runs a cell."""
        run = self._runs.get(chat.thread)
        if run is not None and run.is_running:
            return run.face.ask(call, lambda: chat.is_stopping)
        return approver_of(place_of(self._shell))(call)

    # Settings

    def sample(self) -> Chat:
        """A chat that is set up as the next turn would be."""
        chat = Chat(thread="sample")
        self._set_up(chat, self._settings, 1.0)
        return chat

    def set_model(self, name: str) -> None:
        """Who answers from now on; raises `UsageError` for a name that is none."""
        models.model(self._model(name, self._settings.dialect, None))
        self._settings = replace(self._settings, model=name)

    def model_name(self) -> str:
        """Who answers."""
        return self._settings.model

    def configure(self, changes: str) -> None:
        """How named models are asked from now on; see `ModelSettings.changed`."""
        self._asking = self._asking.changed(changes, self.namespace)

    def describe_config(self) -> str:
        """What is set, without any key."""
        return str(self._asking) or "Nothing is set: models are asked as their providers and the environment say."

    def set_tools(self, names: str) -> None:
        """What may be called from now on: ``a,b``, or ``all`` that are registered."""
        if names != _ALL:
            self._tools(names)
        self._settings = replace(self._settings, tools=None if names == _ALL else names)

    def set_approve(self, mode: ApprovalMode) -> None:
        """Who is asked from now on. With ``ask``, what was allowed so far is forgotten."""
        self._settings = replace(self._settings, approve=mode)
        if mode == "ask":
            self._always.clear()
            for chat in self._chats.values():
                chat.remembered_approvals.clear()

    def approve(self) -> ApprovalMode:
        """Who is asked before a call runs."""
        return self._settings.approve

    def _model(self, name: str, dialect: str, speed: float | None) -> Any:
        """A model that the notebook holds under this name, or else the name; asked as is set by `configure`."""
        found = answering.named(name, self.namespace, dialect)
        if not isinstance(found, str) or self._asking == ModelSettings():
            return found
        return models.model(found, dialect=dialect, speed=speed, config=self._asking.config(self.namespace))

    def _tools(self, names: str) -> list[Tool]:
        return [tool for name in names.replace(",", " ").split() for tool in tools_named(name, self.namespace)]

    # What is there

    def names(self) -> list[str]:
        """The threads."""
        return list(dict.fromkeys([*self._chats, self.current]))

    def call_ids(self) -> list[str]:
        """The calls of the current thread."""
        return list(self._chats[self.current].calls) if self.current in self._chats else []

    def model_variables(self) -> list[str]:
        """The variables that may answer."""
        return answering.names(self.namespace)

    def tool_names(self) -> list[str]:
        """The names that ``--tools`` takes."""
        return tool_names(self.namespace)

    def summary(self) -> str:
        """What is set, in a few lines."""
        chat = self._chats.get(self.current)
        said = chat.transcript if chat is not None else Transcript()
        state = " (running)" if self.current in self._runs and self._runs[self.current].is_running else ""
        lines = {
            "model": self._settings.model,
            "config": " ".join(str(self._asking).splitlines()),
            "tools": self._settings.tools or ", ".join(registry) or "none; make one with @tool",
            "approve": "" if self._settings.approve == "auto" else self._settings.approve,
            "thread": f"{self.current}{state}: {_counts(said)}",
            "chat": "" if self._variable == _VARIABLE else self._whereabouts(),
            "tokens": tokens(chat.usage) if chat is not None else "",
        }
        return "\n".join(f"{name:8}{value}" for name, value in lines.items() if value)

    def describe_tools(self) -> str:
        """What may be called, one tool a line."""
        chosen = self._settings.tools
        return toolbox.describe(list(registry.values()) if chosen is None else self._tools(chosen))

    def describe_threads(self) -> str:
        """The threads, the current one marked."""
        return "\n".join(f"{'*' if name == self.current else ' '} {name}" for name in self.names())


def _variables() -> Iterator[str]:
    """The names that the chat may have in the notebook, the first that is free."""
    yield from (_VARIABLE, _OTHER_VARIABLE)
    yield from (f"{_OTHER_VARIABLE}_{number}" for number in count(2))


def _copies(name: str) -> Iterator[str]:
    """Names for a conversation that leaves its thread."""
    return (f"{name}-{number}" for number in count(2))


def _counts(transcript: Transcript) -> str:
    return f"{counted(len(transcript.messages), 'message')}, {counted(len(transcript.calls), 'tool call')}"


def _remember_failure(chat: Chat, shown: Transcript) -> None:
    """Let ``%debug`` open in the tool that failed last in what was shown."""
    outcomes = (chat.outcomes.get(call) for call in reversed(shown.calls))
    remember(next((outcome.exception for outcome in outcomes if outcome is not None and outcome.traceback), None))


def _speed(wish: float | None, place: Place) -> float | None:
    """As wished; without a wish as usual, and without any waits where nobody looks on."""
    if wish is not None:
        return wish or None
    return None if place is Place.STATIC else 1.0
