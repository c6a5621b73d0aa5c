"""A run as a page sees it: the steps of its `LiveDocument`, kept as long as a page may be that little behind."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from toolcall_nb.approvals.page import ApprovalForm
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.render import LiveHtml
from toolcall_nb.runs.document import LiveDocument
from toolcall_nb.runs.footer import info_line
from toolcall_nb.runs.request_details import foot_info

__all__ = ["PageFeed", "Step"]

Step: TypeAlias = tuple[int, bytes]
"""The number of a step, and the step as JSON."""

_KEPT = 1_000_000
"""Bytes of steps that are kept; a page that is further behind gets the whole state."""


class PageFeed:
    """What pages of one thread are told while a turn runs. Safe in any thread.

    ``before`` is what was said before the turn; ``info`` stands below it until it has ended.
    """

    def __init__(self, before: Transcript, info: str, timings: Mapping[str, float]) -> None:
        self._steps: deque[Step] = deque()
        self._size = 0
        self._info = info
        self._document = LiveDocument(LiveHtml(), self._keep, info=info, timings=timings)
        self._document.recall(before.events())

    def apply(self, events: Iterable[Event]) -> None:
        """Take events of the turn in."""
        for event in events:
            self._document.apply(event)

    def ask(self, call: str, form: ApprovalForm | None) -> bool:
        """The pages are to ask about a call, or not any more; whether the call has a card to ask in."""
        return self._document.ask(call, form)

    def finish(self, transcript: Transcript) -> None:
        """The turn has ended: below it stands who answered, and what all that was said in the thread took."""
        line = info_line(_answered_by(transcript) or self._info, transcript)
        self._document.finish(line, foot_info(line, transcript))

    def since(self, number: int | None) -> list[Step]:
        """The steps after this one; the whole state for a page that has none, or is too far behind."""
        self._document.flush()
        if number is not None and (not self._steps or self._steps[0][0] <= number + 1) and number <= self._document.seq:
            return [step for step in tuple(self._steps) if step[0] > number]
        state = self._document.state()
        return [_encoded(state)]

    def _keep(self, step: dict[str, Any]) -> None:
        self._steps.append(_encoded(step))
        self._size += len(self._steps[-1][1])
        while self._size > _KEPT and len(self._steps) > 1:
            self._size -= len(self._steps.popleft()[1])


def _answered_by(transcript: Transcript) -> str:
    """The model of the last answer, as it says itself; empty where it does not."""
    told = transcript.messages[-1].metadata.get("model") if transcript.messages else None
    return told if isinstance(told, str) else ""


def _encoded(step: dict[str, Any]) -> Step:
    return step["seq"], msgspec.json.encode(step)
