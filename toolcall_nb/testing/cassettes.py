"""Cassettes: a model, and the results of tools, recorded once and replayed strictly. `cassette` is the entry point.

with cassette("rows.jsonl", model="openai:gpt-5", record="once") as tape:
    chat = Chat(tape, tools=tape.tools([sql]))
    chat.send("How many rows?")

`CassettesOfTest` opens the cassettes of a test, for the fixture ``toolchat_cassette``.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeAlias

from toolcall_nb import models
from toolcall_nb.core.events import Event, Json, Object
from toolcall_nb.core.json_text import to_extended_json
from toolcall_nb.core.transcript import Message
from toolcall_nb.errors import ModelError, ToolcallError, UsageError
from toolcall_nb.models import Pace, as_live, model_name
from toolcall_nb.models.base import ModelWrapper
from toolcall_nb.redaction.registered_secrets import saved_value
from toolcall_nb.sources.provider_errors.translation import as_model_error
from toolcall_nb.testing.cassette_file import RecordedResult, read_cassette
from toolcall_nb.testing.cassette_writing import CassetteWriter
from toolcall_nb.testing.differences import explain_call, explain_request, last_text
from toolcall_nb.testing.request_bodies import comparable_request, message_bodies, message_groups, tool_bodies
from toolcall_nb.tools import Outcome, ProgressCallback, Registry, Tool, ToolSource, as_tools

RecordMode: TypeAlias = Literal["none", "once", "all"]
ToolMode: TypeAlias = Literal["replay", "run"]


class CassetteError(ModelError, AssertionError):
    """A run was not the recorded one."""


def cassette(
    path: str | Path,
    model: Any = None,
    record: RecordMode = "none",
    tools: ToolMode = "replay",
    *,
    dialect: str = "native",
) -> Cassette:
    """Returns a model that replays the requests in a file, or records them.

    ``record`` is ``none`` (replay; the file must be there), ``once`` (record if there is no file, else replay) or
    ``all`` (record it again). ``model`` is whatever `toolcall_nb.models.model` takes; it is asked while recording, and
    a replay compares its name. ``tools`` says whether the tools of `Cassette.tools` replay their recorded results or
    really ``run``. The file may also be a recording of a chat.

    A replay is strict: another prompt, tool result, tool set, model or order fails with the difference, at the request
    and again at the end of the ``with`` block, and so do requests and results that were not used.
    """
    return open_cassette(path, model, record, tools, dialect, "If it should be, record it again, with record='all'.")


def open_cassette(
    path: str | Path, model: Any, record: RecordMode, tools: ToolMode, dialect: str, advice: str
) -> Cassette:
    """Returns the cassette of `cassette`. ``advice`` is the last line of an error: how to record it again."""
    if record not in ("none", "once", "all") or tools not in ("replay", "run"):
        raise UsageError(f"record is 'none', 'once' or 'all', tools 'replay' or 'run', not {record!r} and {tools!r}.")
    path = Path(path)
    if record == "all" or (record == "once" and not path.exists()):
        if model is None:
            raise UsageError(f"Recording {path} needs a model to ask: cassette(path, model=…).")
        return Cassette(path, _Recorder(model, dialect))
    if not path.exists():
        raise UsageError(f"There is no cassette {path}. Record it with record='once' and a model.")
    name = model if isinstance(model, str | None) else model_name(model)
    return Cassette(path, _Player(path, name, tools, advice))


class Cassette(ModelWrapper):
    """A model that replays a file strictly, or records it. Use it in a ``with`` block, or call `finish`."""

    def __init__(self, path: Path, mode: _Recorder | _Player) -> None:
        super().__init__(mode)
        self.path = path
        self._mode = mode

    def __repr__(self) -> str:
        return f"<Cassette {self.path}: {'recording' if self.is_recording else 'replaying'} {self.name}>"

    @property
    def is_recording(self) -> bool:
        """Whether the model is asked and the tools run, and the file is written at the end."""
        return isinstance(self._mode, _Recorder)

    def fresh(self) -> Cassette:
        """Returns the cassette itself, which is one sequence of requests."""
        return self

    def tools(self, tools: ToolSource) -> Registry:
        """Returns the tools, so that their results are recorded, and replayed without running them."""
        registry = tools if isinstance(tools, Registry) else Registry(as_tools(tools))
        self._mode.expect(registry)
        return Registry(
            _CassetteTool(
                **{name: getattr(tool, name) for name in Tool.__struct_fields__}, original=tool, play=self._mode.run
            )
            for tool in registry.values()
        )

    def finish(self, *, write: bool = True) -> None:
        """Ends the cassette: writes the file, unless ``write`` is false, or raises `CassetteError` for what differed.

        That is the first request or call that was not recorded, or else recorded ones that were not used.
        """
        if isinstance(self._mode, _Player):
            self._mode.check()
        elif write:
            self._mode.writer.write(self.path)

    def explain(self, error: BaseException) -> None:
        """Adds the first failure of a replay to another error that may follow from it, as a note."""
        failures = self._mode.failures if isinstance(self._mode, _Player) else []
        if failures and error not in failures:
            error.add_note(f"{failures[0]}")

    def __enter__(self) -> Cassette:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is None or self.is_recording:
            self.finish(write=error is None or isinstance(error, AssertionError))
        else:
            self.explain(error)


class _Recorder(ModelWrapper):
    """Asks the model, runs the tools, and keeps both."""

    def __init__(self, model: Any, dialect: str) -> None:
        super().__init__(models.model(model, dialect=dialect, speed=None))
        self._name = model if isinstance(model, str) else super().name
        self.writer = CassetteWriter(self._name)
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The name by which the model was given, or its own."""
        return self._name

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        sent, offered = tuple(messages), tuple(tools)
        reply: list[Event] = []
        error = None
        try:
            for event in super().stream(sent, offered):
                reply.append(event)
                yield event
        except Exception as raised:
            error = as_model_error(raised, self.name)
            if not error.brief and not isinstance(raised, ToolcallError):
                error.details = None  # a traceback, which names files of this computer
            raise
        finally:
            with self._lock:
                self.writer.add(sent, offered, reply, error, self._wrapped)

    def expect(self, tools: Registry) -> None:
        """Does nothing: there are no results to wait for."""

    def run(self, tool: Tool, arguments: Json, on_progress: ProgressCallback | None, value_expression: str) -> Outcome:
        outcome = tool.run(arguments, on_progress, value_expression)
        if not outcome.wrong_input:
            with self._lock:
                self.writer.add_result(tool.name, arguments, outcome)
        return outcome


class _Player:
    """Replays requests in order, and the results of tools by their arguments. It has the recorded model's members."""

    suspended_calls: frozenset[str] = frozenset()

    def __init__(self, path: Path, model: str | None, tools: ToolMode, advice: str) -> None:
        self._path, self._model, self._runs_tools, self._advice = path, model, tools == "run", advice
        recorded = read_cassette(path)
        self._requests = recorded.requests
        self.name = model or next((request.model for request in recorded.requests if request.model), "cassette")
        for member, value in (recorded.requests[0].members if recorded.requests else {}).items():
            setattr(self, member, value)
        self.failures: list[CassetteError] = []
        self._next = 0  # the index of the next request
        self._results: dict[str, deque[RecordedResult]] = defaultdict(deque)
        for result in recorded.results:
            self._results[_key(result.name, result.input)].append(result)
        self._expected_tools: set[str] = set()
        self._lock = threading.Lock()

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        with self._lock:
            index = self._next
            self._next += 1
        model = self._model or (self._requests[index].model if index < len(self._requests) else self.name)
        body = _saved(comparable_request(model, tool_bodies(tools), message_bodies(message_groups(messages))))
        if index >= len(self._requests) or self._body(index, tools) != body:
            bodies = [self._body(number, tools) for number in range(len(self._requests))]
            raise self._failure(explain_request(body, bodies, index))
        request = self._requests[index]
        self.suspended_calls = request.suspended
        yield from as_live(request.events, Pace(None))
        if request.error is not None:
            raise request.error

    def _body(self, index: int, tools: Sequence[Tool]) -> Object:
        request = self._requests[index]
        return _saved(comparable_request(request.model, request.tools, request.messages(tools)))

    def expect(self, tools: Registry) -> None:
        """Notes the tools whose recorded results have to be used."""
        if not self._runs_tools:
            self._expected_tools |= set(tools)

    def run(self, tool: Tool, arguments: Json, on_progress: ProgressCallback | None, value_expression: str) -> Outcome:
        with self._lock:
            results = self._results[_key(tool.name, arguments)]
            recorded = results.popleft() if results else None
        if self._runs_tools or not _is_bound(tool, arguments):
            return tool.run(arguments, on_progress, value_expression)
        if recorded is not None:
            return recorded.outcome()
        unused = [each.input for results in [*self._results.values()] for each in results if each.name == tool.name]
        error = self._failure(explain_call(tool.name, arguments, unused))
        return Outcome(error=f"{error}", exception=error)

    def check(self) -> None:
        """Raises `CassetteError` for the first failure, or else for what was not used."""
        if self.failures:
            raise self.failures[0]
        count = len(self._requests) - self._next
        if count > 0:
            first = last_text(self._body(self._next, ()))
            line = f"{count} of {len(self._requests)} recorded requests were not made. The first: {first}"
            raise self._failure([line])
        unused = [each for results in self._results.values() for each in results if each.name in self._expected_tools]
        if unused:
            arguments = json.dumps(unused[0].input, ensure_ascii=False, default=str)[:200]
            call = f"{unused[0].name} with {arguments}"
            raise self._failure([f"{len(unused)} recorded tool results were not used. The first: {call}"])

    def _failure(self, lines: Iterable[str]) -> CassetteError:
        """Returns the error for a run that differs, and keeps it."""
        text = "\n".join([f"The run is not the one in {self._path}.", *lines, self._advice])
        self.failures.append(CassetteError(text))
        return self.failures[-1]


class _CassetteTool(Tool, frozen=True, eq=False, kw_only=True):
    """A tool whose calls go to a cassette."""

    original: Tool
    play: Callable[[Tool, Json, ProgressCallback | None, str], Outcome]

    def run(self, arguments: Json, on_progress: ProgressCallback | None = None, value_expression: str = "") -> Outcome:
        return self.play(self.original, arguments, on_progress, value_expression)


def _is_bound(tool: Tool, arguments: Json) -> bool:
    """Whether the arguments are those that the tool takes; if not, its run only says so."""
    try:
        tool.bind(arguments)
    except Exception:
        return False
    return True


def _saved(value: Object) -> Object:
    """The value as a file has it: without secrets."""
    saved: Object = saved_value(value)[0]
    return saved


def _key(name: str, arguments: Json) -> str:
    saved = saved_value({"input": arguments})[0]
    return json.dumps([name, to_extended_json(saved)], sort_keys=True, default=str)


# The cassettes of a test ------------------------------------------------------------------------------------

_LONGEST_NAME = 100


class CassettesOfTest:
    """Opens the cassettes of one test by being called, and ends them all by `finish`."""

    def __init__(self, test_file: Path, test_id: str, record: RecordMode) -> None:
        self.written: list[Path] = []
        self._folder = test_file.parent / "cassettes" / test_file.stem
        self._test, self._record = test_id.partition("::")[2] or test_id, record
        self._opened: dict[Path, Cassette] = {}

    def __call__(
        self, model: Any = None, *, tools: ToolMode = "replay", name: str = "", dialect: str = "native"
    ) -> Cassette:
        """Opens a cassette, as `toolcall_nb.testing.cassette` does. A second one of the test needs a ``name``."""
        path = self._folder / f"{_file_name(f'{self._test}--{name}' if name else self._test)}.jsonl"
        if path in self._opened:
            raise UsageError(f"The test has opened {path} already. Give the second cassette a name: name=….")
        if self._record == "none" and not path.exists():
            raise UsageError(f"There is no cassette {path}. Record it with: pytest --toolchat-record")
        advice = "If it should be, record it again: pytest --toolchat-record-all, with the name of the test."
        self._opened[path] = open_cassette(path, model, self._record, tools, dialect, advice)
        return self._opened[path]

    def finish(self, error: BaseException | None, *, is_failure: bool) -> None:
        """Ends the cassettes of a test that ended with this error, or with none.

        What was recorded is written if the test passed, or if it failed by an assertion (``is_failure``).
        """
        for path, tape in self._opened.items():
            if tape.is_recording:
                if error is None or is_failure:
                    tape.finish()
                    self.written.append(path)
            elif error is None:
                tape.finish()
            else:
                tape.explain(error)


def _file_name(test: str) -> str:
    """A name for a file; one that had to be changed has a part that tells it apart."""
    name = re.sub(r"[^\w.,=\[\]-]+", "-", test.replace("::", "."))[:_LONGEST_NAME]
    return name if name == test.replace("::", ".") else f"{name}-{hashlib.sha256(test.encode()).hexdigest()[:8]}"
