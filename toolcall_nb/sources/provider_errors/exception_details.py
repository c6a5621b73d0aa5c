"""Reads what an exception says of a failed request, whichever package raised it. `read_exception` is the entry point.

Nothing optional is imported. pydantic-ai, the SDKs, httpx and requests use the few attribute names listed below.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from toolcall_nb.core.events import Json
from toolcall_nb.core.text import well_formed_json
from toolcall_nb.sources.provider_errors.provider_help import ERROR_PACKAGES

_MAX_CAUSES = 12
_HEARD_PACKAGES = ERROR_PACKAGES | {"builtins", "json"}
_STATUS_FIELDS = ("status_code", "status", "http_status", "code")
_CODE_FIELDS = ("provider_error_code", "provider_error_type", "code", "type", "status", "error_code")
_CODE_KEYS = ("code", "type", "status", "reason", "@type", "quotaId")
_NESTED_KEYS = ("error", "errors", "details", "innererror", "violations", "response")
_SENTENCE_KEYS = ("message", "detail", "error_message", "error_description", "error", "msg", "title")
_ERROR_STATUS = re.compile("[45][0-9]{2}")
_VAGUE = re.compile(r"(?:provider returned error|error|unknown error|bad request)\.?", re.IGNORECASE)
_TITLE = re.compile(r"<title[^<>]*+>([^<]*+)</title>", re.IGNORECASE)
_PAGE = re.compile(r"\s*(?:<!doctype html|<html|<head|<body|<\?xml)", re.IGNORECASE)


class ExceptionDetails(Struct, frozen=True):
    """A failed request as its exception and the causes of it describe it; of several, the outermost counts.

    ``classes`` are the names of the exception classes; only those of known packages count, since a user's class may
    have any name. ``packages`` are those of the classes, and the one whose code raised. ``codes`` are error codes,
    types and reasons in lower case, as are the names of ``headers``. ``body`` is JSON, a text, or None. ``text`` is
    the sentence for people. ``suggestion`` is the model name that pydantic-ai believes was meant.
    """

    classes: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    status: int | None = None
    headers: Mapping[str, str] = {}
    body: Json = None
    codes: frozenset[str] = frozenset()
    text: str = ""
    url: str | None = None
    is_web_page: bool = False
    suggestion: str | None = None


def read_exception(error: BaseException) -> ExceptionDetails:
    """Returns the details of an exception. Never raises."""
    chain = list(causes(error))
    holders = [holder for each in chain for holder in _with_responses(each)]
    classes = [cls for each in chain for cls in type(each).__mro__]
    body = next((body for each in chain if (body := _body(each)) is not None), None)
    is_web_page = isinstance(body, str) and bool(_PAGE.match(body))
    title = _TITLE.search(body) if isinstance(body, str) and is_web_page else None
    page = f"a web page, {title[1].strip()!r}" if title and title[1].strip() else "a web page"
    text = page if is_web_page else sentence_in(body) or _message(chain)
    codes = (code.lower() for each in (*chain, body) for code in _codes(each))
    urls = (
        _get(thing, "url") or _get(thing, "full_url")
        for each in chain
        for thing in (_get(each, "request"), *_with_responses(each))
    )
    return ExceptionDetails(
        classes=frozenset(cls.__name__ for cls in classes if _package(cls) in _HEARD_PACKAGES),
        packages=frozenset((*map(_package, classes), _raising_package(error))),
        status=next((status for each in chain if (status := _status(each)) is not None), status_in(body)),
        headers=next(filter(None, map(_headers, holders)), {}),
        body=body,
        codes=frozenset("daily_quota" if "perday" in code else code for code in codes),  # Google's quotaId
        text=" ".join(text.split()),
        url=next((str(url) for url in urls if url is not None and "://" in str(url)), None),
        is_web_page=is_web_page,
        suggestion=next((str(name) for each in chain if (name := _get(each, "suggested_model_id"))), None),
    )


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yields the exception, then its causes: of ``raise … from``, what it wraps, and the members of a group."""
    waiting: list[Any] = [error]
    seen: set[int] = set()
    while waiting and len(seen) < _MAX_CAUSES:
        each = waiting.pop(0)
        if isinstance(each, BaseException) and id(each) not in seen:
            seen.add(id(each))
            yield each
            waiting += (each.__cause__, _get(each, "reason"), *each.args[:1], *(_get(each, "exceptions") or ()))


def _get(thing: Any, name: str) -> Any:
    try:
        return getattr(thing, name, None)
    except Exception:  # httpx raises for a body that was not read, or a request that was not set
        return None


def _package(cls: type) -> str:
    return str(cls.__module__).partition(".")[0]


def _raising_package(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0] if trace is not None else ""


def _is_about_a_request(error: BaseException) -> bool:
    """Whether the exception's codes count: it comes from a known package, or it holds a response."""
    is_known = any(_package(cls) in ERROR_PACKAGES for cls in type(error).__mro__)
    return is_known or any(_get(error, name) is not None for name in ("response", "raw_response", "body"))


def _with_responses(error: BaseException) -> list[Any]:
    """The exception, and the HTTP responses that it holds."""
    held = (_get(error, name) for name in ("response", "raw_response"))
    return [error, *(response for response in held if response is not None)]


def _status(error: BaseException) -> int | None:
    fields = _STATUS_FIELDS if _is_about_a_request(error) else _STATUS_FIELDS[:-1]  # any exception may have a `code`
    values = (_get(holder, name) for holder in _with_responses(error) for name in fields)
    return next((int(value) for value in values if isinstance(value, int) and 100 <= value < 600), None)


def status_in(body: Json) -> int | None:
    """Returns the error status that a body holds: some servers answer 200 and put the status into the body."""
    inner = body.get("error") if isinstance(body, dict) else None
    for each in (inner, body):
        code = each.get("code", each.get("status_code")) if isinstance(each, dict) else None
        if isinstance(code, int | str) and _ERROR_STATUS.fullmatch(str(code)):
            return int(code)
    return None


def _headers(holder: Any) -> Mapping[str, str]:
    try:
        return {str(name).lower(): str(value) for name, value in holder.headers.items()}
    except Exception:  # no headers, or not a mapping
        return {}


def _body(error: BaseException) -> Json:
    """The response's body as it came, or else what the package kept of it."""
    *_, response = _with_responses(error)
    received = [] if response is error else [_get(response, "text"), _get(response, "content")]
    bodies = map(_as_json, (*received, _get(error, "body"), _get(error, "details")))
    return next((body for body in bodies if body not in (None, "", {}, [])), None)


def _as_json(value: Any) -> Json:
    """A body as JSON if it is JSON, else its text; None for anything else."""
    if isinstance(value, bytes | bytearray):
        value = bytes(value).decode("utf-8", "replace")
    try:
        text = value if isinstance(value, str) else json.dumps(value)
        return well_formed_json(json.loads(text))  # not so deep that looking through it fails
    except (TypeError, ValueError, RecursionError):
        return value if isinstance(value, str) else None


def _codes(thing: Any) -> Iterator[str]:
    """Yields the codes, types and reasons of an exception, or of a body at any depth."""
    if isinstance(thing, BaseException):
        values = (_get(thing, name) for name in _CODE_FIELDS if _is_about_a_request(thing))
        yield from (code for code in values if isinstance(code, str))
    elif isinstance(thing, dict):
        for name, value in thing.items():
            if name in _CODE_KEYS and isinstance(value, str):
                yield value
            elif name in _NESTED_KEYS:
                yield from _codes(value)
    elif isinstance(thing, list):
        for item in thing:
            yield from _codes(item)


def sentence_in(body: Json) -> str:
    """Returns the sentence for people in a body; empty if there is none."""
    if isinstance(body, str):
        return body
    if isinstance(body, list):
        return next((text for item in body if (text := sentence_in(item))), "")
    if not isinstance(body, dict):
        return ""
    sentence = next((text for name in _SENTENCE_KEYS if (text := sentence_in(body.get(name)))), "")
    if sentence and not _VAGUE.fullmatch(sentence):
        return sentence
    metadata = body.get("metadata")  # OpenRouter puts the error of the provider behind it here
    return (sentence_in(_as_json(metadata.get("raw"))) if isinstance(metadata, dict) else "") or sentence


def _message(chain: list[BaseException]) -> str:
    """The first message in the chain that is not empty."""
    for each in chain:
        message = _get(each, "message")
        if isinstance(message, str) and message:
            return message
        try:
            if text := str(each):
                return text
        except Exception:  # an exception may have methods of its own
            continue
    return ""
