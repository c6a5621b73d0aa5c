"""The live view: the HTML of a transcript kept up to date, event by event, by the least patches.

`LiveHtml.apply` asks the reducer what an event touched, draws only that anew, and compares nodes. What arrives
most, the deltas of text and of tool inputs, goes past the drawing of whole parts: text through
`IncrementalMarkdown`, which names the blocks that changed; inputs through a bounded beginning; what a tool prints
through `LogLines`. So a delta costs
the same at the end of a long transcript as at its start.

The law: `LiveHtml.html` is `to_html` of the transcript so far, after every event, but for the states of the calls
with which something is going on (Pending, Queued, Running: `toolcall_nb.render.html_output.activity`); once the stream
is over
(`close`), byte for byte.

What only a live view shows has no place in that law and is left to the front end, by style: its root also has
the class ``tc-live``, under which spinners and carets move.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.reducer import Touched, TranscriptBuilder, normalize_call_id
from toolcall_nb.core.text import SURROGATE
from toolcall_nb.core.transcript import ToolCall, Transcript
from toolcall_nb.render.html_output.activity import Activities
from toolcall_nb.render.html_output.card import Look, fold_name
from toolcall_nb.render.html_output.nodes import Node, Patch, insert
from toolcall_nb.render.html_output.page import fragment
from toolcall_nb.render.html_output.pictures import allowed_hosts
from toolcall_nb.render.html_output.views import CallView, TextView, Turn

__all__ = ["LiveHtml"]

_NODE_ID = re.compile(r"m(\d{1,9})\.p(\d{1,9})\b(?:\.fold-(\w+))?")


class LiveHtml:
    """A transcript that grows, as HTML and as the patches that keep a copy of it elsewhere the same.

    ``opened`` says which cards the user opened or closed, by call id; `set_open` tells more of it. ``images`` are
    the hosts that may serve pictures (see `toolcall_nb.render.html_output.pictures`). The copy starts empty and takes
    every
    patch in order, or starts over from `snapshot`.
    """

    def __init__(self, opened: Mapping[str, bool] | None = None, images: Iterable[str] = ()) -> None:
        self._opened: dict[str, bool] = dict(opened or {})
        self._activities = Activities()
        self._look = Look(self._opened, {}, allowed_hosts(images), self._activities)
        self._builder = TranscriptBuilder()
        self._turns: list[Turn] = []
        self._is_closed = True  # whether the next event of a message begins a new one

    @property
    def transcript(self) -> Transcript:
        """What the events so far amount to."""
        return self._builder.transcript

    @property
    def html(self) -> str:
        """What the patches so far amount to."""
        return fragment(self._roots())

    def apply(self, event: Event) -> list[Patch]:
        """Take one event in; the patches it takes, none where nothing that is shown has changed."""
        self._activities.apply(event)
        return list(self._apply(event, self._builder.apply(event)))

    def close(self) -> list[Patch]:
        """The stream is over: nothing goes on with the calls that it left open."""
        left = set(self._activities)
        self._activities.clear()
        return [patch for turn in self._turns for patch in self._redraw_calls(turn, left)]

    def snapshot(self) -> list[Patch]:
        """The patches that make the whole out of an empty root."""
        return [patch for node in self._roots() for patch in insert(node, "", None)]

    def call_of(self, node_id: str) -> str | None:
        """The name under which ``opened`` knows what a node belongs to: the id of its call, or a fold's own.

        A fold in a card, and all that is in it, has a name of its own, so that opening it does not open the card.
        """
        found = _NODE_ID.match(node_id)
        if found is None or int(found[1]) >= len(self._turns):
            return None
        view = self._turns[int(found[1])].views.get(int(found[2]))
        key = view.opened_key if view is not None else None
        return fold_name(found[3], key) if key is not None and found[3] else key

    def set_open(self, key: str, is_open: bool) -> list[Patch]:
        """The user opened or closed what `call_of` names ``key``; the patches for other views of the same."""
        self._opened[key] = is_open
        views = [(turn, view) for turn in self._turns for view in turn.views.values() if view.is_named(key)]
        return [patch for turn, view in views for patch in turn.place(view, view.wanted())]

    # Events to changes

    def _roots(self) -> list[Node]:
        return [turn.node for turn in self._turns]

    def _apply(self, event: Event, touched: Touched | None) -> Iterator[Patch]:
        if touched is None:
            yield from self._begin_unsaid()
            return
        if touched.message == len(self._turns):
            yield from self._begin(touched.message)
        turn = self._turns[touched.message]
        if isinstance(event, ev.ToolExecution):
            yield from self._redraw_calls(turn, {normalize_call_id(event.tool_call_id)})
        elif touched.part is None:
            yield from self._refresh(turn)
        elif touched.removed:
            yield from self._retract(turn, touched.part)
        else:
            yield from self._change(turn, touched.part, event)
        if isinstance(event, (ev.Finish, ev.Abort)):
            self._is_closed = True
            yield from self._end_calls(turn)
            turn.rest()

    def _begin_unsaid(self) -> Iterator[Patch]:
        """An event that touches nothing may still begin a message; that takes a message that has ended."""
        if self._is_closed and len(self.transcript.messages) > len(self._turns):
            yield from self._begin(len(self._turns))

    def _begin(self, number: int) -> Iterator[Patch]:
        if self._turns:
            yield from self._end_calls(self._turns[-1])
        self._is_closed = False
        self._turns.append(Turn(number, self.transcript.messages[number].role))
        yield from insert(self._turns[-1].node, "", None)

    def _refresh(self, turn: Turn) -> Iterator[Patch]:
        """Anything about the message may have changed; parts were taken back from its end, if at all."""
        message = self.transcript.messages[turn.number]
        for key in list(turn.views)[len(message.parts) :]:
            yield from turn.drop(key)
        for view, part in zip(turn.views.values(), message.parts, strict=True):
            if view.part is not part:
                yield from view.take(turn, part)
        yield from turn.end(message)

    def _end_calls(self, turn: Turn) -> Iterator[Patch]:
        """The message is over: nothing goes on with the calls that it left open."""
        going_on = {view.part.id for view in turn.views.values() if isinstance(view.part, ToolCall)}
        left = going_on & self._activities.keys()
        for call in left:
            del self._activities[call]
        yield from self._redraw_calls(turn, left)

    @staticmethod
    def _redraw_calls(turn: Turn, ids: Collection[str]) -> Iterator[Patch]:
        """Something else is going on with these calls, as far as they are in this turn."""
        for view in turn.views.values() if ids else ():
            if isinstance(view.part, ToolCall) and view.part.id in ids:
                yield from turn.place(view, view.wanted())

    def _retract(self, turn: Turn, key: int) -> Iterator[Patch]:
        """A call was none: it goes, and the text before it may have become longer."""
        before = turn.before(key)
        yield from turn.drop(key)
        if before is not None:
            yield from self._take(turn, before)

    def _change(self, turn: Turn, key: int, event: Event) -> Iterator[Patch]:
        if key not in turn.views and (part := self._builder.part(Touched(turn.number, key))) is not None:
            turn.add(key, part, self._look)
        view = turn.views[key]
        if isinstance(view, TextView) and isinstance(event, (ev.TextDelta, ev.ReasoningDelta)) and not view.is_resting:
            yield from view.write(turn, event.delta)
        elif isinstance(view, CallView) and isinstance(event, ev.ToolInputDelta) and _is_whole(event.input_text_delta):
            yield from view.write(turn, event.input_text_delta)
        elif isinstance(view, CallView) and isinstance(event, ev.ToolLog) and _is_whole(event.text):
            yield from view.print(turn, event.text)
        else:
            yield from self._take(turn, key)
            if isinstance(view.part, ToolCall) and view.part.is_final:
                turn.rest(key)

    def _take(self, turn: Turn, key: int) -> Iterator[Patch]:
        part = self._builder.part(Touched(turn.number, key))
        if part is None:
            return
        if isinstance(turn.views[key].part, ToolCall) != isinstance(part, ToolCall):
            yield from turn.replace(key, part, self._look)
        yield from turn.views[key].take(turn, part)


def _is_whole(delta: str) -> bool:
    """Whether no character of the delta is half of one, which would change what came before it."""
    return delta.isascii() or not SURROGATE.search(delta)
