"""The pytest plugin ``toolchat``: the fixture `toolchat_cassette`, and readable differences of transcripts.

pytest imports this module in every run where toolcall_nb is installed. So it imports nothing but pytest until a test
asks for the fixture, or a comparison of transcripts fails.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from toolcall_nb.testing.cassettes import CassettesOfTest

_OPENED = pytest.StashKey["CassettesOfTest"]()
_RECORDED = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options that record cassettes."""
    group = parser.getgroup("toolchat", "cassettes of toolcall_nb")
    group.addoption(
        "--toolchat-record",
        action="store_const",
        const="once",
        default="none",
        help="record the cassettes that are not there; replay the others",
    )
    group.addoption(
        "--toolchat-record-all",
        action="store_const",
        const="all",
        dest="toolchat_record",
        help="record all cassettes of the selected tests again",
    )


@pytest.fixture
def toolchat_cassette(request: pytest.FixtureRequest) -> Iterator[CassettesOfTest]:
    """Opens the cassettes of a test: ``tape = toolchat_cassette("openai:gpt-5")``.

    The cassette is a model for a chat; ``tape.tools([…])`` are tools whose results are replayed. It is recorded by
    ``pytest --toolchat-record`` into ``cassettes/<module>/<test>.jsonl`` beside the test's file, and replayed strictly
    by every other run: a test whose requests, tool results or order differ fails.
    """
    from toolcall_nb.testing.cassettes import CassettesOfTest

    opened = CassettesOfTest(request.path, request.node.nodeid, request.config.getoption("toolchat_record"))
    request.node.stash[_OPENED] = opened
    yield opened
    recorded = request.config.stash.setdefault(_RECORDED, [])
    recorded += map(str, opened.written)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Ends the cassettes of a test when its function has ended, so that the test itself fails with the difference."""
    outcome = yield
    opened = item.stash.get(_OPENED, None)
    if opened is not None:
        error = outcome.excinfo[1] if outcome.excinfo is not None else None
        try:
            opened.finish(error, is_failure=isinstance(error, AssertionError | pytest.fail.Exception))
        except AssertionError as difference:
            outcome.force_exception(difference)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Lists the cassettes that were recorded."""
    recorded = config.stash.get(_RECORDED, [])
    if recorded:
        terminalreporter.section("recorded cassettes", sep="-")
        for path in recorded:
            terminalreporter.line(path)


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Explains a failed ``==`` of two transcripts, messages or tool calls by the lines that differ."""
    if op != "==" or "toolcall_nb.core.transcript" not in sys.modules:
        return None
    from toolcall_nb.testing.differences import compare_transcripts

    return compare_transcripts(left, right)
