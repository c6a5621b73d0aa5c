"""A transcript as pydantic-ai's messages: one that a strict provider takes, whatever happened in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeGuard

from msgspec.structs import replace

from toolcall_nb.models.providers.call_ids import CallIds
from toolcall_nb.models.providers.parts import (
    call_part,
    file_content,
    native_parts,
    provider_of,
    result_part,
    said_part,
    thought_part,
)
from toolcall_nb.transcript import FilePart, Message, Part, ReasoningPart, TextPart, ToolCall

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelRequestPart, ModelResponsePart, UserContent

__all__ = ["STEPS", "history_of", "steps_of"]

STEPS = "steps"
"""The name, in a message's metadata, of where its second and further requests begin: numbers of parts."""

_OPENING = "(What was said before is left out.)"
_GO_ON = "Go on."


def history_of(messages: Sequence[Message], provider: str | None = None) -> list[ModelMessage]:
    """The messages of a request to ``provider``, as pydantic-ai names it.

    Requests and responses alternate; the first that is not the system's is a person's, and the last is no response.
    Every call has its result, as `toolcall_nb.told` tells it. An assistant's message becomes one response for each
    request that it took (`STEPS`; without them, what comes after the calls begins the next). Calls have ids that the
    provider takes, each its own (`CallIds`). Left out: what has no text, reasoning that led to nothing, other choices
    of the same reply, errors, sources, data, and the files of results.
    """
    history = _History(CallIds(provider))
    for message in messages:
        if message.role == "assistant":
            for step in _steps(message) if not message.metadata.get("choice") else ():
                history.answer(step, message)
        else:
            history.ask(_asked(message))
    history.ask_to_go_on()
    return history.messages


def steps_of(messages: Sequence[Message]) -> list[int] | None:
    """Where the steps of the answer on its way begin, now that another one does; None where it is the first."""
    last = messages[-1] if messages else None
    if last is None or last.role != "assistant" or not last.parts:
        return None
    return [*_known_steps(last), len(last.parts)]


class _History:
    """Messages so far. What is asked twice in a row is asked at once, and so are two answers one."""

    def __init__(self, ids: CallIds) -> None:
        self.messages: list[ModelMessage] = []
        self._ids = ids

    def ask(self, parts: Sequence[ModelRequestPart]) -> None:
        from pydantic_ai.messages import ModelRequest

        if not parts:
            return
        last = self.messages[-1] if self.messages else None
        if isinstance(last, ModelRequest):
            self.messages[-1] = ModelRequest([*last.parts, *parts])
        else:
            self.messages.append(ModelRequest(list(parts)))

    def answer(self, step: Sequence[Part], message: Message) -> None:
        from pydantic_ai.messages import ModelResponse, UserPromptPart

        step = [
            replace(one, id=self._ids.sent(one.id)) if _is_ours(one) else one for one in _without_idle_thought(step)
        ]
        parts = [part for one in step for part in _answered(one)]
        if not parts:
            return
        last = self.messages[-1] if self.messages else None
        if isinstance(last, ModelResponse):
            parts = [*self.messages.pop().parts, *parts]
        elif last is None or all(part.part_kind == "system-prompt" for part in last.parts):
            self.ask([UserPromptPart(_OPENING)])
        model = message.metadata.get("model")
        self.messages.append(
            ModelResponse(
                parts,
                model_name=model if isinstance(model, str) else None,
                provider_name=next(filter(None, map(provider_of, step)), None),
            )
        )
        self.ask([result_part(one) for one in step if _is_ours(one)])

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


def _steps(message: Message) -> Iterator[Sequence[Part]]:
    """The parts of the message, request by request."""
    known = [place for place in _known_steps(message) if place < len(message.parts)]
    for start, stop in pairwise([0, *known, len(message.parts)]):
        yield from [message.parts[start:stop]] if known else _guessed_steps(message.parts[start:stop])


def _known_steps(message: Message) -> list[int]:
    steps: Any = message.metadata.get(STEPS)
    places = [place for place in steps if type(place) is int and place > 0] if isinstance(steps, list) else []
    return sorted(set(places))


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


def _answered(part: Part) -> list[ModelResponsePart]:
    match part:
        case TextPart():
            return [said_part(part)] if part.text.strip() else []
        case ReasoningPart():
            return [thought_part(part)] if part.text.strip() or part.provider_metadata else []
        case ToolCall(provider_executed=True):
            return native_parts(part)
        case ToolCall():
            return [call_part(part)]
    return []
