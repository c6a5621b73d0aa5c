"""What is at an address, as events: a thread of a server, a stream, a whole reply."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urldefrag

from toolcall_nb.errors import MissingPackageError
from toolcall_nb.models.errors.translation import as_model_error
from toolcall_nb.models.event_loop import iterate
from toolcall_nb.models.over_http.address import shown_url
from toolcall_nb.models.over_http.exchange import Asked, Exchange

if TYPE_CHECKING:
    from toolcall_nb.core.events import Event

__all__ = ["fetched"]

_ACCEPT = "text/event-stream, text/markdown;q=0.9, application/json;q=0.8, text/plain;q=0.7, */*;q=0.1"


def fetched(url: str) -> Generator[Event, None, None]:
    """The events of what is at ``url``, as they come; a stream that tells ids is come back to where it breaks off.

    ``#token=…`` at the end of the address, as a server prints it, is sent as a bearer token to its host alone. Raises
    `ModelError`, with a sentence for a person, and `UsageError` for what is no address.
    """
    address, fragment = urldefrag(url)
    name = shown_url(address)
    key = next(iter(parse_qs(fragment).get("token", ())), None)
    exchange = Exchange(Asked(url=address, accept=_ACCEPT, key=key))
    try:
        with closing(iterate(exchange.events)) as batches:
            for events in batches:
                yield from events
        return
    except MissingPackageError:
        raise
    except Exception as error:
        failure = as_model_error(error, name, base_url=address, secrets=[key])
    raise failure
