"""Measures reading many runs and searching them, compared to parsing the same files with ``json.loads`` alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.benchmarks.measuring import alternating
from tests.benchmarks.memory import peak_bytes, resident_bytes
from tests.benchmarks.report import Row
from tests.benchmarks.scale import Scale
from toolcall_nb import read_many
from toolcall_nb.runs.collection import Runs

__all__ = ["rows"]

_ROOT = Path(__file__).resolve().parents[2]
_CALLS = 5
_RESULT = 1_600


def rows(scale: Scale) -> Iterator[Row]:
    """Measures the time to read, to search and to query runs, and the memory that an index takes."""
    with TemporaryDirectory() as folder:
        logs, cache = Path(folder, "logs"), Path(folder, "cache")
        size = _write_runs(logs, scale.runs)
        runs = read_many(logs)
        runs.to_parquet(cache)
        query = "select count(*) as n from calls where result_text ilike '%timeout%'"
        assert len(runs.search("timeout", None)) == read_many(cache).sql(query).n[0] > 0
        works: dict[str, Callable[[], object]] = {
            "J": lambda: _parse(logs),
            "read": lambda: len(read_many(logs)),
            "search": lambda: runs.search("timeout", None),
            "cached": lambda: read_many(cache).search("timeout", None),
            "query": lambda: read_many(cache).sql(query),
        }
        times = alternating(works, 1)
        memory = _memory(logs)
    about = f"{scale.runs:,} runs of {size / scale.runs / 1e3:.0f} kB"
    yield _row(f"reading {about}", times, "read", 45, 30)
    yield _row(f"searching {about}", times, "search", 45, 30)
    yield _row(f"searching {about}, from Parquet", times, "cached", 25, 15)
    yield _row(f"querying the calls of {about} with SQL", times, "query", 4, 2)
    yield Row(f"memory while {about} are read and searched", memory / scale.runs / 1e3, "kB a run", 6, 4)


def _row(name: str, times: dict[str, float], work: str, must: float, aim: float) -> Row:
    return Row(name, times[work] / times["J"], "times json.loads", must, aim, f"{times[work]:.2f} s")


def _write_runs(folder: Path, count: int) -> int:
    """Writes message lists of OpenAI's form, one a file. Returns the number of bytes."""
    folder.mkdir()
    size = 0
    for number in range(count):
        text = json.dumps(_messages(number))
        (folder / f"{number:06}.json").write_text(text, "utf-8")
        size += len(text)
    return size


def _messages(number: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Question {number}"}]
    for call in range(_CALLS):
        arguments = json.dumps({"query": f"select {call} from t{number}", "limit": call})
        function = {"name": "sql", "arguments": arguments}
        asked = {"id": f"call_{call}", "type": "function", "function": function}
        failed = " timeout" if (number + call) % 10 == 0 else ""
        messages += [
            {"role": "assistant", "content": "Let me look.", "tool_calls": [asked]},
            {"role": "tool", "tool_call_id": f"call_{call}", "content": "row " * (_RESULT // 4) + failed},
        ]
    return [*messages, {"role": "assistant", "content": "All done. " * 50}]


def _parse(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        json.loads(path.read_bytes())


def _memory(folder: Path) -> int:
    """Measures the peak of the resident memory in a new process, above that before the runs were read."""
    command = [sys.executable, "-m", "tests.benchmarks.finding", str(folder)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True)
    return int(done.stdout)


def _read_in_process(folder: str) -> int:
    files = sorted(str(path) for path in Path(folder).iterdir())
    _use(read_many(files[0]))  # what is loaded when first used
    before = resident_bytes()
    runs = read_many(folder)
    _use(runs)
    return max(peak_bytes() - before, 0)


def _use(runs: Runs) -> None:
    assert len(runs) > 0
    assert runs.search("nowhere", None).is_cut is False


if __name__ == "__main__":
    print(_read_in_process(sys.argv[1]))
