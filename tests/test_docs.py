"""What README and CONTRIBUTING say is so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.provider_replays import REPLAYED
from tests.test_local_model import LOCAL
from tests.test_providers import LOOPS
from toolcall_nb import Transcript
from toolcall_nb.models.providers import NAMES
from toolcall_nb.render.content import STATE_WORDS
from toolcall_nb.transcript import FINAL_STATES, State

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
PAGES = {
    "README.md": README,
    "CONTRIBUTING.md": CONTRIBUTING,
    "CHANGELOG.md": (ROOT / "CHANGELOG.md").read_text("utf-8"),
}


def test_the_table_of_states_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| ([\w ]+?) \| (.*?) ?\|$", README, re.MULTILINE)
    assert [(state, word) for state, word, _ in rows] == [(state.value, STATE_WORDS[state]) for state in State]
    assert {State(state) for state, _, then in rows if not then} == FINAL_STATES


def test_the_transcript_in_the_readme_is_one() -> None:
    text = re.findall(r"^```markdown\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)[0]
    transcript = Transcript.from_markdown(text)
    assert transcript.diagnostics == ()
    output: Any = transcript.calls["call_123"].output
    assert output["results"][0]["title"] == "All About Cats"
    assert Transcript.from_markdown(transcript.to_markdown()) == transcript


def test_the_table_of_providers_says_what_the_tests_do() -> None:
    rows = re.findall(
        r"^\| `([\w-]+):` \| [^|]+ \| (yes)? ?\| (replayed)? ?\| (llama.cpp's)? ?\|$", README, re.MULTILINE
    )
    names = [name for name, *_ in rows]
    assert {name for name, recorded, _, _ in rows if recorded} == REPLAYED
    assert {name for name, _, loop, _ in rows if loop} == {name.partition(":")[0] for _, name, _ in LOOPS}
    assert {name for name, _, _, local in rows if local} == set(LOCAL)
    named = re.findall(r"`([\w-]+):`", README)
    assert set(named) <= set(NAMES)
    assert len(names) == len(set(names))


@pytest.mark.parametrize("page", PAGES)
def test_each_command_that_is_named_is_there(page: str) -> None:
    usage = subprocess.run([sys.executable, str(ROOT / "dev")], capture_output=True, text=True, check=False).stderr
    commands = set(re.findall(r"^\./dev (\w+)", usage, re.MULTILINE))
    assert commands >= {"tour", "test", "lint", "types"}
    assert set(re.findall(r"\./dev (\w+)", PAGES[page])) <= commands


@pytest.mark.parametrize("page", PAGES)
def test_each_file_that_is_linked_is_there(page: str) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", PAGES[page])
    assert [link for link in links if not (ROOT / link).exists()] == []
