"""What a live view knows of each message and part: its node, and what is needed to change just a piece of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from toolcall_nb.core.text import well_formed
from toolcall_nb.core.transcript import Message, Part, ReasoningPart, Role, TextPart, ToolCall
from toolcall_nb.render.content import Written
from toolcall_nb.render.html_output.card import Look, call_node, fold_name, recounted, section_nodes
from toolcall_nb.render.html_output.log import LogLines
from toolcall_nb.render.html_output.nodes import Node, PackedNodes, Patch, insert, remove, update
from toolcall_nb.render.html_output.parts import (
    BlockLeaves,
    block_leaf,
    fold_key,
    note_node,
    part_node,
    text_node,
    turn_node,
)
from toolcall_nb.render.markdown.incremental import IncrementalMarkdown
from toolcall_nb.render.sections import log_sections
from toolcall_nb.render.yaml_like import Drawing

__all__ = ["CallView", "TextView", "Turn", "View"]


class Turn:
    """One message: its node, and a view for each part by the reducer's key; keys ascend."""

    def __init__(self, number: int, role: Role) -> None:
        self.number = number
        self._nodes: list[Node] = []  # of the parts that are shown, and of the note
        self.node = turn_node(number, role, self._nodes)
        self._awake: deque[tuple[int, View]] = deque()  # the views that may still grow, by their keys
        self.views: dict[int, View] = {}
        self.note: Node | None = None

    def add(self, key: int, part: Part, look: Look) -> None:
        """Make room for a part at the end; nothing is shown of it yet."""
        self.views[key] = self._view(key, part, look, len(self.views))
        self._awake.append((key, self.views[key]))

    def replace(self, key: int, part: Part, look: Look) -> Iterator[Patch]:
        """The part has become one of another kind: what was shown of it goes."""
        old = self.views[key]
        yield from self.place(old, None)
        self.views[key] = self._view(key, part, look, old.place)

    def _view(self, key: int, part: Part, look: Look, place: int) -> View:
        kinds: dict[type, type[View]] = {TextPart: TextView, ReasoningPart: TextView, ToolCall: CallView}
        view = kinds.get(type(part), View)(f"{self.node.id}.p{key}", part, look)
        view.turn, view.place = self.number, place
        return view

    def before(self, key: int) -> int | None:
        """The key of the part before that one."""
        return next((other for other in reversed(self.views) if other < key), None)

    def drop(self, key: int) -> Iterator[Patch]:
        """Take a part away; later ones have a new place, by which a fold is known."""
        view = self.views.pop(key)
        yield from self.place(view, None)
        for place, later in enumerate(self.views.values()):
            if later.place != place:
                later.place = place
                yield from self.place(later, later.wanted())

    def end(self, message: Message) -> Iterator[Patch]:
        """Say how the message ended."""
        note = note_node(self.number, message)
        if note is not None and self.note is None:
            self.note = note
            self._nodes.append(note)
            yield from insert(note, self.node.id, None)
        elif note is not None and self.note is not None:
            yield from update(self.note, note)

    def rest(self, until: int | None = None) -> None:
        """The parts up to the key ``until`` (None: all) are whole: what is only needed while they grow goes."""
        while self._awake and (until is None or self._awake[0][0] <= until):
            self._awake.popleft()[1].rest()

    def place(self, view: View, wanted: Node | None) -> Iterator[Patch]:
        """Bring the view's node to what is wanted."""
        if view.node is not None and wanted is not None:
            yield from update(view.node, wanted)
        elif wanted is not None:
            after = self._after(view)
            self._nodes.insert(self._nodes.index(after) if after is not None else len(self._nodes), wanted)
            view.node = wanted
            yield from insert(wanted, self.node.id, after.id if after is not None else None)
        elif view.node is not None:
            self._nodes.remove(view.node)
            yield remove(view.node)
            view.node = None

    def _after(self, view: View) -> Node | None:
        """The node before which a new one for the view belongs."""
        after = self.note
        for other in reversed(self.views.values()):
            if other is view:
                break
            after = other.node or after
        return after


class View:
    """What is shown of one part, the one at ``place`` of the message ``turn``."""

    __slots__ = ("id", "look", "node", "part", "place", "turn")

    def __init__(self, id: str, part: Part, look: Look) -> None:
        self.id = id
        self.turn = self.place = 0
        self.part = part
        self.look = look
        self.node: Node | None = None

    @property
    def fold(self) -> str:
        """Its name for ``opened``, where it has no id of its own."""
        return fold_key(self.turn, self.place)

    def take(self, turn: Turn, part: Part) -> Iterator[Patch]:
        """The part is now this."""
        self.part = part
        yield from turn.place(self, self.wanted())

    def rest(self) -> None:
        """The part is whole, and takes little memory from now on. It can be changed all the same, at a price."""

    def wanted(self) -> Node | None:
        """What should be shown."""
        return part_node(self.id, self.fold, self.part, self.look)

    @property
    def opened_key(self) -> str | None:
        """The name under which ``opened`` knows this; None for what cannot be opened."""
        return None if isinstance(self.part, TextPart) else self.fold

    def is_named(self, key: str) -> bool:
        """Whether ``key`` is the name of this, or of a fold in it."""
        return key == self.opened_key


class _Growing:
    """What is kept of a call while more of it may come: of its input, of how that is drawn, of what it printed."""

    def __init__(self, call: ToolCall, drawing: Drawing | None = None) -> None:
        self.written = Written().plus(call.input_text)
        self.drawing = drawing or Drawing()
        self.log = LogLines(call.log)


class CallView(View):
    """A tool call; while its input is written, only the beginning is kept that is drawn."""

    __slots__ = ("_growing",)

    def __init__(self, id: str, part: Part, look: Look) -> None:
        super().__init__(id, part, look)
        assert isinstance(part, ToolCall)
        self._growing: _Growing | None = _Growing(part)

    def take(self, turn: Turn, part: Part) -> Iterator[Patch]:
        """The call is now this."""
        assert isinstance(part, ToolCall)
        self._growing = _Growing(part, self._growing.drawing if self._growing is not None else None)
        yield from super().take(turn, part)

    def rest(self) -> None:
        """The call has ended."""
        self._growing = None
        if self.node is not None:
            self.node.children = PackedNodes(self.node.children)

    def _awake(self) -> _Growing:
        """What grows of it, made anew where it rested."""
        assert isinstance(self.part, ToolCall)
        if self._growing is None:
            self._growing = _Growing(self.part)
            if self.node is not None:
                self.node.children = [*self.node.children]
        return self._growing

    def write(self, turn: Turn, delta: str) -> Iterator[Patch]:
        """More of the input was written; behind what is drawn of it only its length is another."""
        assert isinstance(self.part, ToolCall)
        growing = self._awake()
        before, growing.written = growing.written, growing.written.plus(delta)
        here = self._section("i") if growing.written.head is before.head else None
        if here is not None:
            yield from update(here, recounted(here, self.part, growing.written))
        else:
            yield from turn.place(self, self.wanted())

    def _section(self, key: str) -> Node | None:
        children = self.node.children[0].children if self.node is not None else []
        return next((node for node in children if node.id == f"{self.id}.{key}"), None)

    def print(self, turn: Turn, text: str) -> Iterator[Patch]:
        """The tool printed more; where there is a place for it, nothing else is drawn."""
        assert isinstance(self.part, ToolCall)
        log = self._awake().log
        number = log.number
        log.add(text)
        found = log_sections(log, self.part.id)
        changed = found[:1] if log.number == number else found
        wanted = section_nodes(self.id, changed, self.part.id, self.look)
        here = {node.id: node for node in self.node.children[0].children} if self.node is not None else {}
        if all(node.id in here for node in wanted):
            for node in wanted:
                yield from update(here[node.id], node)
        else:
            yield from turn.place(self, self.wanted())

    def wanted(self) -> Node | None:
        """The card."""
        assert isinstance(self.part, ToolCall)
        growing = self._growing or _Growing(self.part)
        return call_node(self.id, self.part, growing.written, self.look, growing.drawing, growing.log)

    @property
    def opened_key(self) -> str | None:
        """The call's id."""
        assert isinstance(self.part, ToolCall)
        return self.part.id

    def is_named(self, key: str) -> bool:
        """Whether ``key`` is the call's id, or the name of a fold in its card."""
        assert isinstance(self.part, ToolCall)
        return key == self.part.id or key.endswith(fold_name("", self.part.id))


class TextView(View):
    """Text or reasoning, block by block."""

    __slots__ = ("_blocks", "_half", "_length", "_markdown", "_shown")

    def __init__(self, id: str, part: Part, look: Look) -> None:
        super().__init__(id, part, look)
        self._markdown: IncrementalMarkdown | None = IncrementalMarkdown()
        self._blocks: Sequence[str] = self._markdown.blocks
        self._shown = 0  # so many of them
        self._length = 0  # of the text that was fed, as the reducer has it: `_half` is not in it
        self._half = ""  # the first half of a surrogate pair, which stands as one character until the other comes

    def take(self, turn: Turn, part: Part) -> Iterator[Patch]:
        """The text is now this; only what is new of it is read, unless it rested."""
        assert isinstance(part, (TextPart, ReasoningPart))
        self.part = part
        news = part.text[self._length + len(self._half) :]
        if self.is_resting and news:
            self._wake(part.text[: self._length] + self._half)
            yield from self.write(turn, news)
            self.rest()
        elif self.is_resting:
            yield from turn.place(self, self.wanted())
        else:
            yield from self.write(turn, news)

    @property
    def is_resting(self) -> bool:
        """Whether it can take no more deltas."""
        return self._markdown is None

    def _wake(self, text: str) -> None:
        self._markdown = IncrementalMarkdown()
        self._blocks = self._markdown.blocks
        self._markdown.feed(text)
        if self.node is not None:
            self.node.children = BlockLeaves(self.id, self._blocks, self.look.hosts)

    def write(self, turn: Turn, delta: str) -> Iterator[Patch]:
        """The text grows; the cost does not depend on what came before."""
        assert self._markdown is not None
        if self._half or not delta.isascii():
            self._count(delta)
        else:
            self._length += len(delta)
        changed = self._markdown.feed(delta)
        if self.node is not None and self._blocks:
            yield from self._show(self.node, changed, self._markdown)
        else:
            yield from turn.place(self, self.wanted())
        self._shown = len(self._blocks)

    def _count(self, delta: str) -> None:
        text = self._half + delta
        self._half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        self._length += len(well_formed(text[: len(text) - len(self._half)]))

    def _show(self, node: Node, changed: Iterable[int], markdown: IncrementalMarkdown) -> Iterator[Patch]:
        """Bring the blocks that changed into the node; none is drawn that did not."""
        for number in reversed(range(len(self._blocks), self._shown)):
            yield remove(self._leaf(number, ""))
        for number in changed:
            block = self._leaf(number, self._blocks[number])
            before = markdown.before(number)
            if before is not None:
                yield from update(self._leaf(number, before), block)
            else:
                yield from insert(block, node.id, None)

    def _leaf(self, number: int, block: str) -> Node:
        return block_leaf(self.id, number, block, self.look.hosts)

    def rest(self) -> None:
        """The text is whole."""
        if self._markdown is not None:
            self._markdown.close()
        self._markdown = None

    def wanted(self) -> Node | None:
        """The text's blocks; None while there is none."""
        assert isinstance(self.part, (TextPart, ReasoningPart))
        return text_node(self.id, self.fold, self.part, self._blocks, self.look)
