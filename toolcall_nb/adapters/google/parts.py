"""Reads one candidate of Google's generateContent, part by part; the key of a part tells what it is.

`PartialArguments` collects arguments that are streamed as values at paths (``functionCall.partialArgs``). Source:
googleapis/python-genai 2.34, ``types.PartialArg``: ``jsonPath`` is an RFC 9535 path of names and indices, a string
whose piece says ``willContinue`` is continued by the next piece of the same path.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from toolcall_nb.adapters.assembler import Assembler
from toolcall_nb.adapters.common_events import Sources, custom_part_event, file_event
from toolcall_nb.adapters.fields_in_use import in_use
from toolcall_nb.core import events as ev
from toolcall_nb.core.contents import read_contents
from toolcall_nb.core.events import MISSING, Event, Json, Object
from toolcall_nb.core.sdk_objects import as_json_text, as_mapping, get, joined_text

_REASONS = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(("SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "RECITATION"), "content-filter"),
    **dict.fromkeys(("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"), "content-filter"),
    **dict.fromkeys(("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"), "error"),
}
_BLOB = in_use("data fileUri mimeType displayName")
USED_OF_CANDIDATE = in_use(
    "finishReason",
    envelope=True,
    content=in_use(
        envelope=True,
        parts=in_use(
            "text thought thoughtSignature",
            needs="text functionCall functionResponse toolCall toolResponse executableCode codeExecutionResult "
            "inlineData fileData thoughtSignature videoMetadata",
            functionCall=in_use(
                "id name args willContinue",
                partialArgs=in_use("jsonPath stringValue numberValue boolValue nullValue willContinue"),
            ),
            functionResponse=in_use("id name response"),
            toolCall=in_use("id toolType args"),
            toolResponse=in_use("id toolType response"),
            executableCode=in_use("id language code"),
            codeExecutionResult=in_use("id outcome output"),
            inlineData=_BLOB,
            fileData=_BLOB,
        ),
    ),
    groundingMetadata=in_use("groundingChunks webSearchQueries"),
    citationMetadata=in_use(citations=in_use("uri title"), citationSources=in_use("uri title")),
    urlContextMetadata=in_use(urlMetadata=in_use("retrievedUrl")),
)
"""The fields that `Candidate` uses."""
_CODE = "code_execution"
_BESIDE = frozenset({"thought", "thoughtSignature", "thought_signature", "videoMetadata", "video_metadata"})
_URLSAFE = str.maketrans("-_", "+/")


def at(thing: Any, name: str, kind: type | tuple[type, ...] = object) -> Any:
    """Returns ``thing[name]``, looked up in camelCase and in snake_case."""
    value = get(thing, name, kind)
    return get(thing, re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", name), kind) if value is None else value


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
            "functionResponse": lambda content, _: (
                self.respond(content) or self.message.custom("google", "functionResponse", content)
            ),
            "toolCall": self._server_call,
            "toolResponse": lambda content, _: self._server_result(content),
            "executableCode": self._code,
            "codeExecutionResult": lambda content, _: self._code_result(content),
        }

    def take(self, candidate: Mapping[str, Any]) -> list[Event]:
        """Returns the events of the candidate in one response."""
        events = self.message.start()
        for part in get(at(candidate, "content"), "parts", list) or []:
            events += self._part(as_mapping(part))
        grounding, sources = as_mapping(at(candidate, "groundingMetadata")), self.message.sources
        for chunk in at(grounding, "groundingChunks", list) or []:
            events += self.message.cite("google", chunk, _grounded(as_mapping(chunk), sources))
        for source in _sources_of(candidate, grounding, sources):
            events += self.message.after_block(source)
        if reason := at(candidate, "finishReason", str):
            events += self._finish(reason, at(candidate, "finishMessage", str))
        return events

    def _part(self, part: Mapping[str, Any]) -> list[Event]:
        signature = at(part, "thoughtSignature", str)
        metadata: Object = {"google": {"thoughtSignature": signature.translate(_URLSAFE)}} if signature else {}
        for name, read in self._by_key.items():
            if (content := at(part, name, Mapping)) is not None:
                return [*([] if name == "functionCall" else self.end_calls()), *read(content, metadata)]
        events = self._text(part) if isinstance(part.get("text"), str) else self._file(part)
        return [*events, *(self.message.annotate(metadata) if metadata else [])]

    def _text(self, part: Mapping[str, Any]) -> list[Event]:
        text = part["text"]
        ends = self.end_calls() if text else []
        if part.get("thought") is not True:
            return [*ends, *self.message.text(text, "text")]
        return [*ends, *self.message.reasoning(text, "thought")] if text else []

    def _file(self, part: Mapping[str, Any]) -> list[Event]:
        file = google_file_event(part)
        if isinstance(file, ev.File) and part.get("thought") is True:
            file = ev.ReasoningFile(file.url, file.media_type, filename=file.filename)
        if file is not None:
            return self.message.other(file)
        kind = next((key for key, value in part.items() if key not in _BESIDE and value is not None), None)
        return [] if kind is None else self.message.custom("google", kind, part)

    # Calls of functions

    def _call(self, call: Mapping[str, Any], metadata: Object) -> list[Event]:
        name, pieces = get(call, "name", str), at(call, "partialArgs", list)
        continues, events = at(call, "willContinue") is True, []
        if name:
            events = [*self.end_calls(), *self._begin(name, call, metadata)]
            if not continues and pieces is None:
                return [*events, *self._end(dict(as_mapping(call.get("args"))))]
        if self._open is None:
            return [*events, *(self.message.custom("google", "functionCall", call) if call else [])]
        for piece in pieces or []:
            events += self.message.arguments(self._open.key, self._open.arguments.take(piece))
        return events if continues else [*events, *self.end_calls(may_be_cut=False)]

    def _begin(self, name: str, call: Mapping[str, Any], metadata: Object) -> list[Event]:
        call_id = get(call, "id", str) or f"call_{next(self._ids)}"
        self._open = _Open(object(), PartialArguments())
        self._has_calls = True
        return self.message.begin_call(self._open.key, call_id, name, provider_metadata=metadata or None)

    def _end(self, arguments: Any, *, may_be_cut: bool = False) -> list[Event]:
        opened, self._open = self._open, None
        return [] if opened is None else self.message.end_call(opened.key, arguments, may_be_cut=may_be_cut)

    def end_calls(self, *, may_be_cut: bool = True) -> list[Event]:
        """Completes the arguments of the open call. With ``may_be_cut``, more of them was announced."""
        arguments = self._open.arguments if self._open is not None else None
        if arguments is None or arguments.is_broken:
            return self._end(MISSING)
        return self._end(arguments.value, may_be_cut=may_be_cut)

    def respond(self, function_response: Mapping[str, Any]) -> list[Event]:
        """Ends the call that a function response answers: by id, else the first open call of that name."""
        response, call_id = function_response.get("response"), get(function_response, "id", str) or ""
        contents = read_contents(get(function_response, "parts", list), google_file_event).contents
        event: Event = ev.ToolOutputAvailable(call_id, response, contents=contents)
        if isinstance(response, Mapping) and set(response) == {"error"}:
            event = ev.ToolOutputError(call_id, joined_text(response["error"]), contents=contents)
        name = get(function_response, "name", str)
        return self.message.outcome(call_id if self.message.knows(call_id) else "", event, name)

    # Tools that Google runs

    def _server_call(self, call: Mapping[str, Any], metadata: Object) -> list[Event]:
        name = (at(call, "toolType", str) or "tool").lower()
        return self._ran(name, get(call, "id", str), dict(as_mapping(call.get("args"))), metadata)

    def _ran(self, name: str, call_id: str | None, arguments: Object, metadata: Object) -> list[Event]:
        key = object()
        call_id = call_id or f"call_{next(self._ids)}"
        begins = self.message.begin_call(key, call_id, name, provider_executed=True, provider_metadata=metadata or None)
        if name == _CODE:
            self._code_runs.append(self.message.id_of(key) or call_id)
        return [*begins, *self.message.end_call(key, arguments)]

    def _server_result(self, result: Mapping[str, Any]) -> list[Event]:
        call_id = get(result, "id", str) or ""
        events = self.message.output(call_id, result.get("response"), provider_executed=True)
        return events or self.message.custom("google", "toolResponse", result)

    def _code(self, code: Mapping[str, Any], metadata: Object) -> list[Event]:
        arguments = {name: code[name] for name in ("language", "code") if name in code}
        return self._ran(_CODE, get(code, "id", str), arguments, metadata)

    def _code_result(self, result: Mapping[str, Any]) -> list[Event]:
        call_id = get(result, "id", str) or next(reversed(self._code_runs), "")
        outcome, output = get(result, "outcome", str), get(result, "output", str) or ""
        if outcome in (None, "OUTCOME_OK"):
            events = self.message.output(call_id, output, provider_executed=True)
        else:
            events = self.message.failure(call_id, f"{outcome}: {output}".rstrip(": "), provider_executed=True)
        return events or self.message.custom("google", "codeExecutionResult", result)

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
    file = blob or link
    return file_event(at(file, "mimeType", str), data, at(link, "fileUri", str), filename=at(file, "displayName", str))


def _sources_of(candidate: Mapping[str, Any], grounding: Mapping[str, Any], sources: Sources) -> Iterator[Event | None]:
    """Yields the sources of the text besides those of its grounding: citations, and pages that were fetched."""
    queries = at(grounding, "webSearchQueries", list)
    if queries and sources.is_new(as_json_text(queries)):
        yield custom_part_event("google", "webSearchQueries", {"webSearchQueries": queries})
    citations = as_mapping(at(candidate, "citationMetadata"))
    for citation in at(citations, "citations", list) or at(citations, "citationSources", list) or []:
        yield sources.page(get(citation, "uri"), get(citation, "title"))
    for page in at(as_mapping(at(candidate, "urlContextMetadata")), "urlMetadata", list) or []:
        yield sources.page(at(page, "retrievedUrl"))


def _grounded(chunk: Mapping[str, Any], sources: Sources) -> Event | None:
    kind, fields = next(
        ((key, as_mapping(value)) for key, value in chunk.items() if isinstance(value, Mapping)), ("", {})
    )
    url, title = fields.get("uri") or at(fields, "sourceUri"), fields.get("title")
    metadata = {"google": dict(chunk)}
    if isinstance(url, str) and "://" in url:
        return sources.page(url, title, metadata)
    name = title or at(fields, "fileSearchStore")
    return sources.document([kind, fields], "text/plain", name, metadata) if fields else None


_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""", re.DOTALL)
_MOST_LEVELS = 60
_MOST_MISSING = 1000

_Path = list[str | int]


class PartialArguments:
    """Collects the pieces in `value`, and writes them as JSON text.

    The text from `take` adds up to the JSON of `value` without its closing brackets, as long as the pieces come in
    the order of the text. A piece without a valid path is written into the text as it is, which then is not JSON:
    ``is_broken`` becomes true.
    """

    def __init__(self) -> None:
        self.value: Json = {}
        self.is_broken = False
        self._grows: _Path | None = None
        self._text: str | None = ""  # the JSON text so far; None after a piece that was out of order

    def take(self, piece: Any) -> str:
        """Returns the JSON text that this piece adds."""
        path, value = _path(get(piece, "jsonPath", str) or get(piece, "json_path", str)), _value(as_mapping(piece))
        if path is None or not self._put(path, value):
            self.is_broken = True
            return f"{{ {json.dumps(str(piece))}"
        text = self._added_text(value, path == self._grows)
        continues = get(piece, "willContinue") or get(piece, "will_continue")
        self._grows = path if continues is True and isinstance(value, str) else None
        return text

    def _added_text(self, value: Json, continues: bool) -> str:
        if self._text is None:
            return ""
        if continues:
            added = json.dumps(value, ensure_ascii=False)[1:-1] if isinstance(value, str) else ""
        else:
            whole = json.dumps(self.value, ensure_ascii=False, separators=(",", ":")).rstrip("]}")
            whole = whole[:-1] if isinstance(value, str) else whole  # the string may continue
            if not whole.startswith(self._text):
                self._text = None
                return ""
            added = whole[len(self._text) :]
        self._text += added
        return added

    def _put(self, path: _Path, value: Json) -> bool:
        holder = self.value
        for step, following in itertools.pairwise(path):
            old = _at(holder, step)
            inner = old if isinstance(old, list if isinstance(following, int) else dict) else None
            if inner is None:
                inner = [] if isinstance(following, int) else {}
                if not _set(holder, step, inner):
                    return False
            holder = inner
        old = _at(holder, path[-1])
        return _set(holder, path[-1], old + value if path == self._grows and isinstance(old, str) else value)


def _path(text: str | None) -> _Path | None:
    """Returns the steps of a path such as ``$.a[0]['b c']``; None if it is invalid or far too long."""
    if text is None or not text.startswith("$"):
        return None
    position, steps = 1, _Path()
    while match := _STEP.match(text, position):
        name, index, *quoted = match.groups()
        steps.append(int(index) if index is not None else name or re.sub(r"\\(.)", r"\1", quoted[0] or quoted[1] or ""))
        position = match.end()
    is_whole = position == len(text) and 0 < len(steps) <= _MOST_LEVELS and isinstance(steps[0], str)
    return steps if is_whole else None


def _value(piece: Mapping[str, Any]) -> Json:
    for name, snake in (("stringValue", "string_value"), ("numberValue", "number_value"), ("boolValue", "bool_value")):
        value = piece.get(name, piece.get(snake))
        if value is not None:
            return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value
    return None


def _at(holder: Any, step: str | int) -> Any:
    if isinstance(step, int):
        return holder[step] if isinstance(holder, list) and step < len(holder) else None
    return holder.get(step) if isinstance(holder, dict) else None


def _set(holder: Any, step: str | int, value: Json) -> bool:
    if isinstance(step, str) and isinstance(holder, dict):
        holder[step] = value
        return True
    if not isinstance(step, int) or not isinstance(holder, list) or step > len(holder) + _MOST_MISSING:
        return False
    holder.extend([None] * (step + 1 - len(holder)))
    holder[step] = value
    return True
