"""Chat models of LangChain as models: `LangChainModel`. Nothing of LangChain is imported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from toolcall_nb.adapters.openai.messages import openai_tool, to_openai
from toolcall_nb.adapters.sdk_objects import class_names
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message
from toolcall_nb.errors import ModelError
from toolcall_nb.models.errors.translation import as_model_error
from toolcall_nb.models.sdk_streams import ItemReader, items
from toolcall_nb.redaction.registered_secrets import HeldSecret
from toolcall_nb.tools import Tool

__all__ = ["LangChainModel", "is_runnable"]

_RUNNABLE = ("langchain_core.runnables.base", "Runnable")
_NAME_FIELDS = ("model_name", "model", "model_id")


def is_runnable(thing: Any) -> bool:
    """Whether it is a runnable of LangChain: a chat model, also with something bound to it, or a chain."""
    return _RUNNABLE in class_names(type(thing))


class LangChainModel:
    """A model that calls ``llm.stream(messages)``, with ``llm.bind_tools(tools)`` if there are tools.

    Messages and tools are dictionaries in OpenAI's form, which LangChain accepts for every provider. In a text dialect
    no tools are bound. Retries inside LangChain are set there: ``max_retries`` of the chat model.
    """

    def __init__(self, llm: Any, *, dialect: str = "native") -> None:
        self._llm = llm
        self._masked_keys = [HeldSecret(key) for key in _keys(llm)]
        self._dialect = dialect
        names = (getattr(llm, field, None) for field in _NAME_FIELDS)
        self.name = next((name for name in names if isinstance(name, str) and name), type(llm).__name__)

    def __repr__(self) -> str:
        return f"<LangChainModel {self.name}>"

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        """Yields the events of one reply. Raises `ModelError` for whatever goes wrong."""
        reader = ItemReader()
        try:
            llm = self._with_tools(tools) if tools and self._dialect == "native" else self._llm
            with closing(items(llm.stream(to_openai(messages)))) as chunks:
                for chunk in chunks:
                    yield from reader.take(chunk)
            yield from reader.close()
            return
        except Exception as error:
            failure = as_model_error(error, self.name, secrets=_keys(self._llm))
        raise failure  # not `from error`: the provider's own text may contain the key

    def _with_tools(self, tools: Sequence[Tool]) -> Any:
        sent = [openai_tool(tool.name, tool.description, tool.parameters) for tool in tools]
        try:
            return self._llm.bind_tools(sent)
        except (
            AttributeError,
            NotImplementedError,
        ):  # of a text model, and of a chat model without tools
            raise ModelError(
                f"LangChain knows no way to tell {self.name} of tools (bind_tools). "
                "Let it write its calls in text: --dialect callout."
            ) from None


def _keys(llm: Any) -> list[str]:
    """The API keys that a chat model holds."""
    values = getattr(llm, "__dict__", {}).values()
    secrets = [value for value in values if callable(getattr(type(value), "get_secret_value", None))]
    return [str(secret.get_secret_value()) for secret in secrets]
