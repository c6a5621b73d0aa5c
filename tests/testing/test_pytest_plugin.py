"""The pytest plugin in real runs of pytest, on small projects that use nothing else of this one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import TypeAlias

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = "toolcall_nb.testing.pytest_plugin"

Run: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]

AGENT = '''
    """An agent with a loop of its own: no notebook, no chat of toolcall_nb."""

    from toolcall_nb.core.transcript import Transcript

    RAN = []

    def sql(q: str) -> int:
        """Runs a query."""
        RAN.append(q)
        return 2

    def answer(model, tools, prompt):
        from toolcall_nb import Chat
        return Chat(model, tools=tools).send(prompt)
'''
TEST = """
    import agent
    from toolcall_nb.testing import MockModel, assert_calls

    SCRIPT = [("sql", {"q": "select count(*) from t"}), "Two rows."]

    def test_counts_the_rows(toolchat_cassette):
        tape = toolchat_cassette(MockModel(script=SCRIPT))
        message = agent.answer(tape, tape.tools([agent.sql]), "PROMPT")
        assert_calls(message, [("sql", {"q": "select count(*) from t"})])
        assert message.text == "Two rows."
        print("queries:", agent.RAN)
"""
CASSETTE = Path("tests/cassettes/test_rows/test_counts_the_rows.jsonl")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs pytest in the folder of the project."""

    def run(*arguments: str, plugin: str = PLUGIN) -> subprocess.CompletedProcess[str]:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *(["-p", plugin] if plugin else [])]
        return subprocess.run(
            [*command, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    return run


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(dedent(text), "utf-8")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, "pytest.ini", "[pytest]\n")
    write(tmp_path, "agent.py", AGENT)
    write(tmp_path, "tests/test_rows.py", TEST.replace("PROMPT", "How many rows?"))
    return tmp_path


# Cassettes ----------------------------------------------------------------------------------------------------


def test_a_test_records_once_and_replays_after(project: Path, run: Run) -> None:
    first = run("--toolchat-record", "-s")
    assert first.returncode == 0, first.stdout
    assert "queries: ['select count(*) from t']" in first.stdout
    assert re.search(rf"-- recorded cassettes --+\n{re.escape(str(project / CASSETTE))}\n", first.stdout)
    second = run("-s")
    assert second.returncode == 0, second.stdout
    assert "queries: []" in second.stdout
    assert "recorded cassettes" not in second.stdout
    third = run("--toolchat-record", "-s")
    assert "queries: []" in third.stdout
    assert "queries: ['select" in run("--toolchat-record-all", "-s").stdout


def test_without_a_cassette_the_test_fails_and_says_how_to_record_it(project: Path, run: Run) -> None:
    done = run()
    assert done.returncode == 1
    assert "There is no cassette" in done.stdout
    assert "Record it with: pytest --toolchat-record" in done.stdout


def test_another_prompt_fails_the_test_itself_with_the_difference(project: Path, run: Run) -> None:
    run("--toolchat-record")
    write(project, "tests/test_rows.py", TEST.replace("PROMPT", "How many columns?"))
    done = run()
    assert "1 failed" in done.stdout
    assert "error" not in done.stdout.splitlines()[-1]
    assert "Request 1 is not the one that was recorded." in done.stdout
    assert "recorded: 'How many rows?'" in done.stdout
    assert "now:      'How many columns?'" in done.stdout


def test_a_request_that_is_not_made_any_more_fails_a_test_that_would_pass(project: Path, run: Run) -> None:
    run("--toolchat-record")
    write(project, "tests/test_rows.py", "def test_counts_the_rows(toolchat_cassette):\n    toolchat_cassette()\n")
    done = run()
    assert "1 failed" in done.stdout
    assert "2 of 2 recorded requests were not made" in done.stdout
    assert "pytest --toolchat-record-all" in done.stdout


def test_what_a_failing_test_recorded_is_kept_unless_the_run_itself_broke(project: Path, run: Run) -> None:
    for number, (end, is_kept) in enumerate(
        [("assert 0", True), ("pytest.fail('no')", True), ("raise KeyError", False), ("pytest.skip('x')", False)]
    ):
        lines = [*dedent(TEST).splitlines(), f"    {end}"]
        write(project, f"tests/test_end{number}.py", "\n".join(["import pytest", *lines]))
        run("--toolchat-record", f"tests/test_end{number}.py")
        path = project / f"tests/cassettes/test_end{number}/test_counts_the_rows.jsonl"
        assert path.exists() is is_kept, end


def test_each_case_of_a_test_has_its_own_cassette(project: Path, run: Run) -> None:
    write(
        project,
        "tests/test_cases.py",
        """
        import pytest
        from toolcall_nb import Chat
        from toolcall_nb.testing import MockModel

        class TestGreets:
            @pytest.mark.parametrize("name", ["Ada", "a/b c", "a b/c"])
            def test_greets(self, toolchat_cassette, name):
                tape = toolchat_cassette(MockModel(script=[f"Hello {name}"]))
                other = toolchat_cassette(MockModel(script=["Bye"]), name="other")
                assert Chat(tape).send(name).text == f"Hello {name}"
                assert Chat(other).send(name).text == "Bye"

        def test_twice(toolchat_cassette):
            toolchat_cassette(MockModel(script=[]))
            with pytest.raises(ValueError, match="Give the second cassette a name"):
                toolchat_cassette(MockModel(script=[]))
        """,
    )
    for arguments in (["--toolchat-record"], []):
        assert "4 passed" in run("tests/test_cases.py", *arguments).stdout
    names = sorted(path.name for path in (project / "tests/cassettes/test_cases").iterdir())
    assert len(names) == 7
    assert "TestGreets.test_greets[Ada].jsonl" in names


def test_the_results_of_tools_can_be_real_in_a_replay(project: Path, run: Run) -> None:
    run("--toolchat-record")
    write(
        project,
        "tests/test_rows.py",
        TEST.replace("PROMPT", "How many rows?").replace("SCRIPT))", "SCRIPT), tools='run')"),
    )
    done = run("-s")
    assert "queries: ['select" in done.stdout
    assert "1 passed" in done.stdout


# Assertions ---------------------------------------------------------------------------------------------------

COMPARISON = """
    from toolcall_nb import Chat, MockModel, Transcript
    from toolcall_nb.core.transcript import Message, TextPart, ToolCall

    def talk(answer, hidden=1):
        chat = Chat(MockModel(script=[("sql", {"q": "select 1", "n": hidden}), answer]), tools=[])
        chat.send("How many rows?")
        return chat.transcript

    def test_transcripts():
        assert talk("Two rows.") == talk("Three rows.\\x1b[2J")

    def test_calls():
        assert talk("x").calls["call_1"] == talk("x", hidden=2).calls["call_1"]

    def test_values():
        assert Message("user", metadata={"a": 1}) == Message("user", metadata={"a": 2})

    def test_others():
        assert talk("x") == "x"
"""


def test_a_failed_comparison_shows_the_lines_that_differ(project: Path, run: Run) -> None:
    write(project, "tests/test_rows.py", COMPARISON)
    shown = run("-q").stdout
    assert "The two transcripts are not equal (2 messages, 1 tool calls == 2 messages, 1 tool calls)" in shown
    assert "E         +Two rows." in shown
    assert "E         -Three rows.␛[2J" in shown
    assert "The two tool calls are not equal" in shown
    assert '+>   "n": 1' in shown
    assert '->   "n": 2' in shown
    assert "The two messages are not equal" in shown
    assert "<Transcript: 2 messages, 1 tool calls> == 'x'" in shown


def test_assert_calls_fails_without_frames_of_the_package(project: Path, run: Run) -> None:
    write(
        project,
        "tests/test_rows.py",
        """
        from toolcall_nb.core.transcript import ToolCall
        from toolcall_nb.testing import assert_calls

        def test_calls():
            assert_calls([ToolCall(id="1", name="sql", input={"q": "a"})], [("sql", {"q": "b"})])
        """,
    )
    shown = run().stdout
    assert "1 ~ sql(q='a')" in shown
    assert "call_assertions.py" not in shown


# Cost ---------------------------------------------------------------------------------------------------------


def test_runs_that_do_not_use_it_import_nothing_for_it(project: Path, run: Run) -> None:
    listing = "import sys\n\ndef pytest_unconfigure():\n    print('modules:', *sorted(sys.modules))\n"
    write(project, "conftest.py", listing)
    write(project, "tests/test_rows.py", "def test_ok():\n    pass\n\ndef test_fails():\n    assert [1] == [2]\n")
    modules = []
    for plugin in (PLUGIN, ""):
        done = run(plugin=plugin)
        assert "1 failed, 1 passed" in done.stdout
        modules.append(set(done.stdout.partition("modules: ")[2].split()))
    ports = {"toolcall_nb.core", "toolcall_nb.core.lazy_imports"}
    assert modules[0] - modules[1] == {"toolcall_nb", "toolcall_nb.testing", PLUGIN, *ports}


def test_pytest_finds_the_plugin_by_its_entry_point(project: Path, run: Run) -> None:
    points = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    assert points == {"pytest11": {"toolchat": PLUGIN}}
    place = project / "some_distribution-1.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: some-distribution\nVersion: 1\n")
    (place / "entry_points.txt").write_text(f"[pytest11]\ntoolchat = {PLUGIN}\n")
    shown = run("--help", plugin="toolchat").stdout
    assert "--toolchat-record " in shown
    assert "--toolchat-record-all" in shown


def test_pytest_does_not_warn_where_the_package_was_imported_first_as_in_a_notebook(project: Path) -> None:
    place = project / "some_distribution-1.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: some-distribution\nVersion: 1\n")
    (place / "entry_points.txt").write_text(f"[pytest11]\ntoolchat = {PLUGIN}\n")
    write(project, "tests/test_rows.py", "def test_ok():\n    pass\n")
    unused = ("anyio", "hypothesispytest", "langsmith_plugin", "nbval", "platformdirs", "schemathesis", "xdist")
    options = ["-p", "no:cacheprovider", *(word for name in unused for word in ("-p", f"no:{name}"))]
    code = f"import toolcall_nb, pytest, sys; sys.exit(pytest.main({options!r}))"
    for files, warns in (("json/__init__.py", True), ("toolcall_nb/__init__.py", False)):
        (place / "RECORD").write_text(f"{files},,\n")
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        environment["PYTHONPATH"] = f"{project}{os.pathsep}{ROOT}"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=project, env=environment, capture_output=True, text=True, check=False
        )
        assert "1 passed" in done.stdout
        assert ("cannot be rewritten; json" in done.stdout) is warns
        assert "cannot be rewritten; toolcall_nb" not in done.stdout
