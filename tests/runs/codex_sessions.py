"""A session of Codex."""

from __future__ import annotations

import json
from typing import Any


def line(kind: str, second: float, **payload: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-02-01T09:00:{second:06.3f}Z", "type": kind, "payload": payload}


def item(second: float, kind: str, **fields: Any) -> dict[str, Any]:
    return line("response_item", second, type=kind, **fields)


def event(second: float, kind: str, **fields: Any) -> dict[str, Any]:
    return line("event_msg", second, type=kind, **fields)


def message(second: float, role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item(second, "message", role=role, content=[{"type": kind, "text": text}])


def shell(second: float, call_id: str, **arguments: Any) -> dict[str, Any]:
    return item(second, "function_call", name="shell", arguments=json.dumps(arguments), call_id=call_id)


def output(second: float, call_id: str, value: Any) -> dict[str, Any]:
    return item(second, "function_call_output", call_id=call_id, output=value)


def usage(second: float, sent: int, total: int) -> dict[str, Any]:
    last = {"input_tokens": sent, "cached_input_tokens": 4, "output_tokens": 6, "reasoning_output_tokens": 2}
    return event(second, "token_count", info={"last_token_usage": last, "total_token_usage": {"input_tokens": total}})


SESSION = [
    line("session_meta", 0, id="s1", cwd="/home/ann", cli_version="1.0"),
    line("turn_context", 0, model="m-5"),
    message(0, "user", "<environment_context>zsh</environment_context>"),
    message(1, "user", "List the files"),
    event(1, "user_message", message="List the files"),
    item(2, "reasoning", summary=[{"type": "summary_text", "text": "ls will do"}], encrypted_content="x"),
    event(2, "agent_message", message="I look."),
    message(2, "assistant", "I look."),
    shell(3, "c1", command=["ls"]),
    shell(3, "c2", command=["grep", "x"]),
    usage(3.5, 100, 100),
    event(
        4, "exec_command_end", call_id="c2", exit_code=1, status="failed", duration={"secs": 0, "nanos": 250_000_000}
    ),
    output(4.5, "c2", "Exit code: 1\nOutput:\n"),
    output(5, "c1", "Exit code: 0\nWall time: 1.5 seconds\nOutput:\na.txt"),
    message(6, "assistant", "There is a.txt."),
    usage(6, 150, 250),
    usage(6, 150, 250),
    event(7, "task_complete", last_agent_message="There is a.txt."),
]
