"""Writes the README's way to Binder. `python -m tests.project.binder_badge` does it after the address was set.

The repository's address is one variable: ``Repository`` in ``[project.urls]`` of pyproject.toml, such as
``https://github.com/OWNER/NAME``. Until there is one, the README says what to enter on Binder's page.
"""

from __future__ import annotations

import re
import tomllib

from tests.support.requirements import ROOT

__all__ = ["README", "address", "line", "with_line"]

README = ROOT / "README.md"
_NOTEBOOK = "notebooks/tour.ipynb"
_BINDER = "https://mybinder.org"
_KINDS = {"github.com": "gh", "gitlab.com": "gl"}
_MARK = " <!-- by binder_badge.py -->\n"
"""The end of the line. At its beginning, a comment would make the whole line HTML."""


def address() -> str:
    """Returns the repository's address; an empty text until it has one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return str(project.get("urls", {}).get("Repository", ""))


def line(repository: str) -> str:
    """Returns the README's line for the repository at this address."""
    if not repository:
        return f"On [Binder]({_BINDER}), enter the address of this repository and `{_NOTEBOOK}`."
    found = re.fullmatch(r"https://([\w.]+)/(.+?)(?:\.git)?/?", repository)
    if found is None or found[1] not in _KINDS:
        raise ValueError(f"Binder's badge is written for addresses at {' and '.join(_KINDS)}, not for {repository!r}.")
    path = found[2] if _KINDS[found[1]] == "gh" else found[2].replace("/", "%2F")
    tour = f"{_BINDER}/v2/{_KINDS[found[1]]}/{path}/HEAD?urlpath=lab/tree/{_NOTEBOOK}"
    return f"[![Open the tour on Binder]({_BINDER}/badge_logo.svg)]({tour})"


def with_line(readme: str, repository: str) -> str:
    """Returns the README with the line for this address."""
    made, count = re.subn(rf"^.*{re.escape(_MARK)}", lambda _: line(repository) + _MARK, readme, flags=re.MULTILINE)
    if count != 1:
        raise ValueError(f"README.md has {count} lines that end with {_MARK.strip()}")
    return made


if __name__ == "__main__":
    README.write_text(with_line(README.read_text("utf-8"), address()), "utf-8")
