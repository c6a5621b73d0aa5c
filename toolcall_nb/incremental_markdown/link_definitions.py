"""Link definitions in a text that grows: ``[x]: /url`` may follow any time after the ``[x]`` that refers to it.

The first definition of a label counts. Once the block that holds it is settled, it stays. The source of settled blocks
that refer to a label without a settled definition is kept (`Awaiting`). If the definition changes, they are parsed
again, each by itself, because the structure of blocks does not depend on definitions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from functools import cache
from typing import Any

from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from toolcall_nb.incremental_markdown.flavor import parser


def render_tokens(tokens: Sequence[Token]) -> str:
    """Returns the HTML of parsed tokens. They may be a part of a block: a token depends only on its neighbours."""
    md = parser()
    return str(md.renderer.render(tokens, md.options, {}))


def parse_tail(source: str, definitions: Definitions, level: int) -> list[Token]:
    """Parses the end of a text at a level of nesting; its definitions are added to ``definitions``."""
    env = {"references": definitions, "level": level, "texts": True}
    tokens = parser().parse(source, env)
    repeats: Any = env.get("duplicate_refs", ())
    definitions.lines = sorted([definition["map"] for definition in [*definitions.values(), *repeats]])
    return tokens


def parse_inline(tokens: list[Token], definitions: Definitions, *, notes_texts: bool = True) -> None:
    """Parses the inline content of block tokens again, by the same rules as in a parse of the whole text.

    Only a text that grows needs the notes on what is text (``texts``).
    """
    for token in tokens:
        if token.type == "inline":
            token.children = []
    env: dict[str, Any] = {"references": definitions}
    state = StateCore("", parser(), env | {"texts": True} if notes_texts else env, tokens)
    for rule in _rules_behind_blocks():
        rule(state)


@cache
def _rules_behind_blocks() -> Sequence[Callable[[StateCore], None]]:
    """Returns the rules by which the parser goes on when the blocks are known."""
    ruler = parser().core.ruler
    return ruler.getRules("")[ruler.get_active_rules().index("inline") :]


class Definitions(dict[str, Any]):
    """The link definitions that the parser sees: those of the tail, and the settled ones, which come first.

    It takes the place of ``env["references"]``. The parser only adds to that, and reads it with ``in`` and ``get``.
    """

    def __init__(self, settled: MutableMapping[str, Any], outer: Definitions | None = None) -> None:
        super().__init__()
        self.settled = settled
        self._outer = outer
        self.asked: set[str] = set()
        """The labels that the parser has looked up, here and in the containers inside, and that were not settled."""
        self.lines: list[list[int]] = []
        """The lines of each definition in the tail: the first, and the one behind the last.

        A label that is defined again is among them. It counts for nothing, but it is no paragraph either.
        """

    def __bool__(self) -> bool:
        """Whether the tail has definitions."""
        return len(self) > 0 or bool(self.lines)

    def __contains__(self, label: object) -> bool:
        return label in self.settled or super().__contains__(label)

    def get(self, label: str, default: Any = None) -> Any:
        """Returns the first definition of ``label``."""
        if label in self.settled:
            return self.settled[label]
        self._note(label)
        return super().get(label, default)

    def _note(self, label: str) -> None:
        self.asked.add(label)
        if self._outer is not None:
            self._outer._note(label)

    def for_parse(self) -> Definitions:
        """Returns the settled definitions, for another parse of the tail, which finds the others again."""
        return Definitions(self.settled, self._outer)

    def differing(self, before: Definitions) -> list[str]:
        """Returns the labels whose definition in the tail is not the one in ``before``."""
        return [label for label in {**self, **before} if self._target(label) != before._target(label)]

    def take(self, labels: Iterable[str], source: Definitions) -> None:
        """Takes the definitions of ``labels`` from ``source``, those of a container in the tail."""
        for label in labels:
            self.pop(label, None)
            if definition := dict.get(source, label):
                self[label] = definition

    def _target(self, label: str) -> object:
        definition = super().get(label)
        return definition and (definition["href"], definition["title"])

    def settle_before(self, line: int | None) -> list[str]:
        """Settles the definitions before ``line`` of the tail (None: all of them); returns their labels."""
        labels = [label for label, definition in self.items() if line is None or definition["map"][0] < line]
        for label in labels:
            self.settled[label] = self.pop(label)
        self.asked.difference_update(labels)
        self.lines = [] if line is None else [[start - line, end - line] for start, end in self.lines if start >= line]
        return labels


# Text in which brackets can only be those of links with an address, so that no label is looked up. Code and addresses
# in angle brackets hold all of such a link or nothing of it.
_ADDRESS = r"(?:https?:[\w/.:?=&;,@%#+~-]++|[\w/.?=,@%#+~-]++)"
_WITHOUT_LABELS = re.compile(rf"(?:[^\[\\]++|\[[\w .,:/'+-]++\]\({_ADDRESS}\))*+")


def may_refer(source: str) -> bool:
    """Whether the block with this source may refer to a label."""
    return "[" in source and not _WITHOUT_LABELS.fullmatch(source)


class Awaiting:
    """The settled blocks that refer to labels without a settled definition: the source, and the labels of each.

    ``level`` is the number of blocks around them.
    """

    def __init__(self, level: int) -> None:
        self._level = level
        self._sources: dict[int, str] = {}
        self._labels: dict[int, set[str]] = {}
        self._blocks: dict[str, set[int]] = {}

    def watch(self, block: int, source: str, labels: Iterable[str]) -> None:
        """Keeps the block's source. ``labels`` are those that it refers to and that are not settled, or more."""
        self._sources[block] = source
        self._note(block, {*labels})

    def referring(self, labels: list[str]) -> list[int]:
        """Returns the blocks that refer to one of the labels, in their order."""
        return sorted({block for label in labels for block in self._blocks.get(label, ())})

    def render(self, block: int, definitions: Definitions) -> str:
        """Returns the block's HTML with these definitions. It may refer to other labels than before."""
        copy = Definitions(definitions.settled)
        copy.update(definitions)
        tokens = parse_tail(self._sources[block], copy, self._level)
        self._note(block, copy.asked)
        return render_tokens(tokens)

    def _note(self, block: int, labels: set[str]) -> None:
        for label in self._labels.pop(block, set()) - labels:
            self._blocks[label].discard(block)
            if not self._blocks[label]:
                del self._blocks[label]
        for label in labels:
            self._blocks.setdefault(label, set()).add(block)
        if labels:
            self._labels[block] = labels
        else:
            del self._sources[block]

    def forget(self, labels: Iterable[str]) -> None:
        """Drops labels that are settled, and the blocks that refer to no other label."""
        for label in labels:
            for block in self._blocks.pop(label, ()):
                self._labels[block].discard(label)
                if not self._labels[block]:
                    del self._labels[block], self._sources[block]
