"""Chat models of LangChain, asked in its own way; nothing is imported for them."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import Any

from toolcall_nb.adapters.openai.messages import openai_tool, to_openai
from toolcall_nb.adapters.plain import class_names
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message
from toolcall_nb.errors import ModelError
from toolcall_nb.models.errors.translation import as_model_error
from toolcall_nb.models.sdk_streams import Reader, items
from toolcall_nb.redaction.registered_secrets import HeldSecret
from toolcall_nb.tools import Tool

__all__ = ["LangChainModel", "is_runnable"]

_RUNNABLE = ("langchain_core.runnables.base", "Runnable")
_NAMES = ("model_name", "model", "model_id")


def is_runnable(thing: Any) -> bool:
    """Whether LangChain made it: a chat model, one with something bound to it, a chain."""
    return _RUNNABLE in class_names(type(thing))


class LangChainModel:
    """A model that asks ``llm.stream(messages)``, of ``llm.bind_tools(tools)`` where there are tools.

    Messages and tools are dictionaries in OpenAI's form, which LangChain takes for every provider. In a text dialect
    there are no tools for it. What it retries is its own affair: ``max_retries`` of the chat model.
    """

    def __init__(self, llm: Any, *, dialect: str = "native") -> None:
        self._llm = llm
        self._held = [HeldSecret(key) for key in _keys(llm)]
        self._dialect = dialect
        told = (getattr(llm, name, None) for name in _NAMES)
        self.name = next((name for name in told if isinstance(name, str) and name), type(llm).__name__)

    def __repr__(self) -> str:
        return f"<LangChainModel {self.name}>"

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        """One reply. Raises `ModelError` for whatever goes wrong."""
        reader = Reader()
        try:
            with closing(self._ask(messages, tools if self._dialect == "native" else ())) as pieces:
                for piece in pieces:
                    yield from reader.take(piece)
            yield from reader.close()
            return
        except Exception as error:
            failure = as_model_error(error, self.name, secrets=_keys(self._llm))
        raise failure  # not from the other, which may hold what the provider said of the key

    def _ask(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Generator[Any, None, None]:
        model = self._with(tools) if tools else self._llm
        return items(model.stream(to_openai(messages)))

    def _with(self, tools: Sequence[Tool]) -> Any:
        told = [openai_tool(tool.name, tool.description, tool.parameters) for tool in tools]
        try:
            return self._llm.bind_tools(told)
        except (AttributeError, NotImplementedError):  # a model of text has none; a chat model that has no tools raises
            raise ModelError(
                f"LangChain knows no way to tell {self.name} of tools (bind_tools). "
                "Let it write its calls in text: --dialect callout."
            ) from None


def _keys(llm: Any) -> list[str]:
    """The keys that it holds, for masking them."""
    held = [
        value
        for value in getattr(llm, "__dict__", {}).values()
        if callable(getattr(type(value), "get_secret_value", None))
    ]
    return [str(value.get_secret_value()) for value in held]
