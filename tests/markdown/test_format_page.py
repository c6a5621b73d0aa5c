"""docs/format.md says what is so: each example is read as the page tells, and reads back."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.support.released import plain_value
from tests.support.requirements import ROOT
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.markdown.front_matter import FORMAT_VERSION
from toolcall_nb.markdown.reading import CALLOUT_KINDS
from toolcall_nb.markdown.tool_callout import CALLOUT_FIELDS

PAGE = (ROOT / "docs" / "format.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```markdown\n(.*?)^```\n\n```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def told(transcript: Transcript) -> dict[str, Any]:
    """The transcript as the page tells it: a message by its role, a text as a string, nothing that is empty."""
    whole = {key: value for key, value in plain_value(transcript).items() if key not in ("is", "messages")}
    messages = [_message(message) for message in plain_value(transcript).get("messages", [])]
    diagnostics = [f"{each.line}: {each.message}" for each in transcript.diagnostics]
    return {**whole, "messages": messages, **({"diagnostics": diagnostics} if diagnostics else {})}


def _message(message: dict[str, Any]) -> dict[str, Any]:
    more = {key: value for key, value in message.items() if key not in ("is", "role", "parts")}
    return {message["role"]: [_part(part) for part in message.get("parts", [])], **more}


def _part(part: dict[str, Any]) -> Any:
    if part["is"] == "TextPart" and set(part) == {"is", "text"}:
        return part["text"]
    return {key: value for key, value in part.items() if value != ""}


@pytest.mark.parametrize(("markdown", "says"), EXAMPLES, ids=[text.splitlines()[0] for text, _ in EXAMPLES])
def test_an_example_means_what_the_page_says(markdown: str, says: str) -> None:
    read = Transcript.from_markdown(markdown)
    assert told(read) == json.loads(says)
    assert Transcript.from_markdown(read.to_markdown()) == read
    assert Transcript.from_markdown(read.to_markdown(versioned=True)) == read


def test_each_example_is_read_as_the_page_says_below_it() -> None:
    assert len(EXAMPLES) == PAGE.count("```markdown\n") > 10


def test_the_page_names_each_kind_and_each_field_and_the_version() -> None:
    assert PAGE.startswith(f"# Portable Markdown, version {FORMAT_VERSION}\n")
    examples = "".join(text for text, _ in EXAMPLES)
    for kind in CALLOUT_KINDS:
        assert f"`{kind}`" in PAGE
    for kind in set(CALLOUT_KINDS) - {"source-document", "reasoning-file", "custom"}:
        assert f"> [!{kind}" in examples
    aliases = {"tool_name", "tool_call_id", "error_text", "toolName", "toolCallId", "callId", "toolCall"}
    for field in CALLOUT_FIELDS - aliases - {"name", "tool", "id", "error", "extra"}:
        assert re.search(rf"`{field}`|^> {field}:", PAGE, re.MULTILINE), field
