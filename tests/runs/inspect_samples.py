"""A log of Inspect: `log`."""

from __future__ import annotations

from typing import Any


def time(second: float) -> str:
    return f"2025-06-01T12:00:{second:06.3f}+00:00"


def asked(message_id: str, call_id: str, **arguments: Any) -> dict[str, Any]:
    calls = [{"id": call_id, "function": "bash", "arguments": arguments, "type": "function"}]
    return {"id": message_id, "role": "assistant", "content": "I look.", "tool_calls": calls, "model": "m-1"}


def told(call_id: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "function": "bash", "content": content, **fields}


def request(second: float, message: dict[str, Any], **fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13}
    output = {"model": "m-1", "choices": [{"message": message}], "usage": usage}
    return {"event": "model", "timestamp": time(second), "model": "m-1", "output": output, **fields}


def tool(second: float, call_id: str, result: Any, name: str = "bash", **fields: Any) -> dict[str, Any]:
    about = {"event": "tool", "id": call_id, "function": name, "arguments": {}, "result": result, "events": []}
    return {**about, "timestamp": time(second), "completed": time(second + 0.5), **fields}


HEADER = {"version": 2, "status": "success", "eval": {"task": "ctf", "run_id": "r1", "model": "m-1"}, "plan": {}}


THOUGHT = {"type": "reasoning", "reasoning": "Hm"}


FLAG = {"type": "text", "text": "flag"}


SAMPLE: dict[str, Any] = {
    "id": "a7",
    "epoch": 2,
    "input": "attachment://h1",
    "target": "flag",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "attachment://h1"},
                {"type": "image", "image": "data:image/png;base64,AA=="},
            ],
        },
        asked("m1", "c1", cmd="ls"),
        told("c1", "flag.txt"),
        asked("m2", "c2", cmd="cat x"),
        told("c2", "", error={"type": "file_not_found", "message": "No file x"}),
        {
            "id": "m3",
            "role": "assistant",
            "content": [THOUGHT, FLAG],
        },
    ],
    "events": [
        {"event": "sample_init", "timestamp": time(0)},
        request(1, {"id": "m1"}),
        tool(2, "c1", "flag.txt", working_time=0.25),
        request(3, {"id": "m2"}),
        tool(4, "c2", "", error={"type": "file_not_found", "message": "No file x"}),
        request(5, {"id": "m3"}),
        {"event": "score", "timestamp": time(6)},
    ],
    "attachments": {"h1": "Find the flag in the files of this folder."},
    "scores": {"match": {"value": "C"}},
    "total_time": 6.5,
}


def log(**fields: Any) -> dict[str, Any]:
    return {**HEADER, "samples": [{**SAMPLE, **fields}]}
