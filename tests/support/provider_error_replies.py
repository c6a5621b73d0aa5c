"""Error replies of providers and the message that a person must see for each; written for this project."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["ERROR_REPLIES", "ErrorReply"]


class ErrorReply(NamedTuple):
    """An error reply. ``brief`` is the kind of error; ``says`` are pieces that the message contains, in order."""

    title: str
    status: int
    body: Any
    brief: str
    says: tuple[str, ...]
    headers: Mapping[str, str] = {}
    may_retry: bool = False
    retry_after: float | None = None

    @property
    def text(self) -> str:
        """The body as it is sent."""
        return self.body if isinstance(self.body, str) else json.dumps(self.body)


def _error(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


_PAGE = "<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body><h1>nginx</h1></body></html>"
_GOOGLE_WAIT = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17.5s"}
_GOOGLE_DAY = {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}],
}

ERROR_REPLIES = (
    ErrorReply(
        "a wrong key",
        401,
        _error("Incorrect API key provided.", type="invalid_request_error", code="invalid_api_key"),
        "Wrong key",
        ("OpenAI did not accept the API key (401): Incorrect API key provided.", "OPENAI_API_KEY", "%toolchat config"),
    ),
    ErrorReply(
        "a wrong key with another status than 401",
        400,
        _error("API key not valid. Please pass a valid API key.", status="INVALID_ARGUMENT"),
        "Wrong key",
        ("did not accept the API key (400): API key not valid.", "OPENAI_API_KEY"),
    ),
    ErrorReply(
        "a key without the permission",
        403,
        _error("Project does not have access to this region", type="permission_error"),
        "Not allowed",
        ("does not allow this request (403): Project does not have access", "OPENAI_API_KEY", "the model 'm-1'"),
    ),
    ErrorReply(
        "an unknown model",
        404,
        _error("The model `m-1` does not exist.", code="model_not_found"),
        "Unknown model",
        ("OpenAI does not have the model 'm-1'", "(404): The model `m-1` does not exist. Check its name."),
    ),
    ErrorReply(
        "an unknown model with another status than 404",
        400,
        {"detail": "Model m-1 is not supported. Supported models are ['m-2', 'm-3']."},
        "Unknown model",
        ("does not have the model 'm-1'", "Supported models are ['m-2', 'm-3']"),
    ),
    ErrorReply(
        "an unknown model, named alone in the message",
        404,
        _error("model: m-1", type="not_found_error"),
        "Unknown model",
        ("does not have the model 'm-1'", "(404): model: m-1. Check its name."),
    ),
    ErrorReply("an unknown address", 404, "404 page not found\n", "Not found", ("404 page not found", "base URL")),
    ErrorReply(
        "no money",
        402,
        _error("Insufficient Balance"),
        "Quota used up",
        ("credit at OpenAI is used up (402): Insufficient Balance.", "Waiting does not help", "billing"),
    ),
    ErrorReply(
        "a used-up quota with the status of a rate limit",
        429,
        _error("You exceeded your current quota.", type="insufficient_quota", code="insufficient_quota"),
        "Quota used up",
        ("is used up (429): You exceeded your current quota.", "billing"),
        headers={"retry-after": "1"},
        retry_after=1.0,
    ),
    ErrorReply(
        "used-up credit with the status of a bad request",
        400,
        _error("Your credit balance is too low to use this service.", type="invalid_request_error"),
        "Quota used up",
        ("is used up (400): Your credit balance is too low",),
    ),
    ErrorReply(
        "a daily quota",
        429,
        _error("You exceeded your current quota.", status="RESOURCE_EXHAUSTED", details=[_GOOGLE_DAY, _GOOGLE_WAIT]),
        "Quota used up",
        ("is used up (429)",),
        retry_after=17.5,
    ),
    ErrorReply(
        "a rate limit with seconds in a header",
        429,
        _error("Slow down."),
        "Rate limited",
        ("OpenAI limits how much may be asked (429): Slow down. Try again in 20 s.",),
        headers={"Retry-After": "20"},
        may_retry=True,
        retry_after=20.0,
    ),
    ErrorReply(
        "a rate limit with milliseconds in a header",
        429,
        _error("Slow down."),
        "Rate limited",
        ("Try again in 2 s.",),
        headers={"retry-after-ms": "1500", "retry-after": "2"},
        may_retry=True,
        retry_after=1.5,
    ),
    ErrorReply(
        "a rate limit with the wait in the body",
        429,
        _error("Quota exceeded for requests per minute.", status="RESOURCE_EXHAUSTED", details=[_GOOGLE_WAIT]),
        "Rate limited",
        ("Try again in 18 s.",),
        may_retry=True,
        retry_after=17.5,
    ),
    ErrorReply(
        "a rate limit with the wait in the message",
        429,
        _error("Limit 30000 tokens. Please try again in 1m2.5s. See the documentation.", code="rate_limit_exceeded"),
        "Rate limited",
        ("Try again in 1 min 3 s.",),
        may_retry=True,
        retry_after=62.5,
    ),
    ErrorReply(
        "a rate limit with the time of its reset",
        429,
        _error("Too many tokens."),
        "Rate limited",
        ("Try again in 6 min.",),
        headers={
            "x-ratelimit-remaining-requests": "12",
            "x-ratelimit-reset-requests": "2h",
            "x-ratelimit-remaining-tokens": "0",
            "x-ratelimit-reset-tokens": "6m0s",
        },
        may_retry=True,
        retry_after=360.0,
    ),
    ErrorReply(
        "a rate limit without a time",
        429,
        {"error": {"code": 429, "message": "Provider returned error", "metadata": {"raw": "m-1 is busy upstream."}}},
        "Rate limited",
        ("limits how much may be asked (429): m-1 is busy upstream. Try again a little later.",),
        may_retry=True,
    ),
    ErrorReply(
        "a rate limit that must not be retried",
        429,
        _error("Slow down."),
        "Rate limited",
        ("Slow down.",),
        headers={"x-should-retry": "false"},
    ),
    ErrorReply(
        "too long a conversation",
        400,
        _error("This model's maximum context length is 8192 tokens.", code="context_length_exceeded"),
        "Too long",
        ("too long for the model 'm-1' (400): This model's maximum context length", "--new"),
    ),
    ErrorReply(
        "too long a prompt, without an error code",
        400,
        _error("prompt is too long: 210000 tokens > 200000 maximum", type="invalid_request_error"),
        "Too long",
        ("too long for the model 'm-1' (400): prompt is too long",),
    ),
    ErrorReply("too large a body", 413, _error("Request exceeds the maximum size"), "Too long", ("(413)", "send less")),
    ErrorReply(
        "a content filter",
        400,
        _error("The response was filtered.", code="content_filter"),
        "Refused",
        ("The content filter of OpenAI stopped this (400): The response was filtered.",),
    ),
    ErrorReply(
        "an invalid request",
        400,
        _error("Invalid 'temperature': expected a value >= 0.", type="invalid_request_error", param="temperature"),
        "Not accepted",
        ("OpenAI did not accept the request (400): Invalid 'temperature': expected a value >= 0.",),
    ),
    ErrorReply(
        "a request that fails validation",
        422,
        {"detail": [{"type": "missing", "loc": ["body", "model"], "msg": "Field required"}]},
        "Not accepted",
        ("did not accept the request (422): Field required.",),
    ),
    ErrorReply(
        "an overloaded provider",
        529,
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        "Overloaded",
        ("OpenAI is overloaded or not available (529): Overloaded. Try again a little later.",),
        may_retry=True,
    ),
    ErrorReply(
        "an unavailable service",
        503,
        _error("The model is loading.", status="UNAVAILABLE"),
        "Overloaded",
        ("not available (503)", "Try again in 9 s."),
        headers={"retry-after": "9"},
        may_retry=True,
        retry_after=9.0,
    ),
    ErrorReply(
        "an internal error of the provider",
        500,
        _error("The server had an error while processing your request.", type="server_error"),
        "Server error",
        ("OpenAI failed on its own side (500): The server had an error", "Try again a little later."),
        may_retry=True,
    ),
    ErrorReply(
        "a proxy's page", 502, _PAGE, "Server error", ("(502): a web page, '502 Bad Gateway'.",), may_retry=True
    ),
    ErrorReply("a gateway timeout", 504, "", "Timed out", ("did not answer in time (504)",), may_retry=True),
    ErrorReply("an empty body", 418, "", "Not accepted", ("OpenAI did not accept the request (418)",)),
)
