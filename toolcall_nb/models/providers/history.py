"""Converts a transcript into pydantic-ai's messages in a form that strict providers accept. See `history_of`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import pairwise
from operator import itemgetter
from typing import Any, TypeGuard

from msgspec.structs import replace
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    UserContent,
    UserPromptPart,
)

from toolcall_nb.core.events import Object
from toolcall_nb.core.transcript import CustomPart, FilePart, Message, Part, ReasoningPart, TextPart, ToolCall
from toolcall_nb.models.providers.parts import (
    compaction_part,
    file_content,
    joined_reasoning,
    model_file_part,
    native_parts,
    provider_of_part,
    result_part,
    text_part,
    thinking_part,
    tool_call_part,
)
from toolcall_nb.tools.answer_tool import is_text_answer

RESPONSES = "responses"
"""The key in a message's metadata for the list of responses that the message consists of.

It is written from the first response on that must be recorded; the boundaries of others follow from the parts. Each
entry says with which ``part`` it begins, and holds what its provider needs back: ``provider``, ``id``, the ``system``
whose keys verify signatures, the ``endpoint`` that keeps its state (a digest of its address), and ``details``.
"""

_OPENING = "(What was said before is left out.)"
_GO_ON = "Go on."


def history_of(
    messages: Sequence[Message], provider: str | None = None, base_url: str | None = None, *, pictures: bool = False
) -> list[ModelMessage]:
    """Returns the messages of a request to ``provider``, by its name in pydantic-ai, at ``base_url``.

    Requests and responses alternate; the first after the system prompt is the user's, and the last is a request. Every
    call has its result, in the words of `toolcall_nb.core.result_text`. A message of the assistant becomes one response
    for each request that it took (`RESPONSES`; without them, text after calls begins the next). Call ids are unique and
    valid for the provider (`RequestCallIds`). Left out are: parts without text and without a signature of this
    provider, reasoning at the end, calls inside other calls, other choices, errors, sources and data. With
    ``pictures``, the pictures of results are sent where the call says so.
    """
    history = _History(provider, base_url, pictures)
    for message in messages:
        if message.role == "assistant":
            for step, record in _steps(message) if not message.metadata.get("choice") else ():
                history.answer(step, message, record)
        else:
            history.ask(_request_parts(message))
    history.ask_to_go_on()
    return history.messages


def responses_of(messages: Sequence[Message]) -> tuple[list[Object], int]:
    """Returns the recorded responses of the unfinished reply, and the number of the part with which the next begins."""
    last = messages[-1] if messages else None
    if last is None or last.role != "assistant":
        return [], 0
    return [record for record in _responses(last) if record["part"] < len(last.parts)], len(last.parts)


def endpoint_of(base_url: str | None) -> str | None:
    """Returns a digest of an address: it can be compared, but a saved file does not show the address."""
    return sha256(base_url.strip().rstrip("/").encode()).hexdigest()[:12] if base_url else None


class _History:
    """The messages so far. Adjacent requests are joined, and so are adjacent responses."""

    def __init__(self, provider: str | None, base_url: str | None, pictures: bool) -> None:
        self.messages: list[ModelMessage] = []
        self._ids = RequestCallIds(provider)
        self._provider = provider
        self._base_url = base_url
        self._pictures = pictures

    def ask(self, parts: Sequence[ModelRequestPart]) -> None:
        if not parts:
            return
        last = self.messages[-1] if self.messages else None
        if isinstance(last, ModelRequest):
            self.messages[-1] = ModelRequest([*last.parts, *parts])
        else:
            self.messages.append(ModelRequest(list(parts)))

    def answer(self, step: Sequence[Part], message: Message, record: Object) -> None:
        calls = {call.id for call in message.calls}
        step = [part for part in step if not self._is_blank(part) and getattr(part, "parent", None) not in calls]
        step = [
            replace(part, id=self._ids.next_id(part.id)) if _is_our_call(part) else part
            for part in _without_final_reasoning(step)
        ]
        parts = joined_reasoning(_in_order(step))
        if not parts:
            return
        last = self.messages[-1] if self.messages else None
        if isinstance(last, ModelResponse):
            parts = [*self.messages.pop().parts, *parts]
        elif last is None or all(part.part_kind == "system-prompt" for part in last.parts):
            self.ask([UserPromptPart(_OPENING)])
        fields: dict[str, Any] = {name: _text(record.get(name)) for name in ("provider", "id", "system")}
        provider = fields["provider"] or next(filter(None, map(provider_of_part, step)), None)
        details = record.get("details")
        self.messages.append(
            ModelResponse(
                parts,
                model_name=_text(message.metadata.get("model")),
                provider_name=provider,
                provider_response_id=fields["id"],
                provider_url=self._url(record.get("endpoint")),
                canonical_system=fields["system"] or fields["provider"],
                provider_details=dict(details) if isinstance(details, dict) and details else None,
            )
        )
        results: list[ModelRequestPart] = []
        for call in filter(_is_our_call, step):
            if not is_text_answer(call):
                results.append(result_part(call, pictures=self._pictures))
            elif call.error:  # of a typed answer that was written as text, only the problem that it has
                results.append(UserPromptPart(call.error))
        self.ask(results)

    def _is_blank(self, part: Part) -> bool:
        """Whether it is an empty text or reasoning that this provider does not need back."""
        if not isinstance(part, TextPart | ReasoningPart) or part.text.strip():
            return False
        return part.provider_metadata is None or (
            isinstance(part, TextPart) and provider_of_part(part) != self._provider
        )

    def _url(self, endpoint: Any) -> str | None:
        """The address of a response: the current one, empty for another one, None if unknown."""
        if not isinstance(endpoint, str):
            return None
        return self._base_url if endpoint == endpoint_of(self._base_url) else ""

    def ask_to_go_on(self) -> None:
        if not self.messages or isinstance(self.messages[-1], ModelResponse):
            self.ask([UserPromptPart(_GO_ON)])


def _request_parts(message: Message) -> list[ModelRequestPart]:
    """The texts of a system prompt or of a user's message, with the user's files."""
    content: list[UserContent] = []
    for part in message.parts:
        if isinstance(part, TextPart) and part.text.strip():
            content.append(part.text)
        elif isinstance(part, FilePart) and message.role != "system":
            content.append(file_content(part))
    if message.role == "system":
        return [SystemPromptPart(text) for text in content if isinstance(text, str)]
    if len(content) == 1 and isinstance(content[0], str):
        return [UserPromptPart(content[0])]
    return [UserPromptPart(content)] if content else []


def _steps(message: Message) -> Iterator[tuple[Sequence[Part], Object]]:
    """Yields the parts of each response of the message, and its record."""
    responses = [record for record in _responses(message) if record["part"] < len(message.parts)]
    first = responses[0]["part"] if responses else len(message.parts)
    yield from ((step, {}) for step in _guessed_steps(message.parts[:first]) if step)
    starts = [*(record["part"] for record in responses), len(message.parts)]
    for record, (start, stop) in zip(responses, pairwise(starts), strict=True):
        yield message.parts[start:stop], record


def _responses(message: Message) -> list[Object]:
    """The valid records of the message's responses, in order; a saved file may contain anything."""
    saved = message.metadata.get(RESPONSES)
    entries = [entry for entry in saved if isinstance(entry, dict)] if isinstance(saved, list) else []
    records = {entry["part"]: entry for entry in entries if type(entry.get("part")) is int and entry["part"] >= 0}
    return [records[index] for index in sorted(records)]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _guessed_steps(parts: Iterable[Part]) -> Iterator[Sequence[Part]]:
    """Splits the parts after each run of calls: text after a call was written with its result."""
    step: list[Part] = []
    for part in parts:
        was_called = any(map(_is_our_call, step))
        if was_called and isinstance(part, TextPart | ReasoningPart):
            yield step
            step = []
        step.append(part)
    yield step


def _is_our_call(part: Part) -> TypeGuard[ToolCall]:
    """Whether it is a call of one of our tools, and not one that the provider ran."""
    return isinstance(part, ToolCall) and not part.provider_executed


def _without_final_reasoning(step: Sequence[Part]) -> Sequence[Part]:
    """The step without reasoning at its end, where the reply was cut off.

    Anthropic: "The final block in an assistant message cannot be `thinking`"; OpenAI: "Item … of type 'reasoning' was
    provided without its required following item".
    """
    sent = [not isinstance(part, ReasoningPart) and bool(_response_parts(part)) for part in step]
    return step[: len(sent) - sent[::-1].index(True)] if any(sent) else []


def _in_order(step: Sequence[Part]) -> list[ModelResponsePart]:
    """The parts of a response in their order; the result of a call that the provider ran may follow other parts."""
    parts: list[ModelResponsePart] = []
    waiting: list[tuple[int, ModelResponsePart]] = []  # results, each with the number of parts before it
    count = 0
    for part in step:
        if not isinstance(part, TextPart | ReasoningPart | ToolCall | FilePart | CustomPart):
            continue
        parts += _response_parts(part)
        count += 1
        native = native_parts(part) if isinstance(part, ToolCall) and part.provider_executed else None
        if native is not None:
            waiting.append((count + native[1], native[2]))
        waiting.sort(key=itemgetter(0))
        while waiting and waiting[0][0] <= count:
            parts.append(waiting.pop(0)[1])
            count += 1
    return parts + [result for _, result in waiting]


def _response_parts(part: Part) -> list[ModelResponsePart]:
    match part:
        case TextPart():
            return [text_part(part)]
        case ReasoningPart():
            return [thinking_part(part)]
        case ToolCall(provider_executed=True):
            native = native_parts(part)
            return [] if native is None else [native[0]]
        case ToolCall() if is_text_answer(part):
            text = part.input if isinstance(part.input, str) else json.dumps(part.input, ensure_ascii=False)
            return [text_part(TextPart(text, part.provider_metadata))]
        case ToolCall():
            return [tool_call_part(part)]
        case FilePart() if part.url.startswith("data:") and part.provider_metadata is not None:
            return [model_file_part(part)]
        case CustomPart():
            compaction = compaction_part(part)
            return [] if compaction is None else [compaction]
    return []


# The ids of calls -------------------------------------------------------------------------------------------------

_OPENAI_ID = re.compile(r"[A-Za-z0-9_.:-]{1,40}")
"""OpenAI: "Expected a string with maximum length 40". Kimi's own ids look like ``functions.search:0``."""

_STRICT_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
"""Anthropic: "String should match pattern '^[a-zA-Z0-9_-]+$'"; AWS demands the same of ``toolUseId``."""

_MISTRAL_ID = re.compile(r"[A-Za-z0-9]{9}")
"""Mistral: "must be a-z, A-Z, 0-9, with a length of 9"."""

_ID_FORMS = {"mistral": _MISTRAL_ID, "anthropic": _STRICT_ID, "bedrock": _STRICT_ID, "openrouter": _STRICT_ID}
_NOT_STRICT = re.compile(r"[^A-Za-z0-9_-]")


class RequestCallIds:
    """The call ids of one request: unique, and valid for the provider; the same calls get the same ids each time.

    A chat may hold ids of another provider, made-up ones, or one id twice. A provider refuses the whole request if it
    does not accept one of them.
    """

    def __init__(self, provider: str | None = None) -> None:
        self._form = _ID_FORMS.get(provider or "", _OPENAI_ID)
        self._used: set[str] = set()

    def next_id(self, call_id: str) -> str:
        """Returns the id for the next call, which has ``call_id``: that if it is valid and unused."""
        sent_id, tries = call_id, 0
        while sent_id in self._used or not self._form.fullmatch(sent_id):
            # not the number of the call, which changes when earlier messages are left out
            digest = sha256(f"{tries} {call_id}".encode("utf-8", "surrogatepass")).hexdigest()
            is_mistral = self._form is _MISTRAL_ID
            sent_id = digest[:9] if is_mistral else f"{_NOT_STRICT.sub('_', call_id)[:27]}_{digest[:12]}"
            tries += 1
        self._used.add(sent_id)
        return sent_id
