"""A word that is misspelled gets the one that was meant, in one sentence, and help is plain text."""

from __future__ import annotations

import pytest

from toolcall_nb.cli import main
from toolcall_nb.errors import UsageError
from toolcall_nb.models import model


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        (["serach", "a", "."], "search"),
        (["chat", "hi", "--modle", "mock"], "--model"),
        (["chat", "hi", "--modle=mock"], "--model"),
        (["chat", "hi", "--approve", "aks"], "ask"),
        (["events", "a.md", "--format", "stage"], "stages"),
        (["chat", "hi", "--tools", "bahs"], "bash"),
        (["chat", "hi", "--tools", "json:lods"], "loads"),
        (["chat", "hi", "--dialect", "calout"], "callout"),
        (["chat", "hi", "--model", "gpt-5"], "openai:gpt-5"),
    ],
    ids=" ".join,
)
def test_the_command_line_says_what_was_probably_meant(
    command: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 2
    problem = capsys.readouterr().err
    assert f"Did you mean {meant!r}?" in problem.splitlines()[-1]


@pytest.mark.parametrize("name", ["gpt-5", "claude-opus-4", "gemini-3-pro", "o3-mini", "grok-4", "GPT-5"])
def test_a_model_without_its_provider_gets_the_provider(name: str) -> None:
    with pytest.raises(UsageError, match=f"Did you mean '[a-z]+:{name}'"):
        model(name)
