"""Stores findings: one file for each input, named after its target (``callout-1``), which a test runs from then on."""

from __future__ import annotations

from pathlib import Path

__all__ = ["FINDINGS", "findings_of", "store_finding"]

FINDINGS = Path(__file__).resolve().parents[1] / "fixtures" / "fuzz"
"""The folder of the stored findings."""


def findings_of(target: str, folder: Path = FINDINGS) -> dict[str, bytes]:
    """Returns the inputs found for a target, by file name."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob(f"{target}-[0-9]*"))}


def store_finding(target: str, data: bytes, folder: Path = FINDINGS) -> str:
    """Stores ``data`` unless it is stored already; returns the file's name."""
    folder.mkdir(parents=True, exist_ok=True)
    found = findings_of(target, folder)
    for name, known in found.items():
        if known == data:
            return name
    number = next(number for number in range(1, len(found) + 2) if f"{target}-{number}" not in found)
    (folder / f"{target}-{number}").write_bytes(data)
    return f"{target}-{number}"
