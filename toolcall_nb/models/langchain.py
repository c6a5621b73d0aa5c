"""Chat models of LangChain as models: `LangChainModel`. Nothing of LangChain is imported."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import is_dataclass
from typing import Any

from toolcall_nb.adapters import format_of_item, format_of_whole
from toolcall_nb.adapters.openai.messages import openai_tool, to_openai
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event, Object
from toolcall_nb.core.sdk_objects import as_mapping, class_names
from toolcall_nb.core.transcript import Message
from toolcall_nb.errors import ModelError
from toolcall_nb.redaction.registered_secrets import HeldSecret
from toolcall_nb.sources.provider_errors.translation import as_model_error
from toolcall_nb.sources.sdk_streams import ItemReader, items
from toolcall_nb.tools import Tool
from toolcall_nb.tools.answer_tool import ANSWER_TOOL
from toolcall_nb.tools.results.json_values import to_json_value

_RUNNABLE = ("langchain_core.runnables.base", "Runnable")
_BINDING = ("langchain_core.runnables.base", "RunnableBinding")
_MESSAGE = ("langchain_core.messages.base", "BaseMessage")
_BASE_CLASS = "langchain_core.language_models.chat_models"
_BLOCK = "structured-response"
_NAME_FIELDS = ("model_name", "model", "model_id")


def is_runnable(thing: Any) -> bool:
    """Whether it is a runnable of LangChain: a chat model, also with something bound to it, or a chain."""
    return _RUNNABLE in class_names(type(thing))


class LangChainModel:
    """A model that calls ``llm.stream(messages)``, with ``llm.bind_tools(tools)`` if there are tools.

    Messages and tools are dictionaries in OpenAI's form, which LangChain accepts for every provider. In a text dialect
    no tools are bound. Retries inside LangChain are set there: ``max_retries`` of the chat model.

    A typed answer is asked for by the chat model's own structured output, as ``create_agent`` does, if its ``profile``
    says that it has one; else by a tool, or in the prompt if no tools can be bound. The values of a runnable that
    ``with_structured_output`` made become JSON text.
    """

    repeats_requests = True

    def __init__(self, llm: Any, *, dialect: str = "native") -> None:
        self._llm = llm
        self._masked_keys = [HeldSecret(key) for key in _keys(llm)]
        self._dialect = dialect
        names = (getattr(llm, field, None) for field in _NAME_FIELDS)
        self.name = next((name for name in names if isinstance(name, str) and name), type(llm).__name__)

    def __repr__(self) -> str:
        return f"<LangChainModel {self.name}>"

    @property
    def takes_tools(self) -> bool:
        """Whether it has a way to tell its provider of tools."""
        method = getattr(type(_chat_model(self._llm)), "bind_tools", None)
        return method is not None and method.__module__ != _BASE_CLASS  # which only raises

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        """Yields the events of one reply. Raises `ModelError` for whatever goes wrong."""
        reader, value = ItemReader(), None
        if not self.takes_tools:
            tools = [tool for tool in tools if tool.name != ANSWER_TOOL]  # the prompt asks for the answer
        try:
            llm = self._with_tools(tools) if tools and self._dialect == "native" else self._llm
            with closing(items(llm.stream(to_openai(messages)))) as chunks:
                for chunk in chunks:
                    if _is_structured(chunk):
                        value = chunk  # each holds more of the answer than the one before
                    else:
                        yield from reader.take(chunk)
            yield from reader.close()
            if value is not None:
                yield from json_text_events(value)
            return
        except Exception as error:
            failure = as_model_error(error, self.name, secrets=_keys(self._llm))
        raise failure  # not `from error`: the provider's own text may contain the key

    def _with_tools(self, tools: Sequence[Tool]) -> Any:
        answer = next((tool for tool in tools if tool.name == ANSWER_TOOL), None)
        others = [tool for tool in tools if tool is not answer]
        settings: Object = {}
        if answer is not None and self._has_structured_output(bool(others)):
            schema = {"name": answer.name, "description": answer.description, "schema": answer.parameters}
            settings, tools = {"response_format": {"type": "json_schema", "json_schema": schema}}, others
        sent = [openai_tool(tool.name, tool.description, tool.parameters) for tool in tools]
        try:
            return self._llm.bind_tools(sent, **settings)
        except (
            AttributeError,
            NotImplementedError,
        ):  # of a text model, and of a chat model without tools
            raise ModelError(
                f"LangChain knows no way to tell {self.name} of tools (bind_tools). "
                "Let it write its calls in text: --dialect callout."
            ) from None

    def _has_structured_output(self, has_tools: bool) -> bool:
        """Whether the model answers by a JSON Schema, also beside tools: older models of Google do not."""
        profile = as_mapping(getattr(_chat_model(self._llm), "profile", None))
        is_older_gemini = "gemini" in self.name.lower() and "gemini-3" not in self.name.lower()
        return bool(profile.get("structured_output")) and not (has_tools and is_older_gemini)


def json_text_events(value: Any) -> Iterator[Event]:
    """Yields a structured answer of LangChain, such as a pydantic object, as a block of JSON text."""
    yield ev.TextStart(_BLOCK)
    yield ev.TextDelta(_BLOCK, json.dumps(to_json_value(value), ensure_ascii=False))
    yield ev.TextEnd(_BLOCK)


def _is_structured(item: Any) -> bool:
    """Whether an item of a runnable's stream is a value that its parser made, and no message or chunk of one."""
    is_value = isinstance(item, Mapping) or hasattr(type(item), "model_dump") or is_dataclass(item)
    if not is_value or _MESSAGE in class_names(type(item)):
        return False
    return format_of_item(item) is None and format_of_whole(item) is None


def _chat_model(llm: Any) -> Any:
    """Returns the chat model inside of what was bound to it."""
    while _BINDING in class_names(type(llm)):
        llm = llm.bound
    return llm


def _keys(llm: Any) -> list[str]:
    values = getattr(llm, "__dict__", {}).values()
    secrets = [value for value in values if callable(getattr(type(value), "get_secret_value", None))]
    return [str(secret.get_secret_value()) for secret in secrets]
