"""Finds the links of the pages and notebooks: `links`. Run as a program, it asks each linked site, over the network.

``./dev docs --links`` runs it. Links within the repository are checked by `tests.project.test_docs`.
"""

from __future__ import annotations

import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import nbformat

from tests.support.environments import ROOT

__all__ = ["anchors", "is_external", "links", "texts"]

_LINK = re.compile(
    r"\]\(<?([^()\s<>]+)|^\[[^\]]+\]:\s*(\S+)|(?:src|srcset|href)=\"([^\"\s]+)|<(https?://[^>\s]+)>", re.M
)
_CODE = re.compile(r"^( *)(`{3,}|~{3,}).*?^\1\2`*$|(`+)(?!`).+?(?<!`)\3(?!`)", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r"^#+ (.+)$", re.MULTILINE)
_SECONDS = 20


def texts() -> Mapping[str, str]:
    """Returns the Markdown of each page and notebook by its path, without code."""
    pages = {path: path.read_text("utf-8") for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]}
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        cells = nbformat.read(path, 4).cells
        pages[path] = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return {str(path.relative_to(ROOT)): _CODE.sub("", text) for path, text in sorted(pages.items())}


def links(text: str) -> Iterator[str]:
    """Yields the targets of links and pictures."""
    for match in _LINK.finditer(text):
        yield next(filter(None, match.groups()))


def is_external(link: str) -> bool:
    """Whether a link leads to another site."""
    return link.startswith(("http:", "https:", "mailto:"))


def anchors(text: str) -> frozenset[str]:
    """Returns the names of a page's sections, as GitHub and MyST make them of titles."""
    return frozenset(re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in _TITLE.findall(text))


def _answer(link: str) -> str:
    """Returns what is wrong with an external link; nothing if its site has the page, or refuses programs."""
    request = urllib.request.Request(link, headers={"User-Agent": "Mozilla/5.0 (a check of links)"})
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS):
            return ""
    except urllib.error.HTTPError as error:
        return "" if error.code in (401, 403, 405, 429) else str(error)
    except (OSError, ValueError) as error:
        return str(error)


def main() -> int:
    """Prints each external link, with what is wrong with it. Returns 1 if something is."""
    found: dict[str, list[str]] = {}
    for page, text in texts().items():
        for link in filter(is_external, links(text)):
            found.setdefault(link.partition("#")[0], []).append(page)
    asked = [link for link in sorted(found) if not link.startswith("mailto:")]
    with ThreadPoolExecutor(8) as pool:
        problems = dict(zip(asked, pool.map(_answer, asked), strict=True))
    for link, problem in problems.items():
        print(f"{link} ({', '.join(sorted(set(found[link])))}): {problem or 'found'}")
    return int(any(problems.values()))


if __name__ == "__main__":
    sys.exit(main())
