"""Phoenix and Langfuse read the spans of a chat. Both bring many packages, so each has an environment of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.environments import run_tests_in


@pytest.mark.thorough
def test_phoenix_shows_a_chat_with_its_messages_tools_and_tokens(tmp_path: Path) -> None:
    assert "6 passed" in run_tests_in(tmp_path, "phoenix_runs.py", "arize-phoenix>=20.26")


@pytest.mark.thorough
def test_langfuse_sends_a_chat_to_its_server(tmp_path: Path) -> None:
    assert "3 passed" in run_tests_in(tmp_path, "langfuse_runs.py", "langfuse>=5")
