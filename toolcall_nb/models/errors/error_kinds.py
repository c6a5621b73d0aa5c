"""The kinds of trouble with a provider, and how each is recognised.

`KINDS` says what is told of each. The rules go by what the packages have in common (status codes, machine words, names
of classes), and by words of the provider's own sentence; the first that fits decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from toolcall_nb.models.errors.exception_details import Said
from toolcall_nb.models.errors.provider_help import PACKAGES, Provider

__all__ = ["KINDS", "Kind", "kind_of"]


class Kind(Struct, frozen=True):
    """One kind of trouble: in two words, in a sentence with its remedy, and whether a second try may help.

    The words in braces are those of `_fields`. ``said`` is the provider's own sentence after a colon, or nothing.
    """

    brief: str
    sentence: str
    may_retry: bool = False


KINDS: Mapping[str, Kind] = {
    "no_key": Kind("No key", "There is no API key for {who}. Set {variable}, or give one with %toolchat config."),
    "key": Kind(
        "Wrong key",
        "{who} did not accept the API key{status}{said}. Check {variable}, or the key that is set with "
        "%toolchat config.",
    ),
    "forbidden": Kind(
        "Not allowed",
        "{who} does not allow this request{status}{said}. Check that the key in {variable} may use {model}.",
    ),
    "quota": Kind(
        "Quota used up",
        "The quota or the credit at {who} is used up{status}{said}. Waiting does not help: check the plan and the "
        "billing there.",
    ),
    "context": Kind(
        "Too long",
        "The conversation is too long for {model}{status}{said}. Begin a new one (--new), or send less.",
    ),
    "filter": Kind(
        "Refused",
        "The content filter of {who} stopped this{status}{said}. Put it in other words, or ask another model.",
    ),
    "no_model": Kind(
        "Unknown model",
        "{who} does not have {model}, or not for this key{status}{said}. Check its name.{hint}",
    ),
    "not_there": Kind(
        "Not found", "{place} does not know this address{status}{said}. Check the base URL, and {model}."
    ),
    "rate": Kind("Rate limited", "{who} limits how much may be asked{status}{said}. Try again {wait}.", True),
    "overloaded": Kind("Overloaded", "{who} is overloaded or not available{status}{said}. Try again {wait}.", True),
    "server": Kind("Server error", "{who} failed on its own side{status}{said}. Try again {wait}.", True),
    "timeout": Kind(
        "Timed out",
        "{who} did not answer in time{status}{said}. Try again, or allow more time (the setting timeout).",
        True,
    ),
    "tls": Kind(
        "Not secure",
        "No secure connection to {place} could be made{said}. Check the base URL, the certificates of this machine and "
        "the proxy.",
    ),
    "no_address": Kind(
        "Not found", "The address of {place} cannot be found{said}. Check the network, and the base URL."
    ),
    "refused": Kind("No connection", "Nothing answers at {place}{said}. {start}"),
    "lost": Kind(
        "Connection lost", "The connection to {place} was lost{said}. Ask again: what came before is kept.", True
    ),
    "connection": Kind(
        "No connection", "No connection to {place} could be made{said}. Check the network, and the base URL.", True
    ),
    "package": Kind(
        "Not installed", "A package is missing{said}. Install what the models need: pip install 'toolcall-nb[models]'"
    ),
    "invalid": Kind("Not accepted", "{who} did not accept the request{status}{said}."),
    "unreadable": Kind(
        "Unreadable",
        "{who} sent an answer that is not what its API gives{status}{said}. Check the base URL, and the proxy.",
    ),
    "reported": Kind("Error", "{who} reported an error{status}{said}."),
}
"""Each kind of trouble, by its name."""


def kind_of(said: Said, provider: Provider) -> str | None:
    """The name of the kind, if it is one of `KINDS`; None for what is nothing of a provider's."""
    return next((name for name, fits in _RULES if fits(said, provider)), None)


# What is recognised -------------------------------------------------------------------------------------------

_Rule = Callable[[Said, Provider], bool]


def _any(
    *statuses: int, words: Iterable[str] = (), names: Iterable[str] = (), text: str | None = None, heard: bool = True
) -> _Rule:
    """A rule: one of the statuses, machine words or classes, or the pattern in the text.

    The text counts of an answer (``heard``); of what happened before there was one, if it is the network's.
    """
    own_words, own_names = frozenset(words), frozenset(names)
    pattern = re.compile(text, re.IGNORECASE) if text else None
    counts = _is_answer if heard else _is_of_network

    def fits(said: Said, provider: Provider) -> bool:
        if said.status in statuses or said.words & own_words or said.names & own_names:
            return True
        return bool(pattern and counts(said, provider) and pattern.search(said.text))

    return fits


def _is_answer(said: Said, provider: Provider) -> bool:
    """Whether a peer said it, and not the user's own code."""
    return said.status is not None or said.body is not None or bool(said.words) or _is_of_package(said, provider)


def _is_of_package(said: Said, provider: Provider) -> bool:
    return bool(provider.name) or bool(said.packages & PACKAGES)


def _is_of_network(said: Said, provider: Provider) -> bool:
    return _is_of_package(said, provider) or "OSError" in said.names


def _both(*rules: _Rule) -> _Rule:
    return lambda said, provider: all(rule(said, provider) for rule in rules)


_RULES: tuple[tuple[str, _Rule], ...] = (
    ("package", _both(_is_of_package, _any(names=("ImportError",)))),
    (
        "quota",
        _any(
            402,
            words=(
                *("insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active"),
                *("insufficient_credits", "servicequotaexceededexception", "payment_required"),
            ),
            names=("ModelQuotaExceededError", "PaymentRequiredError"),
            text=r"credit balance is too low|insufficient (?:balance|credits?|funds|quota)|enable billing",
        ),
    ),
    ("quota", lambda said, _: said.status == 429 and any("perday" in word for word in said.words)),
    (
        "key",
        _any(
            401,
            words=(
                *("invalid_api_key", "authentication_error", "unauthenticated", "api_key_invalid", "unauthorized"),
                *("unrecognizedclientexception", "expiredtokenexception", "invalidsubscription"),
            ),
            names=("AuthenticationError",),
            text=r"api key not valid|(?:incorrect|invalid|wrong|expired) api[ _-]key|invalid x-api-key|api key expired",
        ),
    ),
    (
        "filter",
        _any(
            words=("content_filter", "content_policy_violation", "responsibleaipolicyviolation", "content_blocked"),
            names=("ContentFilterError", "ContentFilterFinishReasonError"),
        ),
    ),
    (
        "context",
        _any(
            413,
            words=(
                "context_length_exceeded",
                "request_too_large",
                "string_above_max_length",
                "context_window_exceeded",
            ),
            names=("ModelContextWindowExceededError", "ContextWindowExceededError"),
            text=(
                r"(?:maximum )?context (?:length|window|size)|prompt is too long|input is too long|too many (?:input )?"
                r"tokens in|(?:input )?token count .{0,40}exceeds|exceeds? (?:the )?(?:available|model'?s?) context"
            ),
        ),
    ),
    (
        "no_model",
        _any(
            words=(
                "model_not_found",
                "deploymentnotfound",
                "model_not_available",
                "unknown_model",
                "model_decommissioned",
            ),
            text=(
                r"\bmodels?\b.{0,120}(?:does not exist|do(?:es)? not have access|not found|was removed|deprecated|"
                r"decommissioned|is invalid|not a valid)|invalid model|supported models are|unknown model|no such model"
            ),
        ),
    ),
    ("no_model", _both(_any(404), lambda said, _: bool(re.search(r"\bmodels?\b", said.text, re.IGNORECASE)))),
    ("not_there", _any(404, names=("ModelNotFoundError",))),
    ("forbidden", _any(403, words=("permission_error", "permission_denied", "accessdeniedexception"))),
    (
        "rate",
        _any(
            429,
            words=(
                *("rate_limit_error", "rate_limit_exceeded", "resource_exhausted", "throttlingexception"),
                "too_many_requests",
            ),
            names=("ModelRateLimitError", "RateLimitError"),
            text=r"rate limit",
        ),
    ),
    (
        "overloaded",
        _any(
            *(503, 529),
            words=("overloaded_error", "unavailable", "serviceunavailableexception", "overloaded"),
            names=("ModelUnavailableError", "OverloadedError", "ServiceUnavailableError"),
            text=r"\boverloaded\b",
        ),
    ),
    (
        "timeout",
        _any(
            *(408, 504),
            words=("deadline_exceeded", "timeout_error", "request_timeout"),
            names=(
                "TimeoutError",
                "TimeoutException",
                "APITimeoutError",
                "ModelTimeoutError",
                "ModelRequestTimeout",
                "Timeout",
            ),
        ),
    ),
    (
        "server",
        _any(
            *range(500, 600),
            words=("server_error", "internal_server_error", "internal_error", "internal", "api_error"),
            names=("ModelServerError", "InternalServerError"),
        ),
    ),
    ("unreadable", lambda said, _: said.page),
    (
        "invalid",
        _any(
            *range(400, 500),
            words=("invalid_request_error", "invalid_argument", "failed_precondition", "validationexception"),
            names=("ModelRequestRejectedError", "BadRequestError"),
        ),
    ),
    (
        "no_key",
        _both(
            _is_of_package,
            _any(text=r"api[_ -]?key|_API_KEY|_TOKEN\b|credentials|authentication method", heard=False),
            lambda said, _: said.body is None,
        ),
    ),
    (
        "tls",
        _any(
            names=("SSLError", "CertificateError"), text=r"CERTIFICATE_VERIFY_FAILED|\[SSL|ssl handshake", heard=False
        ),
    ),
    (
        "no_address",
        _any(
            names=("gaierror", "herror", "NameResolutionError"),
            text=r"name or service not known|nodename nor servname|name resolution|getaddrinfo failed|no address assoc",
            heard=False,
        ),
    ),
    (
        "refused",
        _any(
            names=("ConnectionRefusedError",),
            text=r"connection refused|all connection attempts failed|actively refused",
            heard=False,
        ),
    ),
    (
        "lost",
        _any(
            names=(
                *(
                    "RemoteProtocolError",
                    "ReadError",
                    "WriteError",
                    "CloseError",
                    "IncompleteRead",
                    "ChunkedEncodingError",
                ),
                *("ConnectionResetError", "BrokenPipeError", "ConnectionAbortedError", "RemoteDisconnected"),
                *("ClientPayloadError", "ServerDisconnectedError", "ProtocolError"),
            ),
            text=r"peer closed connection|connection (?:was )?(?:lost|reset|closed)|disconnected without|"
            r"incomplete (?:chunked )?read",
        ),
    ),
    (
        "connection",
        _any(
            names=(
                "ConnectError",
                "APIConnectionError",
                "ModelConnectionError",
                "ConnectionError",
                "TransportError",
                "URLError",
            )
        ),
    ),
    (
        "unreadable",
        _both(
            _is_of_package,
            _any(
                names=(
                    *("JSONDecodeError", "APIResponseValidationError", "UnexpectedModelBehavior", "DecodingError"),
                    *("UnknownApiResponseError", "ResponseValidationError", "UnicodeDecodeError"),
                )
            ),
        ),
    ),
    ("reported", lambda said, _: said.body is not None or bool(said.words & {"error", "failed"})),
    ("reported", _any(names=("ModelAPIError", "APIError", "AnthropicError", "OpenAIError"))),
)
"""In this order: what is told exactly before what a status alone says, and answers before connections."""
