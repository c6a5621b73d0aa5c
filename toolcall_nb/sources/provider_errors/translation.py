"""Translates any exception of a model into one sentence with the remedy. `as_model_error` is the entry point.

Nothing optional is imported: exceptions are recognised by names, codes and statuses.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from toolcall_nb.core.result_text import truncate_text
from toolcall_nb.errors import ModelError, ToolcallError, install_command
from toolcall_nb.redaction import masked
from toolcall_nb.redaction.registered_secrets import known_secrets
from toolcall_nb.sources.provider_errors.error_kinds import recognise_error
from toolcall_nb.sources.provider_errors.exception_details import ExceptionDetails, causes, read_exception
from toolcall_nb.sources.provider_errors.provider_help import ProviderHelp, find_provider
from toolcall_nb.sources.provider_errors.retry_after import in_words, waiting_time
from toolcall_nb.tools.results.tracebacks import own_frames, traceback_text

_LOCAL_PORT = re.compile(r"^(https?://(?:localhost|127\.0\.0\.1|\[::1\])):\d+(?=/|$)")
_MAX_SENTENCE = 300
_MAX_DETAILS = 10_000
_CALLERS = tuple(str(Path(__file__).parents[2] / room) + os.sep for room in ("agents", "chat", "models", "sources"))
_KEY_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9_]*_(?:API_)?(?:KEY|TOKEN)\b")
_SECRET_VARIABLE = re.compile(r".*(?:_|^)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD)", re.IGNORECASE)
_PYDANTIC_AI_MESSAGE = re.compile(r"status_code: \d+, model_name: ")
"""The message that pydantic-ai makes for a body without a sentence."""


def as_model_error(
    error: BaseException, model: str, *, base_url: str | None = None, secrets: Iterable[str | None] = ()
) -> ModelError:
    """Returns the error to show for an exception of a model: one sentence with the remedy, and folded details.

    ``model`` is its name as the user knows it (``openai:gpt-5``, or an object's name); ``base_url`` is its address, if
    one was set. The details are the response, at most 10,000 characters, or the traceback in the user's own code.
    Secrets are masked in both: ``secrets``, registered ones, the values of environment variables that are named like
    keys, and anything that looks like a key. An error of this package keeps its own sentence. Never raises.
    """
    hidden = [*secrets, *(value for name, value in os.environ.items() if _SECRET_VARIABLE.fullmatch(name))]
    hidden += known_secrets()
    if isinstance(error, ToolcallError):
        text = masked(" ".join(str(error).split())[:500], hidden)
        original = error if isinstance(error, ModelError) else ModelError("")
        return ModelError(
            text or f"The model {model!r} failed: {type(error).__name__}.",
            details=_masked_and_bounded(original.details, hidden),
            may_retry=original.may_retry,
            retry_after=original.retry_after,
            brief=original.brief,
        )
    details = read_exception(error)
    provider = find_provider(model, details.packages, base_url or details.url)
    kind = recognise_error(details, provider)
    if kind is None:
        text = masked(details.text[:_MAX_SENTENCE], hidden)
        sentence = f"The model {model!r} failed: {type(error).__name__}" + (f": {text}" if text else ".")
        return ModelError(sentence, details=_masked_and_bounded(_traceback(error), hidden))
    wait = waiting_time(details)
    return ModelError(
        masked(kind.sentence.format_map(_fields(details, provider, model, base_url, wait)), hidden),
        details=_masked_and_bounded(_response_text(error, details), hidden),
        may_retry=kind.may_retry and details.headers.get("x-should-retry") != "false",
        retry_after=wait,
        brief=kind.brief,
    )


def _fields(
    details: ExceptionDetails, provider: ProviderHelp, model: str, base_url: str | None, wait: float | None
) -> Mapping[str, str]:
    """The fields of the sentences of `error_kinds.ERROR_KINDS`."""
    server = _origin(base_url or details.url) or provider.title
    name = model.partition(":")[2]
    quoted = _quoted(details.text)
    variable = None if details.body is not None else _KEY_VARIABLE.search(details.text)
    return {
        "who": provider.title or (f"The server at {server}" if server else f"The model {model!r}"),
        "server": server or f"the model {model!r}",
        "model": f"the model {name!r}" if name else "the model",
        "status": f" ({details.status})" if details.status else "",
        "quoted": quoted,
        "answer": quoted if details.body is not None else "",
        "variable": variable[0] if variable else provider.variable or "the provider's environment variable",
        "wait": f"in {in_words(wait)}" if wait is not None else "a little later",
        "hint": f" Did you mean {details.suggestion!r}?" if details.suggestion else "",
        "install": install_command("models"),
        "start": provider.start or "Check that the server runs, and the base URL.",
    }


def _quoted(text: str) -> str:
    """The provider's sentence after a colon, or nothing."""
    quoted = text[:_MAX_SENTENCE].rstrip(" .") + ("…" if len(text) > _MAX_SENTENCE else "")
    return f": {quoted}" if quoted and not _PYDANTIC_AI_MESSAGE.match(text) else ""


def _origin(url: str | None) -> str | None:
    """Scheme and host of a URL: its path and query may hold secrets."""
    try:
        parts = urlsplit(url or "")
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    return f"{parts.scheme}://{parts.hostname}{port}" if parts.hostname else None


def _response_text(error: BaseException, details: ExceptionDetails) -> str:
    """The response with its status, address and request id; without a response, the messages of all causes."""
    if details.body is None:
        return "\n".join(map(_name_and_message, causes(error)))
    address = (details.url or "").partition("?")[0]
    address = _LOCAL_PORT.sub(r"\1", address)  # the port may be another one each time a notebook is saved
    request = details.headers.get("request-id") or details.headers.get("x-request-id")
    head = " from ".join(filter(None, (f"HTTP {details.status}" if details.status else "", address)))
    head += f", request {request}" if request else ""
    body = details.body
    text = body if isinstance(body, str) else json.dumps(body, indent=2, ensure_ascii=False)
    return f"{head}\n\n{text}".strip()


def _name_and_message(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}".rstrip(": ")
    except Exception:  # an exception may have methods of its own
        return type(error).__name__


def _traceback(error: BaseException) -> str | None:
    """The traceback without the frames that called the user's code; the exception keeps the shorter one."""
    error.__traceback__ = own_frames(error.__traceback__, *_CALLERS) or error.__traceback__
    return traceback_text(error)


def _masked_and_bounded(text: str | None, hidden: list[str | None]) -> str | None:
    """Masks before it cuts: half a key would not be recognised."""
    return truncate_text(masked(text, hidden), _MAX_DETAILS) if text else None
