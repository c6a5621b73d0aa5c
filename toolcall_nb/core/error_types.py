"""Names the kind of a failed call from the text of its error: `error_type`. A transcript has nothing else of it."""

from __future__ import annotations

import re

UNNAMED_ERROR = "Error"
"""The type of an error whose text names none."""

_LONGEST = 4000
_CLASS = r"[A-Z]\w{0,80}(?:Error|Exception|Exit|Interrupt|Timeout|Warning)"
_EXCEPTION = re.compile(rf"(?:[a-zA-Z_]\w{{0,60}}\.){{0,8}}({_CLASS})\b")
_NAMED = re.compile(r"((?:[A-Z]{1,8}[a-z0-9]{1,40}){2,8}): ")
_INSIDE = re.compile(rf"(?<![\w.])(?:[a-zA-Z_]\w{{0,60}}\.){{0,8}}({_CLASS})(?=[:(])")
_WRAPPER = re.compile(r"\s*(?:<tool_use_error>\s*)?(?:Error: |Encountered error: )?")
"""The beginnings that LangGraph, LlamaIndex and Claude Code put before an error."""

_CONTAINS_EXCEPTION = re.compile(
    r"Error (?:when )?(?:executing|calling|running|in)\b|Traceback \(most recent call last\)"
)
"""Texts in which LangGraph, smolagents and Python name the exception further on."""

_KINDS = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        (
            "WrongArguments",
            r"The arguments of |The reply ended before the arguments|Error invoking tool |Input validation error"
            r"|(?:\d{1,6} )?validation errors?\b",
        ),
        (
            "UnknownTool",
            r"There is no tool |No such tool available|Unknown tool\b|\S{1,200} is not a valid tool"
            r"|Tool \S{1,200} not found",
        ),
        ("LimitReached", r"Not run: the limit "),
        ("NoResult", r"The agent gave no result for this call|The model's side did not give a result"),
        ("TimeoutError", r"[A-Z][^\n]{0,120}\btimed out\b"),
        ("ExitCode", r"Exit code \d"),
    )
)
"""The types of errors that are no exceptions, and the beginnings of their texts: ours, and those of frameworks."""


def error_type(text: str | None) -> str | None:
    """Returns the exception or the kind that an error's text names, or `UNNAMED_ERROR`; None without an error.

    Kinds besides exceptions are ``WrongArguments``, ``UnknownTool``, ``LimitReached``, ``NoResult`` and ``ExitCode``.
    """
    if text is None:
        return None
    whole = text[:_LONGEST]
    start = _WRAPPER.match(whole)
    body = whole[start.end() :] if start else whole
    if match := _EXCEPTION.match(body):
        return match[1]
    for name, pattern in _KINDS:
        if pattern.match(body) or pattern.match(whole):
            return name
    if _CONTAINS_EXCEPTION.match(whole) and (matches := _INSIDE.findall(whole)):
        return str(matches[-1 if whole.startswith("Traceback") else 0])
    match = _NAMED.match(body)
    return match[1] if match else UNNAMED_ERROR
