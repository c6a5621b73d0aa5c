"""Generates the benchmark's documents and their deltas, the same on every machine.

A mixed document is like a model's text: headings, paragraphs with emphasis, code and links, nested and loose lists,
fences, tables, and (unless ``calls`` is false) ``[!tool]`` callouts. Deltas are like tokens, about four characters.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event

__all__ = [
    "GIANTS",
    "GROWING",
    "blocks",
    "call",
    "conversation",
    "deltas",
    "flushes",
    "giant",
    "growing",
    "input_deltas",
    "mixed",
    "sentences",
]

_WORDS: list[str] = re.findall(
    r"\w+",
    "the of model tool call answer stream value result city forecast because when which between small large data a in "
    "to is it with for on as notebook cell kernel page frame number first second message text",
)
_MARKED = ("**{} {}**", "`{}_{}`", "[{} {}](https://example.org/a)", "*{} {}*")


class _Author:
    """Writes blocks with random numbers from a fixed seed."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._calls = 0

    def sentence(self, words: int) -> str:
        """Returns a sentence of this number of words, one in twelve with markup."""
        text = [self._word() for _ in range(words)]
        return " ".join(text).capitalize() + "."

    def _word(self) -> str:
        if self._dice.random() > 0.08:
            return self._dice.choice(_WORDS)
        return self._dice.choice(_MARKED).format(self._dice.choice(_WORDS), self._dice.choice(_WORDS))

    def some(self, few: int, many: int) -> range:
        """Returns a range of random length between ``few`` and ``many``."""
        return range(self._dice.randint(few, many))

    def block(self, calls: bool) -> str:
        """Returns one block of any kind, with a blank line at its end."""
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


def sentences(count: int) -> Iterator[str]:
    """Yields so many sentences of some words."""
    author = _Author(6)
    for _ in range(count):
        yield author.sentence(9)


def blocks(size: int, *, calls: bool = True) -> Iterator[str]:
    """Yields the blocks of `mixed`."""
    author = _Author(1)
    length = 0
    while length < size:
        block = author.block(calls)
        length += len(block)
        yield block


def mixed(size: int, *, calls: bool = True) -> str:
    """Returns a mixed document of ``size`` characters, or one block more."""
    return "".join(blocks(size, calls=calls))


# The beginning of each kind of block, and the piece that is repeated.
_GIANT: dict[str, tuple[str, Callable[[_Author], str]]] = {
    "fence": ("```python\n", lambda author: f"x = f(1)  # {author.sentence(5)}\n"),
    "list": ("", lambda author: f"- {author.sentence(9)}\n"),
    "table": ("| a | b |\n| - | - |\n", lambda author: f"| {author.sentence(3)} | {author.sentence(4)} |\n"),
    "paragraph": ("", lambda author: f"{author.sentence(9)} "),
    "tool input": ("> [!tool write call_1]\n> input:\n>   lines:\n", lambda author: f">   - {author.sentence(8)}\n"),
}

GIANTS = tuple(_GIANT)
"""The kinds of block for `giant`."""


# The same for blocks of ordinary Markdown in other forms.
_GROWING: dict[str, tuple[str, Callable[[_Author, int], str]]] = {
    "quote": ("", lambda author, n: f"> {author.sentence(9)}\n" + (">\n" if n % 5 == 4 else "")),
    "table in a quote": ("> | a | b |\n> | - | - |\n", lambda author, n: f"> | {author.sentence(3)} | {n} |\n"),
    "quote with lines without its mark": (
        "",
        lambda author, n: f"> {author.sentence(9)}\n{author.sentence(8)}\n" + (">\n" if n % 5 == 4 else ""),
    ),
    "indented quote": ("", lambda author, n: f"  > {author.sentence(9)}\n" + ("  >\n" if n % 5 == 4 else "")),
    "hard-wrapped paragraph": ("", lambda author, n: f"{author.sentence(11)}\n"),
    "lines that begin with an emoji": ("", lambda author, n: f"\U0001f680 {author.sentence(8)}\n"),
    "lines that begin with a box-drawing sign": ("", lambda author, n: f"\u2502 {author.sentence(8)}\n"),
    "lines that begin with a link": (
        "",
        lambda author, n: f"[item {n}](https://example.org/{n}) {author.sentence(6)}\n",
    ),
    "lines that begin with a date": ("", lambda author, n: f"2026-11-{n % 30 + 1:02} {author.sentence(8)}\n"),
    "nested list": ("- first\n", lambda author, n: f"  - {author.sentence(7)}\n    - {author.sentence(6)}\n"),
    "nested list by tabs": ("- first\n", lambda author, n: f"\t- {author.sentence(7)}\n\t\t- {author.sentence(6)}\n"),
    "fence in a list item": ("- first\n\n  ```python\n", lambda author, n: f"  x = f({n})  # {author.sentence(5)}\n"),
    "list item of many blocks": (
        "1. first\n\n",
        lambda author, n: f"   {author.sentence(15)}\n\n{_CODE if n % 4 == 0 else ''}",
    ),
    "loose list by numbers": ("", lambda author, n: f"{n + 99_999}. {author.sentence(9)}\n\n"),
    "indented code": ("Code:\n\n", lambda author, n: f"    x = f({n})  # {author.sentence(4)}\n"),
    "HTML block": ("<div>\n", lambda author, n: f'  <p class="a">{author.sentence(6)}</p>\n'),
    "paragraph with an asterisk": ("Some *text ", lambda author, n: f"{author.sentence(11)}\n"),
    "paragraph with a backtick": ("Some ` text ", lambda author, n: f"{author.sentence(11)}\n"),
    "paragraph with a price": ("It costs $5 ", lambda author, n: f"{author.sentence(11)}\n"),
    "paragraph with backslashes": (
        "In C:\\dir ",
        lambda author, n: f"{author.sentence(5)} a\\_b {author.sentence(5)}\n",
    ),
    "link definitions": ("", lambda author, n: _definition(n)),
    "link definitions in a quote": ("", lambda author, n: f"> {_definition(n)}"),
    "link definitions between blank lines": ("", lambda author, n: f"{_definition(n)}\n"),
    "footnotes": ("", lambda author, n: f"[^{n}]: {author.sentence(9)}\n"),
    "lines with labels": (
        "",
        lambda author, n: f"{author.sentence(5)} [item {n}][{n}] and [{n}], {author.sentence(4)}\n",
    ),
    "text without a blank line": ("", lambda author, n: _dense(author, n)),
    "lines with a price": ("", lambda author, n: f"It costs ${n} {author.sentence(8)}\n"),
    "lines with an open underscore": ("", lambda author, n: f"__name_{n} {author.sentence(8)}\n"),
    "lines that begin with dashes": ("", lambda author, n: f"-- {author.sentence(8)}\n"),
    "paragraph with a bracket": ("Some [text ", lambda author, n: f"{author.sentence(11)}\n"),
    "lines with a formula in parentheses": (
        "",
        lambda author, n: f"{author.sentence(5)} \\(x_{n}\\) {author.sentence(4)}\n",
    ),
    "formulas between lines": ("", lambda author, n: f"{author.sentence(8)}\n$$\nx_{n % 9}\n$$\n"),
    "code that tabs indent": ("Code:\n\n", lambda author, n: f"\tx = f({n})  # {author.sentence(4)}\n"),
    "session of Python": ("", lambda author, n: f">>> f({n})\n{n}\n"),
    "lines of JavaScript": ("", lambda author, n: f"function f{n}(x) {{\n  return x + {n};\n}}\n"),
    "item with lines that are not indented": ("- first\n", lambda author, n: f"{author.sentence(9)}\n"),
    "lines of Chinese": ("", lambda author, n: f"\u6a21\u578b\u8c03\u7528\u5de5\u5177\uff0c{n}\u3002\n" * 3),
}
_CODE = "   ```\n   code\n   ```\n\n"


def _definition(number: int) -> str:
    return f"[label {number}]: https://example.org/{number}\n"


GROWING = tuple(_GROWING)
"""The kinds of block for `growing`."""


def _dense(author: _Author, number: int) -> str:
    """Returns a block and the end of its line."""
    return (
        f"# {author.sentence(3)}\n",
        f"{author.sentence(9)}\n{author.sentence(8)}\n",
        f"- {author.sentence(6)}\n- {author.sentence(5)}\n",
        f"> {author.sentence(6)}\n",
        "```\nx = 1\n```\n",
    )[number % 5]


def growing(kind: str, size: int) -> str:
    """Returns a document of one of the kinds in `GROWING`, of ``size`` characters or a few lines more."""
    author = _Author(5)
    start, more = _GROWING[kind]
    pieces = [start]
    length = len(start)
    while length < size:
        pieces.append(more(author, len(pieces)))
        length += len(pieces[-1])
    return "".join(pieces)


def giant(kind: str, size: int) -> str:
    """Returns a document that is one block, of ``size`` characters or one line more."""
    author = _Author(2)
    start, more = _GIANT[kind]
    pieces = [start]
    length = len(start)
    while length < size:
        pieces.append(more(author))
        length += len(pieces[-1])
    return "".join(pieces)


def deltas(text: str) -> list[str]:
    """Splits ``text`` into pieces like tokens: four characters on average, with leading blanks."""
    return re.findall(r"\s*\S{1,4}|\s+\Z", text)


def flushes(text: str, together: int) -> list[str]:
    """Returns the deltas of ``text``, joined in groups of ``together``."""
    parts = deltas(text)
    return ["".join(parts[at : at + together]) for at in range(0, len(parts), together)]


def call(number: int) -> list[Event]:
    """Returns the events of a complete tool call, as a provider streams it."""
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
    """Yields the events of ``calls`` calls, in messages with ``each`` calls and a sentence before each call."""
    author = _Author(3)
    for number in range(calls):
        if number % each == 0:
            yield ev.Start(message_id=f"message-{number // each}")
        yield ev.TextDelta(f"text-{number}", author.sentence(12))
        yield from call(number)
        if number % each == each - 1:
            yield ev.Finish()


def input_deltas(size: int) -> list[Event]:
    """Returns the events of one call's input, JSON of at least ``size`` characters: its deltas, and then the whole."""
    author = _Author(4)
    lines: list[str] = []
    length = 0
    while length < size:
        lines.append(author.sentence(8))
        length += len(lines[-1]) + 4
    given = {"lines": lines}
    pieces: list[Event] = [ev.ToolInputDelta("call_1", piece) for piece in deltas(json.dumps(given))]
    return [ev.ToolInputStart("call_1", "write"), *pieces, ev.ToolInputAvailable("call_1", "write", given)]
