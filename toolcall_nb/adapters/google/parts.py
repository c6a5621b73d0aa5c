"""Reads one candidate of Google's generateContent, part by part; the key of a part tells what it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from toolcall_nb.adapters.assembler import Assembler
from toolcall_nb.adapters.common_events import Sources, custom_part_event, file_event
from toolcall_nb.adapters.google.arguments import PartialArguments
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING, Event, Object
from toolcall_nb.core.sdk_objects import as_json_text, as_mapping, get, joined_text

_REASONS = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(("SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "RECITATION"), "content-filter"),
    **dict.fromkeys(("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"), "content-filter"),
    **dict.fromkeys(("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"), "error"),
}
_CODE = "code_execution"
_BESIDE = frozenset({"thought", "thoughtSignature", "thought_signature", "videoMetadata", "video_metadata"})
_URLSAFE = str.maketrans("-_", "+/")


def at(thing: Any, name: str, kind: type | tuple[type, ...] = object) -> Any:
    """Returns ``thing[name]``, looked up in camelCase and in snake_case."""
    found = get(thing, name, kind)
    return get(thing, re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", name), kind) if found is None else found


class _Open(Struct):
    """A call whose arguments are not complete."""

    key: Any
    arguments: PartialArguments


class Candidate:
    """Collects the message of one candidate. ``ids`` numbers the calls that come without an id."""

    def __init__(self, ids: Iterator[int]) -> None:
        self.message = Assembler()
        self._ids = ids
        self._open: _Open | None = None
        self._code_runs: list[str] = []
        self._has_calls = False
        self._by_key: dict[str, Callable[[Mapping[str, Any], Object], list[Event]]] = {
            "functionCall": self._call,
            "functionResponse": lambda given, _: self.respond(given),
            "toolCall": self._server_call,
            "toolResponse": lambda given, _: self._server_result(given),
            "executableCode": self._code,
            "codeExecutionResult": lambda given, _: self._code_result(given),
        }

    def take(self, given: Mapping[str, Any]) -> list[Event]:
        """Returns the events of the candidate in one response."""
        found = self.message.start()
        for part in get(at(given, "content"), "parts", list) or []:
            found += self._part(as_mapping(part))
        for source in _sources_of(given, self.message.sources):
            found += self.message.after_block(source)
        if reason := at(given, "finishReason", str):
            found += self._finish(reason, at(given, "finishMessage", str))
        return found

    def _part(self, part: Mapping[str, Any]) -> list[Event]:
        signature = at(part, "thoughtSignature", str)
        about: Object = {"google": {"thoughtSignature": signature.translate(_URLSAFE)}} if signature else {}
        for name, read in self._by_key.items():
            if (given := at(part, name, Mapping)) is not None:
                return [*([] if name == "functionCall" else self.end_calls()), *read(given, about)]
        found = self._text(part) if isinstance(part.get("text"), str) else self._file(part)
        return [*found, *(self.message.annotate(about) if about else [])]

    def _text(self, part: Mapping[str, Any]) -> list[Event]:
        text = part["text"]
        ends = self.end_calls() if text else []
        if part.get("thought") is True:
            return [*ends, *(self.message.reasoning(text, "thought") if text else [])]
        return [*ends, *self.message.text(text, "text")]

    def _file(self, part: Mapping[str, Any]) -> list[Event]:
        file = google_file_event(part)
        if isinstance(file, ev.File) and part.get("thought") is True:
            file = ev.ReasoningFile(file.url, file.media_type)
        if file is not None:
            return self.message.other(file)
        kind = next((key for key, value in part.items() if key not in _BESIDE and value is not None), None)
        return [] if kind is None else self.message.custom("google", kind, part)

    # Calls of functions

    def _call(self, given: Mapping[str, Any], about: Object) -> list[Event]:
        name, pieces = get(given, "name", str), at(given, "partialArgs", list)
        continues, found = at(given, "willContinue") is True, []
        if name:
            found = [*self.end_calls(), *self._begin(name, given, about)]
            if not continues and pieces is None:
                return [*found, *self._end(dict(as_mapping(given.get("args"))))]
        if self._open is None:
            return [*found, *(self.message.custom("google", "functionCall", given) if given else [])]
        for piece in pieces or []:
            found += self.message.arguments(self._open.key, self._open.arguments.take(piece))
        return found if continues else [*found, *self._end_pieces(may_be_cut=False)]

    def _begin(self, name: str, given: Mapping[str, Any], about: Object) -> list[Event]:
        call_id = get(given, "id", str) or f"call_{next(self._ids)}"
        self._open = _Open(object(), PartialArguments())
        self._has_calls = True
        return self.message.begin_call(self._open.key, call_id, name, provider_metadata=about or None)

    def _end(self, given: Any, *, may_be_cut: bool = False) -> list[Event]:
        opened, self._open = self._open, None
        return [] if opened is None else self.message.end_call(opened.key, given, may_be_cut=may_be_cut)

    def end_calls(self) -> list[Event]:
        """Completes the arguments of the open call, of which more was announced."""
        return self._end_pieces(may_be_cut=True)

    def _end_pieces(self, *, may_be_cut: bool) -> list[Event]:
        arguments = self._open.arguments if self._open is not None else None
        if arguments is None or arguments.is_broken:
            return self._end(MISSING)
        return self._end(arguments.value, may_be_cut=may_be_cut)

    def respond(self, given: Mapping[str, Any]) -> list[Event]:
        """Ends the call that a function response answers: by id, else the first open call of that name."""
        response, call_id = given.get("response"), get(given, "id", str) or ""
        event: Event = ev.ToolOutputAvailable(call_id, response)
        if isinstance(response, Mapping) and set(response) == {"error"}:
            event = ev.ToolOutputError(call_id, joined_text(response["error"]))
        return self.message.outcome(call_id if self.message.knows(call_id) else "", event, get(given, "name", str))

    # Tools that Google runs

    def _server_call(self, given: Mapping[str, Any], about: Object) -> list[Event]:
        name = (at(given, "toolType", str) or "tool").lower()
        return self._ran(name, get(given, "id", str), dict(as_mapping(given.get("args"))), about)

    def _ran(self, name: str, call_id: str | None, arguments: Object, about: Object) -> list[Event]:
        key = object()
        own = call_id or f"call_{next(self._ids)}"
        begun = self.message.begin_call(key, own, name, provider_executed=True, provider_metadata=about or None)
        if name == _CODE:
            self._code_runs.append(self.message.id_of(key) or own)
        return [*begun, *self.message.end_call(key, arguments)]

    def _server_result(self, given: Mapping[str, Any]) -> list[Event]:
        call_id = get(given, "id", str) or ""
        found = self.message.output(call_id, given.get("response"), provider_executed=True)
        return found or self.message.custom("google", "toolResponse", given)

    def _code(self, given: Mapping[str, Any], about: Object) -> list[Event]:
        arguments = {name: given[name] for name in ("language", "code") if name in given}
        return self._ran(_CODE, get(given, "id", str), arguments, about)

    def _code_result(self, given: Mapping[str, Any]) -> list[Event]:
        call_id = get(given, "id", str) or next(reversed(self._code_runs), "")
        outcome, output = get(given, "outcome", str), get(given, "output", str) or ""
        if outcome in (None, "OUTCOME_OK"):
            found = self.message.output(call_id, output, provider_executed=True)
        else:
            found = self.message.failure(call_id, f"{outcome}: {output}".rstrip(": "), provider_executed=True)
        return found or self.message.custom("google", "codeExecutionResult", given)

    # The end

    def _finish(self, reason: str, message: str | None) -> list[Event]:
        kind = _REASONS.get(reason, "other")
        self.message.reason = "tool-calls" if kind == "stop" and self._has_calls else kind
        ends = [*self.end_calls(), *self.message.end_block()]
        if kind == "error":
            return [*ends, *self.message.fail("Google", {"message": message or reason, "reason": reason})]
        return [*ends, *self.message.text(message, "refusal")] if kind == "content-filter" and message else ends


def google_file_event(part: Mapping[str, Any]) -> Event | None:
    """Returns the event of a part that is a file, by its content or its URI; None for other parts."""
    blob, link = at(part, "inlineData", Mapping), at(part, "fileData", Mapping)
    data = get(blob, "data", (str, bytes))
    data = data.translate(_URLSAFE) if isinstance(data, str) else data
    return file_event(at(blob or link, "mimeType", str), data, at(link, "fileUri", str))


def _sources_of(candidate: Mapping[str, Any], sources: Sources) -> Iterator[Event]:
    """Yields the sources of the text: grounding, citations, pages that were fetched."""
    grounding = as_mapping(at(candidate, "groundingMetadata"))
    for chunk in at(grounding, "groundingChunks", list) or []:
        found = _grounded(as_mapping(chunk), sources)
        if found is not None:
            yield found
    queries = at(grounding, "webSearchQueries", list)
    if queries and sources.is_new(as_json_text(queries)):
        yield custom_part_event("google", "webSearchQueries", {"webSearchQueries": queries})
    citations = as_mapping(at(candidate, "citationMetadata"))
    for citation in at(citations, "citations", list) or at(citations, "citationSources", list) or []:
        if (found := sources.page(get(citation, "uri"), get(citation, "title"))) is not None:
            yield found
    for page in at(as_mapping(at(candidate, "urlContextMetadata")), "urlMetadata", list) or []:
        if (found := sources.page(at(page, "retrievedUrl"))) is not None:
            yield found


def _grounded(chunk: Mapping[str, Any], sources: Sources) -> Event | None:
    kind, given = next(
        ((key, as_mapping(value)) for key, value in chunk.items() if isinstance(value, Mapping)), ("", {})
    )
    url, title = given.get("uri") or at(given, "sourceUri"), given.get("title")
    metadata = {"google": dict(chunk)}
    if isinstance(url, str) and "://" in url:
        return sources.page(url, title, metadata)
    name = title or at(given, "fileSearchStore")
    return sources.document([kind, given], "text/plain", name, metadata) if given else None
