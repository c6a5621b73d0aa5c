"""Finds callouts in a stream: `Scanner` turns text in pieces, cut anywhere, into segments as soon as they are certain.

It withholds only a line that may still become a header, and the line ends before it. `BlockContext` decides whether a
header is at the top level. The sources of all segments, joined, are the input.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TypeAlias

from msgspec import Struct

from toolcall_nb.markdown.block_context import NEWLINE, SEAM, BlockContext
from toolcall_nb.markdown.callout import MAX_HEADER, Header, HeaderGrammar, body_line

_MOST_BEFORE_MARK = len("   > ")
_LINE = re.compile(r"([^\r\n]*)(\r\n?|\n)?")


class Text(Struct, frozen=True):
    """Text outside callouts. ``seam`` is true if it is only the line ends between a text and a callout."""

    text: str
    seam: bool = False


class CalloutOpened(Struct, frozen=True):
    """A callout's header line is complete. ``line`` counts from 1."""

    header: Header
    source: str
    line: int


class CalloutGrew(Struct, frozen=True):
    """The callout's body grew by ``text``, which has no markers, and LF as its line ends."""

    text: str
    source: str


class CalloutClosed(Struct, frozen=True):
    """A callout is complete. ``body`` and ``source`` are whole; earlier segments held parts of them."""

    header: Header
    body: str
    source: str
    line: int


class UnreadableHeader(Struct, frozen=True):
    """A line at the top level that begins as a header and cannot be read as one. It stays text."""

    message: str
    line: int
    column: int


Segment: TypeAlias = Text | CalloutOpened | CalloutGrew | CalloutClosed | UnreadableHeader


class _Callout:
    """The callout that is being read."""

    __slots__ = ("body", "header", "in_line", "line", "source")

    def __init__(self, header: Header, source: str, line: int) -> None:
        self.header = header
        self.line = line
        self.source = [source]
        self.body: list[str] = []
        self.in_line = False  # whether a body line's marker was read and its end was not


class Scanner:
    """Splits a text into callouts of ``kinds`` and other text: `feed` any number of times, then `close`."""

    def __init__(self, kinds: Collection[str] = ("tool",)) -> None:
        words = tuple(sorted(kinds))
        self._grammar = HeaderGrammar(words)
        self._context = BlockContext(words)
        self._longest = max(map(len, words), default=0) + 3  # "[!", a kind, and the character after it
        choice = "|".join(map(re.escape, words))
        self._header_line = re.compile(rf"(?:(?<=[\r\n])|\A) {{0,3}}> ?\[!(?:{choice})(?=[ \t\]])", re.IGNORECASE)
        self._buffer = ""
        self._line_start = True  # whether the buffer begins a line
        self._is_in_line = False  # whether the text so far, of which nothing is withheld, ends in a line of text
        self._line = 1
        self._callout: _Callout | None = None
        self._after_callout = False
        self._out: list[Segment] = []

    @property
    def held(self) -> int:
        """The number of characters that are withheld because they may still belong to a callout."""
        return len(self._buffer)

    def feed(self, text: str) -> list[Segment]:
        """Takes more text and returns the segments that are certain now."""
        self._buffer += text
        if self._callout is not None or "[!" in self._buffer:
            return self._run(final=False)
        end = self._safe_end(0)
        self._pass_by(self._buffer[:end])
        return self._take_segments(end)

    def pass_within_line(self, text: str) -> bool:
        """Takes ``text`` in place of `feed` if it certainly continues a line of text; returns whether it did.

        Most pieces of a stream do, and no callout begins within a line. The only segment is then ``Text(text)``.
        """
        if not self._is_in_line or "\n" in text or "\r" in text:
            return False
        self._context.extend(text)
        return True

    def close(self) -> list[Segment]:
        """Ends the text and returns the remaining segments."""
        segments = self._run(final=True)
        if self._callout is not None:
            self._close_callout(self._callout)
            segments.append(self._out.pop())
        return segments

    def _run(self, final: bool) -> list[Segment]:
        position = 0
        while position < len(self._buffer):
            callout = self._callout
            if callout is None:
                following = self._text_step(position, final)
            else:
                following = self._body_step(callout, position, final)
            if following == position and self._callout is callout:
                break
            position = following
        return self._take_segments(position)

    def _take_segments(self, position: int) -> list[Segment]:
        """Returns the segments so far and drops the buffer up to ``position``."""
        if position:
            self._line_start = self._buffer[position - 1] in "\r\n"
            self._buffer = self._buffer[position:]
        self._is_in_line = self._callout is None and not self._line_start and not self._buffer
        out, self._out = self._out, []
        return out

    # Outside a callout. A step returns the position to continue from; the same position means that it needs more text.

    def _text_step(self, start: int, final: bool) -> int:
        buffer = self._buffer
        header = self._find_header(start)
        if header is None:
            end = len(buffer) if final else self._safe_end(start)
        else:
            end = self._seam_start(start, header)
            if end == start:
                return self._header_step(start, header, final)
        self._pass_by(buffer[start:end])
        return end

    def _header_step(self, start: int, header_start: int, final: bool) -> int:
        """Decides on the header line at ``header_start``. There are only line ends between ``start`` and it."""
        line, ending, end = self._line_at(header_start, final)
        if not ending and not final and len(line) <= MAX_HEADER:
            return start
        before = self._buffer[start:header_start]
        passed = self._context.examine(self._buffer, start, header_start, final)
        if passed is None:
            return start
        if passed:
            self._emit(before + self._buffer[header_start : header_start + passed])
            return header_start + passed
        header = self._grammar.read(line)
        if header is None:
            number = self._line + len(NEWLINE.findall(before))
            column = len(line) - len(line.lstrip()) + 1
            self._out.append(UnreadableHeader("a callout's first line that cannot be read", number, column))
            self._context.reset()
            self._pass_by(before + line)
            return header_start + len(line)
        self._emit(before, seam=True)
        source = self._buffer[header_start:end]
        self._out.append(CalloutOpened(header, source, self._line))
        self._callout = _Callout(header, source, self._line)
        self._line += 1
        return end

    def _find_header(self, start: int) -> int | None:
        """Returns the start of the next line that may be a header. It searches for the bracket, which is rare."""
        mark = self._buffer.find("[!", start)
        while mark >= 0:
            earliest = max(start, mark - _MOST_BEFORE_MARK)
            header = self._header_line.search(self._buffer, earliest, mark + self._longest)
            if header is not None and (header.start() > 0 or self._line_start):
                return header.start()
            mark = self._buffer.find("[!", mark + 2)
        return None

    def _safe_end(self, start: int) -> int:
        """Returns the end of the text that need not be withheld."""
        buffer = self._buffer
        tail = max(buffer.rfind("\n", start), buffer.rfind("\r", start)) + 1 or start
        begins = buffer[tail - 1] in "\r\n" if tail else self._line_start
        # The first character shows for most lines that they are not a header.
        if tail < len(buffer) and not (begins and buffer[tail] in " >" and self._grammar.may_start(buffer[tail:])):
            return len(buffer)
        return self._seam_start(start, tail)

    def _seam_start(self, start: int, end: int) -> int:
        """Returns the start of the line ends before ``end`` that would separate a text from a callout: two at most."""
        seam = SEAM.search(self._buffer, max(start, end - 4), end)
        return seam.start() if seam else end

    def _pass_by(self, text: str) -> None:
        if text:
            self._emit(text)
            self._context.extend(text)

    def _emit(self, text: str, seam: bool = False) -> None:
        if not text:
            return
        self._line += len(NEWLINE.findall(text)) if "\r" in text else text.count("\n")
        first = NEWLINE.match(text) if self._after_callout and not seam else None
        self._after_callout = False
        if first:
            self._out.append(Text(first[0], seam=True))
            text = text[first.end() :]
        if text:
            self._out.append(Text(text, seam))

    def _line_at(self, start: int, final: bool) -> tuple[str, str, int]:
        """Returns the line at ``start``, its ending (empty while it may change), and the start of the next line."""
        line = _LINE.match(self._buffer, start)
        assert line is not None
        text, ending = line[1], line[2] or ""
        if ending == "\r" and line.end() == len(self._buffer) and not final:
            return text, "", line.end() - 1
        return text, ending, line.end()

    # Inside a callout

    def _body_step(self, callout: _Callout, start: int, final: bool) -> int:
        line, ending, end = self._line_at(start, final)
        if callout.in_line:
            return self._grow(callout, line, start, ending, end)
        complete = bool(ending) or final
        has_only_marker = len(line.lstrip(" ")) <= 1 and line.strip(" ") in ("", ">")
        if not complete and (has_only_marker or self._grammar.may_start(line)):
            return start  # it may still become a body line or a header
        content = body_line(line)
        if content is None or (complete and self._grammar.read(line) is not None):
            self._close_callout(callout)
            return start
        return self._grow(callout, content, start, ending, end)

    def _grow(self, callout: _Callout, content: str, start: int, ending: str, end: int) -> int:
        source = self._buffer[start:end]
        text = content + "\n" if ending else content
        callout.in_line = not ending
        self._line += bool(ending)
        callout.body.append(text)
        callout.source.append(source)
        if source:
            self._out.append(CalloutGrew(text, source))
        return end

    def _close_callout(self, callout: _Callout) -> None:
        body = "".join(callout.body)
        if callout.in_line:
            body += "\n"
        self._out.append(CalloutClosed(callout.header, body, "".join(callout.source), callout.line))
        self._callout = None
        self._after_callout = True
        self._context.reset()


def scan(text: str, kinds: Collection[str] = ("tool",)) -> list[Segment]:
    """Returns the segments of a whole text. Texts that follow one another are joined."""
    scanner = Scanner(kinds)
    segments: list[Segment] = []
    for segment in (*scanner.feed(text), *scanner.close()):
        last = segments[-1] if segments else None
        if isinstance(segment, Text) and isinstance(last, Text) and segment.seam == last.seam:
            segments[-1] = Text(last.text + segment.text, last.seam)
        else:
            segments.append(segment)
    return segments
