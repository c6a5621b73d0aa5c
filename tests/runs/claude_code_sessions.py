"""A session of Claude Code."""

from __future__ import annotations

from typing import Any


def line(kind: str, second: float, content: Any, uuid: str, **fields: Any) -> dict[str, Any]:
    about = {"type": kind, "uuid": uuid, "sessionId": "s1", "cwd": "/home/ann", "isSidechain": False}
    message = fields.pop("message", {})
    time = {"timestamp": f"2025-03-01T10:00:{second:06.3f}Z"}
    return {**about, **time, "message": {"role": kind, "content": content, **message}, **fields}


def answer(second: float, block: dict[str, Any], uuid: str, message: str = "m1", **fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5}
    return line("assistant", second, [block], uuid, message={"id": message, "model": "m-4", "usage": usage}, **fields)


def call(call_id: str, name: str = "Bash", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(
    second: float, call_id: str, content: Any, uuid: str, structured: Any = None, **fields: Any
) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    block |= {"is_error": fields.pop("is_error")} if "is_error" in fields else {}
    return line(
        "user", second, [block], uuid, **({"toolUseResult": structured} if structured is not None else {}), **fields
    )


SESSION = [
    {"type": "summary", "summary": "Listing files", "leafUuid": "a4"},
    line("user", 0, "List the files.", "u1", parentUuid=None),
    answer(1, {"type": "thinking", "thinking": "ls will do.", "signature": "sig"}, "a1", parentUuid="u1"),
    answer(1.5, {"type": "text", "text": "I look."}, "a2", parentUuid="a1"),
    answer(2, call("c1", command="ls"), "a3", parentUuid="a2"),
    answer(2.25, call("c2", command="ls /root"), "a4", parentUuid="a3"),
    result(3, "c2", "ls: no", "u2", "Error: ls: no", is_error=True, parentUuid="a4"),
    result(4, "c1", "a.txt", "u3", {"stdout": "a.txt", "durationMs": 120}, parentUuid="a3"),
    answer(5, {"type": "text", "text": "There is a.txt."}, "a5", "m2", parentUuid="u3"),
    {"type": "mode", "sessionId": "s1", "mode": "plan"},
]


def sidechain(second: float, kind: str, content: Any, uuid: str, **fields: Any) -> dict[str, Any]:
    usage = {"usage": {"input_tokens": 7, "output_tokens": 1}, "model": "m-small"} if kind == "assistant" else {}
    message = {"id": uuid, **usage} if kind == "assistant" else {}
    return line(kind, second, content, uuid, message=message, **{"isSidechain": True, **fields})


INSIDE = [
    sidechain(2, "user", "Find the tests", "x1", parentUuid=None),
    sidechain(3, "assistant", [{"type": "text", "text": "Searching."}, call("g1", "Grep")], "x2", parentUuid="x1"),
    result(4, "g1", "none", "x3", isSidechain=True, parentUuid="x2"),
    sidechain(5, "assistant", [{"type": "text", "text": "No tests."}], "x4", parentUuid="x3"),
]


TASK = answer(1, call("t1", "Task", prompt="Find the tests", subagent_type="Explore"), "a1")


TASK_DONE = result(6, "t1", [{"type": "text", "text": "No tests."}], "u2", {"agentId": "k9", "totalDurationMs": 4500})
