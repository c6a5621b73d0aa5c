"""The examples of docs/testing.md and docs/assertions.md run in a project; their tables name what there is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from toolcall_nb.core.transcript import ToolCall
from toolcall_nb.testing import assert_calls, faults
from toolcall_nb.testing.call_assertions import CallOrder
from toolcall_nb.testing.cassettes import RecordMode

ROOT = Path(__file__).resolve().parents[2]
PAGE = "\n".join((ROOT / "docs" / name).read_text("utf-8") for name in ("testing.md", "assertions.md"))
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
REAL_MODEL = '"openai:gpt-5"'
SCRIPTED = 'MockModel(script=[("sql", {"q": "select count(*) from t"}), "Two rows."])'


def rows_of(column: str) -> list[str]:
    """The first cells of the table with this heading."""
    table = re.search(rf"^\| {re.escape(column)} \|.*\n\|.*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert table is not None
    return re.findall(r"^\| (.*?) \|", table[1], re.MULTILINE)


@pytest.mark.slow
def test_each_example_runs(tmp_path: Path) -> None:
    agent, *tests = EXAMPLES
    (tmp_path / "agent.py").write_text(agent, "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", "utf-8")
    for number, text in enumerate(tests):
        scripted = f"from toolcall_nb.testing import MockModel\n{text.replace(REAL_MODEL, SCRIPTED)}"
        (tmp_path / f"test_example{number}.py").write_text(scripted, "utf-8")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "toolcall_nb.testing.pytest_plugin"]
    for record in (["--toolchat-record"], []):
        done = subprocess.run(
            [*command, *record], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        count = PAGE.count("\ndef test_")
        assert f"{count} passed" in done.stdout, done.stdout
    assert (tmp_path / "cassettes" / "test_example2" / "test_the_agent_counts_rows.jsonl").exists()


def test_the_failure_on_the_page_is_the_real_one() -> None:
    run = [
        ToolCall(id="1", name="weather", input={"city": "Oslo"}),
        ToolCall(id="2", name="sql", input={"q": "select 1"}),
        ToolCall(id="3", name="search", input={"query": "y"}),
    ]
    expected: list[Any] = [run[0], ("note", {"text": "x"}), ("sql", {"q": "select 2"})]
    (shown,) = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    with pytest.raises(AssertionError) as error:
        assert_calls(run, expected)
    assert f"{error.value}\n" == shown


def test_the_tables_list_every_mode_and_every_fault() -> None:
    assert [name.split('"')[1] for name in rows_of("`record`")] == list(get_args(RecordMode))
    assert [name.split('"')[1] for name in rows_of("`order`")] == list(get_args(CallOrder))
    named = set(re.findall(r"`(\w+)\(", "\n".join(rows_of("fault"))))
    others = {"injected", "with_faults", "faulty", "tools_with_faults"}
    assert named == {name for name in faults.__all__ if name.islower()} - others
