"""Fuzzes targets: ``python -m tests.fuzz [TARGET …] [--seconds N | --runs N] [--rounds N] [--seed N]``.

Each target, or each named one, runs for a number of seconds (60 by default) or of executions (``--runs 0``: as many as
in the test suite). Each round continues from the inputs of the previous one. A finding is printed as a Python literal
and written to a folder (``--found``, by default ``tests/fixtures/fuzz``), where a test runs it from then on; the exit
code is then 1. ``--totals FILE`` writes the totals of all rounds as JSON.
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
    from tests.fuzz.targets import Target  # imported at run time, after instrumentation is set up

_MISSING = "atheris is not installed: it has wheels only for Linux on x86-64 and Python before 3.14."


def main(arguments: list[str]) -> int:
    """Runs the command; returns the exit code: 0 without findings, 1 with findings, 2 if it cannot run."""
    asked = _asked(arguments)
    if not is_there():
        print(_MISSING)
        return 2
    targets = instrumented_targets()
    unknown = set(asked.targets) - set(targets)
    if unknown:
        print(f"There is no target {', '.join(sorted(unknown))}. The targets are {', '.join(targets)}.")
        return 2
    chosen = {name: targets[name] for name in asked.targets or targets}
    with tempfile.TemporaryDirectory() as folder:
        return _rounds(chosen, asked, Path(asked.keep or folder))


def _asked(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz all targets, or the named ones.")
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--seconds", type=int, default=60, help="seconds for each target and round")
    parser.add_argument("--runs", type=int, help="executions instead of seconds; 0: as many as in the test suite")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1, help="seed of the first round")
    parser.add_argument("--found", type=Path, default=FINDINGS, help="folder for findings")
    parser.add_argument("--keep", type=Path, help="folder for inputs that reach new code")
    parser.add_argument("--totals", type=Path, help="JSON file for the totals, written after each run")
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
    """Returns the seeds; those of a run with a fixed count don't depend on the corpora and are at most half of it."""
    own = [*findings_of(name).values(), *target.seeds()]
    return [*own, *target.more()] if with_corpora else own[: max(target.runs // 2, 4)]


class Total:
    """The results of one target in all rounds."""

    def __init__(self) -> None:
        self.executions = 0
        self.cpu_seconds = 0.0
        self.found: list[str] = []
        self.troubles: list[str] = []
        self.known: set[Signature] = set()

    def add(self, outcome: Outcome) -> None:
        """Adds a run."""
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
        print(f"{outcome.found.trouble}\nfound by {outcome.target}, stored as {name}:\ndata = {outcome.found.data!r}")
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
