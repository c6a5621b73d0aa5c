"""Each front end does what is promised of all: a run is live, asks, stops, ends, and is there when it is reopened.

Each test that passes writes what was tested, with versions and the date, into ``artifacts/front-ends``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.browser.browser import VIEWPORT
from tests.browser.front_end_scenarios import PICTURES, scenarios_of
from tests.browser.front_ends import FRONT_ENDS, FrontEnd, RunningFrontEnd, running_front_end

_CASES = [
    pytest.param(front_end, scenario, id=f"{front_end.slug}-{scenario.__name__}")
    for front_end in FRONT_ENDS
    for scenario in scenarios_of(front_end)
]


class FrontEnds:
    """Runs one front end at a time, and keeps it until another one is asked for."""

    def __init__(self, find_browser: Callable[[str], Browser], paths: pytest.TempPathFactory) -> None:
        self._find_browser = find_browser
        self._paths = paths
        self._running: RunningFrontEnd | None = None
        self._end = ExitStack()

    def get(self, front_end: FrontEnd) -> RunningFrontEnd:
        if self._running is None or self._running.front_end != front_end:
            self.close()
            browser = self._find_browser(front_end.browser)
            context = self._end.enter_context(browser.new_context(viewport=VIEWPORT))
            home = self._paths.mktemp(front_end.slug)
            self._running = self._end.enter_context(running_front_end(front_end, home, context))
            self._running.versions[front_end.browser] = browser.version
        return self._running

    def close(self) -> None:
        self._running = None
        self._end.close()


@pytest.fixture(scope="module")
def front_ends(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrontEnds]:
    front_ends = FrontEnds(lambda name: request.getfixturevalue(name.lower()), tmp_path_factory)
    yield front_ends
    front_ends.close()


@pytest.mark.thorough
@pytest.mark.parametrize(("front_end", "scenario"), _CASES)
def test_a_front_end(front_ends: FrontEnds, front_end: FrontEnd, scenario: Callable[[RunningFrontEnd], None]) -> None:
    running = front_ends.get(front_end)
    scenario(running)
    found: dict[str, Any] = {"front_end": front_end.name, "scenario": scenario.__name__, "versions": running.versions}
    found["date"] = datetime.now(UTC).date().isoformat()
    text = json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False)
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / f"{front_end.slug}-{scenario.__name__}.json").write_text(f"{text}\n", "utf-8")
