"""The kinds of provider errors: how each is recognised, and the sentence with the remedy.

`ERROR_KINDS` is the table. `recognise_error` returns the first kind that fits an exception's details.
"""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from toolcall_nb.sources.provider_errors.exception_details import ExceptionDetails
from toolcall_nb.sources.provider_errors.provider_help import ERROR_PACKAGES, ProviderHelp


class ErrorKind(Struct, frozen=True):
    """One kind of error, which one sign or the text is enough to recognise.

    ``brief`` names the kind in two or three words. ``sentence`` says what happened and what to do; `as_model_error`
    fills in the fields in braces. ``signs`` are HTTP statuses, error codes in lower case and class names.
    ``text`` is a pattern for the status and the sentence, as in "404 model: m-1". ``text_of`` says to which sentences
    it applies: those of a ``response``, also those of the ``network``, or only those of a ``package`` before it has
    a response. ``packages_only``: the signs count only if the exception comes from a package that makes requests.
    """

    brief: str
    sentence: str
    signs: str = ""
    text: str = ""
    text_of: Literal["response", "network", "package"] = "response"
    packages_only: bool = False
    may_retry: bool = False


_UNREADABLE = "{who} sent an answer that is not what its API gives{status}{quoted}. Check the base URL, and the proxy."

ERROR_KINDS = (
    ErrorKind(
        "Not installed",
        "A package is missing{quoted}. Install what the models need: {install}",
        signs="ImportError",
        packages_only=True,
    ),
    ErrorKind(
        "Quota used up",
        "The quota or the credit at {who} is used up{status}{quoted}. Waiting does not help: check the plan and the "
        "billing there.",
        signs="http_402 insufficient_quota billing_error billing_hard_limit_reached billing_not_active "
        "insufficient_credits servicequotaexceededexception payment_required daily_quota "
        "ModelQuotaExceededError PaymentRequiredError",
        text=r"credit balance is too low|insufficient (?:balance|credits?|funds|quota)|enable billing",
    ),
    ErrorKind(
        "Wrong key",
        "{who} did not accept the API key{status}{quoted}. Check {variable}, or the key that is set with "
        "%toolchat config.",
        signs="http_401 invalid_api_key authentication_error unauthenticated api_key_invalid unauthorized "
        "unrecognizedclientexception expiredtokenexception invalidsubscription AuthenticationError",
        text=r"api key not valid|(?:incorrect|invalid|wrong|expired) api[ _-]key|invalid x-api-key|api key expired",
    ),
    ErrorKind(
        "Refused",
        "The content filter of {who} stopped this{status}{quoted}. Put it in other words, or ask another model.",
        signs="content_filter content_policy_violation responsibleaipolicyviolation content_blocked "
        "ContentFilterError ContentFilterFinishReasonError",
    ),
    ErrorKind(
        "Too long",
        "The conversation is too long for {model}{status}{quoted}. Begin a new one (--new), or send less.",
        signs="http_413 context_length_exceeded request_too_large string_above_max_length context_window_exceeded "
        "ModelContextWindowExceededError ContextWindowExceededError",
        text=r"(?:maximum )?context (?:length|window|size)|prompt is too long|input is too long|too many (?:input )?"
        r"tokens in|(?:input )?token count .{0,40}exceeds|exceeds? (?:the )?(?:available|model'?s?) context",
    ),
    ErrorKind(
        "Unknown model",
        "{who} does not have {model}, or not for this key{status}{quoted}. Check its name.{hint}",
        signs="model_not_found deploymentnotfound model_not_available unknown_model model_decommissioned",
        text=r"\bmodels?\b.{0,120}(?:does not exist|do(?:es)? not have access|not found|was removed|deprecated|"
        r"decommissioned|is invalid|not a valid)|invalid model|supported models are|unknown model|no such model|"
        r"\A404 .*\bmodels?\b",
    ),
    ErrorKind(
        "Not found",
        "{server} does not know this address{status}{quoted}. Check the base URL, and {model}.",
        signs="http_404 ModelNotFoundError",
    ),
    ErrorKind(
        "Not allowed",
        "{who} does not allow this request{status}{quoted}. Check that the key in {variable} may use {model}.",
        signs="http_403 permission_error permission_denied accessdeniedexception ModelAuthenticationError",
    ),
    ErrorKind(
        "Rate limited",
        "{who} limits how much may be asked{status}{quoted}. Try again {wait}.",
        signs="http_429 rate_limit_error rate_limit_exceeded resource_exhausted throttlingexception too_many_requests "
        "ModelRateLimitError RateLimitError",
        text=r"rate limit",
        may_retry=True,
    ),
    ErrorKind(
        "Overloaded",
        "{who} is overloaded or not available{status}{quoted}. Try again {wait}.",
        signs="http_503 http_529 overloaded_error unavailable serviceunavailableexception overloaded "
        "ModelUnavailableError OverloadedError ServiceUnavailableError",
        text=r"\boverloaded\b",
        may_retry=True,
    ),
    ErrorKind(
        "Timed out",
        "{who} did not answer in time{status}{answer}. Try again, or allow more time (the setting timeout).",
        signs="http_408 http_504 deadline_exceeded timeout_error request_timeout "
        "TimeoutError TimeoutException APITimeoutError ModelTimeoutError ModelRequestTimeout Timeout",
        may_retry=True,
    ),
    ErrorKind(
        "Server error",
        "{who} failed on its own side{status}{quoted}. Try again {wait}.",
        signs="http_5xx server_error internal_server_error internal_error internal api_error "
        "ModelServerError InternalServerError",
        may_retry=True,
    ),
    ErrorKind("Unreadable", _UNREADABLE, signs="web_page"),
    ErrorKind(
        "Not accepted",
        "{who} did not accept the request{status}{quoted}.",
        signs="http_4xx invalid_request_error invalid_argument failed_precondition validationexception "
        "ModelRequestRejectedError BadRequestError",
    ),
    ErrorKind(
        "No key",
        "There is no API key for {who}. Set {variable}, or give one with %toolchat config.",
        text=r"api[_ -]?key|_API_KEY|_TOKEN\b|credentials|authentication method",
        text_of="package",
    ),
    ErrorKind(
        "Not secure",
        "No secure connection to {server} could be made{quoted}. Check the base URL, the certificates of this machine "
        "and the proxy.",
        signs="SSLError CertificateError",
        text=r"CERTIFICATE_VERIFY_FAILED|\[SSL|ssl handshake",
        text_of="network",
    ),
    ErrorKind(
        "Not found",
        "The address of {server} cannot be found{answer}. Check the network, and the base URL.",
        signs="gaierror herror NameResolutionError",
        text=r"name or service not known|nodename nor servname|name resolution|getaddrinfo failed|no address assoc",
        text_of="network",
    ),
    ErrorKind(
        "No connection",
        "Nothing answers at {server}{answer}. {start}",
        signs="ConnectionRefusedError",
        text=r"connection refused|all connection attempts failed|actively refused",
        text_of="network",
    ),
    ErrorKind(
        "Connection lost",
        "The connection to {server} was lost{answer}. Ask again: what came before is kept.",
        signs="RemoteProtocolError ReadError WriteError CloseError IncompleteRead ChunkedEncodingError "
        "ConnectionResetError BrokenPipeError ConnectionAbortedError RemoteDisconnected ClientPayloadError "
        "ServerDisconnectedError ProtocolError",
        text=r"peer closed connection|connection (?:was )?(?:lost|reset|closed)|disconnected without|"
        r"incomplete (?:chunked )?read",
        may_retry=True,
    ),
    ErrorKind(
        "No connection",
        "No connection to {server} could be made{answer}. Check the network, and the base URL.",
        signs="ConnectError APIConnectionError ModelConnectionError ConnectionError TransportError URLError",
        may_retry=True,
    ),
    ErrorKind(
        "Unreadable",
        _UNREADABLE,
        signs="JSONDecodeError APIResponseValidationError UnexpectedModelBehavior DecodingError "
        "UnknownApiResponseError ResponseValidationError UnicodeDecodeError",
        packages_only=True,
    ),
    ErrorKind(
        "Error",
        "{who} reported an error{status}{quoted}.",
        signs="has_body error failed ModelAPIError APIError AnthropicError OpenAIError",
    ),
)
"""In this order: exact signs before a status alone, and responses before connections."""


def recognise_error(details: ExceptionDetails, provider: ProviderHelp) -> ErrorKind | None:
    """Returns the kind of a provider's error; None for any other exception, such as one of the user's own code."""
    signs = {*details.codes, *details.classes}
    if details.status is not None:
        signs |= {f"http_{details.status}", f"http_{details.status // 100}xx"}
    if details.body is not None:
        signs.add("web_page" if details.is_web_page else "has_body")
    is_of_package = bool(provider.title) or not details.packages.isdisjoint(ERROR_PACKAGES)
    is_text_of = {
        "response": is_of_package or details.status is not None or details.body is not None or bool(details.codes),
        "network": is_of_package or "OSError" in details.classes,
        "package": is_of_package and details.body is None,
    }
    text = f"{details.status} {details.text}"
    for kind in ERROR_KINDS:
        has_sign = not signs.isdisjoint(kind.signs.split()) and (is_of_package or not kind.packages_only)
        if has_sign or (kind.text and is_text_of[kind.text_of] and re.search(kind.text, text, re.IGNORECASE)):
            return kind
    return None
