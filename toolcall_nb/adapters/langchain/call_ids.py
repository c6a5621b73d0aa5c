"""`CallIds` tells calls apart to which a provider gave the same id."""

from __future__ import annotations

from collections.abc import Mapping


class CallIds:
    """The ids of the calls of a message: ours, which are unique, and the provider's, which may repeat or be empty.

    ``ended`` are our ids of the calls that have ended, and ids of calls that never began.
    """

    def __init__(self) -> None:
        self.ended: set[str] = set()
        self._own_ids: dict[str, list[str]] = {}
        self._provider_ids: dict[str, str] = {}
        self._started: dict[str, None] = {}  # the calls whose tools have started, in order

    def add(self, own_id: str, provider_id: str) -> None:
        """Adds a call that has begun."""
        self._provider_ids[own_id] = provider_id
        self._own_ids.setdefault(provider_id, []).append(own_id)

    def start(self, own_id: str) -> None:
        """Notes that the tool of a call has started."""
        self._started[own_id] = None

    @property
    def started(self) -> Mapping[str, None]:
        """Our ids of the calls whose tools have started."""
        return self._started

    def provider_id(self, own_id: str) -> str:
        """Returns the provider's id of a call."""
        return self._provider_ids.get(own_id, own_id)

    def calls(self, provider_id: str) -> list[str]:
        """Returns our ids of the calls with this id of the provider."""
        return self._own_ids.get(provider_id, [])

    def open_calls(self, provider_id: str) -> list[str]:
        """Returns our ids of the calls with this id of the provider that have not ended."""
        return [own_id for own_id in self.calls(provider_id) if own_id not in self.ended]

    def open_ids(self) -> dict[str, str]:
        """Returns the provider's ids of the calls that have not ended, by ours."""
        return {own_id: name for own_id, name in self._provider_ids.items() if own_id not in self.ended}

    def first_open(self, provider_id: str) -> str:
        """Returns our id of the call with this id of the provider: of several open ones, the first that has started.

        Without such a call, returns the id itself.
        """
        calls = self.open_calls(provider_id)
        started = (own_id for own_id in self._started if own_id in calls)
        return next(started, calls[0] if calls else provider_id)
