"""``%toolchat config``: where models are asked, with which key, and with which settings. A key itself is never held."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from toolcall_nb.errors import UsageError
from toolcall_nb.redaction import masked

if TYPE_CHECKING:
    from toolcall_nb.models.config import Config

__all__ = ["KEYS", "RESET", "ModelSettings"]

RESET = "reset"

SETTINGS = (
    *("temperature", "max_tokens", "top_p", "top_k", "seed", "stop_sequences", "timeout", "thinking"),
    *("parallel_tool_calls", "tool_choice", "presence_penalty", "frequency_penalty", "logit_bias"),
    *("extra_body", "extra_headers", "service_tier", "native_tools"),
)
"""What most providers know. Those of one provider alone bear its name: ``openai_reasoning_effort``."""

KEYS = ("base_url", "key", "wire", *SETTINGS)
"""What can be set."""

_NAME = re.compile(r"[^\W\d]\w*")
_ASSIGNMENT = re.compile(r"(?:^|(?<=\s))([^\W\d]\w*)=")
_LONGEST_NAME = 60
_KEY_NAMES = ("key", "api_key")
_NO_KEY = (
    "key= takes the name of an environment variable, or of a variable of the notebook, and not the key itself: "
    "what is typed into a cell stays in the notebook."
)


class ModelSettings(Struct, frozen=True):
    """What ``%toolchat config`` has set, for named models. ``key`` is the name of the variable that holds the key."""

    base_url: str | None = None
    key: str | None = None
    wire: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    def changed(self, text: str, namespace: Mapping[str, Any]) -> ModelSettings:
        """With ``name=value …``; a name without a value is unset. Raises `UsageError`, and changes nothing then."""
        if text == RESET:
            return ModelSettings()
        changed = self
        for name, written in _assignments(text):
            changed = changed._with(name, written, namespace)
        return changed

    def config(self, namespace: Mapping[str, Any]) -> Config:
        """What a model is made with. Raises `UsageError` where the variable with the key is gone."""
        from toolcall_nb.models.config import Config

        key = None if self.key is None else _key(self.key, namespace)
        return Config(base_url=self.base_url, api_key=key, settings=self.settings, wire=self.wire)

    def __str__(self) -> str:
        """One line each; of the key, where it comes from."""
        origin = None if self.key is None else f"from the {'environment' if self.key in os.environ else 'notebook'}"
        known = {"base_url": self.base_url, "key": self.key and f"{self.key} ({origin})", "wire": self.wire}
        settings = {name: json.dumps(value, ensure_ascii=False) for name, value in self.settings.items()}
        lines = [f"{name}={value}" for name, value in {**known, **settings}.items() if value is not None]
        return "\n".join(lines)

    def _with(self, name: str, written: str, namespace: Mapping[str, Any]) -> ModelSettings:
        if name in _KEY_NAMES:
            if written:
                _key(written, namespace)
            return replace(self, key=written or None)
        if masked(written) != written:
            raise UsageError(f"{name}= holds what looks like a key, which would stay in the notebook. {_NO_KEY}")
        if name in ("base_url", "wire"):
            return replace(self, **{name: _address(name, _plain(written))})
        others = {known: value for known, value in self.settings.items() if known != name}
        if not written:
            return replace(self, settings=others)
        value = _value(name, written)
        _check_setting(name, value)
        return replace(self, settings={**others, name: value})


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    """A value reaches to the next name with ``=``, so that JSON and texts may have blanks in them."""
    found = [*_ASSIGNMENT.finditer(text)]
    if not found or found[0].start():
        raise UsageError(f"%toolchat config takes name=value, or {RESET}, not {masked(text)!r:.100}.")
    ends = [*(match.start() for match in found[1:]), len(text)]
    for match, end in zip(found, ends, strict=True):
        yield match[1], text[match.end() : end].strip()


def _key(name: str, namespace: Mapping[str, Any]) -> str:
    """The key that a variable holds. Nothing that may be a key itself is repeated."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME or masked(name) != name:
        raise UsageError(_NO_KEY)
    value = os.environ.get(name) or namespace.get(name)
    if not isinstance(value, str) or not value.strip():
        raise UsageError(
            f"key= names no environment variable, and no variable of the notebook that holds a text. {_NO_KEY}"
        )
    return value.strip()


def _address(name: str, value: str) -> str | None:
    if name == "base_url" and value and not re.match(r"https?://[^\s/]", value):
        raise UsageError(f"base_url= takes an address that begins with http:// or https://, not {value!r:.100}.")
    return value or None


def _check_setting(name: str, value: Any) -> None:
    """Refuses a name that is close to a setting, or begins like a provider's and is none of its settings.

    Any other name may be a field that the server at a URL takes. The tools that a provider is to run must be known.
    """
    from toolcall_nb.models import providers

    close = get_close_matches(name, KEYS, 1, 0.8)
    if name not in SETTINGS and close:
        raise UsageError(f"There is no setting {name!r}. Did you mean {close[0]!r}?")
    if find_spec("pydantic_ai") is None:
        return
    if name == "native_tools":
        providers.native_tools_of(value)
    elif providers.is_provider_setting(name):
        providers.check_setting(name)


def _value(name: str, written: str) -> Any:
    """A scalar as YAML 1.2's core schema reads it, or JSON; in single quotes, text."""
    if written[0] in '{["':
        try:
            return json.loads(written)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"The value of {name}= is no JSON: {error}") from None
    from toolcall_nb.markdown.yaml_body import resolve_plain

    return resolve_plain(written) if _plain(written) == written else _plain(written)


def _plain(written: str) -> str:
    """Without the quotes that were put around it."""
    return written[1:-1] if len(written) > 1 and written[0] == written[-1] and written[0] in "'\"" else written
