"""One run of a batch as data, `RunJob`, and its result, `RunResult`. `run_job` runs it in a chat of its own.

A job can be pickled if its model, tools and settings can. Another process or machine runs it from that alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from toolcall_nb.chat import Chat
from toolcall_nb.core.events import Event
from toolcall_nb.core.recording import Recording, read_recording
from toolcall_nb.core.run_outcome import RunState, run_outcome
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.errors import ModelError
from toolcall_nb.models.base import fresh_model
from toolcall_nb.sources.provider_errors.translation import as_model_error
from toolcall_nb.tools import Tool


class RunJob(Struct, frozen=True, kw_only=True, eq=False):
    """One run to be made: a prompt, a model, and which repetition it is (``number``, from 1).

    ``prompt`` is a text, or a transcript that ends with a message of the user. ``key`` identifies the run by its
    prompt, model, tools and settings. ``index`` is its position in the batch; ``attempt`` counts from 1.
    """

    key: str
    index: int
    prompt: str | Transcript
    prompt_number: int
    title: str
    model: Any
    model_name: str
    number: int
    tools: tuple[Tool, ...]
    settings: Mapping[str, Any]
    attempt: int = 1


class RunResult(Struct, frozen=True, kw_only=True, eq=False):
    """The end of a run: ``error`` says why it has no answer, and is empty if it has one.

    ``recording`` is None where no chat could begin. ``lines`` is the recording as text, for results of other
    processes. ``retry_after`` is the number of seconds that the provider asks to wait. ``is_stopped``: it was ended
    before its answer was complete.
    """

    recording: Recording | None = None
    lines: str = ""
    error: str = ""
    retry_after: float | None = None
    is_stopped: bool = False

    def as_text(self) -> RunResult:
        """Returns the result with its recording as text, which any pickler takes."""
        if self.recording is None:
            return self
        return msgspec.structs.replace(self, recording=None, lines="".join(self.recording.lines()))

    def with_recording(self) -> RunResult:
        """Returns the result with its recording read from the text."""
        if not self.lines:
            return self
        recording = read_recording(map(msgspec.json.decode, self.lines.splitlines()))
        return msgspec.structs.replace(self, recording=recording, lines="")


def run_job(job: RunJob) -> RunResult:
    """Runs the job to its end in this thread. Raises nothing but `KeyboardInterrupt`: an error is in the result."""
    try:
        chat = make_chat(job)
        for _ in stream_job(chat, job):
            pass
    except Exception as error:  # one run must not end the others
        return failed_result(error)
    return job_result(chat)


def make_chat(job: RunJob, make: Callable[..., Chat] = Chat) -> Chat:
    """Returns the chat in which the job runs; ``make`` is `Chat` or a function that is called like it.

    The model is one for this run alone if it counts its requests: the script of a `MockModel` begins anew.
    """
    return make(fresh_model(job.model), tools=[*job.tools], **job.settings)


def stream_job(chat: Chat, job: RunJob, live: Callable[[Event], None] | None = None) -> Generator[Event, None, None]:
    """Streams the events of the job, as `Chat.stream` does."""
    if isinstance(job.prompt, str):
        return chat.stream(job.prompt, live)
    chat.load(job.prompt)
    return chat.stream_retry(live)  # asks the last prompt, with its files


def job_result(chat: Chat) -> RunResult:
    """Returns the result of a chat whose turn has ended."""
    outcome = run_outcome(chat.transcript.messages)
    if outcome.state is RunState.ERROR:
        wait = None
        if chat.last_error is not None:
            error: ModelError = as_model_error(chat.last_error, chat.model_name)
            wait = error.retry_after if error.may_retry else None
        text = outcome.error or "The model gave no answer."
        return RunResult(recording=chat.recording, error=text, retry_after=wait)
    if outcome.state in (RunState.STOPPED, RunState.UNANSWERED):
        return RunResult(recording=chat.recording, error="The run was stopped.", is_stopped=True)
    return RunResult(recording=chat.recording)


def failed_result(error: BaseException) -> RunResult:
    """Returns the result of a run that an exception ended outside of its chat."""
    return RunResult(error=f"{type(error).__name__}: {error}")
