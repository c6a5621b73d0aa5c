"""The live view: the HTML of a transcript kept up to date, event by event, by the least patches.

`LiveHtml.apply` asks the reducer what an event touched, draws only that anew, and compares nodes. What arrives
most, the deltas of text and of tool inputs, goes past the drawing of whole parts: text through
`IncrementalMarkdown`, which names the blocks that changed; inputs through a bounded beginning; what a tool prints
through `LogLines`. So a delta costs
the same at the end of a long transcript as at its start.

The law: `LiveHtml.html` is `to_html` of the transcript so far, byte for byte, after every event.

What only a live view shows has no place in that law and is left to the front end, by style: its root also has
the class ``tc-live``, under which an empty last turn says "Thinking…", and spinners and carets move.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from toolcall_nb import events as ev
from toolcall_nb.markdown.incremental import IncrementalMarkdown
from toolcall_nb.reducer import Touched, TranscriptBuilder
from toolcall_nb.render.card import Look, call_node, fold_name, section_nodes
from toolcall_nb.render.content import Written
from toolcall_nb.render.log import LogLines
from toolcall_nb.render.nodes import Node, Patch, insert, remove, update
from toolcall_nb.render.page import fragment
from toolcall_nb.render.parts import block_leaf, fold_key, note_node, part_node, text_node, turn_node
from toolcall_nb.render.sections import log_sections
from toolcall_nb.render.yaml_like import Drawing
from toolcall_nb.transcript import Message, Part, ReasoningPart, Role, TextPart, ToolCall
from toolcall_nb.unicode import SURROGATE, well_formed

if TYPE_CHECKING:
    from toolcall_nb.events import Event
    from toolcall_nb.transcript import Transcript

__all__ = ["LiveHtml"]

_NODE_ID = re.compile(r"m(\d+)\.p(\d+)\b(?:\.fold-(\w+))?")


class LiveHtml:
    """A transcript that grows, as HTML and as the patches that keep a copy of it elsewhere the same.

    ``opened`` says which cards the user opened or closed, by call id; `set_open` tells more of it. The copy
    starts empty and takes every patch in order, or starts over from `snapshot`.
    """

    def __init__(self, opened: Mapping[str, bool] | None = None) -> None:
        self._opened: dict[str, bool] = dict(opened or {})
        self._look = Look(self._opened)
        self._builder = TranscriptBuilder()
        self._turns: list[_Turn] = []
        self._is_closed = True  # whether the next event of a message begins a new one

    @property
    def transcript(self) -> Transcript:
        """What the events so far amount to."""
        return self._builder.transcript

    @property
    def html(self) -> str:
        """What the patches so far amount to: `to_html` of `transcript`."""
        return fragment(self._roots())

    def apply(self, event: Event) -> list[Patch]:
        """Take one event in; the patches it takes, none where nothing that is shown has changed."""
        return list(self._apply(event, self._builder.apply(event)))

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
        if touched.part is None:
            yield from self._refresh(turn)
        elif touched.removed:
            yield from self._retract(turn, touched.part)
        else:
            yield from self._change(turn, touched.part, event)
        if isinstance(event, (ev.Finish, ev.Abort)):
            self._is_closed = True

    def _begin_unsaid(self) -> Iterator[Patch]:
        """An event that touches nothing may still begin a message; that takes a message that has ended."""
        if self._is_closed and len(self.transcript.messages) > len(self._turns):
            yield from self._begin(len(self._turns))

    def _begin(self, number: int) -> Iterator[Patch]:
        self._is_closed = False
        self._turns.append(_Turn(number, self.transcript.messages[number].role))
        yield from insert(self._turns[-1].node, "", None)

    def _refresh(self, turn: _Turn) -> Iterator[Patch]:
        """Anything about the message may have changed; parts were taken back from its end, if at all."""
        message = self.transcript.messages[turn.number]
        for key in list(turn.views)[len(message.parts) :]:
            yield from turn.drop(key)
        for view, part in zip(turn.views.values(), message.parts, strict=True):
            if view.part is not part:
                yield from view.take(turn, part)
        yield from turn.end(message)

    def _retract(self, turn: _Turn, key: int) -> Iterator[Patch]:
        """A call was none: it goes, and the text before it may have become longer."""
        before = turn.before(key)
        yield from turn.drop(key)
        if before is not None:
            yield from self._take(turn, before)

    def _change(self, turn: _Turn, key: int, event: Event) -> Iterator[Patch]:
        if key not in turn.views and (part := self._builder.part(Touched(turn.number, key))) is not None:
            turn.add(key, part, self._look)
        view = turn.views[key]
        if isinstance(view, _TextView) and isinstance(event, (ev.TextDelta, ev.ReasoningDelta)):
            yield from view.write(turn, event.delta)
        elif isinstance(view, _CallView) and isinstance(event, ev.ToolInputDelta) and _is_whole(event.input_text_delta):
            yield from view.write(turn, event.input_text_delta)
        elif isinstance(view, _CallView) and isinstance(event, ev.ToolLog) and _is_whole(event.text):
            yield from view.print(turn, event.text)
        else:
            yield from self._take(turn, key)

    def _take(self, turn: _Turn, key: int) -> Iterator[Patch]:
        part = self._builder.part(Touched(turn.number, key))
        if part is None:
            return
        if isinstance(turn.views[key].part, ToolCall) != isinstance(part, ToolCall):
            yield from turn.replace(key, part, self._look)
        yield from turn.views[key].take(turn, part)


def _is_whole(delta: str) -> bool:
    """Whether no character of the delta is half of one, which would change what came before it."""
    return delta.isascii() or not SURROGATE.search(delta)


class _Turn:
    """One message: its node, and a view for each part by the reducer's key; keys ascend."""

    def __init__(self, number: int, role: Role) -> None:
        self.number = number
        self.node = turn_node(number, role)
        self.views: dict[int, _View] = {}
        self.note: Node | None = None

    def add(self, key: int, part: Part, look: Look) -> None:
        """Make room for a part at the end; nothing is shown of it yet."""
        self.views[key] = self._view(key, part, look, fold_key(self.number, len(self.views)))

    def replace(self, key: int, part: Part, look: Look) -> Iterator[Patch]:
        """The part has become one of another kind: what was shown of it goes."""
        old = self.views[key]
        yield from self.place(old, None)
        self.views[key] = self._view(key, part, look, old.fold)

    def _view(self, key: int, part: Part, look: Look, fold: str) -> _View:
        kinds: dict[type, type[_View]] = {TextPart: _TextView, ReasoningPart: _TextView, ToolCall: _CallView}
        view = kinds.get(type(part), _View)(f"{self.node.id}.p{key}", part, look)
        view.fold = fold
        return view

    def before(self, key: int) -> int | None:
        return next((other for other in reversed(self.views) if other < key), None)

    def drop(self, key: int) -> Iterator[Patch]:
        """Take a part away; later ones have a new place, by which a fold is known."""
        view = self.views.pop(key)
        yield from self.place(view, None)
        for place, later in enumerate(self.views.values()):
            if later.fold != (fold := fold_key(self.number, place)):
                later.fold = fold
                yield from self.place(later, later.wanted())

    def end(self, message: Message) -> Iterator[Patch]:
        """Say how the message ended."""
        note = note_node(self.number, message)
        if note is not None and self.note is None:
            self.note = note
            self.node.children.append(note)
            yield from insert(note, self.node.id, None)
        elif note is not None and self.note is not None:
            yield from update(self.note, note)

    def place(self, view: _View, wanted: Node | None) -> Iterator[Patch]:
        """Bring the view's node to what is wanted."""
        if view.node is not None and wanted is not None:
            yield from update(view.node, wanted)
        elif wanted is not None:
            after = self._after(view)
            children = self.node.children
            children.insert(children.index(after) if after is not None else len(children), wanted)
            view.node = wanted
            yield from insert(wanted, self.node.id, after.id if after is not None else None)
        elif view.node is not None:
            self.node.children.remove(view.node)
            yield remove(view.node)
            view.node = None

    def _after(self, view: _View) -> Node | None:
        """The node before which a new one for the view belongs."""
        after = self.note
        for other in reversed(self.views.values()):
            if other is view:
                break
            after = other.node or after
        return after


class _View:
    """What is shown of one part. ``fold`` names it for ``opened`` where it has no id of its own."""

    def __init__(self, id: str, part: Part, look: Look) -> None:
        self.id = id
        self.fold = ""
        self.part = part
        self.look = look
        self.node: Node | None = None

    def take(self, turn: _Turn, part: Part) -> Iterator[Patch]:
        """The part is now this."""
        self.part = part
        yield from turn.place(self, self.wanted())

    def wanted(self) -> Node | None:
        """What should be shown."""
        return part_node(self.id, self.fold, self.part, self.look)

    @property
    def opened_key(self) -> str | None:
        return None if isinstance(self.part, TextPart) else self.fold

    def is_named(self, key: str) -> bool:
        """Whether ``key`` is the name of this, or of a fold in it."""
        return key == self.opened_key


class _CallView(_View):
    """A tool call; while its input is written, only the beginning is kept that is drawn."""

    def __init__(self, id: str, part: Part, look: Look) -> None:
        super().__init__(id, part, look)
        self.written = Written()
        self.drawing = Drawing()
        self.log = LogLines()

    def take(self, turn: _Turn, part: Part) -> Iterator[Patch]:
        assert isinstance(part, ToolCall)
        self.written = Written().plus(part.input_text)
        self.log = LogLines(part.log)
        yield from super().take(turn, part)

    def write(self, turn: _Turn, delta: str) -> Iterator[Patch]:
        self.written = self.written.plus(delta)
        yield from turn.place(self, self.wanted())

    def print(self, turn: _Turn, text: str) -> Iterator[Patch]:
        """The tool printed more; where there is a place for it, nothing else is drawn."""
        assert isinstance(self.part, ToolCall)
        self.log.add(text)
        wanted = section_nodes(self.id, log_sections(self.log, self.part.id), self.part.id, self.look)
        here = {node.id: node for node in self.node.children[0].children} if self.node is not None else {}
        if all(node.id in here for node in wanted):
            for node in wanted:
                yield from update(here[node.id], node)
        else:
            yield from turn.place(self, self.wanted())

    def wanted(self) -> Node | None:
        assert isinstance(self.part, ToolCall)
        return call_node(self.id, self.part, self.written, self.look, self.drawing, self.log)

    @property
    def opened_key(self) -> str | None:
        assert isinstance(self.part, ToolCall)
        return self.part.id

    def is_named(self, key: str) -> bool:
        assert isinstance(self.part, ToolCall)
        return key == self.part.id or key.endswith(fold_name("", self.part.id))


class _TextView(_View):
    """Text or reasoning, block by block."""

    def __init__(self, id: str, part: Part, look: Look) -> None:
        super().__init__(id, part, look)
        self._markdown = IncrementalMarkdown()
        self._length = 0  # of the text that was fed, as the reducer has it: `_half` is not in it
        self._half = ""  # the first half of a surrogate pair, which stands as one character until the other comes

    def take(self, turn: _Turn, part: Part) -> Iterator[Patch]:
        assert isinstance(part, (TextPart, ReasoningPart))
        self.part = part
        yield from self.write(turn, part.text[self._length + len(self._half) :])

    def write(self, turn: _Turn, delta: str) -> Iterator[Patch]:
        """The text grows; the cost does not depend on what came before."""
        text = self._half + delta
        self._half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        self._length += len(well_formed(text[: len(text) - len(self._half)]))
        changed = self._markdown.feed(delta)
        if self.node is not None and self._markdown.blocks:
            yield from self._show(self.node, changed)
        else:
            yield from turn.place(self, self.wanted())

    def _show(self, node: Node, changed: Iterable[int]) -> Iterator[Patch]:
        """Bring the blocks that changed into the node; none is drawn that did not."""
        blocks = self._markdown.blocks
        while len(node.children) > len(blocks):
            yield remove(node.children.pop())
        for number in changed:
            block = block_leaf(self.id, number, blocks[number])
            if number < len(node.children):
                yield from update(node.children[number], block)
            else:
                node.children.append(block)
                yield from insert(block, node.id, None)

    def wanted(self) -> Node | None:
        assert isinstance(self.part, (TextPart, ReasoningPart))
        return text_node(self.id, self.fold, self.part, self._markdown.blocks, self.look)
