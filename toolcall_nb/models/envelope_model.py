"""A model behind a service that sends envelopes (seed 001)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Message
from toolcall_nb.errors import WireError
from toolcall_nb.tools import Tool
from toolcall_nb.wire import Envelopes

__all__ = ["EnvelopeModel"]

Send: TypeAlias = "Callable[[Sequence[Message], Sequence[Tool]], Iterable[Mapping[str, Any] | str | bytes]]"


class EnvelopeModel:
    """A model whose ``send(messages, tools)`` gives the envelopes of one reply: mappings, or lines of JSON text.

    Its calls are found by the chat's dialect (``Chat(EnvelopeModel(send), dialect="signature")``), or are the
    service's own. Blank lines are skipped; what is no envelope raises `WireError`.
    """

    def __init__(self, send: Send, name: str = "envelopes") -> None:
        self.name = name
        self._send = send

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Iterator[Event]:
        """One reply."""
        envelopes = Envelopes()
        for sent in self._send(messages, tools):
            envelope = sent if isinstance(sent, Mapping) else _read(sent)
            if envelope is not None:
                yield from envelopes.take(envelope)
        yield from envelopes.close()


def _read(line: str | bytes) -> Any:
    """The envelope of a line; None for a blank one."""
    try:
        return json.loads(line) if line.strip() else None
    except (ValueError, RecursionError) as error:
        raise WireError(f"An envelope is a JSON object, but this is {line!r:.200} ({error}).") from None
