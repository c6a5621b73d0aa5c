"""Answers of providers that are errors, and what a person must be told of each: written for this project."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["TROUBLES", "Trouble"]


class Trouble(NamedTuple):
    """One answer. ``brief`` names its kind, ``says`` are pieces of the sentence, in order."""

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

TROUBLES = (
    Trouble(
        "a wrong key",
        401,
        _error("Incorrect API key provided.", type="invalid_request_error", code="invalid_api_key"),
        "Wrong key",
        ("OpenAI did not accept the API key (401): Incorrect API key provided.", "OPENAI_API_KEY", "%toolchat config"),
    ),
    Trouble(
        "a wrong key that is no 401",
        400,
        _error("API key not valid. Please pass a valid API key.", status="INVALID_ARGUMENT"),
        "Wrong key",
        ("did not accept the API key (400): API key not valid.", "OPENAI_API_KEY"),
    ),
    Trouble(
        "a key that may not",
        403,
        _error("Project does not have access to this region", type="permission_error"),
        "Not allowed",
        ("does not allow this request (403): Project does not have access", "OPENAI_API_KEY", "the model 'm-1'"),
    ),
    Trouble(
        "an unknown model",
        404,
        _error("The model `m-1` does not exist.", code="model_not_found"),
        "Unknown model",
        ("OpenAI does not have the model 'm-1'", "(404): The model `m-1` does not exist. Check its name."),
    ),
    Trouble(
        "an unknown model that is no 404",
        400,
        {"detail": "Model m-1 is not supported. Supported models are ['m-2', 'm-3']."},
        "Unknown model",
        ("does not have the model 'm-1'", "Supported models are ['m-2', 'm-3']"),
    ),
    Trouble(
        "a model by its bare name",
        404,
        _error("model: m-1", type="not_found_error"),
        "Unknown model",
        ("does not have the model 'm-1'", "(404): model: m-1. Check its name."),
    ),
    Trouble("an address that is none", 404, "404 page not found\n", "Not found", ("404 page not found", "base URL")),
    Trouble(
        "no money",
        402,
        _error("Insufficient Balance"),
        "Quota used up",
        ("credit at OpenAI is used up (402): Insufficient Balance.", "Waiting does not help", "billing"),
    ),
    Trouble(
        "a quota, told as a rate",
        429,
        _error("You exceeded your current quota.", type="insufficient_quota", code="insufficient_quota"),
        "Quota used up",
        ("is used up (429): You exceeded your current quota.", "billing"),
        headers={"retry-after": "1"},
        retry_after=1.0,
    ),
    Trouble(
        "credit, told as a bad request",
        400,
        _error("Your credit balance is too low to use this service.", type="invalid_request_error"),
        "Quota used up",
        ("is used up (400): Your credit balance is too low",),
    ),
    Trouble(
        "a quota of the day",
        429,
        _error("You exceeded your current quota.", status="RESOURCE_EXHAUSTED", details=[_GOOGLE_DAY, _GOOGLE_WAIT]),
        "Quota used up",
        ("is used up (429)",),
        retry_after=17.5,
    ),
    Trouble(
        "a rate with seconds in a header",
        429,
        _error("Slow down."),
        "Rate limited",
        ("OpenAI limits how much may be asked (429): Slow down. Try again in 20 s.",),
        headers={"Retry-After": "20"},
        may_retry=True,
        retry_after=20.0,
    ),
    Trouble(
        "a rate with milliseconds in a header",
        429,
        _error("Slow down."),
        "Rate limited",
        ("Try again in 2 s.",),
        headers={"retry-after-ms": "1500", "retry-after": "2"},
        may_retry=True,
        retry_after=1.5,
    ),
    Trouble(
        "a rate with its wait in the body",
        429,
        _error("Quota exceeded for requests per minute.", status="RESOURCE_EXHAUSTED", details=[_GOOGLE_WAIT]),
        "Rate limited",
        ("Try again in 18 s.",),
        may_retry=True,
        retry_after=17.5,
    ),
    Trouble(
        "a rate with its wait in the sentence",
        429,
        _error("Limit 30000 tokens. Please try again in 1m2.5s. See the documentation.", code="rate_limit_exceeded"),
        "Rate limited",
        ("Try again in 1 min 3 s.",),
        may_retry=True,
        retry_after=62.5,
    ),
    Trouble(
        "a rate whose limits are reset",
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
    Trouble(
        "a rate without a time",
        429,
        {"error": {"code": 429, "message": "Provider returned error", "metadata": {"raw": "m-1 is busy upstream."}}},
        "Rate limited",
        ("limits how much may be asked (429): m-1 is busy upstream. Try again a little later.",),
        may_retry=True,
    ),
    Trouble(
        "a rate that the provider does not want to hear again",
        429,
        _error("Slow down."),
        "Rate limited",
        ("Slow down.",),
        headers={"x-should-retry": "false"},
    ),
    Trouble(
        "too long a conversation",
        400,
        _error("This model's maximum context length is 8192 tokens.", code="context_length_exceeded"),
        "Too long",
        ("too long for the model 'm-1' (400): This model's maximum context length", "--new"),
    ),
    Trouble(
        "too long a prompt, in words alone",
        400,
        _error("prompt is too long: 210000 tokens > 200000 maximum", type="invalid_request_error"),
        "Too long",
        ("too long for the model 'm-1' (400): prompt is too long",),
    ),
    Trouble("too large a body", 413, _error("Request exceeds the maximum size"), "Too long", ("(413)", "send less")),
    Trouble(
        "a content filter",
        400,
        _error("The response was filtered.", code="content_filter"),
        "Refused",
        ("The content filter of OpenAI stopped this (400): The response was filtered.",),
    ),
    Trouble(
        "a request that is wrong",
        400,
        _error("Invalid 'temperature': expected a value >= 0.", type="invalid_request_error", param="temperature"),
        "Not accepted",
        ("OpenAI did not accept the request (400): Invalid 'temperature': expected a value >= 0.",),
    ),
    Trouble(
        "a request that fails validation",
        422,
        {"detail": [{"type": "missing", "loc": ["body", "model"], "msg": "Field required"}]},
        "Not accepted",
        ("did not accept the request (422): Field required.",),
    ),
    Trouble(
        "an overloaded provider",
        529,
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        "Overloaded",
        ("OpenAI is overloaded or not available (529): Overloaded. Try again a little later.",),
        may_retry=True,
    ),
    Trouble(
        "a service that is away",
        503,
        _error("The model is loading.", status="UNAVAILABLE"),
        "Overloaded",
        ("not available (503)", "Try again in 9 s."),
        headers={"retry-after": "9"},
        may_retry=True,
        retry_after=9.0,
    ),
    Trouble(
        "a fault of the provider",
        500,
        _error("The server had an error while processing your request.", type="server_error"),
        "Server error",
        ("OpenAI failed on its own side (500): The server had an error", "Try again a little later."),
        may_retry=True,
    ),
    Trouble("a proxy's page", 502, _PAGE, "Server error", ("(502): a web page, '502 Bad Gateway'.",), may_retry=True),
    Trouble("a gateway that waited", 504, "", "Timed out", ("did not answer in time (504)",), may_retry=True),
    Trouble("nothing but a status", 418, "", "Not accepted", ("OpenAI did not accept the request (418)",)),
)
