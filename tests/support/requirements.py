"""Finds the project's direct and transitive requirements in the metadata of installed packages, without network."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ["ROOT", "closure", "group", "pins", "runtime"]

ROOT = Path(__file__).resolve().parents[2]
_SETTINGS: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def runtime(*extras: str) -> list[Requirement]:
    """Returns the project's direct requirements, with those of the extras."""
    project = _SETTINGS["project"]
    lines = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    return [Requirement(line) for line in lines]


def group(name: str) -> list[Requirement]:
    """Returns the requirements in a development dependency group, including its included groups."""
    found: list[Requirement] = []
    for each in _SETTINGS["dependency-groups"][name]:
        found += [Requirement(each)] if isinstance(each, str) else group(each["include-group"])
    return found


def pins(lock: Path) -> Iterator[Requirement]:
    """Yields a lock file's requirements, each with one version, including those for other Pythons and systems."""
    for line in re.findall(r"^(\S.*?)(?: \\)?$", lock.read_text("utf-8"), re.MULTILINE):
        yield Requirement(line)


def closure(
    requirements: Iterable[Requirement], environment: Mapping[str, str] | None = None
) -> dict[str, Distribution]:
    """Returns these distributions and all that they require, by name: on this machine, or on one with these markers.

    Raises `PackageNotFoundError` if one is not installed; the message names the package that requires it.
    """
    markers = dict(environment or {})
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(requirement, "", "the project") for requirement in requirements]
    while waiting:
        requirement, extra, wanted_by = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({**markers, "extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            raise PackageNotFoundError(f"{name}, which {wanted_by} needs") from None
        for asked in {"", *requirement.extras} - {known for each, known in seen if each == name}:
            seen.add((name, asked))
            waiting += [(Requirement(line), asked, name) for line in found[name].requires or ()]
    return found
