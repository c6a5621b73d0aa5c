"""Checks request bodies as strictly as the providers do; main entry point: `refusals`.

A body is what the provider's own package sends for a chat's messages, through pydantic-ai. It is checked against that
package's request types (`tests.support.strict_types`) and against rules that the types cannot express
(`tests.support.strict_rules`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, TypeAlias

from tests.support.provider_bodies import text_reply
from tests.support.strict_rules import RULES
from tests.support.strict_types import misfits
from toolcall_nb.core.transcript import Message
from toolcall_nb.models.providers import ProviderModel
from toolcall_nb.tools import Tool

__all__ = ["PROVIDERS", "body_of", "complaints", "refusals"]

Body: TypeAlias = dict[str, Any]

# Request bodies -----------------------------------------------------------------------------------------------


def body_of(provider: str, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> Body:
    """Returns the body of the request for these messages."""
    model, sent = _model(provider)
    sent.clear()
    for _ in model.stream(messages, tools):
        pass
    (body,) = sent
    return dict(body)


def refusals(provider: str, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> list[str]:
    """Returns the reasons why the provider would refuse the request; none if it would accept it."""
    return complaints(provider, body_of(provider, messages, tools))


def complaints(provider: str, body: Body) -> list[str]:
    """Returns the errors in a body, first by the package's types, then by the provider's rules."""
    by_type = [f"{provider}: {why}" for why in _TYPES[provider](body)]
    return by_type or [f"{provider}: {why}" for why in RULES[provider](body)]


@cache
def _model(provider: str) -> tuple[ProviderModel, list[Body]]:
    """Returns a provider's model, whose client stores the bodies that it would send and answers them itself."""
    sent: list[Body] = []
    return ProviderModel(_MODELS[provider](sent)), sent


def _client(package: Any, wire: str, sent: list[Body]) -> Any:
    """Returns a client of httpx or httpx2 without a network."""

    def answer(request: Any) -> Any:
        sent.append(json.loads(request.content))
        return package.Response(200, headers={"content-type": "text/event-stream"}, content=text_reply(wire, "Good."))

    return package.AsyncClient(transport=package.MockTransport(answer), timeout=30)


def _openai_chat(sent: list[Body]) -> Any:
    import httpx2
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(api_key="none", http_client=_client(httpx2, "openai_chat", sent))
    return OpenAIChatModel("gpt-4o", provider=provider)


def _openai_responses(sent: list[Body]) -> Any:
    import httpx2
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(api_key="none", http_client=_client(httpx2, "openai_responses", sent))
    return OpenAIResponsesModel("gpt-5", provider=provider)


def _anthropic(sent: list[Body]) -> Any:
    import httpx2
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    provider = AnthropicProvider(api_key="none", http_client=_client(httpx2, "anthropic", sent))
    return AnthropicModel("claude-sonnet-5", provider=provider)


def _google(sent: list[Body]) -> Any:
    import httpx2
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    provider = GoogleProvider(api_key="none", http_client=_client(httpx2, "google", sent))
    return GoogleModel("gemini-2.5-flash", provider=provider)


def _groq(sent: list[Body]) -> Any:
    import httpx
    from pydantic_ai.models.groq import GroqModel
    from pydantic_ai.providers.groq import GroqProvider

    provider = GroqProvider(api_key="none", http_client=_client(httpx, "openai_chat", sent))
    return GroqModel("llama-3.3-70b-versatile", provider=provider)


def _mistral(sent: list[Body]) -> Any:
    import httpx2
    from pydantic_ai.models.mistral import MistralModel
    from pydantic_ai.providers.mistral import MistralProvider

    provider = MistralProvider(api_key="none", http_client=_client(httpx2, "openai_chat", sent))
    return MistralModel("mistral-large-latest", provider=provider)


_MODELS = {
    "openai-chat": _openai_chat,
    "openai": _openai_responses,
    "anthropic": _anthropic,
    "google": _google,
    "groq": _groq,
    "mistral": _mistral,
}
PROVIDERS = tuple(_MODELS)


# Types of the packages -------------------------------------------------------------------------------


def _openai_chat_types(body: Body) -> Iterator[str]:
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

    return misfits(body, CompletionCreateParamsStreaming)


def _openai_types(body: Body) -> Iterator[str]:
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

    return misfits(body, ResponseCreateParamsStreaming)


def _anthropic_types(body: Body) -> Iterator[str]:
    from anthropic.types.beta.message_create_params import MessageCreateParamsStreaming

    return misfits(body, MessageCreateParamsStreaming)


def _groq_types(body: Body) -> Iterator[str]:
    from groq.types.chat.completion_create_params import CompletionCreateParams

    return misfits(body, CompletionCreateParams)


def _google_types(body: Body) -> Iterator[str]:
    """Google's types are pydantic models that forbid unknown fields (google/genai/_common.py, BaseModel)."""
    from google.genai import types
    from pydantic import ValidationError

    kinds: dict[str, Any] = {"contents": types.Content, "tools": types.Tool}
    each = [(kinds[name], one) for name in kinds for one in body.get(name, [])]
    for kind, one in [*each, (types.Content, body.get("systemInstruction", {}))]:
        try:
            kind.model_validate(one)
        except ValidationError as error:
            yield str(error)
    known = {"contents", "tools", "toolConfig", "systemInstruction", "generationConfig", "safetySettings"}
    yield from (f"There is no {name!r}" for name in body.keys() - known)


def _mistral_types(body: Body) -> Iterator[str]:
    """Mistral's types are pydantic models that drop unknown fields."""
    from mistralai.client.models import ChatCompletionStreamRequest
    from pydantic import ValidationError

    try:
        read = ChatCompletionStreamRequest.model_validate(body).model_dump(by_alias=True, mode="json")
    except ValidationError as error:
        yield str(error)
        return
    yield from _lost(body, read, "body")


def _lost(written: Any, read: Any, place: str) -> Iterator[str]:
    if isinstance(written, dict) and isinstance(read, dict):
        for name, value in written.items():
            if name not in read:
                yield f"{place} has {name!r}, which is an unknown field"
            else:
                yield from _lost(value, read[name], f"{place}.{name}")
    elif isinstance(written, list) and isinstance(read, list):
        for number, pair in enumerate(zip(written, read, strict=True)):
            yield from _lost(*pair, f"{place}[{number}]")


_TYPES = {
    "openai-chat": _openai_chat_types,
    "openai": _openai_types,
    "anthropic": _anthropic_types,
    "google": _google_types,
    "groq": _groq_types,
    "mistral": _mistral_types,
}
