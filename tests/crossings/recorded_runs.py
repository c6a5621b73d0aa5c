"""A whole run as other programs record it: `RECORDS`, from the programs' files and documentation."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tests.crossings.replies import anthropic_blocks
from tests.crossings.scenarios import arguments_of, id_of, turns_of
from tests.runs import claude_code_sessions as claude
from tests.runs import codex_sessions as codex
from tests.runs.inspect_samples import HEADER, time
from tests.support.span_files import otlp, span
from toolcall_nb.core.transcript import (
    ErrorPart,
    Message,
    ReasoningPart,
    State,
    Step,
    TextPart,
    ToolCall,
    Transcript,
)

__all__ = ["RECORDS", "RecordFormat"]

Item = dict[str, Any]


class RecordFormat(NamedTuple):
    """The writer of a run as the records of a file."""

    title: str
    write: Callable[[Transcript], list[Any]]


def _told(call: ToolCall) -> str:
    return call.error if call.error is not None else str(call.output)


def _usage(step: Step) -> Mapping[str, int]:
    usage: Mapping[str, int] = {"inputTokens": 3, "outputTokens": 2, **(step.usage or {})}
    return {"cachedInputTokens": 0, "cacheWriteTokens": 0, "reasoningTokens": 0, **usage}


def _reasoning(step: Step) -> str:
    return "".join(part.text for part in step.parts if isinstance(part, ReasoningPart))


def _error(step: Step) -> str | None:
    return next((part.text for part in step.parts if isinstance(part, ErrorPart)), None)


def _inside(message: Message, call: ToolCall) -> list[Any]:
    return [part for part in message.parts if part.parent == call.id]


def _inner_replies(message: Message, call: ToolCall) -> list[tuple[str, list[ToolCall]]]:
    """The texts and calls of each reply inside the call: a text after a call begins the next."""
    replies: list[tuple[str, list[ToolCall]]] = []
    for part in _inside(message, call):
        if isinstance(part, TextPart):
            replies.append((part.text, []))
        elif isinstance(part, ToolCall):
            replies[-1][1].append(part)
    return replies


def _base64(url: str) -> str:
    return url.partition(",")[2]


# Claude Code ------------------------------------------------------------------------------------------------------


def claude_code(transcript: Transcript) -> list[Item]:
    lines: list[Item] = []

    def add(kind: str, content: Any, **fields: Any) -> None:
        number = len(lines)
        parent = f"l{number - 1}" if number else None
        lines.append(claude.line(kind, number, content, f"l{number}", **{"parentUuid": parent, **fields}))

    def result(call: ToolCall, **fields: Any) -> None:
        content: Any = _told(call)
        if call.contents:
            content = [
                {"type": "text", "text": piece["text"]}
                if piece["type"] == "text"
                else {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": _base64(piece["url"])},
                }
                for piece in call.contents
            ]
        error = {"is_error": True} if call.error is not None else {}
        if call.state is State.OUTPUT_DENIED and call.approval is not None:
            refused = "The user doesn't want to proceed with this tool use. The tool use was rejected."
            content, error = f"{refused} Reason: {call.approval.reason}", {"is_error": True}
        block = {"type": "tool_result", "tool_use_id": id_of(call), "content": content, **error}
        add("user", [block], **fields)

    for number, (message, step) in enumerate(turns_of(transcript)):
        if step is None:
            add("user", message.text, **({"isMeta": True} if message.injected is not None else {}))
            continue
        usage = _usage(step)
        counts = {
            "input_tokens": usage["inputTokens"] - usage["cachedInputTokens"] - usage["cacheWriteTokens"],
            "cache_read_input_tokens": usage["cachedInputTokens"],
            "cache_creation_input_tokens": usage["cacheWriteTokens"],
            "output_tokens": usage["outputTokens"],
        }
        about = {"id": step.response_id or f"msg{number}", "model": step.model or "m-other", "usage": counts}
        for block in anthropic_blocks(step):
            add("assistant", [block], message=about)
        if error := _error(step):
            add(
                "assistant",
                [{"type": "text", "text": error}],
                isApiErrorMessage=True,
                message={"id": "e1", "model": "<synthetic>"},
            )
        for call in step.calls:
            for part in _inside(message, call):
                inner = {"isSidechain": True, "parent_tool_use_id": id_of(call), "agentId": "k9"}
                fields = {**inner, "message": {"id": f"x{len(lines)}", "model": "m-small"}}
                if isinstance(part, TextPart):
                    add("assistant", [{"type": "text", "text": part.text}], **fields)
                elif isinstance(part, ToolCall):
                    add("assistant", [claude.call(id_of(part), part.name, **arguments_of(part))], **fields)
                    result(part, **inner)
            if call.is_final:
                names = [start.agent for start in message.step_starts if start.parent == call.id and start.agent]
                result(call, **({"toolUseResult": {"agentId": "k9", "agentType": names[0]}} if names else {}))
        if message.aborted is not None and step.start == message.steps[-1].start:
            add("user", [{"type": "text", "text": "[Request interrupted by user]"}])
    return lines


# Codex ------------------------------------------------------------------------------------------------------------


def codex_session(transcript: Transcript) -> list[Item]:
    lines: list[Item] = [codex.line("session_meta", 0, id="s1", cwd="/home/ann", cli_version="1.0")]
    for number, (message, step) in enumerate(turns_of(transcript), 1):
        if step is None:
            lines.append(codex.message(number, "user", message.text))
            lines.append(codex.event(number, "user_message", message=message.text))
            continue
        lines.append(codex.line("turn_context", number, model=step.model or "m-other"))
        if _reasoning(step):
            summary = [{"type": "summary_text", "text": _reasoning(step)}]
            lines.append(codex.item(number, "reasoning", summary=summary))
        if step.text:
            lines.append(codex.message(number, "assistant", step.text))
        for call in step.calls:
            given = json.dumps(call.input)
            lines.append(codex.item(number, "function_call", name=call.name, arguments=given, call_id=id_of(call)))
        usage = _usage(step)
        counts = {
            "input_tokens": usage["inputTokens"],
            "cached_input_tokens": usage["cachedInputTokens"],
            "output_tokens": usage["outputTokens"],
            "reasoning_output_tokens": usage["reasoningTokens"],
        }
        info = {"last_token_usage": counts, "total_token_usage": {"input_tokens": number * 10_000}}
        lines.append(codex.event(number, "token_count", info=info))
        for call in step.calls:
            output: Any = _told(call)
            if call.contents:
                output = [
                    {"type": "input_text", "text": piece["text"]}
                    if piece["type"] == "text"
                    else {"type": "input_image", "image_url": piece["url"]}
                    for piece in call.contents
                ]
            lines.append(codex.output(number + 0.5, id_of(call), output))
        if error := _error(step):
            lines.append(codex.event(number, "error", message=error))
        if message.aborted is not None:
            lines.append(codex.event(number, "turn_aborted", reason="interrupted"))
    return lines


# Inspect ----------------------------------------------------------------------------------------------------------


def inspect_log(transcript: Transcript) -> list[Item]:
    messages: list[Item] = []
    events: list[Item] = []
    second = 0.0
    for message, step in turns_of(transcript):
        second += 1
        if step is None:
            messages.append({"id": f"u{len(messages)}", "role": "user", "content": message.text})
            continue
        content: list[Item] = [{"type": "reasoning", "reasoning": _reasoning(step)}] if _reasoning(step) else []
        content += [{"type": "text", "text": step.text}] if step.text else []
        calls = [
            {"id": id_of(call), "function": call.name, "arguments": call.input, "type": "function"}
            for call in step.calls
        ]
        said = {"id": f"m{second}", "role": "assistant", "content": content, "model": step.model or "m-other"}
        said |= {"tool_calls": calls} if calls else {}
        messages.append(said)
        usage = _usage(step)
        counts = {
            "input_tokens": usage["inputTokens"] - usage["cachedInputTokens"] - usage["cacheWriteTokens"],
            "input_tokens_cache_read": usage["cachedInputTokens"],
            "input_tokens_cache_write": usage["cacheWriteTokens"],
            "output_tokens": usage["outputTokens"],
            "reasoning_tokens": usage["reasoningTokens"],
            "total_tokens": usage["inputTokens"] + usage["outputTokens"],
        }
        reason = {"length": "max_tokens", "content-filter": "content_filter"}.get(step.finish_reason, "stop")
        choice = {"message": said, "stop_reason": reason}
        output = {"model": step.model or "m-other", "choices": [choice], "usage": counts, "completion": step.text}
        event = {"event": "model", "timestamp": time(second), "model": step.model or "m-other", "output": output}
        events.append(event | ({"error": error} if (error := _error(step)) else {}))
        for call in step.calls:
            told: Any = _told(call)
            if call.contents:
                told = [
                    {"type": "text", "text": piece["text"]}
                    if piece["type"] == "text"
                    else {"type": "image", "image": piece["url"]}
                    for piece in call.contents
                ]
            failed = {"error": {"type": "unknown", "message": call.error}} if call.error is not None else {}
            result = {
                "role": "tool",
                "tool_call_id": id_of(call),
                "function": call.name,
                "content": told,
                **failed,
            }
            messages.append(result)
            about = {
                "event": "tool",
                "id": id_of(call),
                "function": call.name,
                "arguments": call.input,
                "result": told,
            }
            events.append(
                {**about, "timestamp": time(second + 0.1), "completed": time(second + 0.2), "events": [], **failed}
            )
    sample: Item = {"id": "a7", "epoch": 1, "input": "Go.", "target": "", "messages": messages, "events": events}
    if error := next((_error(step) for _, step in turns_of(transcript) if step is not None and _error(step)), None):
        sample["error"] = {"message": error, "traceback": "", "traceback_ansi": ""}
    return [{**HEADER, "samples": [sample]}]


# LangSmith --------------------------------------------------------------------------------------------------------


def langsmith(transcript: Transcript) -> list[Any]:
    runs: list[Item] = []

    def logged(run_id: str, kind: str, parent: str | None, **fields: Any) -> None:
        second = len(runs)
        times = {"start_time": f"2025-07-01T10:00:{second:02}", "end_time": f"2025-07-01T10:00:{second:02}.5"}
        about = {"id": run_id, "name": run_id, "run_type": kind, "trace_id": "t1", "parent_run_id": parent, **times}
        runs.append({**about, "inputs": {}, "outputs": {}, "error": None, "extra": {}, "tags": [], **fields})

    def constructed(name: str, **kwargs: Any) -> Item:
        return {"lc": 1, "type": "constructor", "id": ["m", name], "kwargs": kwargs}

    def ai(text: str, calls: Any, step: Step | None) -> Item:
        asked = [{"name": c.name, "args": c.input, "id": id_of(c), "type": "tool_call"} for c in calls]
        content: Any = text
        if step is not None and _reasoning(step):
            content = [{"type": "reasoning", "reasoning": _reasoning(step)}, {"type": "text", "text": text}]
        fields: Item = {"content": content, "type": "ai", "tool_calls": asked}
        if step is not None:
            usage = _usage(step)
            fields["usage_metadata"] = {
                "input_tokens": usage["inputTokens"],
                "output_tokens": usage["outputTokens"],
                "total_tokens": usage["inputTokens"] + usage["outputTokens"],
                "input_token_details": {
                    "cache_read": usage["cachedInputTokens"],
                    "cache_creation": usage["cacheWriteTokens"],
                },
                "output_token_details": {"reasoning": usage["reasoningTokens"]},
            }
            fields["response_metadata"] = {"model_name": step.model or "m-other", "id": step.response_id}
        return constructed("AIMessage", **fields)

    def ask(name: str, parent: str, before: list[Item], message: Item, error: str | None = None) -> None:
        outputs = {"generations": [[{"text": "", "message": message, "type": "ChatGeneration"}]]}
        given = {"inputs": {"messages": [[*before]]}}
        logged(name, "llm", parent, **given, outputs={} if error else outputs, error=error)

    def use(name: str, parent: str, call: ToolCall) -> Item:
        status = "success" if call.error is None else "error"
        told = {"content": _told(call), "type": "tool", "tool_call_id": id_of(call), "status": status}
        logged(
            name, "tool", parent, inputs=call.input, outputs={} if call.error else {"output": told}, error=call.error
        )
        runs[-1]["name"] = call.name
        return constructed("ToolMessage", **told)

    before: list[Item] = []
    users = [message.text for message in transcript if message.role == "user"]
    logged("root", "chain", None, inputs={"messages": [["user", users[-1]]]})
    runs[0]["name"] = "agent"
    for number, (message, step) in enumerate(turns_of(transcript)):
        if step is None:
            before.append(constructed("HumanMessage", content=message.text, type="human"))
            continue
        said = ai(step.text, step.calls, step)
        if not message.repeated:
            ask(f"llm{number}", "root", before, said, _error(step))
        before.append(said)
        for index, call in enumerate(step.calls):
            tool = f"tool{number}-{index}"
            place = len(runs)
            before.append(use(tool, "root", call))
            if inner := _inner_replies(message, call):
                logged(f"chain{number}", "chain", tool)
                runs[-1]["name"] = message.step_starts[0].agent
                told = [constructed("HumanMessage", content="gold", type="human")]
                for place_inside, (text, calls) in enumerate(inner):
                    said_inside = ai(text, calls, None)
                    ask(f"inner{number}-{place_inside}", f"chain{number}", told, said_inside)
                    told = [*told, said_inside]
                    told += [use(f"inner-tool{number}", f"chain{number}", each) for each in calls]
                runs[place]["end_time"] = f"2025-07-01T10:00:{len(runs):02}.9"
    runs[0]["end_time"] = "2025-07-01T10:00:59"
    return [runs]


# ATIF -------------------------------------------------------------------------------------------------------------


def atif(transcript: Transcript) -> list[Item]:
    steps: list[Item] = []
    for number, (message, step) in enumerate(turns_of(transcript), 1):
        about: Item = {"step_id": number, "timestamp": f"2025-09-01T10:00:{number:02}Z"}
        if step is None:
            steps.append({**about, "source": "user", "message": message.text})
            continue
        usage = _usage(step)
        metrics = {
            "prompt_tokens": usage["inputTokens"],
            "completion_tokens": usage["outputTokens"],
            "cached_tokens": usage["cachedInputTokens"],
        }
        about |= {"source": "agent", "message": step.text, "model_name": step.model or "m-other", "metrics": metrics}
        about |= {"reasoning_content": _reasoning(step)} if _reasoning(step) else {}
        if step.calls:
            about["tool_calls"] = [
                {"tool_call_id": id_of(call), "function_name": call.name, "arguments": call.input}
                for call in step.calls
            ]
            results = []
            for call in step.calls:
                told: Any = _told(call)
                if call.contents:
                    told = [
                        {"type": "text", "text": piece["text"]}
                        if piece["type"] == "text"
                        else {"type": "image", "source": {"media_type": "image/png", "path": piece["url"]}}
                        for piece in call.contents
                    ]
                results.append({"source_call_id": id_of(call), "content": told})
            about["observation"] = {"results": results}
        steps.append(about)
    agent = {"name": "finder", "version": "1", "model_name": "m-other"}
    return [{"schema_version": "ATIF-v1.6", "session_id": "s1", "agent": agent, "steps": steps}]


# Spans ------------------------------------------------------------------------------------------------------------


def _genai_message(role: str, *parts: Item, **fields: Any) -> Item:
    return {"role": role, "parts": [*parts], **fields}


def genai_spans(transcript: Transcript) -> list[Any]:
    """Spans by OpenTelemetry's conventions for generative AI."""
    spans: list[Item] = []

    def text(content: str) -> Item:
        return {"type": "text", "content": content}

    def asked(call: ToolCall) -> Item:
        return {"type": "tool_call", "id": id_of(call), "name": call.name, "arguments": call.input}

    def add(name: str, parent: str, attributes: Item, error: str | None = None) -> str:
        span_id = f"{len(spans) + 1:02x}"
        status = {"status": {"code": "STATUS_CODE_ERROR", "message": error}} if error else {}
        known = {key: value for key, value in attributes.items() if value is not None}
        spans.append(span(span_id, name, len(spans), len(spans) + 0.5, parent, attributes=known, **status))
        return span_id

    def chat(parent: str, before: list[Item], said: list[Item], step: Step | None, error: str | None = None) -> None:
        reason = {"tool-calls": "tool_call", "content-filter": "content_filter"}
        ended = step.finish_reason if step is not None else "stop"
        usage = _usage(step) if step is not None else {}
        attributes: Item = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "acme",
            "gen_ai.request.model": (step and step.model) or "m-other",
            "gen_ai.response.model": (step and step.model) or "m-other",
            "gen_ai.response.id": step and step.response_id,
            "gen_ai.response.finish_reasons": [reason.get(ended, ended)],
            "gen_ai.input.messages": json.dumps(before),
            "gen_ai.output.messages": json.dumps(
                [_genai_message("assistant", *said, finish_reason=reason.get(ended, ended))]
            ),
            "gen_ai.usage.input_tokens": usage.get("inputTokens"),
            "gen_ai.usage.output_tokens": usage.get("outputTokens"),
            "gen_ai.usage.cache_read.input_tokens": usage.get("cachedInputTokens"),
            "gen_ai.usage.cache_creation.input_tokens": usage.get("cacheWriteTokens"),
            "gen_ai.usage.reasoning.output_tokens": usage.get("reasoningTokens"),
        }
        if error:
            del attributes["gen_ai.response.finish_reasons"]
            attributes["error.type"] = "RuntimeError"
            if not said:
                del attributes["gen_ai.output.messages"]
        add("chat", parent, attributes, error)

    def execute(parent: str, call: ToolCall) -> str:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.call.id": id_of(call),
            "gen_ai.tool.call.arguments": json.dumps(call.input),
            "gen_ai.tool.call.result": None if call.error is not None else str(call.output),
            "error.type": None if call.error is None else "RuntimeError",
        }
        return add(f"execute_tool {call.name}", parent, attributes, call.error)

    root = add("invoke_agent main", "", {"gen_ai.operation.name": "invoke_agent"})
    before: list[Item] = []
    for message, step in turns_of(transcript):
        if step is None:
            before.append(_genai_message("user", text(message.text)))
            continue
        said = [{"type": "reasoning", "content": _reasoning(step)}] if _reasoning(step) else []
        said += [text(step.text)] if step.text else []
        said += [asked(call) for call in step.calls]
        if not message.repeated:
            chat(root, [*before], said, step, _error(step))
        before.append(_genai_message("assistant", *said))
        for call in step.calls:
            tool = execute(root, call)
            if inner := _inner_replies(message, call):
                name = message.step_starts[0].agent
                about = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
                agent = add(f"invoke_agent {name}", tool, about)
                told = [_genai_message("user", text("gold"))]
                for words, calls in inner:
                    said = [text(words), *map(asked, calls)]
                    chat(agent, told, said, None)
                    told = [*told, _genai_message("assistant", *said)]
                    for each in calls:
                        execute(agent, each)
                        about_result = {
                            "type": "tool_call_response",
                            "id": id_of(each),
                            "response": _told(each),
                        }
                        told.append(_genai_message("tool", about_result))
            part = {"type": "tool_call_response", "id": id_of(call), "response": _told(call)}
            before.append(_genai_message("tool", part))
    spans[0]["endTimeUnixNano"] = str(1900 * 10**9)
    return [otlp(*spans)]


def openinference_spans(transcript: Transcript) -> list[Any]:
    """Spans by the conventions of OpenInference."""
    spans: list[Item] = []

    def messages(name: str, listed: list[Item]) -> Item:
        found: Item = {}
        for number, message in enumerate(listed):
            place = f"llm.{name}_messages.{number}.message"
            found[f"{place}.role"] = message["role"]
            if message.get("content"):
                found[f"{place}.content"] = message["content"]
            if message.get("tool_call_id"):
                found[f"{place}.tool_call_id"] = message["tool_call_id"]
            for index, call in enumerate(message.get("calls", ())):
                inner = f"{place}.tool_calls.{index}.tool_call"
                found[f"{inner}.id"] = id_of(call)
                found[f"{inner}.function.name"] = call.name
                found[f"{inner}.function.arguments"] = json.dumps(call.input)
        return found

    def add(name: str, parent: str, attributes: Item, error: str | None = None) -> str:
        span_id = f"{len(spans) + 1:02x}"
        status = {"status": {"code": "STATUS_CODE_ERROR", "message": error}} if error else {}
        spans.append(span(span_id, name, len(spans), len(spans) + 0.5, parent, attributes=attributes, **status))
        return span_id

    def execute(parent: str, call: ToolCall) -> str:
        attributes = {
            "openinference.span.kind": "TOOL",
            "tool.name": call.name,
            "tool_call.id": id_of(call),
            "input.value": json.dumps(call.input),
            "input.mime_type": "application/json",
        }
        attributes |= {} if call.error is not None else {"output.value": str(call.output)}
        return add(call.name, parent, attributes, call.error)

    root = add("agent", "", {"openinference.span.kind": "AGENT"})
    before: list[Item] = []
    for message, step in turns_of(transcript):
        if step is None:
            before.append({"role": "user", "content": message.text})
            continue
        said = {"role": "assistant", "content": step.text, "calls": step.calls}
        usage = _usage(step)
        counts = {
            "llm.token_count.prompt": usage["inputTokens"],
            "llm.token_count.completion": usage["outputTokens"],
            "llm.token_count.prompt_details.cache_read": usage["cachedInputTokens"],
            "llm.token_count.prompt_details.cache_write": usage["cacheWriteTokens"],
            "llm.token_count.completion_details.reasoning": usage["reasoningTokens"],
        }
        about = {"openinference.span.kind": "LLM", "llm.model_name": step.model or "m-other"}
        if not message.repeated:
            error = _error(step)
            outputs = {} if error and not step.text else messages("output", [said])
            add("llm", root, {**about, **messages("input", before), **outputs, **counts}, error)
        before.append(said)
        for call in step.calls:
            tool = execute(root, call)
            if inner := _inner_replies(message, call):
                name = message.step_starts[0].agent or ""
                agent = add(name, tool, {"openinference.span.kind": "AGENT", "agent.name": name})
                told: list[Item] = [{"role": "user", "content": "gold"}]
                for text, calls in inner:
                    reply = {"role": "assistant", "content": text, "calls": calls}
                    add("llm", agent, {**about, **messages("input", told), **messages("output", [reply])})
                    told = [*told, reply]
                    for each in calls:
                        execute(agent, each)
                        told.append({"role": "tool", "tool_call_id": id_of(each), "content": _told(each)})
            before.append({"role": "tool", "tool_call_id": id_of(call), "content": _told(call)})
    spans[0]["endTimeUnixNano"] = str(1900 * 10**9)
    return [otlp(*spans)]


RECORDS: Mapping[str, RecordFormat] = {
    "Claude Code": RecordFormat("sessions of Claude Code", claude_code),
    "Codex": RecordFormat("sessions of Codex", codex_session),
    "Inspect": RecordFormat("logs of Inspect", inspect_log),
    "LangSmith": RecordFormat("exports of LangSmith", langsmith),
    "ATIF": RecordFormat("trajectories in ATIF", atif),
    "GenAI spans": RecordFormat("spans by OpenTelemetry's conventions", genai_spans),
    "OpenInference spans": RecordFormat("spans by the conventions of OpenInference", openinference_spans),
}
"""All formats of recorded runs by their names."""
