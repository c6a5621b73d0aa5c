"""Link definitions in a text that grows: ``[x]: /url`` may come any time after the ``[x]`` that asks for it.

The first definition of a label counts, and once its block is settled, it stays. The settled blocks that asked for a
label without a settled definition are kept as tokens, and where the definition changes, only their inline content is
parsed again: block structure does not depend on definitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from toolcall_nb.render.markdown.flavor import parser

__all__ = ["Awaiting", "Definitions", "inline_again", "rendered"]


def rendered(tokens: Sequence[Token]) -> str:
    """The HTML of parsed tokens. Of a slice, too: a token looks no further than its neighbours in its block."""
    md = parser()
    return str(md.renderer.render(tokens, md.options, {}))


def inline_again(tokens: list[Token], definitions: Definitions) -> None:
    """Parses the inline content of block tokens anew, through the same rules as in a whole parse."""
    for token in tokens:
        if token.type == "inline":
            token.children = []
    md = parser()
    # With no source, the rules for blocks have nothing to add to the tokens that are there.
    md.core.process(StateCore("", md, {"references": definitions}, tokens))


class Definitions(dict[str, Any]):
    """The link definitions that the parser sees: those of the tail, behind those that are settled.

    It takes the place of ``env["references"]``, which the parser fills and asks with ``in`` and ``get`` alone.
    """

    def __init__(self, settled: dict[str, Any]) -> None:
        super().__init__()
        self.settled = settled
        self.asked: set[str] | None = None  # where a set, the labels that are not settled are noted in it

    def __contains__(self, label: object) -> bool:
        return label in self.settled or super().__contains__(label)

    def get(self, label: str, default: Any = None) -> Any:
        """The definition of ``label``: the first one counts."""
        if label in self.settled:
            return self.settled[label]
        if self.asked is not None:
            self.asked.add(label)
        return super().get(label, default)

    def differing(self, before: Definitions) -> list[str]:
        """The labels of the tail that are defined otherwise than ``before``."""
        return [label for label in {**self, **before} if self._target(label) != before._target(label)]

    def _target(self, label: str) -> object:
        found = super().get(label)
        return found and (found["href"], found["title"])

    def settle_before(self, line: int | None) -> list[str]:
        """Settles what is defined before ``line`` of the tail (None: anywhere in it); returns the labels."""
        labels = [label for label, found in self.items() if line is None or found["map"][0] < line]
        for label in labels:
            self.settled[label] = self.pop(label)
        return labels


# Brackets that nothing in the text can make anything else of than a link, or a picture, or text in code or a formula.
_ASKS_NOTHING = re.compile(r"(?:[^\[\\`<]++|\[[\w ]++\]\(https?:[\w/.:?=&;,@%#+~-]++\))*+")


def _may_ask(inline: Token, definitions: Definitions) -> bool:
    """Whether the content may depend on labels that are not settled: what has found none is text, or in an image.

    Without children, the content is not parsed yet.
    """
    if "[" not in inline.content or _ASKS_NOTHING.fullmatch(inline.content):
        return False
    children = inline.children
    return (
        bool(definitions)
        or not children
        or any(child.type == "image" or (child.type == "text" and "[" in child.content) for child in children)
    )


class Awaiting:
    """The settled blocks that asked for labels that are not settled, with their tokens, and who asked for which."""

    def __init__(self) -> None:
        self._tokens: dict[int, list[Token]] = {}
        self._labels: dict[int, set[str]] = {}
        self._blocks: dict[str, set[int]] = {}

    def watch(self, block: int, tokens: list[Token], definitions: Definitions) -> None:
        """Remembers the block if it depends on labels that are not settled."""
        if any(token.type == "inline" and _may_ask(token, definitions) for token in tokens):
            self._tokens[block] = tokens
            self.render(block, definitions)

    def asking(self, labels: list[str]) -> list[int]:
        """The blocks that asked for one of the labels, in their order."""
        return sorted({block for label in labels for block in self._blocks.get(label, ())})

    def render(self, block: int, definitions: Definitions) -> str:
        """The block's HTML under ``definitions``. It may ask for other labels than before."""
        tokens = self._tokens[block]
        definitions.asked = set()
        try:
            inline_again(tokens, definitions)
            self._note(block, definitions.asked)
        finally:
            definitions.asked = None
        return rendered(tokens)

    def _note(self, block: int, labels: set[str]) -> None:
        for label in self._labels.pop(block, set()) - labels:
            self._drop(label, block)
        for label in labels:
            self._blocks.setdefault(label, set()).add(block)
        if labels:
            self._labels[block] = labels
        else:
            del self._tokens[block]

    def _drop(self, label: str, block: int) -> None:
        self._blocks[label].discard(block)
        if not self._blocks[label]:
            del self._blocks[label]

    def forget(self, labels: Iterable[str]) -> None:
        """These labels are settled: nobody waits for them any more."""
        for label in labels:
            for block in self._blocks.pop(label, ()):
                self._labels[block].discard(label)
                if not self._labels[block]:
                    del self._labels[block], self._tokens[block]
