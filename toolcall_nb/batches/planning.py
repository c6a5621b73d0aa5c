"""Plans the runs of a batch: `plan_jobs` makes a `RunJob` of each prompt, model and repetition, and checks all of them.

A job's key is a digest of what is asked and how: the prompt, the model's name, the tools as the model gets them, the
settings that change an answer, and the number of the repetition. So a later batch finds the runs that were made.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from toolcall_nb.tools import Tool, ToolSource

_SAME_ANSWER = {"ask_approval", "clock", "pause", "remembered_approvals", "retries", "speed", "thread"}
"""Settings of a chat that do not belong to what is asked."""
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
    asked = [*_prompts(prompts)]
    named = _models(models)
    chats = {name: _checked(model, tools, settings) for name, model in named.items()}
    about = _settings_digest(settings)
    seen: Counter[str] = Counter()
    jobs: list[RunJob] = []
    for prompt_number, prompt in enumerate(asked):
        text, title = _prompt_text(prompt), _title_of(prompt)
        for name, model in named.items():
            job_tools = tuple(chats[name].tools.values())
            described = [text, name, about, _tools_digest(job_tools)]
            base = seen[json_text(described)]
            seen[json_text(described)] += repeat  # the same prompt again is further repetitions of it
            for number in range(1, repeat + 1):
                jobs.append(
                    RunJob(
                        key=_digest([*described, base + number]),
                        place=len(jobs),
                        prompt=prompt,
                        prompt_number=prompt_number,
                        title=title,
                        model=model,
                        model_name=name,
                        number=number,
                        tools=job_tools,
                        settings=settings,
                    )
                )
    return jobs


# Prompts ------------------------------------------------------------------------------------------------------


def _prompts(given: Any) -> Iterator[str | Transcript]:
    listed = [given] if isinstance(given, str | Transcript) else given
    if isinstance(listed, Mapping | bytes) or not isinstance(listed, Iterable):
        raise UsageError(f"run_many takes a list of prompts, but got {given!r:.100}. {_A_PROMPT}.")
    number = 0
    for number, prompt in enumerate(listed, 1):
        yield _prompt(prompt, number)
    if not number:
        raise UsageError(f"run_many needs at least one prompt. {_A_PROMPT}.")


def _prompt(given: Any, number: int) -> str | Transcript:
    if isinstance(given, str):
        if not given.strip():
            raise UsageError(f"Prompt {number} is empty.")
        return well_formed(given)
    transcript = _transcript(given)
    if transcript is None:
        raise UsageError(f"Prompt {number} is {given!r:.100}. {_A_PROMPT}.")
    if not transcript.messages or transcript.messages[-1].role != "user":
        last = f"one of the role {transcript.messages[-1].role!r}" if transcript.messages else "no message at all"
        raise UsageError(f"Prompt {number} ends with {last}. {_A_PROMPT}.")
    return transcript


def _transcript(given: Any) -> Transcript | None:
    held = given if isinstance(given, Transcript) else getattr(given, "transcript", None)
    if isinstance(held, Transcript):
        return held
    if not isinstance(given, list | tuple):
        return None
    if given and all(isinstance(message, Message) for message in given):
        return Transcript(tuple(given))
    try:
        return read([*given])
    except ToolcallError:
        return None


def _prompt_text(prompt: str | Transcript) -> Any:
    return prompt if isinstance(prompt, str) else [to_dict(event) for event in prompt.events()]


def _title_of(prompt: str | Transcript) -> str:
    text = prompt if isinstance(prompt, str) else prompt.messages[-1].text
    words = " ".join(text[: 4 * _TITLE].split())
    return (words if len(words) <= _TITLE else f"{words[: _TITLE - 1].rstrip()}…") or "(no text)"


# Models and settings ------------------------------------------------------------------------------------------


def _models(given: Any) -> dict[str, Any]:
    if isinstance(given, Mapping):
        named = {well_formed(str(name)): model for name, model in given.items()}
    else:
        listed: Sequence[Any] = given if isinstance(given, list | tuple) else [given]
        named = {}
        for model in listed:
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
    """Returns a chat with these settings. Raises `UsageError` for a setting that a chat does not have."""
    try:
        return Chat(model, tools=tools, **settings)
    except TypeError as error:
        problem = str(error).replace("ChatState.__init__()", "Chat").replace("Chat.__init__()", "Chat")
        raise UsageError(f"The settings of run_many are those of a chat. {problem}.") from None


def _tools_digest(tools: Iterable[Tool]) -> Any:
    return [[tool.name, tool.description, tool.parameters] for tool in tools]


def _settings_digest(settings: Mapping[str, Any]) -> Any:
    return {name: _described(settings[name]) for name in sorted(settings) if name not in _SAME_ANSWER}


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
