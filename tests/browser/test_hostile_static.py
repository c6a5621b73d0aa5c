"""Nothing runs, nothing is asked for and nothing leaves its box in what is saved and exported, in real Chromium.

Hostile texts stand in every place of a transcript, which is drawn as an exported file, as a page of a server with
a policy of its own, as nbconvert's HTML of an executed notebook, and in the real JupyterLab, trusted and not.
By default each face has a share of the texts; ``HYPOTHESIS_PROFILE=search`` draws all of them
everywhere, with every variant in the exported file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext

from tests.browser.jupyter import Server
from tests.browser.sentinel import STRICT
from tests.browser.static_faces import (
    Converted,
    Executed,
    ExportedFile,
    Lab,
    ServedPage,
    every_cell_drawn,
    run,
    serving,
)
from tests.support.hostile_transcripts import own_payloads, payloads, share
from tests.support.hostile_variants import variants
from tests.support.profile import IS_SEARCH, IS_THOROUGH, share_of


def spelled() -> Sequence[str]:
    """Variants: a share of the project's payloads, each in one of them; in a search, every payload in all."""
    if IS_SEARCH:
        return list(dict.fromkeys(chain.from_iterable(map(variants, payloads()))))
    every = [list(dict.fromkeys(variants(payload))) for payload in own_payloads()[:: 2 if IS_THOROUGH else 5]]
    return [each[number * 7 % len(each)] for number, each in enumerate(every)]


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    context = chromium.new_context(viewport={"width": 1000, "height": 800})
    yield context
    context.close()


def test_in_the_exported_file_no_text_does_anything(context: BrowserContext, tmp_path: Path) -> None:
    ExportedFile(context, tmp_path).check(share(share_of(240)))


@pytest.mark.thorough
def test_in_the_exported_file_no_variant_does_anything(context: BrowserContext, tmp_path: Path) -> None:
    ExportedFile(context, tmp_path).check(spelled())


def test_in_a_served_page_nothing_even_tries_what_the_strictest_policy_forbids(context: BrowserContext) -> None:
    with serving(STRICT) as (base, pages):
        ServedPage(context, base, pages).check(share(share_of(120), 3))


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Executed:
    """Texts, and a notebook that was run with them."""
    texts = share(40)
    return texts, run(texts, tmp_path_factory.mktemp("executed"))


def test_in_nbconverts_html_of_an_executed_notebook_no_text_does_anything(
    context: BrowserContext, tmp_path: Path, executed: Executed
) -> None:
    Converted(context, tmp_path, executed).check_executed()


@pytest.mark.parametrize(
    "is_trusted", [pytest.param(True, id="trusted"), pytest.param(False, id="untrusted", marks=pytest.mark.thorough)]
)
def test_in_a_notebook_that_is_opened_again_no_text_does_anything(
    context: BrowserContext, server: Server, executed: Executed, is_trusted: bool
) -> None:
    with every_cell_drawn(server):
        Lab(context, server, executed, is_trusted=is_trusted).check_executed()
    server.shut_down_kernels()
