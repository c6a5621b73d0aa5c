"""A provider's model: pydantic-ai's direct requests behind the interface that all models have."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message
from toolcall_nb.errors import ModelError
from toolcall_nb.models.bridge import iterate
from toolcall_nb.models.config import Config
from toolcall_nb.models.errors.translation import as_model_error
from toolcall_nb.models.providers.building import build, keys_of, parameters_of, settings_of
from toolcall_nb.models.providers.history import RESPONSES, history_of, responses_of
from toolcall_nb.models.providers.reading import Reader
from toolcall_nb.redaction.registered_secrets import HeldSecret
from toolcall_nb.tools import Tool

if TYPE_CHECKING:
    from pydantic_ai.models import Model as PydanticModel

__all__ = ["ProviderModel"]

_MOST_TIMES = 20
"""Requests that one reply may take: a provider that runs tools itself may suspend it in between."""

_NO_END = "The answer ended before it was complete: the provider closed the stream. Ask again."


class ProviderModel:
    """The model ``provider:model``, or a model object of pydantic-ai.

    One request at a time is asked for, on the loop of `toolcall_nb.models.bridge`; whoever stops reading, or is
    interrupted, ends it and its connection at once. Nothing is tried again here. In a text dialect no tool is told of.
    """

    def __init__(self, model: str | PydanticModel, config: Config | None = None, *, dialect: str = "native") -> None:
        self._model = model
        self._config = config if config is not None else Config()
        self._dialect = dialect
        self.name = model if isinstance(model, str) else model.model_id

    def __repr__(self) -> str:
        return f"<ProviderModel {self.name}>"

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        """One reply. Raises `ModelError`, with a sentence for a person, for whatever goes wrong.

        What came before a stream that breaks is kept, and its calls are left as they were: not complete.
        """
        keys = [self._config.api_key.reveal()] if self._config.api_key is not None else []
        try:
            model = build(self._model, self._config) if isinstance(self._model, str) else self._model
            keys += keys_of(model)
            self._held = [HeldSecret(key) for key in keys]
            yield from self._reply(model, messages, tools if self._dialect == "native" else ())
            return
        except Exception as error:
            failure = as_model_error(error, self.name, base_url=self._config.base_url, secrets=keys)
        raise failure  # not from the other, which may hold what the provider said of the key

    def _reply(self, model: PydanticModel, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        history = history_of(messages, model.system, model.base_url)
        settings = settings_of(model, self._config.settings)
        parameters = parameters_of(tools, self._config.settings)
        responses, place = responses_of(messages) if self._dialect == "native" else ([], 0)
        reader = Reader()
        with closing(iterate(lambda: _ask(model, history, settings, parameters))) as items:
            for item in items:
                yield from reader.take(item)
        if self._dialect == "native" and (responses or reader.must_be_told or (place and reader.begins_with_call)):
            yield ev.MessageMetadata({RESPONSES: [*responses, {"part": place, **reader.response}]})
        yield from reader.close()


async def _ask(model: Any, history: list[Any], settings: Any, parameters: Any) -> AsyncIterator[Any]:
    """The events of the reply and the whole response; one that the provider suspended is asked to go on.

    Raises `ModelError` for a response whose end never came.
    """
    from pydantic_ai.direct import model_request_stream

    async with model:  # its own HTTP client is closed afterwards; one that it was given stays open
        for _ in range(_MOST_TIMES):
            request = model_request_stream(
                model, history, model_settings=settings, model_request_parameters=parameters, instrument=False
            )
            async with request as stream:
                async for event in stream:
                    yield event
                response = stream.get()
            if response.state == "incomplete":
                raise ModelError(_NO_END, may_retry=True)
            yield response
            if response.state != "suspended":
                return
            history = [*history, response]
            await asyncio.sleep(model.continuation_delay(response) or 0)
    raise ModelError(f"The provider suspended its answer {_MOST_TIMES} times. Ask again, or ask for less at once.")
