"""From whatever a provider's code raises to one sentence with the remedy.

Nothing optional is imported: `toolcall_nb.models.errors.exception_details` hears what is said,
`toolcall_nb.models.errors.error_kinds` knows what it
means.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from toolcall_nb.core.result_text import bounded
from toolcall_nb.errors import ModelError, ToolcallError
from toolcall_nb.models.errors.error_kinds import KINDS, kind_of
from toolcall_nb.models.errors.exception_details import Said, causes, said_by
from toolcall_nb.models.errors.provider_help import Provider, provider_of
from toolcall_nb.models.errors.retry_after import in_words, waiting_time
from toolcall_nb.redaction import masked
from toolcall_nb.redaction.registered_secrets import known_secrets
from toolcall_nb.tools.tracebacks import own_frames, traceback_text

__all__ = ["as_model_error"]

_LOCAL_PORT = re.compile(r"^(https?://(?:localhost|127\.0\.0\.1|\[::1\])):\d+(?=/|$)")
_LONGEST_SAID = 300
_LONGEST_DETAILS = 10_000
_CALLERS = tuple(str(Path(__file__).parents[2] / room) + os.sep for room in ("chat", "models"))
_KEY_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9_]*_(?:API_)?(?:KEY|TOKEN)\b")
_SECRET_VARIABLE = re.compile(r".*(?:_|^)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD)", re.IGNORECASE)


def as_model_error(
    error: BaseException, model: str, *, base_url: str | None = None, secrets: Iterable[str | None] = ()
) -> ModelError:
    """What to tell of an exception that came from a model: one sentence with the remedy, and folded details.

    ``model`` is the name as the user knows it (``openai:gpt-5``, or what a model object is called); ``base_url`` where
    it is asked, if that was set. Details are what the peer said, at most 10,000 characters; of an exception that is
    none of a provider's, the traceback in the user's own code. Keys are masked in both: ``secrets``, those of
    environment variables whose names say so, and what looks like one. A `ModelError` is taken as it is, any other
    `ToolcallError` for its own sentence. Never raises.
    """
    called_so = (value for name, value in os.environ.items() if _SECRET_VARIABLE.fullmatch(name))
    hidden = [*secrets, *called_so, *known_secrets()]
    if isinstance(error, ToolcallError):
        return _own(error, model, hidden)
    said = said_by(error)
    provider = provider_of(model, said.packages, base_url or said.url)
    name = kind_of(said, provider)
    if name is None:
        text = masked(said.text[:_LONGEST_SAID], hidden)
        sentence = f"The model {model!r} failed: {type(error).__name__}" + (f": {text}" if text else ".")
        return ModelError(sentence, details=_tidy(_own_traceback(error), hidden))
    kind, wait = KINDS[name], waiting_time(said)
    sentence = kind.sentence.format_map(_fields(said, provider, model, base_url, wait, name))
    return ModelError(
        masked(sentence, hidden),
        details=_tidy(_details(error, said), hidden),
        may_retry=kind.may_retry and said.headers.get("x-should-retry") != "false",
        retry_after=wait,
        brief=kind.brief,
    )


def _own(error: ToolcallError, model: str, hidden: list[str | None]) -> ModelError:
    """An error of this package says what is to be said already."""
    text = masked(" ".join(str(error).split())[:500], hidden) or f"The model {model!r} failed: {type(error).__name__}."
    if not isinstance(error, ModelError):
        return ModelError(text)
    details = _tidy(error.details, hidden)
    return ModelError(
        text, details=details, may_retry=error.may_retry, retry_after=error.retry_after, brief=error.brief
    )


# What is said -------------------------------------------------------------------------------------------------


def _fields(
    said: Said, provider: Provider, model: str, base_url: str | None, wait: float | None, kind: str
) -> Mapping[str, str]:
    place = _place(base_url or said.url) or provider.title
    return {
        "who": provider.title or (f"The server at {place}" if place else f"The model {model!r}"),
        "place": place or f"the model {model!r}",
        "model": f"the model {name!r}" if (name := model.partition(":")[2]) else "the model",
        "status": f" ({said.status})" if said.status else "",
        "said": _quoted(said, kind),
        "variable": _variable(said, provider),
        "wait": f"in {in_words(wait)}" if wait is not None else "a little later",
        "hint": _hint(said),
        "start": provider.start or "Check that the server runs, and the base URL.",
    }


def _quoted(said: Said, kind: str) -> str:
    """The provider's sentence, where it says more than ours."""
    text = said.text[:_LONGEST_SAID].rstrip(" .") + ("…" if len(said.text) > _LONGEST_SAID else "")
    is_wrapped = re.match(r"status_code: \d+, model_name: ", said.text)  # pydantic-ai, of a body without words
    if not text or is_wrapped or kind == "no_key" or (kind in _BARE and said.body is None):
        return ""
    return f": {text}"


_BARE = {"refused", "no_address", "connection", "timeout", "lost"}
"""What packages say of these is said in the sentence; the rest of it is in the details."""


def _variable(said: Said, provider: Provider) -> str:
    named = None if said.body is not None else _KEY_VARIABLE.search(said.text)
    return named[0] if named else provider.variable or "the provider's environment variable"


def _hint(said: Said) -> str:
    """The name that pydantic-ai thinks was meant."""
    return f" Did you mean {said.suggestion!r}?" if said.suggestion else ""


def _place(url: str | None) -> str | None:
    """Scheme and host: a path or a query may hold anything."""
    try:
        parts = urlsplit(url or "")
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    return f"{parts.scheme}://{parts.hostname}{port}" if parts.hostname else None


# The details --------------------------------------------------------------------------------------------------


def _details(error: BaseException, said: Said) -> str:
    """What the peer said, or else what the packages did, from the outermost to the first cause."""
    head = f"HTTP {said.status}" if said.status else ""
    head += f"{' from ' if head else ''}{_address(said.url)}" if said.url and said.body is not None else ""
    request = next((said.headers[name] for name in ("request-id", "x-request-id") if name in said.headers), None)
    head += f", request {request}" if request else ""
    return f"{head}\n\n{_pretty(said.body)}".strip() if said.body is not None else "\n".join(map(_about, causes(error)))


def _address(url: str) -> str:
    """Without its query; on this machine also without the port, which may be another one each time it is saved."""
    return _LOCAL_PORT.sub(r"\1", url.partition("?")[0])


def _pretty(body: Any) -> str:
    return body if isinstance(body, str) else json.dumps(body, indent=2, ensure_ascii=False)


def _about(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}".rstrip(": ")
    except Exception:  # an exception may have methods of its own
        return type(error).__name__


def _own_traceback(error: BaseException) -> str | None:
    """Where it was raised, without what called the user's code; the exception keeps no more than that either."""
    error.__traceback__ = own_frames(error.__traceback__, *_CALLERS) or error.__traceback__
    return traceback_text(error)


def _tidy(details: str | None, hidden: list[str | None]) -> str | None:
    """Masked before it is cut: a key that is cut in two is none any more."""
    return bounded(masked(details, hidden), _LONGEST_DETAILS) if details else None
