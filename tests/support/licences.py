"""The licences of what a user installs: ``python -m tests.support.licences`` writes them into docs/licences.md.

What a distribution says of itself counts: its licence expression (PEP 639), else its field, else its classifier, else
the first words of its licence file.
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
    "MPL-2.0",  # binds who changes its own files, which nobody does here
    "PSF-2.0",
    "Unlicense",
}
"""What may be needed by those who use this package; by SPDX, and BSD where a package does not say which."""

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
    """An SPDX expression where the package's own words can be read as one; else those words."""
    about = package.metadata
    classifiers = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier", []) if line.startswith("License")]
    fields = [line.strip().partition("\n")[0] for line in about.get_all("License", [])]
    words = [*about.get_all("License-Expression", []), *fields, *classifiers, _first_words(package)]
    known = [_SPOKEN.get(each, each) for each in words if each]
    return next((each for each in known if runs_by(each)), next(iter(known), "none is named"))


def runs_by(expression: str) -> bool:
    """Whether one of the alternatives of an SPDX expression is accepted whole."""
    return any(set(each.strip("() ").split(" AND ")) <= ACCEPTED for each in expression.split(" OR "))


def rows() -> list[tuple[str, str, str]]:
    """Each distribution, its licence, and which extra brings it: none is the package itself."""
    found: dict[str, tuple[str, str, str]] = {}
    for extra in ("", "models", "server", "mcp"):
        for name, package in closure(runtime(*filter(None, [extra]))).items():
            found.setdefault(name, (name, licence_of(package), f"`[{extra}]`" if extra else "toolcall_nb"))
    return sorted(found.values())


def page() -> str:
    """The page with the table."""
    return _HEAD + "".join(f"| {name} | {licence} | {extra} |\n" for name, licence, extra in rows())


def _first_words(package: Distribution) -> str:
    files = [file for file in package.files or () if "dist-info" in str(file) and "LICEN" in file.name.upper()]
    text = str(files[0].locate().read_text("utf-8")) if files else ""  # type: ignore[attr-defined]  # a path, by its docs
    return next((line.strip() for line in text.split("\n") if line.strip()), "")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
