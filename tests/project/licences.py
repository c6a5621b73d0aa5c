"""Lists the licences of the packages that a user installs; run as a module, it writes docs/licences.md.

A package's licence is its licence expression (PEP 639), else its licence field, else its classifier, else the first
words of its licence file.
"""

from __future__ import annotations

from importlib.metadata import Distribution

from tests.support.requirements import ROOT, closure, runtime

__all__ = ["ACCEPTED", "PAGE", "licence_of", "page", "rows", "runs_by"]

ACCEPTED = {
    "0BSD",
    "Apache-2.0",
    "BSD",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CNRI-Python",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",  # applies to changes of its own files, and we change none
    "PSF-2.0",
    "Unlicense",
}
"""Accepted licences of required packages, as SPDX identifiers; "BSD" if a package does not say which BSD licence."""

PAGE = ROOT / "docs" / "licences.md"

_SPOKEN = {
    "Apache 2.0": "Apache-2.0",
    "Apache License": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD 3-Clause License": "BSD-3-Clause",
    "BSD License": "BSD",
    "ISC License (ISCL)": "ISC",
    "ISC license": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
_HEAD = """# Licences

Everything in the wheel was written for this project and is under its licence, MIT: Python, JavaScript, CSS, a page for
the server, and a sample of Markdown. It contains no code, font, icon or picture of others.

Dependencies are installed by pip from their own publishers, each under its own licence. A test keeps this table up to
date, and fails for a licence that nobody has reviewed.

| package | licence | needed by |
| --- | --- | --- |
"""


def licence_of(package: Distribution) -> str:
    """Returns the licence as an SPDX expression if the package's wording maps to one, else the wording."""
    about = package.metadata
    classifiers = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier", []) if line.startswith("License")]
    fields = [line.strip().partition("\n")[0] for line in about.get_all("License", [])]
    words = [*about.get_all("License-Expression", []), *fields, *classifiers, _first_words(package)]
    known = [_SPOKEN.get(each, each) for each in words if each]
    return next((each for each in known if runs_by(each)), next(iter(known), "none is named"))


def runs_by(expression: str) -> bool:
    """Whether all licences in one alternative of an SPDX expression are accepted."""
    return any(set(each.strip("() ").split(" AND ")) <= ACCEPTED for each in expression.split(" OR "))


def rows() -> list[tuple[str, str, str]]:
    """Returns each distribution, its licence, and what requires it: "toolcall_nb" or one of its extras."""
    found: dict[str, tuple[str, str, str]] = {}
    for extra in ("", "models", "server", "mcp", "redis"):
        for name, package in closure(runtime(*filter(None, [extra]))).items():
            found.setdefault(name, (name, licence_of(package), f"`[{extra}]`" if extra else "toolcall_nb"))
    return sorted(found.values())


def page() -> str:
    """Returns the page with the table."""
    return _HEAD + "".join(f"| {name} | {licence} | {extra} |\n" for name, licence, extra in rows())


def _first_words(package: Distribution) -> str:
    files = [file for file in package.files or () if "dist-info" in str(file) and "LICEN" in file.name.upper()]
    text = str(files[0].locate().read_text("utf-8")) if files else ""  # type: ignore[attr-defined]  # a path, by its docs
    return next((line.strip() for line in text.split("\n") if line.strip()), "")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
