"""The configuration of a provider's model: `Config` with base URL, API key and settings."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NoReturn

from toolcall_nb.errors import UsageError
from toolcall_nb.redaction.registered_secrets import HeldSecret


class Secret(HeldSecret):
    """An API key that only `reveal` returns. While the object exists, the key is masked in everything that is saved."""

    __slots__ = ()

    def reveal(self) -> str:
        """Returns the key itself, for the request that needs it."""
        return self._value

    def __repr__(self) -> str:
        return "Secret('…')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, _: Any) -> Secret:
        return self

    def __reduce_ex__(self, _: Any) -> NoReturn:
        raise TypeError("A key is not written to disk. Keep it in the environment, or set it again.")


class Config:
    """The way to reach a provider's model; immutable.

    ``base_url`` and ``api_key`` take precedence over the provider's environment variables. ``settings`` are sent with
    each request, by the names of pydantic-ai's ``ModelSettings``: ``temperature``, ``max_tokens``, ``thinking``,
    ``extra_body`` and more. The setting ``native_tools`` switches on tools that the provider runs itself, by
    pydantic-ai's names: ``["web_search", {"kind": "web_fetch", "max_uses": 3}]``. ``wire`` names the wire format of a
    server at ``base_url`` that belongs to no provider.

    The key is never shown: not by ``repr``, ``str``, `to_dict`, a copy or a log; it cannot be pickled.
    """

    __slots__ = ("api_key", "base_url", "settings", "wire")

    api_key: Secret | None
    base_url: str | None
    settings: Mapping[str, Any]
    wire: str | None

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | Secret | None = None,
        settings: Mapping[str, Any] | None = None,
        wire: str | None = None,
    ) -> None:
        if base_url is not None and not base_url.startswith(("http://", "https://")):
            raise UsageError(f"A base URL begins with http:// or https://, but is {base_url!r:.100}.")
        values = {
            "base_url": base_url,
            "api_key": Secret(api_key) if isinstance(api_key, str) else api_key,
            "settings": MappingProxyType(dict(settings or {})),
            "wire": wire,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"A Config does not change. Make another one, with another {name!r}.")

    def to_dict(self) -> dict[str, Any]:
        """Returns the values that are set; for the key, only that there is one."""
        fields = {"base_url": self.base_url, "settings": dict(self.settings) or None, "wire": self.wire}
        values = {name: value for name, value in fields.items() if value is not None}
        return {**values, "api_key": "…"} if self.api_key is not None else values

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={value!r}' for name, value in self.to_dict().items())})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Config):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __hash__(self) -> int:
        return hash((self.base_url, self.api_key, self.wire, tuple(self.settings)))
