"""One choice of a chat completion: the deltas of its message, or the whole of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolcall_nb.adapters.assembling import Assembler
from toolcall_nb.adapters.openai.parts import PROVIDER, Sound, cited, file_given, image_event, mapped, nonempty, said
from toolcall_nb.adapters.openai.tool_calls import ToolPieces, executed, old_call
from toolcall_nb.adapters.parts import Sources, custom, file_event
from toolcall_nb.adapters.plain import get
from toolcall_nb.core.events import Event, Object

__all__ = ["ChoiceReader", "part_event"]

_REASONS = {
    **dict.fromkeys(("stop", "eos", "end_turn", "stop_sequence", "eos_token"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "model_length"), "length"),
    **dict.fromkeys(("content_filter", "sensitive", "safety", "refusal"), "content-filter"),
    **dict.fromkeys(("tool_calls", "function_call", "tool_use"), "tool-calls"),
    **dict.fromkeys(("error", "network_error", "insufficient_system_resource", "repetition_truncation"), "error"),
}


class ChoiceReader:
    """Reads a choice into ``message``: first `choose` with each of its deltas or messages, then `end`.

    ``sources`` are those of the message, where others add to them.
    """

    def __init__(self, message: Assembler, sources: Sources | None = None) -> None:
        self.message = message
        self._calls = ToolPieces(message)
        self._sources = sources or Sources()
        self._pages: dict[str, Any] = {}  # titles by URL
        self._sound = Sound()
        self._details: list[Object] = []
        self._was_refused = False

    def choose(self, choice: Mapping[str, Any]) -> list[Event]:
        """An entry of ``choices``: a ``delta``, a ``message``, or the ``text`` of the API before chat."""
        if "delta" in choice:
            found = self.take(mapped(choice["delta"]))
        elif "message" in choice:
            found = self.take(mapped(choice["message"]), is_whole=True)
        else:
            found = self.message.text(get(choice, "text", str) or "")
        if reason := nonempty(choice, "finish_reason"):
            self.message.reason = _REASONS.get(reason.lower(), "other")
        return found

    def take(self, delta: Mapping[str, Any], is_whole: bool = False) -> list[Event]:
        """What a delta adds. ``is_whole``: it is a message, and each call in it one for itself."""
        found = [*self.message.start(), *self._reason(delta)]
        for place, tool in enumerate(_items(delta, "executed_tools")):
            found += executed(self.message, tool, place)
        found += self._speak(delta)
        found += [event for given in _items(delta, "images") for event in self._image(given)]
        for given in _items(delta, "annotations"):
            for source in cited(self._sources, given):
                found += self.message.after_block(source)
        self.cite(delta)
        pieces = _items(delta, "tool_calls")
        if old := mapped(delta.get("function_call")):
            pieces = [*pieces, old_call(old)]
        if pieces and "extra_content" in delta:  # Google's signature of a message that is nothing but calls
            pieces[0] = {"extra_content": delta["extra_content"], **mapped(pieces[0])}
        for piece in pieces:
            found += [*self._end_reasoning(), *self._calls.take(piece, is_whole)]
        return found

    def cite(self, given: Mapping[str, Any]) -> None:
        """Pages that stand beside the text, again and again: they are told once, at the end."""
        for result in _items(given, "search_results"):
            if url := nonempty(mapped(result), "url"):
                self._pages[url] = mapped(result).get("title") or self._pages.get(url)
        for url in _items(given, "citations"):
            self._pages.setdefault(url, None) if isinstance(url, str) else None

    def end(self) -> list[Event]:
        """Nothing more comes of it: what is told at its end. The message stays open."""
        found = [*self.message.start(), *self._end_reasoning()]
        if _needed(self._details):
            found += [*self.message.reasoning("", object()), *self._end_details()]
        found += self._calls.close()
        pages = [self._sources.page(url, title) for url, title in self._pages.items()]
        for event in (*pages, self._sound.close()):
            found += self.message.other(event) if event is not None else []
        if self._was_refused:
            self.message.reason = "content-filter"
        return found

    # Reasoning

    def _reason(self, delta: Mapping[str, Any]) -> list[Event]:
        """``reasoning_content`` (DeepSeek and most), ``reasoning`` (Groq, OpenRouter), or what is in the details."""
        details = [dict(mapped(detail)) for detail in _items(delta, "reasoning_details")]
        self._details += details
        text = nonempty(delta, "reasoning_content") or nonempty(delta, "reasoning")
        if text is None:
            text = "".join(nonempty(detail, "text") or nonempty(detail, "summary") or "" for detail in details)
        return self.message.reasoning(text, "reasoning") if text else []

    def _end_reasoning(self) -> list[Event]:
        """Other things follow: what the next request needs of the reasoning is told with it."""
        return self._end_details() if self.message.is_reasoning else []

    def _end_details(self) -> list[Event]:
        kept, self._details = _merged(self._details), []
        return self.message.end_block({"openrouter": {"reasoningDetails": kept}} if _needed(kept) else None)

    # Text and files

    def _speak(self, delta: Mapping[str, Any]) -> list[Event]:
        content = delta.get("content")
        found: list[Event] = []
        for part in content if isinstance(content, list | tuple) else [content]:
            found += self._part(part)
        if refusal := nonempty(delta, "refusal"):
            self._was_refused = True
            found += [*self._end_reasoning(), *self.message.text(refusal, "refusal")]
        audio = mapped(delta.get("audio"))
        self._sound.add(get(audio, "data", str))
        if transcript := nonempty(audio, "transcript"):
            found += [*self._end_reasoning(), *self.message.text(transcript)]
        return found

    def _part(self, given: Any) -> list[Event]:
        if isinstance(given, str):
            return [*self._end_reasoning(), *self.message.text(given)] if given else []
        part = mapped(given)
        if not part:
            return []
        kind = get(part, "type", str)
        if kind == "thinking":  # Mistral's
            thought = part.get("thinking")
            pieces = thought if isinstance(thought, list) else [thought]
            thought = "".join(said(mapped(piece) or piece) or "" for piece in pieces)
            return self.message.reasoning(thought, "reasoning") if thought else []
        self._was_refused = self._was_refused or kind == "refusal"
        if (text := said(part)) is not None:
            return self._part(text)
        return [*self._end_reasoning(), *self.message.other(part_event(part))]

    def _image(self, given: Any) -> Iterator[Event]:
        event = image_event(mapped(given).get("image_url")) or image_event(given)
        if event is not None:
            yield from (*self._end_reasoning(), *self.message.other(event))


def part_event(part: Mapping[str, Any]) -> Event:
    """A content part that is no text: an image, sound, a file; of another kind, itself."""
    kind = get(part, "type", str) or "unknown"
    sound = mapped(part.get("input_audio"))
    name = nonempty(sound, "format") or "wav"
    event = (
        image_event(mapped(part.get("image_url")) or part.get("image_url"))
        or file_given(mapped(part.get("file")) or part)
        or (file_event(f"audio/{'mpeg' if name == 'mp3' else name}", sound.get("data")) if sound else None)
    )
    return event or custom(PROVIDER, kind, dict(part))


def _items(given: Mapping[str, Any], name: str) -> list[Any]:
    found = given.get(name)
    return list(found) if isinstance(found, list | tuple) else []


def _needed(details: list[Object]) -> bool:
    """Whether there is more in them than the text that is shown."""
    return any(detail.get(name) for detail in details for name in ("signature", "data"))


def _merged(details: list[Object]) -> list[Object]:
    """OpenRouter's ``reasoning_details`` as they are sent back: the pieces of one under one."""
    merged: list[Object] = []
    for detail in details:
        last = merged[-1] if merged else {}
        same = bool(last) and all(last.get(name) == detail.get(name) for name in ("type", "index"))
        if same and detail.get("type") in ("reasoning.text", "reasoning.summary"):
            for name, value in detail.items():
                grows = name in ("text", "summary") and isinstance(value, str) and isinstance(last.get(name), str)
                if value is not None:
                    last[name] = last[name] + value if grows else value
        else:
            merged.append(dict(detail))
    return merged
