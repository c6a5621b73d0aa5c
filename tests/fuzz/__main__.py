"""Fuzz: ``python -m tests.fuzz [TARGET …] [--seconds N | --runs N] [--rounds N] [--seed N]``.

Each target, or each that is named, runs for so many seconds (60 unless told otherwise), or so often (``--runs 0``: as
often as the suite does). Several rounds go on from what the rounds before have reached. What is found is printed as a
Python literal and written to a folder (``--found``, else ``tests/fixtures/fuzz``), where a test runs it from then on;
the command then ends with 1. ``--totals FILE`` keeps the totals of all rounds as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fuzz.findings import FINDINGS, findings_of, store_finding
from tests.fuzz.running import Outcome, Signature, fuzz, instrumented_targets, is_there
from tests.support.profile import share_of

if TYPE_CHECKING:
    from tests.fuzz.targets import Target  # it is imported when it can be instrumented

_MISSING = "atheris is not there: it has wheels for Linux on x86-64 and Python before 3.14 only."


def main(arguments: list[str]) -> int:
    """The exit code: 0 where nothing was found, 1 where something was, 2 where it cannot be run."""
    asked = _asked(arguments)
    if not is_there():
        print(_MISSING)
        return 2
    targets = instrumented_targets()
    unknown = set(asked.targets) - set(targets)
    if unknown:
        print(f"There is no target {', '.join(sorted(unknown))}. There are: {', '.join(targets)}.")
        return 2
    chosen = {name: targets[name] for name in asked.targets or targets}
    with tempfile.TemporaryDirectory() as folder:
        return _rounds(chosen, asked, Path(asked.keep or folder))


def _asked(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz the targets, or those named.")
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--seconds", type=int, default=60, help="for each target and round")
    parser.add_argument("--runs", type=int, help="in place of seconds; 0: as often as the suite does")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--found", type=Path, default=FINDINGS, help="where what is found is written")
    parser.add_argument("--keep", type=Path, help="where inputs that reach something new are kept")
    parser.add_argument("--totals", type=Path, help="a JSON file of the totals, written after each run")
    return parser.parse_args(arguments)


def _rounds(targets: dict[str, Target], asked: argparse.Namespace, kept: Path) -> int:
    totals: dict[str, Total] = {name: Total() for name in targets}
    for number in range(asked.rounds):
        for name, target in targets.items():
            outcome = _one(name, target, asked, number, kept, frozenset(totals[name].known))
            totals[name].add(outcome)
            _report(outcome, asked.found)
            if asked.totals is not None:
                _write(asked.totals, totals)
    return 1 if any(total.found or total.troubles for total in totals.values()) else 0


def _one(
    name: str, target: Target, asked: argparse.Namespace, number: int, kept: Path, known: frozenset[Signature]
) -> Outcome:
    folder = kept / name
    folder.mkdir(parents=True, exist_ok=True)
    runs = asked.runs or share_of(target.runs)
    limit = f"-max_total_time={asked.seconds}" if asked.runs is None else f"-runs={runs}"
    seeds = _seeds(name, target, asked.runs is None) if number == 0 else ()
    return fuzz(name, target, limit, seed=asked.seed + number, kept=folder, seeds=seeds, known=known)


def _seeds(name: str, target: Target, with_corpora: bool) -> Iterable[bytes]:
    """A run of so many times is the same with the corpora and without, and its seeds are at most half of it."""
    own = [*findings_of(name).values(), *target.seeds()]
    return [*own, *target.more()] if with_corpora else own[: max(target.runs // 2, 4)]


class Total:
    """What became of one target in all rounds."""

    def __init__(self) -> None:
        self.executions = 0
        self.cpu_seconds = 0.0
        self.found: list[str] = []
        self.troubles: list[str] = []
        self.known: set[Signature] = set()

    def add(self, outcome: Outcome) -> None:
        """One more run."""
        self.executions += outcome.executions
        self.cpu_seconds += outcome.cpu_seconds
        if outcome.trouble:
            self.troubles.append(outcome.trouble)
        if outcome.found is not None:
            self.found.append(repr(outcome.found.data))
            self.known.add(outcome.found.signature)


def _report(outcome: Outcome, folder: Path) -> None:
    figures = f"{outcome.executions:,} executions, {outcome.cpu_seconds / 60:.1f} CPU-minutes"
    print(f"{outcome.target}: {figures}{'' if outcome.found or outcome.trouble else ', nothing found'}")
    if outcome.trouble:
        print(outcome.trouble)
    if outcome.found is not None:
        name = store_finding(outcome.target, outcome.found.data, folder)
        print(f"{outcome.found.trouble}\nfound by {outcome.target}, kept as {name}:\ndata = {outcome.found.data!r}")
    sys.stdout.flush()


def _write(file: Path, totals: dict[str, Total]) -> None:
    totals_by_name = {
        name: {
            "executions": total.executions,
            "cpu_minutes": round(total.cpu_seconds / 60, 2),
            "found": total.found,
            "troubles": total.troubles,
        }
        for name, total in totals.items()
    }
    all_of_them = {
        "executions": sum(total.executions for total in totals.values()),
        "cpu_minutes": round(sum(total.cpu_seconds for total in totals.values()) / 60, 2),
    }
    file.write_text(json.dumps({"all": all_of_them, **totals_by_name}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
