"""What a provider's exception says: its status, body and words, whichever package raised it.

Nothing is imported: pydantic-ai, the SDKs, httpx and requests all name these things in a few ways.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from toolcall_nb.core.events import Json
from toolcall_nb.core.text import well_formed_json
from toolcall_nb.models.errors.provider_help import PACKAGES

__all__ = ["Said", "causes", "code_in", "said_by", "sentence_of"]

_DEEPEST = 12
_HEARD = PACKAGES | {"builtins", "json"}
_STATUS = ("status_code", "status", "http_status", "code")
_WORDS = ("provider_error_code", "provider_error_type", "code", "type", "status", "error_code")
_SENTENCES = ("message", "detail", "error_message", "error_description", "error", "msg", "title")
_ERROR_CODE = re.compile("[45][0-9]{2}")
_VAGUE = re.compile(r"(?:provider returned error|error|unknown error|bad request)\.?", re.IGNORECASE)
_TITLE = re.compile(r"<title[^<>]*+>([^<]*+)</title>", re.IGNORECASE)
_PAGE = re.compile(r"\s*(?:<!doctype html|<html|<head|<body|<\?xml)", re.IGNORECASE)


class Said(Struct, frozen=True):
    """What is known of a failed request. ``names`` are the classes of the exception and of its causes.

    A class of the user's own may bear any name and have any field: of it neither is heard, but for an HTTP status.
    ``words`` are the machine's own (codes, types, reasons), in small letters as the names of ``headers`` are; ``text``
    is the sentence for people. ``body`` is JSON, a text, or None, and ``page`` whether it is a web page. ``suggestion``
    is the model that was perhaps meant. ``packages`` are those of the classes, and the one whose code raised it.
    """

    names: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    status: int | None = None
    headers: Mapping[str, str] = {}
    body: Json = None
    words: frozenset[str] = frozenset()
    text: str = ""
    url: str | None = None
    page: bool = False
    suggestion: str | None = None


def causes(error: BaseException) -> Iterator[BaseException]:
    """The exception, then what caused it: ``raise … from``, what it wraps, the members of a group."""
    waiting: list[Any] = [error]
    seen: list[Any] = []
    while waiting and len(seen) < _DEEPEST:
        each = waiting.pop(0)
        if not isinstance(each, BaseException) or any(each is other for other in seen):
            continue
        seen.append(each)
        yield each
        wrapped = (each.__cause__, _get(each, "reason"), *each.args[:1], *(_get(each, "exceptions") or ()))
        waiting += wrapped


def said_by(error: BaseException) -> Said:
    """What the exception and its causes say; the outermost that says something is heard. Never raises."""
    chain = list(causes(error))
    classes = [cls for each in chain for cls in type(each).__mro__]
    body = next((body for each in chain if (body := _body(each)) is not None), None)
    is_page = isinstance(body, str) and bool(_PAGE.match(body))
    return Said(
        names=frozenset(cls.__name__ for cls in classes if _package(cls) in _HEARD),
        packages=frozenset((*map(_package, classes), _raiser(error))),
        status=next((status for each in chain if (status := _status(each)) is not None), code_in(body)),
        headers=next((headers for each in chain if (headers := _headers(each))), {}),
        body=body,
        words=frozenset(word.lower() for each in (*chain, body) for word in _words(each)),
        text=_one_line(_title(body) if is_page else sentence_of(body) or _own_message(chain)),
        url=next((url for each in chain if (url := _url(each))), None),
        page=is_page,
        suggestion=next((str(name) for each in chain if (name := _get(each, "suggested_model_id"))), None),
    )


def _get(thing: Any, name: str) -> Any:
    try:
        return getattr(thing, name, None)
    except Exception:  # httpx raises for a body that was not read, or a request that was not set
        return None


def _package(cls: type) -> str:
    return str(cls.__module__).partition(".")[0]


def _is_heard(error: BaseException) -> bool:
    """Whether it is made by a package that speaks with peers, or by an unknown one that speaks of an answer."""
    own = any(_package(cls) in PACKAGES for cls in type(error).__mro__)
    return own or any(_get(error, name) is not None for name in ("response", "raw_response", "body"))


def _raiser(error: BaseException) -> str:
    """The package whose code raised it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0] if trace is not None else ""


def _answers(error: BaseException) -> Iterator[Any]:
    """The exception, and the HTTP answer that it holds."""
    yield error
    yield from (answer for name in ("response", "raw_response") if (answer := _get(error, name)) is not None)


def _status(error: BaseException) -> int | None:
    for thing in _answers(error):
        for name in _STATUS if _is_heard(error) else _STATUS[:-1]:  # codes of other things are numbers too
            value = _get(thing, name)
            if isinstance(value, int) and 100 <= value < 600:
                return int(value)
    return None


def code_in(body: Json) -> int | None:
    """The status that is told in the body: some answer 200, and then say what went wrong."""
    inner = body.get("error") if isinstance(body, dict) else None
    for each in (inner, body):
        code = each.get("code", each.get("status_code")) if isinstance(each, dict) else None
        if isinstance(code, int | str) and _ERROR_CODE.fullmatch(str(code)):
            return int(code)
    return None


def _headers(error: BaseException) -> Mapping[str, str]:
    for thing in _answers(error):
        headers = _get(thing, "headers")
        try:
            found = {str(name).lower(): str(value) for name, value in headers.items()}
        except Exception:
            continue
        if found:
            return found
    return {}


def _url(error: BaseException) -> str | None:
    for thing in (_get(error, "request"), *_answers(error)):
        url = _get(thing, "url") or _get(thing, "full_url")
        if url is not None and "://" in str(url):
            return str(url)
    return None


def _body(error: BaseException) -> Json:
    """The answer's body as it came, or what the package keeps of it."""
    *_, answer = _answers(error)
    kept = [] if answer is error else [_get(answer, "text"), _get(answer, "content")]
    for value in map(_plain, (*kept, _get(error, "body"), _get(error, "details"))):
        if value not in (None, "", {}, []):
            return value
    return None


def _plain(value: Any) -> Json:
    """A body as JSON where it is JSON; else its text. None for what is neither."""
    if isinstance(value, bytes | bytearray):
        value = bytes(value).decode("utf-8", "replace")
    if isinstance(value, str):
        try:
            return well_formed_json(json.loads(value))  # and no deeper than what looks through it can go
        except (ValueError, RecursionError):
            return value
    try:
        return well_formed_json(json.loads(json.dumps(value)))
    except (TypeError, ValueError, RecursionError):
        return None


def _words(thing: Any) -> Iterator[str]:
    """Codes, types and reasons: of an exception, or of a body with all that is in it."""
    if isinstance(thing, BaseException):
        found = () if not _is_heard(thing) else (_get(thing, name) for name in _WORDS)
        yield from (word for word in found if isinstance(word, str))
    elif isinstance(thing, dict):
        for name, value in thing.items():
            if name in ("code", "type", "status", "reason", "@type", "quotaId") and isinstance(value, str):
                yield value
            elif name in ("error", "errors", "details", "innererror", "violations", "response"):
                yield from _words(value)
    elif isinstance(thing, list):
        for item in thing:
            yield from _words(item)


def sentence_of(body: Json) -> str:
    """The provider's own words in the body."""
    if isinstance(body, str):
        return body
    if isinstance(body, list):
        return next((text for item in body if (text := sentence_of(item))), "")
    if not isinstance(body, dict):
        return ""
    said = next((text for name in _SENTENCES if (text := sentence_of(body.get(name)))), "")
    if said and not _VAGUE.fullmatch(said):
        return said
    hidden = body.get("metadata")  # OpenRouter, of the provider behind it
    return (sentence_of(_plain(hidden.get("raw"))) if isinstance(hidden, dict) else "") or said


def _own_message(chain: list[BaseException]) -> str:
    """The exception's own words; an empty one's are those of what caused it."""
    for each in chain:
        message = _get(each, "message")
        text = message if isinstance(message, str) and message else _text(each)
        if text:
            return text
    return ""


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # an exception may have methods of its own
        return ""


def _title(page: Any) -> str:
    found = _TITLE.search(page)
    return f"a web page, {found[1].strip()!r}" if found and found[1].strip() else "a web page"


def _one_line(text: str) -> str:
    return " ".join(text.split())
