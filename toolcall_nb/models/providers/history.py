"""A transcript as pydantic-ai's messages: one that a strict provider takes, whatever happened in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeGuard

from msgspec.structs import replace

from toolcall_nb.core.events import Object
from toolcall_nb.core.transcript import CustomPart, FilePart, Message, Part, ReasoningPart, TextPart, ToolCall
from toolcall_nb.models.providers.call_ids import CallIds
from toolcall_nb.models.providers.parts import (
    call_part,
    compaction_part,
    file_content,
    joined_thoughts,
    made_file,
    native_parts,
    provider_of,
    result_part,
    said_part,
    thought_part,
)

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelRequestPart, ModelResponsePart, UserContent

__all__ = ["RESPONSES", "endpoint_of", "history_of", "responses_of"]

RESPONSES = "responses"
"""The name, in a message's metadata, of the responses that it is made of, as a list of objects.

It is written from the first response on of which something must be known: of others, the parts say where they begin.
Each says with which ``part`` it begins, and what its provider wants back with it: ``provider``, ``id``, the ``system``
whose keys verify what is signed, the ``endpoint`` that keeps its state (a digest of its address), and ``details``.
"""

_OPENING = "(What was said before is left out.)"
_GO_ON = "Go on."


def history_of(
    messages: Sequence[Message], provider: str | None = None, base_url: str | None = None
) -> list[ModelMessage]:
    """The messages of a request to ``provider``, as pydantic-ai names it, at ``base_url``.

    Requests and responses alternate; the first that is not the system's is a person's, and the last is no response.
    Every call has its result, as `toolcall_nb.core.result_text` tells it. An assistant's message becomes one response
    for each
    request that it took (`RESPONSES`; without them, what comes after the calls begins the next). Calls have ids that
    the provider takes, each its own (`CallIds`). Left out: what has no text and no signature of this provider,
    reasoning that led to nothing, other choices of the same reply, errors, sources, data, and the files of results.
    """
    history = _History(provider, base_url)
    for message in messages:
        if message.role == "assistant":
            for step, about in _steps(message) if not message.metadata.get("choice") else ():
                history.answer(step, message, about)
        else:
            history.ask(_asked(message))
    history.ask_to_go_on()
    return history.messages


def responses_of(messages: Sequence[Message]) -> tuple[list[Object], int]:
    """What is known of the responses of the answer on its way, and with which part of it the next one begins."""
    last = messages[-1] if messages else None
    if last is None or last.role != "assistant":
        return [], 0
    return [about for about in _responses(last) if about["part"] < len(last.parts)], len(last.parts)


def endpoint_of(base_url: str | None) -> str | None:
    """A digest of an address: enough to see whether it is another one, and nobody reads the address in a saved file."""
    return sha256(base_url.strip().rstrip("/").encode()).hexdigest()[:12] if base_url else None


class _History:
    """Messages so far. What is asked twice in a row is asked at once, and so are two answers one."""

    def __init__(self, provider: str | None, base_url: str | None) -> None:
        self.messages: list[ModelMessage] = []
        self._ids = CallIds(provider)
        self._provider = provider
        self._base_url = base_url

    def ask(self, parts: Sequence[ModelRequestPart]) -> None:
        from pydantic_ai.messages import ModelRequest

        if not parts:
            return
        last = self.messages[-1] if self.messages else None
        if isinstance(last, ModelRequest):
            self.messages[-1] = ModelRequest([*last.parts, *parts])
        else:
            self.messages.append(ModelRequest(list(parts)))

    def answer(self, step: Sequence[Part], message: Message, about: Object) -> None:
        from pydantic_ai.messages import ModelResponse, UserPromptPart

        step = [part for part in step if not self._is_blank(part)]
        step = [
            replace(one, id=self._ids.sent(one.id)) if _is_ours(one) else one for one in _without_idle_thought(step)
        ]
        parts = joined_thoughts(_in_order(step))
        if not parts:
            return
        last = self.messages[-1] if self.messages else None
        if isinstance(last, ModelResponse):
            parts = [*self.messages.pop().parts, *parts]
        elif last is None or all(part.part_kind == "system-prompt" for part in last.parts):
            self.ask([UserPromptPart(_OPENING)])
        known: dict[str, Any] = {name: _text(about.get(name)) for name in ("provider", "id", "system")}
        provider = known["provider"] or next(filter(None, map(provider_of, step)), None)
        details = about.get("details")
        self.messages.append(
            ModelResponse(
                parts,
                model_name=_text(message.metadata.get("model")),
                provider_name=provider,
                provider_response_id=known["id"],
                provider_url=self._url(about.get("endpoint")),
                canonical_system=known["system"] or known["provider"],
                provider_details=dict(details) if isinstance(details, dict) and details else None,
            )
        )
        self.ask([result_part(one) for one in step if _is_ours(one)])

    def _is_blank(self, part: Part) -> bool:
        """Whether it is a text or a thought without a word, and not one that this provider wants back."""
        if not isinstance(part, TextPart | ReasoningPart) or part.text.strip():
            return False
        return part.provider_metadata is None or (isinstance(part, TextPart) and provider_of(part) != self._provider)

    def _url(self, endpoint: Any) -> str | None:
        """The address of a response: the one that is asked now, another one, or not known."""
        if not isinstance(endpoint, str):
            return None
        return self._base_url if endpoint == endpoint_of(self._base_url) else ""

    def ask_to_go_on(self) -> None:
        from pydantic_ai.messages import ModelResponse, UserPromptPart

        if not self.messages or isinstance(self.messages[-1], ModelResponse):
            self.ask([UserPromptPart(_GO_ON)])


def _asked(message: Message) -> list[ModelRequestPart]:
    """The system's or a person's words; files of a person."""
    from pydantic_ai.messages import SystemPromptPart, UserPromptPart

    texts = [part.text for part in message.parts if isinstance(part, TextPart) and part.text.strip()]
    if message.role == "system":
        return [SystemPromptPart(text) for text in texts]
    content: list[UserContent] = []
    for part in message.parts:
        if isinstance(part, TextPart) and part.text.strip():
            content.append(part.text)
        elif isinstance(part, FilePart):
            content.append(file_content(part))
    if not content:
        return []
    is_text = len(content) == 1 and isinstance(content[0], str)
    return [UserPromptPart(content[0] if is_text else content)]  # type: ignore[arg-type]  # the one is a str


def _steps(message: Message) -> Iterator[tuple[Sequence[Part], Object]]:
    """The parts of the message, response by response, and what is known of each."""
    responses = [about for about in _responses(message) if about["part"] < len(message.parts)]
    first = responses[0]["part"] if responses else len(message.parts)
    yield from ((step, {}) for step in _guessed_steps(message.parts[:first]) if step)
    places = [*(one["part"] for one in responses), len(message.parts)]
    for about, (start, stop) in zip(responses, pairwise(places), strict=True):
        yield message.parts[start:stop], about


def _responses(message: Message) -> list[Object]:
    """What is known of the message's responses, in order; of a file that somebody wrote, what makes sense."""
    told = message.metadata.get(RESPONSES)
    known = [one for one in told if isinstance(one, dict)] if isinstance(told, list) else []
    places = {one["part"]: one for one in known if type(one.get("part")) is int and one["part"] >= 0}
    return [places[place] for place in sorted(places)]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _guessed_steps(parts: Iterable[Part]) -> Iterator[Sequence[Part]]:
    """A step ends with its calls: what the model says after them, it says having read their results."""
    step: list[Part] = []
    for part in parts:
        was_called = any(map(_is_ours, step))
        if was_called and isinstance(part, TextPart | ReasoningPart):
            yield step
            step = []
        step.append(part)
    yield step


def _is_ours(part: Part) -> TypeGuard[ToolCall]:
    """Whether it is a call that was not the provider's own to run."""
    return isinstance(part, ToolCall) and not part.provider_executed


def _without_idle_thought(step: Sequence[Part]) -> Sequence[Part]:
    """The step without reasoning at its end, after which it was cut off.

    Anthropic: "The final block in an assistant message cannot be `thinking`"; OpenAI: "Item … of type 'reasoning' was
    provided without its required following item".
    """
    last = next((n for n in reversed(range(len(step))) if not _is_idle(step[n])), -1)
    return step[: last + 1]


def _is_idle(part: Part) -> bool:
    return isinstance(part, ReasoningPart) or not _answered(part)


def _in_order(step: Sequence[Part]) -> list[ModelResponsePart]:
    """The parts of a response as they came: the result of a call that the provider ran may come after other parts."""
    found: list[ModelResponsePart] = []
    waiting: list[tuple[int, ModelResponsePart]] = []  # results, and after how many parts they come
    count = 0
    for part in filter(_is_of_a_response, step):
        found += _answered(part)
        count += 1
        native = native_parts(part) if isinstance(part, ToolCall) and part.provider_executed else None
        if native is not None:
            waiting.append((count + native[1], native[2]))
        while waiting and min(place for place, _ in waiting) <= count:
            place, result = min(waiting, key=lambda each: each[0])
            waiting.remove((place, result))
            found.append(result)
            count += 1
    return found + [result for _, result in sorted(waiting, key=lambda each: each[0])]


def _is_of_a_response(part: Part) -> bool:
    return isinstance(part, TextPart | ReasoningPart | ToolCall | FilePart | CustomPart)


def _answered(part: Part) -> list[ModelResponsePart]:
    match part:
        case TextPart():
            return [said_part(part)]
        case ReasoningPart():
            return [thought_part(part)]
        case ToolCall(provider_executed=True):
            native = native_parts(part)
            return [] if native is None else [native[0]]
        case ToolCall():
            return [call_part(part)]
        case FilePart() if part.url.startswith("data:") and part.provider_metadata is not None:
            return [made_file(part)]
        case CustomPart():
            compaction = compaction_part(part)
            return [] if compaction is None else [compaction]
    return []
