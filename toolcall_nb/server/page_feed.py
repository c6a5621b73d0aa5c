"""The steps of a turn for the server's own page: `PageFeed` draws them and keeps the newest for reconnecting pages."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from secrets import token_hex
from typing import Any, TypeAlias

import msgspec

from toolcall_nb.approvals.page import ApprovalForm
from toolcall_nb.core.events import Event
from toolcall_nb.core.json_text import escape_line_ends
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.core.usage import answering_model
from toolcall_nb.live_runs.document import LiveDocument
from toolcall_nb.render import LiveHtml
from toolcall_nb.render.run_footer import footer_html, info_line

EncodedStep: TypeAlias = tuple[int, bytes]
"""The number of a step, and the step as JSON."""

_MAX_KEPT = 1_000_000
"""Bytes of steps that are kept; a page that is further behind gets the whole state."""


class PageFeed:
    """The steps of one turn. Safe in any thread.

    ``before`` is the conversation before the turn; ``info`` is the line below it until it has ended. ``id`` is part of
    the ids of its steps, so that a page that reconnects to another feed gets the whole state.
    """

    def __init__(self, before: Transcript, info: str, timings: Mapping[str, float]) -> None:
        self.id = token_hex(4)
        self._steps: deque[EncodedStep] = deque()
        self._size = 0
        self._info = info
        self._document = LiveDocument(LiveHtml(), self._keep, info=info, timings=timings)
        self._document.recall(before.events())

    def apply(self, events: Iterable[Event]) -> None:
        """Draws events of the turn."""
        for event in events:
            self._document.apply(event)

    def ask(self, call: str, form: ApprovalForm | None) -> bool:
        """Shows a question in a call's card, or with None removes it; returns whether the call has a card."""
        return self._document.ask(call, form)

    def finish(self, transcript: Transcript) -> None:
        """Ends the turn, whose messages ``transcript`` has: the line below it names its model, calls and usage."""
        line = info_line(answering_model(transcript.messages) or self._info, transcript)
        self._document.finish(line, footer_html(line, transcript))

    def since(self, number: int | None) -> list[EncodedStep]:
        """Returns the steps after this one; the whole state for a page that has none, or is too far behind."""
        self._document.flush()
        if number is not None and (not self._steps or self._steps[0][0] <= number + 1) and number <= self._document.seq:
            return [step for step in tuple(self._steps) if step[0] > number]
        return [_encoded(self._document.state())]

    def _keep(self, step: dict[str, Any]) -> None:
        self._steps.append(_encoded(step))
        self._size += len(self._steps[-1][1])
        while self._size > _MAX_KEPT and len(self._steps) > 1:
            self._size -= len(self._steps.popleft()[1])


def _encoded(step: dict[str, Any]) -> EncodedStep:
    return step["seq"], escape_line_ends(msgspec.json.encode(step).decode()).encode()
