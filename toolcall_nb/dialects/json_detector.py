"""Finding calls of the JSON dialect in a stream. `toolcall_nb.dialects.json_call` says what a call is.

Three things may be open at a time. Text goes by, line by line. A fence that may hold calls alone, one object or more,
is tried; where something else turns up in it, its text is gone through again as any other. An object is tried from
its brace on; where it breaks off, the text after that brace is gone through again, but for the braces that broke off
with it: so that a stray brace or an open string hides no call, and each character is looked at a few times at most.

Objects outside ``json`` fences count only as long as no such fence has held a call. They are shown as they come, and
taken back when it does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Diagnostic, Event, Object
from toolcall_nb.dialects.fences import AFTER_LINE, Fence, Lines
from toolcall_nb.dialects.json_object import JsonObject, Member, parse_lenient_json
from toolcall_nb.dialects.live_call import Card, Flow, WrittenCallIds
from toolcall_nb.markdown.block_context import NEWLINE
from toolcall_nb.markdown.characters import CharacterReader

__all__ = ["Detector"]

_JSON = "json"
_INFO = r"(?:(?P<word>[jJ][sS][oO][nN])(?:[ \t][^`\r\n]{0,99})?)?"
_OPENING = re.compile(rf"[ \t]{{0,99}}(?P<mark>`{{3,99}}|~{{3,99}})[ \t]{{0,9}}{_INFO}(?:\r\n?|\n)")
_PARTS = r"[jJ](?:[sS](?:[oO](?:[nN](?:[ \t][^`\r\n]{0,99})?)?)?)?"
_MAY_OPEN = re.compile(rf"[ \t]{{0,99}}(?:`{{0,99}}|~{{0,99}}|(?:`{{3,99}}|~{{3,99}})[ \t]{{0,9}}(?:{_PARTS})?)")
_CLOSING = re.compile(r"(`{1,99}|~{1,99})[ \t]{0,99}(?P<rest>.?)", re.DOTALL)
_BLANKS = re.compile(r"[ \t\r\n]*")
# Its first character is one of a set: that is what is looked for fast.
_STOP = re.compile(rf"[{{\r\n](?:(?<=\{{)(?=[ \t\r\n]*(?:\"|\Z))|(?<!\{{){AFTER_LINE})")


class _Fence:
    """A fence that may hold calls alone, and what it holds so far."""

    def __init__(self, fence: Fence, opening: str, begin: int) -> None:
        self.begin: int | None = begin  # in the text that is being fed; None: in an earlier one
        self.fence = fence
        self.opening = len(opening)
        self.chunks = [opening]
        self.calls: list[Card] = []

    @property
    def source(self) -> str:
        return "".join(self.chunks)


class _Object:
    """An object that may be a call. ``place`` counts the characters before it in the whole text."""

    def __init__(self, begin: int, place: int) -> None:
        self.begin: int | None = begin  # in the text that is being fed; None: in an earlier one
        self.json = JsonObject()
        self.place = place
        self.card: Card | None = None
        self.is_hopeless = False

    @property
    def source(self) -> str:
        return self.json.source

    @property
    def tool(self) -> Member | None:
        return self.json.members.get("tool")

    @property
    def params(self) -> Member | None:
        return self.json.members.get("params")

    def cannot_be_a_call(self) -> bool:
        """Whether what is there of it says so already."""
        tool, params = self.tool, self.params
        if params is not None and params.begins not in ("", "{"):
            return True
        if tool is None or tool.begins in ("", '"'):
            return tool is not None and tool.is_whole and not (tool.string() or "").strip()
        return True

    def tool_name(self) -> str | None:
        """The tool's name, once it is known and the parameters have begun."""
        if self.tool is None or self.params is None or self.params.begins != "{":
            return None
        return self.tool.string()


class Detector:
    """Text of one message in, cut anywhere; events out. See `toolcall_nb.dialects.Detector`."""

    def __init__(self) -> None:
        self._characters = CharacterReader()
        self._lines = Lines()
        self._flow = Flow()
        self._ids = WrittenCallIds()
        self._text = ""  # what is not decided yet, and after it what is being fed
        self._at = 0
        self._base = 0  # how many characters came before `_text`
        self._fence: _Fence | None = None
        self._object: _Object | None = None
        self._broken: set[int] = set()  # braces that broke off with an object around them
        self._last_broken = -1
        self._bare: list[tuple[str, str]] = []  # the calls outside json fences, and what stands for each
        self._fenced = False  # a json fence has held a call

    @property
    def held(self) -> int:
        """How many characters are withheld, because they may still become a call."""
        size = len(self._text) + self._flow.held + self._characters.held
        if self._fence is not None and not self._fence.calls:
            size += sum(map(len, self._fence.chunks))
        if self._object is not None and self._object.card is None and not self._object.is_hopeless:
            size += self._object.json.length
        return size

    def feed(self, text: str) -> list[Event]:
        """Take in more text; return the events that are certain now."""
        text = self._characters.feed(text)
        is_text = self._object is None and self._fence is None and not self._text
        if is_text and self._lines.go_on(text, _STOP):
            self._base += len(text)
            return self._flow.text(text)
        return self._take(text, final=False)

    def close(self) -> list[Event]:
        """The text is complete; return the rest."""
        return [*self._take(self._characters.close(), True), *self._flow.close(), *self._characters.troubles]

    def _take(self, text: str, final: bool) -> list[Event]:
        self._text += text
        events: list[Event] = []
        while self._at < len(self._text) or (final and (self._object is not None or self._fence is not None)):
            before = self._at, self._object, self._fence
            if self._object is not None:
                events += self._object_step(self._object, final)
            elif self._fence is not None:
                events += self._fence_step(self._fence, final)
            else:
                events += self._text_step(final)
            if before == (self._at, self._object, self._fence):
                break
        self._base += self._at
        self._text, self._at = self._text[self._at :], 0
        for held in (self._object, self._fence):
            if held is not None:
                held.begin = None
        return events

    def _rewind(self, held: _Object | _Fence, passed: int) -> Iterator[Event]:
        """What was held is text after all: the first ``passed`` characters at once, the rest is gone through again."""
        if held.begin is None:
            source = held.source
            self._base += self._at - len(source)
            self._text, self._at = source + self._text[self._at :], 0
        else:
            self._at = held.begin
        yield from self._pass(self._at + passed)

    # Text

    def _text_step(self, final: bool) -> list[Event]:
        """What comes before the next object, or the next line that may be a fence."""
        if self._lines.at_start and self._lines.fence is None:
            opening = _OPENING.match(self._text, self._at)
            if opening is not None and not (self._fenced and not opening["word"]):
                self._fence = _Fence(Fence(opening["mark"], (opening["word"] or "").lower()), opening[0], self._at)
                self._at = opening.end()
                return []
            if opening is None and not final and _MAY_OPEN.fullmatch(self._text, self._at):
                return []
        end = self._next_stop()
        if end > self._at:
            return self._pass(end)
        self._begin_object()
        return []

    def _next_stop(self) -> int:
        """Where a line ends before one that may be a fence, or the next object that is to be tried begins."""
        end = len(self._text)
        if self._lines.may_be_mark(self._text, self._at):
            line = NEWLINE.search(self._text, self._at)
            end = line.end() if line else end
        objects = not self._fenced and (self._lines.fence is None or self._lines.fence.word in ("", _JSON))
        for stop in _STOP.finditer(self._text, self._at, end):
            if stop[0] != "{":
                return stop.end()
            if objects and self._base + stop.start() not in self._broken:
                return stop.start()
        return end

    def _pass(self, end: int) -> list[Event]:
        text = self._text[self._at : end]
        self._at = end
        if self._broken and self._base + end > self._last_broken:
            self._broken.clear()
        self._lines.extend(text)
        return self._flow.text(text)

    # A fence that may hold calls alone

    def _fence_step(self, fence: _Fence, final: bool) -> Iterator[Event]:
        """What comes between its objects."""
        blanks = _BLANKS.match(self._text, self._at)
        assert blanks is not None
        fence.chunks.append(blanks[0])
        self._at = blanks.end()
        if self._at == len(self._text):
            if final:
                yield from self._fence_ended(fence)
        elif self._text[self._at] == "{" and self._base + self._at not in self._broken:
            self._begin_object()
        else:
            yield from self._fence_mark(fence, final)

    def _fence_mark(self, fence: _Fence, final: bool) -> Iterator[Event]:
        closing = _CLOSING.match(self._text, self._at)
        if closing is None or closing["rest"] not in ("", "\r", "\n"):
            yield from self._no_fence(fence)
        elif closing["rest"] or final:
            if fence.fence.is_closed_by(closing[1]):
                fence.chunks.append(self._text[self._at : closing.start("rest")])
                self._at = closing.start("rest")
                yield from self._fence_ended(fence)
            else:
                yield from self._no_fence(fence)

    def _fence_ended(self, fence: _Fence) -> Iterator[Event]:
        if not fence.calls:
            yield from self._no_fence(fence)
            return
        self._fence = None
        source = fence.source
        if fence.fence.word:
            yield from self._take_bare_back()
        else:
            self._bare += [(card.id, "" if number else source) for number, card in enumerate(fence.calls)]
        self._flow.end_call()
        self._lines.skip(source)

    def _no_fence(self, fence: _Fence, tried: _Object | None = None) -> Iterator[Event]:
        """Something else is in the fence, or in the object ``tried`` of it."""
        self._fence = self._object = None
        if tried is not None:
            fence.chunks.append(tried.source)
        for card in reversed(fence.calls):
            yield from card.retract(self._ids)
        yield from self._rewind(fence, fence.opening)

    def _take_bare_back(self) -> Iterator[Event]:
        """A fence holds calls: those outside fences were none."""
        self._fenced = True
        for call_id, source in self._bare:
            self._ids.free(call_id)
            yield ev.ToolRetracted(call_id, text=source or None)
        self._bare.clear()

    # An object

    def _begin_object(self) -> None:
        self._object = _Object(self._at, self._base + self._at)

    def _object_step(self, tried: _Object, final: bool) -> Iterator[Event]:
        start = self._at
        end = tried.json.feed(self._text, start)
        if tried.is_hopeless:
            yield from self._pass(end)
            self._object = None if tried.json.is_whole or tried.json.is_broken or final else tried
            return
        self._at = end
        if tried.cannot_be_a_call():
            yield from self._hopeless(tried)
            return
        yield from self._grow(tried)
        if tried.json.is_whole:
            self._object = None
            yield from self._whole(tried)
        elif tried.json.is_broken or final:
            self._object = None
            yield from self._broke_off(tried)

    def _grow(self, tried: _Object) -> Iterator[Event]:
        name = tried.tool_name()
        if tried.card is None and name is not None:
            tried.card = Card(name, self._ids.take())
            yield from tried.card.start(self._flow)
        if tried.card is not None and tried.params is not None:
            yield from tried.card.grow(tried.params)

    def _hopeless(self, tried: _Object) -> Iterator[Event]:
        """It may go on as JSON, but not as a call: what comes of it is text."""
        if self._fence is not None:
            yield from self._no_fence(self._fence, tried)
            return
        tried.is_hopeless = True
        whole = tried.json.is_whole or tried.json.is_broken
        self._object = None if whole else tried
        yield from self._rewind(tried, tried.json.length)

    def _whole(self, tried: _Object) -> Iterator[Event]:
        read = _read_call(tried.source)
        if tried.card is None or read is None:
            yield from self._no_call(tried, "a tool call that cannot be read")
            return
        yield from tried.card.rename(read, self._ids)
        yield ev.ToolInputAvailable(tried.card.id, tried.card.name, read["params"])
        if self._fence is not None:
            self._fence.chunks.append(tried.source)
            self._fence.calls.append(tried.card)
            return
        self._bare.append((tried.card.id, tried.source))
        self._flow.end_call()
        self._lines.skip(tried.source)

    def _no_call(self, tried: _Object, trouble: str) -> Iterator[Event]:
        yield from self._take_back(tried, trouble)
        if self._fence is not None:
            yield from self._no_fence(self._fence, tried)
        else:
            yield from self._rewind(tried, tried.json.length)

    def _broke_off(self, tried: _Object) -> Iterator[Event]:
        yield from self._take_back(tried, "a tool call whose JSON breaks off")
        self._broken.update(tried.place + place for place in tried.json.open_braces)
        self._last_broken = max(self._last_broken, tried.place + tried.json.open_braces[-1])
        if self._fence is not None:
            yield from self._no_fence(self._fence, tried)
        else:
            yield from self._rewind(tried, 1)

    def _take_back(self, tried: _Object, trouble: str) -> Iterator[Event]:
        if tried.card is not None:
            yield from tried.card.retract(self._ids)
            place = self._lines.place
            yield Diagnostic(trouble, "It was kept as text.", place.line, place.column)


def _read_call(source: str) -> Object | None:
    """The object, if it can be read and is a call."""
    try:
        read = parse_lenient_json(source)
    except (ValueError, RecursionError):
        return None
    is_call = isinstance(read.get("tool"), str) and isinstance(read.get("params"), dict)
    return read if is_call else None
