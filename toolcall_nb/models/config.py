"""How a provider is reached: base URL, key, settings."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NoReturn

from toolcall_nb.errors import UsageError
from toolcall_nb.redaction.registered_secrets import HeldSecret

__all__ = ["Config", "Secret"]


class Secret(HeldSecret):
    """A key that shows itself to nobody: only `reveal` gives it. While it is there, it is masked in what is saved."""

    __slots__ = ()

    def reveal(self) -> str:
        """The key itself, for the one who sends it."""
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
    """How a model of a provider is reached; a value that does not change.

    ``base_url`` and ``api_key`` stand before what the provider's own environment variables say. ``settings`` go with
    each request, by the names of pydantic-ai's ``ModelSettings``: ``temperature``, ``max_tokens``, ``thinking``,
    ``extra_body`` and more. ``native_tools`` switches on tools that the provider runs itself, by their names in
    pydantic-ai: ``["web_search", {"kind": "web_fetch", "max_uses": 3}]``. ``wire`` names what a server at ``base_url``
    speaks, where the model is one of no provider.

    Nothing shows the key: not ``repr``, ``str``, `to_dict`, a copy or a log; it cannot be pickled.
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
        given = {
            "base_url": base_url,
            "api_key": Secret(api_key) if isinstance(api_key, str) else api_key,
            "settings": MappingProxyType(dict(settings or {})),
            "wire": wire,
        }
        for name, value in given.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"A Config does not change. Make another one, with another {name!r}.")

    def to_dict(self) -> dict[str, Any]:
        """What is set, without the key; of that, only whether there is one."""
        fields = {"base_url": self.base_url, "settings": dict(self.settings) or None, "wire": self.wire}
        known = {name: value for name, value in fields.items() if value is not None}
        return {**known, "api_key": "…"} if self.api_key is not None else known

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={value!r}' for name, value in self.to_dict().items())})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Config):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __hash__(self) -> int:
        return hash((self.base_url, self.api_key, self.wire, tuple(self.settings)))
