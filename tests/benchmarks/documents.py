"""The documents that are measured, and the deltas that they come in: generated, and the same on every machine.

A mixed document is what models write: headings, paragraphs with emphasis, code and links, nested and loose lists,
fences, tables, and (unless ``calls`` is false) ``[!tool]`` callouts. Deltas are like tokens, about four characters.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event

__all__ = ["GIANTS", "blocks", "call", "conversation", "deltas", "flushes", "giant", "input_deltas", "mixed"]

_WORDS: list[str] = re.findall(
    r"\w+",
    "the of model tool call answer stream value result city forecast because when which between small large data a in "
    "to is it with for on as notebook cell kernel page frame number first second message text",
)
_MARKED = ("**{} {}**", "`{}_{}`", "[{} {}](https://example.org/a)", "*{} {}*")


class _Author:
    """Writes blocks by dice that always fall the same way."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._calls = 0

    def sentence(self, words: int) -> str:
        """So many words, one in twelve marked up."""
        text = [self._word() for _ in range(words)]
        return " ".join(text).capitalize() + "."

    def _word(self) -> str:
        if self._dice.random() > 0.08:
            return self._dice.choice(_WORDS)
        return self._dice.choice(_MARKED).format(self._dice.choice(_WORDS), self._dice.choice(_WORDS))

    def some(self, few: int, many: int) -> range:
        """As many turns as the dice say."""
        return range(self._dice.randint(few, many))

    def block(self, calls: bool) -> str:
        """One block of any kind, ended by a blank line."""
        makers = [self._heading, *[self._paragraph] * 4, self._bullets, self._numbers, self._fence, self._table]
        return self._dice.choice([*makers, self._callout] if calls else makers)() + "\n"

    def _heading(self) -> str:
        return f"## {self.sentence(5)[:-1]}\n"

    def _paragraph(self) -> str:
        return " ".join(self.sentence(len(self.some(6, 22))) for _ in self.some(1, 4)) + "\n"

    def _bullets(self) -> str:
        return "".join(f"- {self.sentence(9)}\n  - {self.sentence(6)}\n" for _ in self.some(2, 5))

    def _numbers(self) -> str:
        gap = self._dice.choice(["\n", "\n\n"])
        return gap.join(f"{number + 1}. {self.sentence(9)}" for number in self.some(3, 6)) + "\n"

    def _fence(self) -> str:
        body = "".join(f"def f{n}(x):\n    return x + {n}  # {self.sentence(4)}\n" for n in self.some(2, 8))
        return f"```python\n{body}```\n"

    def _table(self) -> str:
        rows = "".join(f"| {self.sentence(2)} | {self.sentence(3)} | {n} |\n" for n in self.some(2, 7))
        return f"| a | b | c |\n| - | - | - |\n{rows}"

    def _callout(self) -> str:
        self._calls += 1
        results = "".join(f">     - title: {self.sentence(4)}\n" for _ in self.some(1, 4))
        head = f"> [!tool search call_{self._calls}]\n> state: output-available\n> input:\n"
        return f"{head}>   query: {self._dice.choice(_WORDS)}\n> output:\n>   results:\n{results}"


def blocks(size: int, *, calls: bool = True) -> Iterator[str]:
    """The blocks of `mixed`, one by one."""
    author = _Author(1)
    length = 0
    while length < size:
        block = author.block(calls)
        length += len(block)
        yield block


def mixed(size: int, *, calls: bool = True) -> str:
    """A mixed document of ``size`` characters or a block more."""
    return "".join(blocks(size, calls=calls))


# How a block begins, and how it goes on.
_GIANT: dict[str, tuple[str, Callable[[_Author], str]]] = {
    "fence": ("```python\n", lambda author: f"x = f(1)  # {author.sentence(5)}\n"),
    "list": ("", lambda author: f"- {author.sentence(9)}\n"),
    "table": ("| a | b |\n| - | - |\n", lambda author: f"| {author.sentence(3)} | {author.sentence(4)} |\n"),
    "paragraph": ("", lambda author: f"{author.sentence(9)} "),
    "tool input": ("> [!tool write call_1]\n> input:\n>   lines:\n", lambda author: f">   - {author.sentence(8)}\n"),
}

GIANTS = tuple(_GIANT)
"""The kinds of block that `giant` makes."""


def giant(kind: str, size: int) -> str:
    """One block that makes up the whole document, of ``size`` characters or a line more."""
    author = _Author(2)
    start, more = _GIANT[kind]
    pieces = [start]
    length = len(start)
    while length < size:
        pieces.append(more(author))
        length += len(pieces[-1])
    return "".join(pieces)


def deltas(text: str) -> list[str]:
    """``text`` in pieces like tokens, which are four characters long on average and begin with the blanks."""
    return re.findall(r"\s*\S{1,4}|\s+\Z", text)


def flushes(text: str, together: int) -> list[str]:
    """The deltas of ``text``, so many of them joined at a time."""
    parts = deltas(text)
    return ["".join(parts[at : at + together]) for at in range(0, len(parts), together)]


def call(number: int) -> list[Event]:
    """A whole tool call, as a provider streams it."""
    name, city = f"call_{number}", _WORDS[number % len(_WORDS)]
    given = {"city": city, "days": number % 7}
    text = f'{{"city": "{city}", "days": {number % 7}}}'
    return [
        ev.ToolInputStart(name, "weather"),
        *(ev.ToolInputDelta(name, text[at : at + 4]) for at in range(0, len(text), 4)),
        ev.ToolInputAvailable(name, "weather", given),
        ev.ToolOutputAvailable(name, {"city": city, "sky": ["clear", "cloudy"], "high": number % 40}),
    ]


def conversation(calls: int, each: int = 10) -> Iterator[Event]:
    """A transcript of so many calls: messages with ``each`` of them, a sentence before each call."""
    author = _Author(3)
    for number in range(calls):
        if number % each == 0:
            yield ev.Start(message_id=f"message-{number // each}")
        yield ev.TextDelta(f"text-{number}", author.sentence(12))
        yield from call(number)
        if number % each == each - 1:
            yield ev.Finish()


def input_deltas(size: int) -> list[Event]:
    """The input of one call as JSON of ``size`` characters or a little more, in deltas, and then whole."""
    author = _Author(4)
    lines: list[str] = []
    length = 0
    while length < size:
        lines.append(author.sentence(8))
        length += len(lines[-1]) + 4
    given = {"lines": lines}
    pieces: list[Event] = [ev.ToolInputDelta("call_1", piece) for piece in deltas(json.dumps(given))]
    return [ev.ToolInputStart("call_1", "write"), *pieces, ev.ToolInputAvailable("call_1", "write", given)]
