"""Reads the runs of LangSmith that are not inside a tool of one another, as one conversation: `Level`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from toolcall_nb.adapters.langchain.messages import blocks_of, content_text, message_of, response_details, role_of
from toolcall_nb.adapters.openai.content import counts_of
from toolcall_nb.core.events import Object
from toolcall_nb.core.sdk_objects import as_json_text, as_json_value, as_mapping, get, nonempty
from toolcall_nb.runs.formats.logged_items import LoggedItems
from toolcall_nb.runs.timestamps import parse_timestamp

_TRACEBACK = "Traceback (most recent call last)"
_COUNTS = {
    name: (name,) for name in ("inputTokens", "outputTokens", "totalTokens", "cachedInputTokens", "reasoningTokens")
}
_ROLES = ("system", "user", "assistant", "tool")


class LoggedRun:
    """A run of LangSmith."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields = fields
        self.id = str(fields["id"])
        self.kind = nonempty(fields, "run_type") or "unknown"
        self.name = nonempty(fields, "name") or self.kind
        self.trace = nonempty(fields, "trace_id")
        self.order = nonempty(fields, "dotted_order") or ""
        self.began = parse_timestamp(fields.get("start_time"))
        self.ended = parse_timestamp(fields.get("end_time"))
        self.error = nonempty(fields, "error")
        parents = [each for each in get(fields, "parent_run_ids", list) or [] if isinstance(each, str)]
        self.parent = nonempty(fields, "parent_run_id") or (parents[-1] if parents else self._parent_in_order())
        if self.parent == self.id:
            self.parent = None

    def _parent_in_order(self) -> str | None:
        """Returns the parent that the dotted order names: of the last part but one, what follows the time."""
        parts = self.order.split(".")
        return parts[-2].partition("Z")[2] or None if len(parts) > 1 else None

    @property
    def inputs(self) -> Any:
        """The inputs, which may be JSON text."""
        return _json_value(self.fields.get("inputs"))

    @property
    def outputs(self) -> Any:
        """The outputs, which may be JSON text."""
        return _json_value(self.fields.get("outputs"))

    @property
    def seconds(self) -> float | None:
        """The duration."""
        return None if self.began is None or self.ended is None else max(0.0, round(self.ended - self.began, 6))


def _json_value(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


class Level:
    """Reads runs in the order of their beginning: `take` each. ``names`` are the ids of calls by the ids of runs."""

    def __init__(self) -> None:
        self.items = LoggedItems("langsmith")
        self.names: dict[str, str] = {}
        self._seen: Counter[str] = Counter()  # messages by content
        self._open: dict[str, tuple[str, str]] = {}  # name and arguments of calls without a result

    def take(self, run: LoggedRun) -> bool:
        """Reads a run; returns False if it is neither of a model nor of a tool."""
        if run.kind == "llm":
            self._model(run)
        elif run.kind == "tool":
            self._tool(run)
        else:
            return False
        return True

    def frame(self, root: LoggedRun) -> None:
        """Adds what the first run of a trace was given and gave, where no model was asked, and its error."""
        if not self._seen and root.kind not in ("tool", "llm"):
            before = LoggedItems("langsmith")
            self._plain(before, "user", root.inputs)
            self.items.prepend(before.close())
            self._plain(self.items, "assistant", root.outputs)
        if root.error and root.kind != "tool":
            self.items.error(root.error.partition(_TRACEBACK)[0][:2_000], root.error)

    def _plain(self, items: LoggedItems, role: str, value: Any) -> None:
        values = list(value.values()) if isinstance(value, Mapping) else [value]
        if value in (None, {}, ""):
            return
        if isinstance(value, Mapping) and isinstance(value.get("messages"), list):  # the state of an agent
            contents = [message["content"] for message in _messages(value) if message["role"] == role]
            values = [content_text(content) for content in contents[-1:]]
        single = values[0] if len(values) == 1 and isinstance(values[0], str) else None
        items.text(role, single or as_json_text(as_json_value(value)))

    # Models

    def _model(self, run: LoggedRun) -> None:
        inputs = _messages(run.inputs)
        counted: Counter[str] = Counter()
        for message in inputs:
            key = _key(message)
            counted[key] += 1
            if counted[key] > self._seen[key]:
                self._seen[key] += 1
                self._message(message, None)
        outputs = run.outputs
        answers = list(_answers(outputs))
        for message in answers:
            key = _key(message)
            counted[key] += 1
            if counted[key] > self._seen[key]:
                self._seen[key] += 1
                self._message(message, run.ended)
        metadata = as_mapping(get(run.fields.get("extra"), "metadata"))
        self.items.model = _model_name(answers, outputs) or nonempty(metadata, "ls_model_name")
        self.items.use(_usage(answers, outputs), _COUNTS)
        if run.error and not answers:
            self.items.error(run.error.partition(_TRACEBACK)[0][:2_000], run.error)

    def _message(self, message: Mapping[str, Any], time: float | None) -> None:
        role = message["role"]
        results = [block for block in blocks_of(message["content"]) if block.get("type") == "tool_result"]
        if role == "user" and results:  # of Anthropic
            for block in results:
                status = {"status": "error"} if block.get("is_error") is True else {}
                told = {"content": block.get("content"), "tool_call_id": block.get("tool_use_id"), **status}
                self._message({"role": "tool", **told}, time)
        elif role in ("system", "user"):
            content = [
                {"type": "text", **block} if "text" in block else dict(block) for block in blocks_of(message["content"])
            ]
            self.items.take({"type": "message", "role": role, "content": content}, None)
        elif role == "tool":
            call_id = nonempty(message, "tool_call_id") or ""
            if call_id in self._open:
                self._end(call_id, message, None)
        else:
            for item in _answer_items(message):
                if "call_id" in item:
                    self._open[item["call_id"]] = (item["name"], _arguments_key(item["arguments"]))
                self.items.take(item, time)

    # Tools

    def _tool(self, run: LoggedRun) -> None:
        call_id = self._call_of(run)
        if call_id is None:
            call_id = _told_id(run) or run.id
            given = as_json_text(as_json_value(_inputs(run)))
            self.items.take(
                {"type": "function_call", "call_id": call_id, "name": run.name, "arguments": given}, run.began
            )
        self.names[run.id] = call_id
        facts = self.items.facts.call(call_id)
        facts.began = run.began
        if run.error is None and run.ended is None and not run.outputs:
            return
        self._end(call_id, run.outputs, run)

    def _call_of(self, run: LoggedRun) -> str | None:
        """Returns the open call that the run carries out: by its id, its arguments, or its name alone."""
        told = _told_id(run)
        if told in self._open:
            return told
        if told is not None:
            return None
        asked = _arguments_key(as_json_text(as_json_value(_inputs(run))))
        same = [call_id for call_id, (name, _) in self._open.items() if name == run.name]
        return next((call_id for call_id in same if self._open[call_id][1] == asked), same[0] if same else None)

    def _end(self, call_id: str, result: Any, run: LoggedRun | None) -> None:
        self._open.pop(call_id, None)
        output, has_failed = _output(result)
        details: Object = {"run": run.id} if run is not None else {}
        if run is not None and run.error:
            output, _, traceback = run.error.partition(_TRACEBACK)
            details |= {"traceback": _TRACEBACK + traceback} if traceback else {}
            has_failed = True
        item: Object = {"type": "function_call_output", "call_id": call_id, "output": output}
        if has_failed:
            item |= {"status": "failed", "output": output if isinstance(output, str) else as_json_text(output)}
        self.items.take(item, run.ended if run is not None else None)
        facts = self.items.facts.call(call_id)
        facts.details = details
        facts.seconds = run.seconds if run is not None else None


def _inputs(run: LoggedRun) -> Any:
    """Returns the arguments of a tool run, which may be text in a field ``input``."""
    inputs = run.inputs
    if isinstance(inputs, Mapping) and set(inputs) == {"input"} and isinstance(inputs["input"], str):
        return _json_value(inputs["input"])
    return {} if inputs is None else inputs


def _told_id(run: LoggedRun) -> str | None:
    """Returns the id of the call that a tool run names."""
    extra = as_mapping(run.fields.get("extra"))
    places = (_constructed(get(run.outputs, "output")), as_mapping(extra.get("metadata")), extra)
    return next((found for place in places if (found := nonempty(place, "tool_call_id"))), None)


def _constructed(value: Any) -> Any:
    """Returns the fields of an object that LangChain wrote as its constructor's arguments; other values as they are."""
    is_constructor = get(value, "type") == "constructor" and get(value, "lc") == 1
    return as_mapping(value.get("kwargs")) if is_constructor else value


def _output(result: Any) -> tuple[Any, bool]:
    """Returns the output of a tool, and whether it failed."""
    inner = _constructed(result["output"] if isinstance(result, Mapping) and set(result) == {"output"} else result)
    if isinstance(inner, Mapping) and "content" in inner and ("tool_call_id" in inner or inner.get("type") == "tool"):
        return content_text(inner["content"]), inner.get("status") == "error"
    return as_json_value(inner), False


def _arguments_key(text: str) -> str:
    return json.dumps(value, sort_keys=True) if isinstance(value := _json_value(text), dict) else text


# Messages, whatever their form --------------------------------------------------------------------------------


def _messages(inputs: Any) -> list[Object]:
    """Returns the messages that a model was sent; a prompt is one of the user."""
    given = inputs.get("messages", inputs.get("input")) if isinstance(inputs, Mapping) else inputs
    if isinstance(given, list) and len(given) == 1 and isinstance(given[0], list) and _message(given[0]) is None:
        given = given[0]
    if given is None and isinstance(inputs, Mapping):
        given = inputs.get("prompts", inputs.get("prompt"))
    items = given if isinstance(given, list) else [given] if isinstance(given, str) else []
    return [message for item in items if (message := _message(item)) is not None]


def _message(given: Any) -> Object | None:
    """Returns a message of LangChain or OpenAI with ``role`` and ``content``; a text is one of the user."""
    if isinstance(given, str):
        return {"role": "user", "content": given}
    if isinstance(given, list):
        given = tuple(given) if len(given) == 2 and all(isinstance(each, str) for each in given) else None
    known = message_of(given)
    if known is not None and (role := role_of(known)) in _ROLES:
        return {**known, "role": role, "content": known.get("content")}
    role = nonempty(given, "role")
    role = {"developer": "system", "human": "user", "ai": "assistant", "function": "tool"}.get(role or "", role)
    return {**given, "role": role, "content": given.get("content")} if role in _ROLES else None


def _answers(outputs: Any) -> Iterator[Object]:
    """Yields the messages with which a model answered."""
    fields = as_mapping(outputs)
    generations = fields.get("generations")
    first = generations[0] if isinstance(generations, list) and generations else None
    choices = fields.get("choices")
    for given in (
        get(first[0] if isinstance(first, list) and first else first, "message"),
        get(choices[0] if isinstance(choices, list) and choices else None, "message"),
        fields.get("message"),
        fields.get("output"),
        fields,
    ):
        message = _message(given) if isinstance(given, Mapping) else None
        if message is None and given is fields and "content" in fields and "role" not in fields:
            message = {**fields, "role": "assistant"}
        if message is not None and message["role"] == "assistant":
            yield message
            return
    listed = get(fields, "messages", list) or []
    yield from (message for given in listed[-1:] if (message := _message(given)) is not None)
    text = get(first[0] if isinstance(first, list) and first else first, "text", str)
    if not listed and text:
        yield {"role": "assistant", "content": text}


def _answer_items(message: Mapping[str, Any]) -> Iterator[Object]:
    """Yields an answer as items: reasoning, text, and calls."""
    reasoning = nonempty(message, "reasoning_content") or nonempty(
        message.get("additional_kwargs"), "reasoning_content"
    )
    if reasoning:
        yield {"type": "reasoning", "summary": [{"type": "summary_text", "text": reasoning}]}
    for block in blocks_of(message["content"]):
        text, thought = nonempty(block, "text"), nonempty(block, "thinking") or nonempty(block, "reasoning")
        if thought:
            yield {"type": "reasoning", "summary": [{"type": "summary_text", "text": thought}]}
        elif text:
            yield {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        elif block.get("type") not in ("text", "tool_use", "tool_call", "function_call"):
            yield {"type": f"langchain_{block.get('type')!s:.40}_block", "block": dict(block)}
    yield from _calls(message)


def _calls(message: Mapping[str, Any]) -> Iterator[Object]:
    raw = get(message.get("additional_kwargs"), "tool_calls", list)
    calls = get(message, "tool_calls", list) or raw or []
    blocks = [block for block in blocks_of(message["content"]) if block.get("type") == "tool_use"]
    for given in [*(calls or blocks), *(get(message, "invalid_tool_calls", list) or [])]:
        function = as_mapping(get(given, "function"))
        name = nonempty(given, "name") or nonempty(function, "name") or "tool"
        places = (get(given, "args"), get(given, "input"), get(given, "arguments"), function.get("arguments"))
        arguments: Any = next((each for each in places if each is not None), {})
        text = arguments if isinstance(arguments, str) else as_json_text(as_json_value(arguments))
        call_id = nonempty(given, "id") or f"{name} {text:.80}"
        yield {"type": "function_call", "call_id": call_id, "name": name, "arguments": text}


def _key(message: Mapping[str, Any]) -> str:
    """Returns what makes two reports of a message one: its role, its content, and its calls or the call it answers."""
    calls = [item["call_id"] for item in _calls(message)] if message["role"] == "assistant" else []
    texts = [text for block in blocks_of(message["content"]) if (text := nonempty(block, "text"))]
    return as_json_text([message["role"], as_json_value(texts), calls, as_json_value(message.get("tool_call_id"))])


def _usage(answers: list[Object], outputs: Any) -> Mapping[str, Any]:
    fields = as_mapping(outputs)
    for message in answers:
        if usage := response_details({**message, "usage_metadata": message.get("usage_metadata")}).get("usage"):
            return as_mapping(usage)
    metadata = response_details({"usage_metadata": fields.get("usage_metadata")}).get("usage")
    told = get(fields.get("llm_output"), "token_usage", Mapping) or get(fields, "usage", Mapping) or {}
    return as_mapping(metadata) or counts_of(told)


def _model_name(answers: list[Object], outputs: Any) -> str | None:
    details = (response_details(message).get("model") for message in answers)
    return next((str(name) for name in details if name), None) or nonempty(outputs, "model")
