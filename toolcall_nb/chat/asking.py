"""One request to a model, and what is done when it fails."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import Any

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.errors import ModelError
from toolcall_nb.models.errors.retry_after import in_words
from toolcall_nb.models.errors.translation import as_model_error
from toolcall_nb.models.reply import Reply

__all__ = ["LONGEST_WAIT", "Asking"]

LONGEST_WAIT = 60.0
"""Seconds that are waited for another try. Who has to wait longer is told for how long."""

_NOTHING_YET = (ev.Start, ev.StartStep, ev.MessageMetadata, ev.Status)


class Asking:
    """Asks ``model``, and asks again at most ``retries`` times while nothing of the reply has come.

    What came is what the reader has seen, and what tools may have run on: from then on nothing is tried again.
    ``pause`` waits so many seconds, or less where the turn is stopped. ``failed`` gets what the model raised.
    """

    def __init__(
        self, model: str, retries: int, pause: Callable[[float], object], failed: Callable[[Exception], None]
    ) -> None:
        self._model, self._retries, self._pause, self._failed = model, retries, pause, failed
        self._has_begun = False

    def events(self, ask: Callable[[], Iterator[Event]], reply: Reply) -> Iterator[Event]:
        """The events of one reply through ``reply``. What the model raises becomes an error in the transcript."""
        tries = 0
        while (error := (yield from self._try(ask, reply))) is not None:
            tries += 1
            wait = max(1.0, float(2 ** (tries - 1)) if error.retry_after is None else error.retry_after)
            if self._has_begun or not error.may_retry or tries > self._retries or wait > LONGEST_WAIT:
                yield from reply.close()
                yield ev.Error(_told(error, tries), error.details)
                reply.failed = True
                return
            what = error.brief or "No answer"
            yield ev.Status(f"{what}. Trying again in {in_words(wait)} ({tries} of {self._retries})")
            self._pause(wait)
            yield ev.Status("")
        yield from reply.close()

    def _try(self, ask: Callable[[], Iterator[Event]], reply: Reply) -> Generator[Event, None, ModelError | None]:
        stream: Any = None
        try:
            stream = ask()
            for event in stream:
                self._has_begun = self._has_begun or not isinstance(event, _NOTHING_YET)
                yield from reply.take(event)
                if reply.abort is not None:
                    break
        except Exception as error:  # a model may raise anything: the network, the provider's package, a bug
            self._failed(error)
            return as_model_error(error, self._model)
        finally:
            with suppress(Exception):  # how a stream takes its end is no news to the reader
                getattr(stream, "close", lambda: None)()
        return None


def _told(error: ModelError, tries: int) -> str:
    """What is said in the end: when to come again, and that it was tried."""
    text = str(error)
    if error.retry_after is not None and error.may_retry and "again" not in text:
        text += f" Try again in {in_words(error.retry_after)}."
    return text if tries == 1 else f"{text} It was tried {tries} times."
