"""The live view in a terminal: `TerminalFace` prints what is finished once, and draws only the rest again.

In a terminal the rest is what may still change: the last block of Markdown, and calls that have not ended. In a file
or a pipe nothing can be drawn again. There text is written word by word as it comes, a call when it is final, and the
whole output is `to_text`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.text import Text

from toolcall_nb.core import events as ev
from toolcall_nb.core.call_nesting import CallNesting
from toolcall_nb.core.escaping import visible, visible_line
from toolcall_nb.core.events import Event
from toolcall_nb.core.reducer import Touched, TranscriptBuilder
from toolcall_nb.core.transcript import Message, Part, ReasoningPart, State, TextPart, ToolCall
from toolcall_nb.render.shown_states import Activities
from toolcall_nb.render.text import BLANK, INDENT, call_lines, folded, heading, indented, part_text
from toolcall_nb.render.wording import ending, inside_words

if TYPE_CHECKING:
    from rich.console import RenderableType

_STYLES = {
    **{"name": "bold", "dim": "dim", "label": "dim", "c": "dim italic", "e": "red"},
    **{"k": "cyan", "n": "yellow"},
}
_STATE_STYLES = {
    State.OUTPUT_AVAILABLE: "green",
    State.OUTPUT_ERROR: "bold red",
    State.APPROVAL_REQUESTED: "bold yellow",
    State.OUTPUT_DENIED: "dim",
    State.INTERRUPTED: "dim",
}
_JSON_BEGINS = re.compile(r"[{\[]\n")
_LINE_START = re.compile(r"\n(?=[^\n])")


class TerminalFace:
    """The live view of a transcript in a terminal: a context manager, with `apply` for each event.

    ``console`` is rich's; the default is standard output. Only `apply` draws, never a timer.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console()
        self._builder = TranscriptBuilder()
        self._activities = Activities()
        self._nesting = CallNesting()
        self._message = -1
        self._rest: dict[int, _Item] = {}  # the parts that are not printed to their end, by the reducer's key
        self._pending: set[tuple[int, str]] = set()  # the calls that were printed before they were final
        self._has_printed = False  # anything at all
        self._has_spoken = False  # a part of this message
        self._live: Live | None = None

    def __enter__(self) -> TerminalFace:
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=True, vertical_overflow="visible")
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._print_rest()
        finally:
            if self._live is not None:  # it has redirected standard output
                self._live.update(Group())
                self._live.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Clears the drawing and shows the cursor, so that the person can be asked something."""
        if self._live is None:
            yield
            return
        self._live.update(Group(), refresh=True)
        self._live.stop()
        try:
            yield
        finally:
            self._live.start()

    def apply(self, event: Event) -> None:
        """Takes one event, and shows what it changed."""
        touched = self._builder.apply(event)
        self._activities.apply(event, self._builder.call_id)
        if isinstance(event, ev.StartStep | ev.FinishStep | ev.Error) and event.parent is not None:
            message = self._builder.transcript.messages[-1]
            self._nesting.set_message(len(self._builder.transcript.messages) - 1, message)
        if touched is None:
            return
        if touched.message > self._message:
            self._begin(touched.message)
        if touched.message < self._message:
            self._print_late(touched.message)
        elif touched.part is None:
            self._refresh(event)
        elif touched.removed:
            self._rest.pop(touched.part, None)
        else:
            self._change(touched, event)
        self._show()

    # Events to items

    def _begin(self, number: int) -> None:
        self._print_rest()
        self._message, self._has_spoken = number, False

    def _change(self, touched: Touched, event: Event) -> None:
        assert touched.part is not None
        item = self._rest.get(touched.part)
        if isinstance(event, (ev.TextDelta, ev.ReasoningDelta)):
            if item is None:
                item = self._rest[touched.part] = _Item(isinstance(event, ev.ReasoningDelta))
                self._nest(item, self._builder.part(touched))
            item.text += event.delta
            return
        part = self._builder.part(touched)
        if isinstance(part, ToolCall):
            self._nesting.add(part)
        if isinstance(event, ev.ToolRetracted) and isinstance(part, TextPart):
            stand_in = self._rest[touched.part] = _Item()
            stand_in.text = part.text
        elif isinstance(part, ToolCall) and item is None and (touched.message, part.id) in self._pending:
            self._print_late(touched.message)
        elif part is not None and not isinstance(part, (TextPart, ReasoningPart)):
            self._rest.setdefault(touched.part, _Item()).part = part

    def _nest(self, item: _Item, part: Part | None) -> None:
        """Notes which call a text is inside of."""
        if part is not None and (depth := self._nesting.depth_inside(part.parent)):
            item.parent, item.depth = part.parent, depth

    def _refresh(self, event: Event) -> None:
        """Handles a message that began, ended or removed parts. What is printed stays."""
        if isinstance(event, (ev.Finish, ev.Abort)):
            message = self._builder.transcript.messages[self._message]
            calls = {call.id: call for call in message.calls}
            for item in self._rest.values():
                if isinstance(item.part, ToolCall):
                    item.part = calls.get(item.part.id, item.part)
            self._print_rest()
            self._print_end(message)
        elif isinstance(event, ev.ResetStep):
            self._rest.clear()

    # Printing

    def _show(self) -> None:
        """Prints the parts that have become final, from the front, and draws the rest again."""
        while self._rest:
            key, item = next(iter(self._rest.items()))
            is_last = len(self._rest) == 1
            if item.is_text and is_last:
                if not self._is_folded:
                    self._print_text(item, is_whole=False)
                break
            if isinstance(item.part, ToolCall) and not item.part.is_final:
                break
            self._print(item)
            del self._rest[key]
        if self._live is not None:
            self._live.update(_Last(Group(*self._drawn())), refresh=True)

    def _print_rest(self) -> None:
        for item in self._rest.values():
            self._print(item)
        self._rest.clear()

    def _print(self, item: _Item) -> None:
        if item.is_text:
            self._print_text(item, is_whole=True)
        elif item.part is not None and part_text(item.part, self._nesting):
            if isinstance(item.part, ToolCall) and not item.part.is_final:
                self._pending.add((self._message, item.part.id))
            self._space()
            self._out(_drawn_part(item.part, self._nesting))

    def _print_text(self, item: _Item, *, is_whole: bool) -> None:
        """Writes what is certain of a text: whole blocks if the rest can be drawn, else whole words."""
        text = item.take_whole() if is_whole else item.take_blocks() if self._live is not None else item.take_words()
        text = folded(text) if self._is_folded else text
        if text and not item.has_begun:
            self._space()
            self._out(*self._headers(item))
        if text and self._live is not None:
            self._out(*([Text()] if item.has_begun else []), _markdown(text, item))
        elif text:
            self._write(("" if item.has_begun else item.margin) + _LINE_START.sub("\n" + item.margin, text))
        item.has_begun = item.has_begun or bool(text)
        if is_whole and item.has_begun and self._live is None:
            self._write("\n")

    def _headers(self, item: _Item) -> list[Text]:
        """Returns the lines before a text: who speaks inside a call, and that it is reasoning."""
        lines = [visible_line(self._nesting.speaker(item.parent))] if item.parent is not None else []
        lines += ["Reasoning"] if item.is_reasoning else []
        return [Text(INDENT * (1 + item.depth + number) + line, "dim") for number, line in enumerate(lines)]

    def _out(self, *what: RenderableType) -> None:
        """Prints for good, in the place of the drawing."""
        if self._live is not None:
            self._live.update(Group(), refresh=True)
        for one in what:
            if self._live is None and isinstance(one, Text):
                self._write(f"{one.plain}\n")
            else:
                self._console.print(one)

    def _write(self, text: str) -> None:
        """Writes text as it is. In a rich `Text` its tabs would become blanks."""
        self._console.print(Segments([Segment(text)]), end="", soft_wrap=True)

    def _print_late(self, number: int) -> None:
        """Prints again the calls that were printed while they ran and have ended since."""
        for call in self._builder.transcript.messages[number].calls:
            if call.is_final and (number, call.id) in self._pending:
                self._pending.discard((number, call.id))
                self._space()
                self._out(_drawn_part(call, self._nesting))

    def _print_end(self, message: Message) -> None:
        end = ending(message)
        if end is not None or not self._has_spoken:
            self._space()
        if end is not None:
            self._out(Text(visible(f"{INDENT}({end})"), "dim"))

    def _space(self) -> None:
        """Separates a block from the one before, by the name of a new speaker or a blank line."""
        if self._has_printed:
            self._out(Text())
        if not self._has_spoken:
            self._out(self._speaker())
        self._has_printed = self._has_spoken = True

    def _speaker(self) -> Text:
        return Text(heading(self._builder.heading(self._message)), "bold")

    @property
    def _is_folded(self) -> bool:
        """Whether only the beginning of the message's texts is printed."""
        return self._builder.heading(self._message).injected is not None

    def _drawn(self) -> Iterator[RenderableType]:
        """Yields the rest, spaced as it would be printed."""
        if self._rest and not self._has_spoken:
            yield from ([Text()] if self._has_printed else [])
            yield self._speaker()
        elif self._rest:
            yield Text()
        for number, item in enumerate(self._rest.values()):
            if number:
                yield Text()
            if item.part is not None:
                yield _drawn_part(item.part, self._nesting, self._activities)
            else:
                yield from () if item.has_begun else self._headers(item)
                yield _markdown(folded(item.text) if self._is_folded else item.text, item)


class _Item:
    """A part that is not printed to its end. ``text`` is what is left of a text."""

    def __init__(self, is_reasoning: bool = False) -> None:
        self.part: Part | None = None
        self.text = ""
        self.is_reasoning = is_reasoning
        self.has_begun = False
        self.parent: str | None = None  # the call that a text is inside of
        self.depth = 0

    @property
    def is_text(self) -> bool:
        return self.part is None

    @property
    def margin(self) -> str:
        return INDENT * (1 + self.depth + (self.parent is not None) + self.is_reasoning)

    def take_whole(self) -> str:
        return self._take(len(self.text)).rstrip(BLANK)

    def take_words(self) -> str:
        """Takes all whole words without the blanks behind the last, since nothing may follow them."""
        last_blank = max(self.text.rfind(blank) for blank in BLANK)
        return self._take(len(self.text[: last_blank + 1].rstrip(BLANK)))

    def take_blocks(self) -> str:
        """Takes all blocks of Markdown that are final: those before one whose start is certain."""
        return self._take(_certain(self.text)).rstrip(BLANK)

    def _take(self, length: int) -> str:
        text, self.text = self.text[:length], self.text[length:]
        return visible(text) if self.has_begun else visible(text).lstrip("\n")


def _certain(text: str) -> int:
    """Returns where the last block begins that starts behind a blank line and has a whole first line; else 0.

    Such a block starts there, whatever follows (see `toolcall_nb.incremental_markdown`).
    """
    from toolcall_nb.incremental_markdown.flavor import parser

    if not text.endswith("\n"):
        return 0
    lines = text.split("\n")
    starts = [token.map[0] for token in parser().parse(text) if token.level == 0 and token.map and token.nesting >= 0]
    for start in reversed(starts[1:]):
        if start < len(lines) - 1 and not lines[start - 1].strip():
            return sum(len(line) + 1 for line in lines[:start])
    return 0


# Renderables ----------------------------------------------------------------------------------------------------


def _markdown(text: str, item: _Item) -> Padding:
    drawn = _EscapedMarkdown(_with_json_as_code(visible(text)))
    return Padding(drawn, (0, 0, 0, len(item.margin)), expand=False)


class _EscapedMarkdown(Markdown):
    """Markdown whose HTML is text, and whose character references, such as ``&#27;``, become no control characters.

    rich itself leaves HTML out, and fails for ``</kbd>`` without its beginning.
    """

    def __init__(self, text: str) -> None:
        from markdown_it import MarkdownIt

        super().__init__("", hyperlinks=False)
        self.parsed = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).parse(text)
        for token in self._flatten_tokens(self.parsed):
            token.content, token.info = visible(token.content), visible(token.info)
            token.attrs = {name: visible(f"{value}") for name, value in token.attrs.items()}


def _with_json_as_code(text: str) -> str:
    """Returns the Markdown with JSON over several lines in fences, since rich would join the lines."""
    if not _JSON_BEGINS.search(text):
        return text
    from toolcall_nb.incremental_markdown.flavor import parser

    lines = text.split("\n")
    for token in reversed(parser().parse(text)):
        if token.type == "tc_json" and token.map:
            label = [token.info, ""] if token.info else []
            lines[slice(*token.map)] = [*label, "```json", *token.content.splitlines(), "```"]
    return "\n".join(lines)


def _drawn_part(part: Part, nesting: CallNesting, activities: Mapping[str, str] | None = None) -> Text:
    """Returns a card in colours, or the text of another part. Only a live drawing has ``activities``."""
    if not isinstance(part, ToolCall):
        return Text(indented(part_text(part, nesting)))
    drawn = Text()
    activity = (activities or {}).get(part.id)
    margin = INDENT * (1 + nesting.depth(part.id))
    for number, line in enumerate(call_lines(part, activity, inside_words(nesting.inside(part.id), part.name))):
        drawn.append("\n" if number else "")
        drawn.append(margin if line else "")
        for kind, text in line:
            drawn.append(
                text,
                _STATE_STYLES.get(part.state, "blue" if activity else "dim")
                if kind == "state"
                else _STYLES.get(kind, ""),
            )
    return drawn


class _Last:
    """The last lines of something that may be taller than the screen, since new text is at its end."""

    def __init__(self, content: RenderableType) -> None:
        self.content = content

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self.content, options, pad=False)
        last_lines = lines[-max(1, console.height - 1) :]
        for number, line in enumerate(last_lines):
            if number:
                yield Segment.line()
            yield from line
