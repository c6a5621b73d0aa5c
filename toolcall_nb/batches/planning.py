"""Plans the runs of a batch: `plan_jobs` makes a `RunJob` of each prompt, model and repetition, and checks all of them.

A job's key is a digest of the prompt, the model's name, the tools as the model gets them, the settings that change an
answer, and the number of the repetition. So a later batch finds the runs that were made.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from toolcall_nb.batches.run_jobs import RunJob
from toolcall_nb.chat import Chat
from toolcall_nb.core.events import to_dict
from toolcall_nb.core.json_text import json_text
from toolcall_nb.core.text import well_formed, well_formed_json
from toolcall_nb.core.transcript import Message, Transcript
from toolcall_nb.errors import ToolcallError, UsageError
from toolcall_nb.runs.reading import read
from toolcall_nb.tools import ToolSource

_SAME_ANSWER = {"ask_approval", "clock", "pause", "remembered_approvals", "retries", "speed", "thread"}
"""Settings of a chat that do not change an answer."""
_KEY_LENGTH = 16
_TITLE = 80
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_A_PROMPT = "A prompt is a text, a transcript, or a list of messages that ends with one of the user"


def plan_jobs(
    prompts: Any, models: Any, tools: ToolSource | None, repeat: int, settings: Mapping[str, Any]
) -> list[RunJob]:
    """Returns the jobs: for each prompt all models, for each model all repetitions.

    ``prompts`` are texts, transcripts or lists of messages; one alone counts as a list of one. ``models`` is a model, a
    list of models, or models by name. Raises `UsageError`, before anything runs, for what no chat would take.
    """
    if isinstance(repeat, bool) or not isinstance(repeat, int) or repeat < 1:
        raise UsageError(f"repeat is a whole number of at least 1, but is {repeat!r:.100}.")
    checked_prompts = [*_prompts(prompts)]
    named = _models(models)
    chats = {name: _checked(model, tools, settings) for name, model in named.items()}
    answer_settings = {name: _described(settings[name]) for name in sorted(settings) if name not in _SAME_ANSWER}
    repetitions: Counter[str] = Counter()
    jobs: list[RunJob] = []
    for prompt_number, prompt in enumerate(checked_prompts):
        content = prompt if isinstance(prompt, str) else [to_dict(event) for event in prompt.events()]
        for name, model in named.items():
            job_tools = tuple(chats[name].tools.values())
            described_tools = [[tool.name, tool.description, tool.parameters] for tool in job_tools]
            described = [content, name, answer_settings, described_tools]
            base = repetitions[json_text(described)]
            repetitions[json_text(described)] += repeat  # the same prompt again is further repetitions of it
            for number in range(1, repeat + 1):
                jobs.append(
                    RunJob(
                        key=_digest([*described, base + number]),
                        index=len(jobs),
                        prompt=prompt,
                        prompt_number=prompt_number,
                        title=_title_of(prompt),
                        model=model,
                        model_name=name,
                        number=number,
                        tools=job_tools,
                        settings=settings,
                    )
                )
    return jobs


def _prompts(prompts: Any) -> Iterator[str | Transcript]:
    if isinstance(prompts, str | Transcript):
        prompts = [prompts]
    if isinstance(prompts, Mapping | bytes) or not isinstance(prompts, Iterable):
        raise UsageError(f"run_many takes a list of prompts, but got {prompts!r:.100}. {_A_PROMPT}.")
    number = 0
    for number, prompt in enumerate(prompts, 1):
        yield _prompt(prompt, number)
    if not number:
        raise UsageError(f"run_many needs at least one prompt. {_A_PROMPT}.")


def _prompt(prompt: Any, number: int) -> str | Transcript:
    if isinstance(prompt, str):
        if not prompt.strip():
            raise UsageError(f"Prompt {number} is empty.")
        return well_formed(prompt)
    transcript = _transcript(prompt)
    if transcript is None:
        raise UsageError(f"Prompt {number} is {prompt!r:.100}. {_A_PROMPT}.")
    if not transcript.messages or transcript.messages[-1].role != "user":
        last = f"one of the role {transcript.messages[-1].role!r}" if transcript.messages else "no message at all"
        raise UsageError(f"Prompt {number} ends with {last}. {_A_PROMPT}.")
    return transcript


def _transcript(prompt: Any) -> Transcript | None:
    transcript = prompt if isinstance(prompt, Transcript) else getattr(prompt, "transcript", None)
    if isinstance(transcript, Transcript):
        return transcript
    if not isinstance(prompt, list | tuple):
        return None
    if prompt and all(isinstance(message, Message) for message in prompt):
        return Transcript(tuple(prompt))
    try:
        return read([*prompt])
    except ToolcallError:
        return None


def _title_of(prompt: str | Transcript) -> str:
    text = prompt if isinstance(prompt, str) else prompt.messages[-1].text
    words = " ".join(text[: 4 * _TITLE].split())
    return (words if len(words) <= _TITLE else f"{words[: _TITLE - 1].rstrip()}…") or "(no text)"


def _models(models: Any) -> dict[str, Any]:
    if isinstance(models, Mapping):
        named = {well_formed(str(name)): model for name, model in models.items()}
    else:
        named = {}
        for model in models if isinstance(models, list | tuple) else [models]:
            name = model if isinstance(model, str) else Chat(model).model_name
            if name in named:
                raise UsageError(
                    f"Two models are called {name!r}. Give them as a dict of models by name; to ask one several times, "
                    "use repeat."
                )
            named[name] = model
    if not named:
        raise UsageError("run_many needs at least one model: models=['mock'].")
    return named


def _checked(model: Any, tools: ToolSource | None, settings: Mapping[str, Any]) -> Chat:
    """Returns a chat with these settings. Raises `UsageError` for a setting that a chat of a batch does not have."""
    if settings.get("approval_mode") == "ask" and settings.get("ask_approval") is None:
        raise UsageError("The runs of run_many show no cards, so they need someone to ask. Give ask_approval=….")
    try:
        return Chat(model, tools=tools, **settings)
    except TypeError as error:
        problem = str(error).replace("ChatState.__init__()", "Chat").replace("Chat.__init__()", "Chat")
        raise UsageError(f"The settings of run_many are those of a chat. {problem}.") from None


def _described(value: Any) -> Any:
    """Returns a value as JSON that is the same in another process; an object by its class or name."""
    try:
        return msgspec.to_builtins(value, str_keys=True, order="deterministic")
    except (TypeError, ValueError):
        pass
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str):
        return f"{getattr(value, '__module__', '')}:{name}"
    return _ADDRESS.sub("", repr(value))


def _digest(parts: Any) -> str:
    text = msgspec.json.encode(msgspec.json.decode(json_text(well_formed_json(parts))), order="deterministic")
    return hashlib.sha256(text).hexdigest()[:_KEY_LENGTH]
