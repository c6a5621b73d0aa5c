"""Reads the runs of LangSmith that are not inside a tool of one another, as one conversation: `Level`."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from toolcall_nb.adapters.langchain.messages import blocks_of, content_text, message_of, response_details, role_of
from toolcall_nb.adapters.openai.content import counts_of
from toolcall_nb.core.events import Object
from toolcall_nb.core.sdk_objects import as_json_text, as_json_value, as_mapping, get, nonempty
from toolcall_nb.runs.formats.base import count_repeated
from toolcall_nb.runs.formats.logged_items import LoggedItems
from toolcall_nb.runs.timestamps import parse_timestamp

_TRACEBACK = "Traceback (most recent call last)"
_NAMES = ("inputTokens", "outputTokens", "totalTokens", "cachedInputTokens", "cacheWriteTokens", "reasoningTokens")
_COUNTS = {name: (name,) for name in _NAMES}
_CLASSES = re.compile(r"Runnable\w+|LangGraph|AgentExecutor|\w+Chain")
"""The names of LangChain's classes, which a run has where the program gave it no name."""
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
        self.seconds = None if self.began is None or self.ended is None else max(0.0, round(self.ended - self.began, 6))
        self.error = nonempty(fields, "error")
        self.inputs, self.outputs = _json_value(fields.get("inputs")), _json_value(fields.get("outputs"))
        parents = [each for each in get(fields, "parent_run_ids", list) or [] if isinstance(each, str)]
        if not parents:  # the dotted order names the parent: in its last part but one, after the time
            parents = [name for part in self.order.split(".")[-2:-1] if (name := part.partition("Z")[2])]
        parent = nonempty(fields, "parent_run_id") or (parents[-1] if parents else None)
        self.parent = None if parent == self.id else parent


def _json_value(value: Any) -> Any:
    """Returns the value that a JSON text holds; any other value as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


class Level:
    """Reads runs in the order of their beginning: `take` each. ``names`` are the ids of calls by the ids of runs."""

    def __init__(self, *, is_nested: bool = False) -> None:
        self.items = LoggedItems("langsmith")
        self._is_first = not is_nested  # whether a request may repeat what was said before this trace
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

    def name_agent(self, run: LoggedRun) -> None:
        """Takes the name of the agent from the first run inside a tool that the program named."""
        if self.items.facts.agent is None and run.kind == "chain" and not _CLASSES.fullmatch(run.name):
            self.items.facts.agent = run.name

    def frame(self, root: LoggedRun) -> None:
        """Adds the error of a trace's first run, and, where no model was called, its inputs and outputs."""
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
        items.message(role, single or as_json_text(as_json_value(value)))

    # Models

    def _model(self, run: LoggedRun) -> None:
        answers = list(_answers(run.outputs))
        history = _messages(run.inputs)
        roles = ["" if message["role"] == "user" and _results(message) else message["role"] for message in history]
        before = count_repeated(roles) if self._is_first else 0
        self._is_first = False
        counted: Counter[str] = Counter()
        for number, message in enumerate([*history, *answers]):
            is_answer = number >= len(history)
            if number == len(history):
                self.items.end_step()
            key = _key(message)
            counted[key] += 1
            if counted[key] > self._seen[key]:
                self._seen[key] += 1
                self.items.repeat(number < before)
                self._message(message, run.ended if is_answer else None)
        self.items.repeat(False)
        details = [response_details(message) for message in answers]
        reply_facts = {
            name: next((str(each[name]) for each in details if each.get(name)), None) for name in ("model", "reason")
        }
        model = reply_facts["model"] or nonempty(run.outputs, "model")
        metadata = get(run.fields.get("extra"), "metadata")
        self.items.model = model or nonempty(metadata, "ls_model_name")
        self.items.facts.agent = nonempty(metadata, "lc_agent_name") or self.items.facts.agent
        ids = (nonempty(get(message, "response_metadata"), "id") for message in answers)
        facts: Object = {"began": run.began, "ended": run.ended, "response_id": next(filter(None, ids), None)}
        self.items.use(_usage(answers, run.outputs), _COUNTS, finish_reason=reply_facts["reason"], **facts)
        if run.error and not answers:
            self.items.error(run.error.partition(_TRACEBACK)[0][:2_000], run.error)

    def _message(self, message: Mapping[str, Any], time: float | None) -> None:
        role = message["role"]
        if role == "user" and (results := _results(message)):
            for block in results:
                status = {"status": "error"} if block.get("is_error") is True else {}
                result = {"content": block.get("content"), "tool_call_id": block.get("tool_use_id"), **status}
                self._message({"role": "tool", **result}, time)
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
            call_id = _call_id(run) or run.id
            self.items.call(call_id, run.name, as_json_text(as_json_value(_inputs(run))), run.began)
        self.names[run.id] = call_id
        self.items.facts.call(call_id).began = run.began
        if run.error is not None or run.ended is not None or run.outputs:
            self._end(call_id, run.outputs, run)

    def _call_of(self, run: LoggedRun) -> str | None:
        """Returns the open call that the run carries out: by its id, its arguments, or its name alone."""
        if (call_id := _call_id(run)) is not None:
            return call_id if call_id in self._open else None
        arguments = _arguments_key(as_json_text(as_json_value(_inputs(run))))
        same = [call_id for call_id, (name, _) in self._open.items() if name == run.name]
        return next((call_id for call_id in same if self._open[call_id][1] == arguments), same[0] if same else None)

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


def _call_id(run: LoggedRun) -> str | None:
    """Returns the id of the call that a tool run names."""
    extra = as_mapping(run.fields.get("extra"))
    objects = (_constructed(get(run.outputs, "output")), extra.get("metadata"), extra)
    return next((call_id for fields in objects if (call_id := nonempty(fields, "tool_call_id"))), None)


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
    items = inputs.get("messages", inputs.get("input")) if isinstance(inputs, Mapping) else inputs
    if isinstance(items, list) and len(items) == 1 and isinstance(items[0], list) and _message(items[0]) is None:
        items = items[0]
    if items is None and isinstance(inputs, Mapping):
        items = inputs.get("prompts", inputs.get("prompt"))
    items = items if isinstance(items, list) else [items] if isinstance(items, str) else []
    return [message for item in items if (message := _message(item)) is not None]


def _results(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Returns the results in a message of Anthropic's form."""
    return [block for block in blocks_of(message["content"]) if block.get("type") == "tool_result"]


def _message(item: Any) -> Object | None:
    """Returns a message of LangChain or OpenAI with ``role`` and ``content``; a text is one of the user."""
    if isinstance(item, str):
        return {"role": "user", "content": item}
    if isinstance(item, list):
        item = tuple(item) if len(item) == 2 and all(isinstance(each, str) for each in item) else None
    message = message_of(item)
    if message is not None and (role := role_of(message)) in _ROLES:
        return {**message, "role": role, "content": message.get("content")}
    role = nonempty(item, "role")
    role = {"developer": "system", "human": "user", "ai": "assistant", "function": "tool"}.get(role or "", role)
    return {**item, "role": role, "content": item.get("content")} if role in _ROLES else None


def _answers(outputs: Any) -> Iterator[Object]:
    """Yields the messages with which a model answered."""
    fields = as_mapping(outputs)
    generations = fields.get("generations")
    first = generations[0] if isinstance(generations, list) and generations else None
    first = first[0] if isinstance(first, list) and first else first
    choices = get(fields, "choices", list)
    choice = get(choices[0], "message") if choices else None
    for item in (get(first, "message"), choice, fields.get("message"), fields.get("output"), fields):
        message = _message(item) if isinstance(item, Mapping) else None
        if message is None and item is fields and "content" in fields and "role" not in fields:
            message = {**fields, "role": "assistant"}
        if message is not None and message["role"] == "assistant":
            yield message
            return
    listed = get(fields, "messages", list) or []
    yield from filter(None, map(_message, listed[-1:]))
    if not listed and (text := nonempty(first, "text")):
        yield {"role": "assistant", "content": text}


def _answer_items(message: Mapping[str, Any]) -> Iterator[Object]:
    """Yields an answer as items: reasoning, text, and calls."""
    name = "reasoning_content"
    if reasoning := nonempty(message, name) or nonempty(message.get("additional_kwargs"), name):
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
    for call in [*(calls or blocks), *(get(message, "invalid_tool_calls", list) or [])]:
        function = get(call, "function")
        name = nonempty(call, "name") or nonempty(function, "name") or "tool"
        values = (get(call, "args"), get(call, "input"), get(call, "arguments"), get(function, "arguments"))
        arguments: Any = next((value for value in values if value is not None), {})
        text = arguments if isinstance(arguments, str) else as_json_text(as_json_value(arguments))
        call_id = nonempty(call, "id") or f"{name} {text:.80}"
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
    counts = get(fields.get("llm_output"), "token_usage", Mapping) or get(fields, "usage", Mapping) or {}
    return as_mapping(metadata) or counts_of(counts)
