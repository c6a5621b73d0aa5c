"""Logs of Inspect: `INSPECT`.

A record is a log, ``{version, status, eval, samples: [...]}``; each sample is a run. An ``.eval`` file is a zip
archive, whose records are its members, ``{member, content}``: ``header.json``, and one for each sample. A sample's
``messages`` are the conversation; its ``events`` add times, usage, and the calls of agents that ran inside a call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolcall_nb.core.events import LEFT_OUT, Diagnostic, Object
from toolcall_nb.core.sdk_objects import as_json_text, as_mapping, get, joined_text, nonempty
from toolcall_nb.core.text import MAX_LEVELS
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.runs.formats.base import RecordedRun, TraceFormat
from toolcall_nb.runs.formats.inspect_events import ModelEvent, SampleEvents
from toolcall_nb.runs.formats.logged_items import LoggedItems
from toolcall_nb.runs.run_facts import Agents, assemble_all
from toolcall_nb.runs.timestamps import parse_timestamp

_HEADERS = ("header.json", "_journal/start.json")

_READ = frozenset({"messages", "events", "attachments", "transcript", "output", "message_pool", "call_pool"})
"""The fields of a sample that are read, or repeat what is read."""


def _recognises(records: Sequence[Any]) -> bool:
    return any(_is_log(record) or (_member(record) in _HEADERS and _is_log(record["content"])) for record in records)


def _is_log(record: Any) -> bool:
    spec = get(record, "eval", Mapping)
    return spec is not None and "task" in spec and any(name in record for name in ("status", "plan", "samples"))


def _member(record: Any) -> str | None:
    """Returns the name of a member of an archive; None for other records."""
    return get(record, "member", str) if "content" in as_mapping(record) else None


def _read(records: Iterable[Any]) -> Iterator[RecordedRun]:
    header: Object = {}
    waits = False  # for a sample of the log whose header was read
    for record in records:
        member = _member(record)
        log = as_mapping(record["content"] if member is not None else record)
        if member is None or (member in _HEADERS and not header):
            if waits:
                yield _empty_run(header)
            header = {name: value for name, value in log.items() if name not in ("samples", "reductions")}
            samples = get(log, "samples", list) or []
            yield from (_run(as_mapping(sample), header) for sample in samples)
            waits = not samples
        elif member.startswith("samples/"):
            yield _run(log, header)
            waits = False
    if waits:
        yield _empty_run(header)


def _empty_run(header: Object) -> RecordedRun:
    spec = header.get("eval")
    diagnostic = Diagnostic("The log has no samples.", "Its header is in the run's `extra`.")
    return RecordedRun(
        id=nonempty(spec, "eval_id") or nonempty(spec, "run_id") or nonempty(spec, "task_id") or "log",
        transcript=Transcript(diagnostics=(diagnostic,)),
        title=nonempty(spec, "task") or "",
        extra=header,
    )


def _run(sample: Mapping[str, Any], header: Object) -> RecordedRun:
    attachments = as_mapping(sample.get("attachments"))
    logged = get(sample, "events", list) or get(sample.get("transcript"), "events", list)  # in the oldest logs
    events = SampleEvents(_with_attachments(logged or [], attachments))
    messages = _SampleMessages(events)
    conversation = get(sample, "messages", list)
    if conversation is None:
        prompt = sample.get("input")
        conversation = prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt}] if prompt else []
    for message in conversation:
        messages.take(_with_attachments(message, attachments))
    messages.finish(as_mapping(sample.get("model_usage")))
    if error := nonempty(sample.get("error"), "message"):
        messages.items.error(error, sample["error"])
    elif sample.get("limit"):
        messages.items.end("limit")
    facts = messages.items.facts
    if events.unread:
        kinds = ", ".join(f"{kind} {count}" for kind, count in events.unread.most_common(20))
        facts.problem(f"{events.unread.total()} events have no place in a transcript ({kinds}).", LEFT_OUT)
    transcript = assemble_all(messages.items.close(), facts, messages.agents())
    total = get(sample, "total_time", (int, float))
    return RecordedRun(
        id=f"{sample.get('id', '')!s:.200}_epoch_{sample.get('epoch', 1)!s:.20}",
        transcript=transcript,
        title=nonempty(header.get("eval"), "task") or "",
        began=facts.began if (began := parse_timestamp(sample.get("started_at"))) is None else began,
        seconds=float(total) if total is not None and 0 <= total < 1e12 else facts.seconds,
        extra={**header, "sample": {name: value for name, value in sample.items() if name not in _READ}},
        is_unfinished=header.get("status") in ("started", "cancelled") and not (error or _is_complete(sample)),
    )


def _is_complete(sample: Mapping[str, Any]) -> bool:
    return any(sample.get(name) for name in ("completed_at", "scores", "limit"))


_USAGE: Mapping[str, Sequence[str]] = {
    "inputTokens": ("input_tokens", "input_tokens_cache_write", "input_tokens_cache_read"),
    "outputTokens": "output_tokens",
    "totalTokens": "total_tokens",
    "cachedInputTokens": "input_tokens_cache_read",
    "cacheWriteTokens": "input_tokens_cache_write",
    "reasoningTokens": "reasoning_tokens",
}
_REASONS = {"max_tokens": "length", "model_length": "length", "content_filter": "content-filter"}
_ATTACHMENTS = ("attachment://", "tc://")


def _with_attachments(value: Any, attachments: Mapping[str, Any], levels: int = MAX_LEVELS) -> Any:
    """Returns a value with its long texts, each of which the log keeps once, in ``attachments``."""
    if not attachments or levels == 0:
        return value
    if isinstance(value, str):
        text = attachments.get(value.partition("://")[2]) if value.startswith(_ATTACHMENTS) else None
        return text if isinstance(text, str) else value
    if isinstance(value, list):
        return [_with_attachments(item, attachments, levels - 1) for item in value]
    if isinstance(value, dict):
        return {name: _with_attachments(item, attachments, levels - 1) for name, item in value.items()}
    return value


class _SampleMessages:
    """Reads messages one by one: `take` each of them, then `finish`. ``items`` collects them."""

    def __init__(self, events: SampleEvents) -> None:
        self.items = LoggedItems("inspect")
        self._events = events
        self._read: set[str] = set()  # calls
        self._ended: set[str] = set()
        self._inner: dict[str, LoggedItems] = {}  # by the call that they ran inside of
        self._requests = {model.message.get("id"): model for model in events.models if nonempty(model.message, "id")}
        self._used = False
        for time in events.times:
            self.items.facts.see(time)

    def take(self, message: Any) -> None:
        """Reads a message."""
        message = as_mapping(message)
        match message.get("role"):
            case "assistant":
                self._answer(self.items, message, self._requests.pop(str(message.get("id")), None))
            case "tool":
                self._result(message)
            case "system" | "user" as role:
                content = [_part(block) for block in _blocks(message.get("content"))]
                self.items.take({"type": "message", "role": role, "content": content}, None)
            case _:
                self.items.facts.problem("A message has no role that is known.", "It was left out.")

    def _answer(self, items: LoggedItems, message: Mapping[str, Any], request: ModelEvent | None) -> None:
        items.end_step()
        items.model = nonempty(message, "model") or (request.model if request is not None else None)
        for block in _blocks(message.get("content")):
            for item in _answer_items(block):
                items.take(item, None)
        for call in get(message, "tool_calls", list) or []:
            self._call(items, as_mapping(call))
        if request is not None:
            times: Object = {"began": request.began, "ended": request.ended}
            items.use(request.usage, _USAGE, finish_reason=_REASONS.get(request.reason or ""), **times)
            self._used = True

    def _call(self, items: LoggedItems, call: Mapping[str, Any]) -> None:
        call_id = nonempty(call, "id") or f"call-{len(self._read) + 1}"
        self._read.add(call_id)
        arguments = call.get("arguments")
        text = arguments if isinstance(arguments, str) else as_json_text({} if arguments is None else arguments)
        tool = self._events.tools.get(call_id)
        items.call(call_id, nonempty(call, "function") or "tool", text, tool.began if tool is not None else None)

    def _result(self, message: Mapping[str, Any]) -> None:
        call_id = nonempty(message, "tool_call_id") or ""
        if call_id not in self._read:  # the log has lost the message with the call
            self._call(self.items, {"id": call_id or None, "function": message.get("function")})
        self._end(self.items, call_id, message.get("content"), message.get("error"))

    def _end(self, items: LoggedItems, call_id: str, content: Any, error: Any) -> None:
        tool = self._events.tools.get(call_id)
        self._ended.add(call_id)
        output = _output(content)
        item: Object = {"type": "function_call_output", "call_id": call_id, "output": output}
        parts = output if isinstance(output, list) and any(part.get("type") in _OF_FILES for part in output) else []
        if error:
            text = nonempty(error, "message") or joined_text(output)
            others = [part for part in parts if part.get("text") != text]
            item |= {"status": "failed", "output": [{"type": "input_text", "text": text}, *others] if others else text}
        items.take(item, tool.ended if tool is not None else None)
        facts = items.facts.call(call_id)
        facts.seconds = tool.seconds if tool is not None else None
        facts.details = tool.details if tool is not None else {}
        if error:
            facts.details |= {"error": error, **({"content": output} if output and not parts else {})}

    # What only the events have

    def finish(self, model_usage: Mapping[str, Any]) -> None:
        """Reads the calls and requests that are in the events only, and the sample's usage where no request has any."""
        for event in self._events.in_order:
            items = self.items if event.parent is None else self._inner_items(event.parent)
            if isinstance(event, ModelEvent):
                is_unread = not nonempty(event.message, "id") or event.message["id"] in self._requests
                if event.parent is not None and is_unread:
                    self._answer(items, event.message, event)
                continue
            if event.id not in self._read:
                if event.parent is None:
                    self.items.facts.problem(
                        f"The call {event.id:.80} is in the events only.", "It was put at the end."
                    )
                self._call(items, {"id": event.id, "function": event.name, "arguments": event.fields.get("arguments")})
            has_ended = event.ended is not None or "result" in event.fields or event.fields.get("error")
            if event.id not in self._ended and has_ended:
                self._end(items, event.id, event.fields.get("result"), event.fields.get("error"))
        for model, usage in model_usage.items() if not self._used else ():
            self.items.model = model
            self.items.use(usage, _USAGE)

    def _inner_items(self, parent: str) -> LoggedItems:
        if parent not in self._inner:
            self._inner[parent] = LoggedItems("inspect")
            self._inner[parent].facts.agent = self._events.agents.get(parent)
        return self._inner[parent]

    def agents(self) -> Agents:
        """Returns the conversations that ran inside calls."""
        return {parent: [(items.close(), items.facts)] for parent, items in self._inner.items()}


def _blocks(content: Any) -> list[Any]:
    if content is None or content == "":
        return []
    return content if isinstance(content, list) else [content]


_FILES = ("document", "audio", "video")
_OF_FILES = ("input_image", "input_file")


def _part(block: Any) -> Object:
    """Returns a block of a prompt or a result as a part of OpenAI's messages."""
    if isinstance(block, str):
        return {"type": "input_text", "text": block}
    fields = as_mapping(block)
    if image := nonempty(fields, "image"):
        return {"type": "input_image", "image_url": image}
    if file := next((file for kind in _FILES if (file := nonempty(fields, kind))), None):
        source = "file_data" if file.startswith("data:") else "file_url"
        return {"type": "input_file", source: file, "filename": nonempty(fields, "filename")}
    return dict(fields) or {"type": "input_text", "text": as_json_text(block)}


def _answer_items(block: Any) -> list[Object]:
    """Returns a block of an answer as items: text, reasoning, or a call that the provider ran."""
    fields = as_mapping(block)
    kind = nonempty(fields, "type")
    if kind == "reasoning":
        text = nonempty(fields, "summary") or nonempty(fields, "reasoning") or ""
        return [{"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}]
    if kind == "tool_use":
        call_id = nonempty(fields, "id") or ""
        arguments = fields.get("arguments")
        text = arguments if isinstance(arguments, str) else as_json_text(arguments)
        name = nonempty(fields, "name") or "tool"
        call = {"type": "function_call", "call_id": call_id, "name": name, "arguments": text}
        error = fields.get("error")
        output = joined_text(error) if error else fields.get("result")
        status = {"status": "failed"} if error else {}
        return [call, {"type": "function_call_output", "call_id": call_id, "output": output, **status}]
    return [{"type": "message", "role": "assistant", "content": [_part(block)]}]


def _output(content: Any) -> Any:
    """Returns a result: a text where it is nothing but text, or its parts."""
    blocks = content if isinstance(content, list) else []
    if blocks and all(get(block, "type") == "text" for block in blocks):
        return "\n\n".join(nonempty(block, "text") or "" for block in blocks)
    return [_part(block) for block in blocks] or content


INSPECT = TraceFormat("inspect", "logs of Inspect (.eval, .json)", _recognises, _read)
