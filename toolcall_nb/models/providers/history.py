"""Converts a transcript into pydantic-ai's messages in a form that strict providers accept. See `history_of`."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from hashlib import sha256
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

_OPENING = "(What was said before is left out.)"
_GO_ON = "Go on."


def history_of(
    messages: Sequence[Message], provider: str | None = None, base_url: str | None = None, *, pictures: bool = False
) -> list[ModelMessage]:
    """Returns the messages of a request to ``provider``, by its name in pydantic-ai, at ``base_url``.

    Requests and responses alternate; the first after the system prompt is the user's, and the last is a request. Every
    call has its result, in the words of `toolcall_nb.core.result_text`. Each step of a message of the assistant becomes
    one response. Call ids are unique and valid for the provider (`RequestCallIds`). Left out are: parts without text
    and without a signature of this provider, reasoning at the end of a step, what ran inside a call, other choices,
    errors, sources and data. With ``pictures``, the pictures of results are sent where the call says so.

    The ``provider_metadata`` of a step hold what its provider needs back (`toolcall_nb.models.providers.reading`):
    its name (``provider``), the ``system`` whose keys verify signatures, the ``endpoint`` that keeps its state (a
    digest of its address), and ``details``.

    The next request gets the same objects for what both contain. Do not change them.
    """
    history = _History(provider, base_url, pictures)
    for message in messages:
        if message.role == "assistant":
            for number in range(len(message.steps) if not message.metadata.get("choice") else 0):
                history.answer(message, number)
        else:
            history.ask(message.once(_request))
    history.ask_to_go_on()
    return history.messages


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

    def ask(self, request: ModelRequest) -> None:
        last = self.messages[-1] if self.messages else None
        if isinstance(last, ModelRequest):
            self.messages[-1] = ModelRequest([*last.parts, *request.parts])
        elif request.parts:
            self.messages.append(request)

    def answer(self, message: Message, number: int) -> None:
        """Adds a step of a message, by its number, with the results of its calls."""
        calls = message.once(_our_calls, number, self._provider)
        ids = tuple([self._ids.next_id(call.id, call.provider_id) for call in calls])
        settings = (self._provider, self._base_url, self._pictures)
        response, results = message.once(_response_and_results, number, ids, *settings)
        if not response.parts:
            return
        last = self.messages[-1] if self.messages else None
        if isinstance(last, ModelResponse):
            response = dataclasses.replace(response, parts=[*self.messages.pop().parts, *response.parts])
        elif last is None or all(part.part_kind == "system-prompt" for part in last.parts):
            self.ask(ModelRequest([UserPromptPart(_OPENING)]))
        self.messages.append(response)
        self.ask(results)

    def ask_to_go_on(self) -> None:
        if not self.messages or isinstance(self.messages[-1], ModelResponse):
            self.ask(ModelRequest([UserPromptPart(_GO_ON)]))


def _filled_parts(message: Message, number: int, provider: str | None) -> Sequence[Part]:
    """Returns the parts of a step that a request to the provider has."""
    parts = message.steps[number].parts
    return _without_final_reasoning([part for part in parts if not _is_blank(part, provider)])


def _our_calls(message: Message, number: int, provider: str | None) -> Sequence[ToolCall]:
    """Returns the calls of our own tools in a step."""
    return [*filter(_is_our_call, _filled_parts(message, number, provider))]


def _response_and_results(
    message: Message, number: int, ids: Sequence[str], provider: str | None, base_url: str | None, pictures: bool
) -> tuple[ModelResponse, ModelRequest]:
    """Returns the response of a step, and the request with the results of its calls, which get these ids."""
    next_id = iter(ids)
    filled = _filled_parts(message, number, provider)
    sent = [replace(part, id=next(next_id)) if _is_our_call(part) else part for part in filled]
    results: list[ModelRequestPart] = []
    for call in filter(_is_our_call, sent):
        if not is_text_answer(call):
            results.append(result_part(call, provider, pictures=pictures))
        elif call.error:  # of a typed answer that was written as text, only the problem that it has
            results.append(UserPromptPart(call.error))
    step = message.steps[number]
    state = step.start.provider_metadata or {}
    step_provider, system, details = _text(state.get("provider")), _text(state.get("system")), state.get("details")
    response = ModelResponse(
        joined_reasoning(_in_order(sent)),
        model_name=step.model or _text(message.metadata.get("model")),
        provider_name=step_provider or next(filter(None, map(provider_of_part, filled)), None),
        provider_response_id=step.response_id if step_provider else None,
        provider_url=_url(state.get("endpoint"), base_url),
        canonical_system=system or step_provider,
        provider_details=dict(details) if isinstance(details, dict) and details else None,
    )
    return response, ModelRequest(results)


def _url(endpoint: Any, base_url: str | None) -> str | None:
    """Returns the address of a response: the current one, empty for another one, None if unknown."""
    if not isinstance(endpoint, str):
        return None
    return base_url if endpoint == endpoint_of(base_url) else ""


def _is_blank(part: Part, provider: str | None) -> bool:
    """Whether it is an empty text or reasoning that this provider does not need back."""
    if not isinstance(part, TextPart | ReasoningPart) or part.text.strip():
        return False
    return part.provider_metadata is None or (isinstance(part, TextPart) and provider_of_part(part) != provider)


def _request(message: Message) -> ModelRequest:
    """Returns the texts of a system prompt or of a user's message, with the user's files."""
    content: list[UserContent] = []
    for part in message.parts:
        if isinstance(part, TextPart) and part.text.strip():
            content.append(part.text)
        elif isinstance(part, FilePart) and message.role != "system":
            content.append(file_content(part))
    if message.role == "system":
        return ModelRequest([SystemPromptPart(text) for text in content if isinstance(text, str)])
    if len(content) == 1 and isinstance(content[0], str):
        return ModelRequest([UserPromptPart(content[0])])
    return ModelRequest([UserPromptPart(content)] if content else [])


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


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

    def next_id(self, call_id: str, provider_id: str | None = None) -> str:
        """Returns the id for the next call: ``provider_id`` or else ``call_id``, where it is valid and unused."""
        if provider_id is not None and provider_id not in self._used and self._form.fullmatch(provider_id):
            call_id = provider_id
        sent_id, tries = call_id, 0
        while sent_id in self._used or not self._form.fullmatch(sent_id):
            # not the number of the call, which changes when earlier messages are left out
            digest = sha256(f"{tries} {call_id}".encode("utf-8", "surrogatepass")).hexdigest()
            is_mistral = self._form is _MISTRAL_ID
            sent_id = digest[:9] if is_mistral else f"{_NOT_STRICT.sub('_', call_id)[:27]}_{digest[:12]}"
            tries += 1
        self._used.add(sent_id)
        return sent_id
