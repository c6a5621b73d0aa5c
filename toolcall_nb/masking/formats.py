"""What keys look like that tell by themselves what they are: by a prefix that their provider gives them.

The sources are the providers' own documentation, GitHub's "Supported secret scanning patterns"
(docs.github.com/code-security) and gitleaks' rules (config/gitleaks.toml). Lengths are a little below what is given
out today, since they have grown before. A key of only letters and digits of no prefix (Mistral's, Cohere's, Azure's)
is known by the name of its variable alone.

Every pattern is linear: it begins with a literal, takes the whole run of characters that follows, and is tried at no
place inside of a run that it has taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msgspec import Struct

from toolcall_nb.masking.shapes import is_random

__all__ = ["EAGER", "FORMATS", "Format", "find_keys"]


class Format(Struct, frozen=True):
    """One form of keys. A text without ``hint`` has none; ``is_key`` looks at what the pattern has found."""

    hint: str
    pattern: re.Pattern[str]
    is_key: Callable[[str], bool] | None = None

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Where such keys stand."""
        if self.hint in text:
            for found in self.pattern.finditer(text):
                key = found[0].rstrip(".")  # the end of a sentence
                if self.is_key is None or self.is_key(key):
                    yield found.start(), found.start() + len(key)


def _after(prefix: str, inside: str = "A-Za-z0-9") -> str:
    """The prefix, not in the middle of a word; what JSON (``\\n``) and URLs (``%20``) escape before it ends a word."""
    p = re.escape(prefix)
    ends = "|".join(rf"(?<={before}{p})" for before in (r"\\[nrtbf]", r"\\u[0-9a-fA-F]{4}", r"%[0-9a-fA-F]{2}"))
    return rf"{p}(?:(?<![{inside}]{p})|{ends})"


def _format(prefix: str, body: str, is_key: Callable[[str], bool] | None = None) -> Format:
    return Format(prefix, re.compile(_after(prefix) + body), is_key)


_TEXT = r"[A-Za-z0-9_\-]"  # base64url
_WORD = r"[A-Za-z0-9]"

_PREFIXES: dict[str, tuple[str, int]] = {
    # models
    "AIza": (_TEXT, 35),  # Google
    "ya29.": (r"[A-Za-z0-9_\-.]", 20),  # Google, OAuth
    "GOCSPX-": (_TEXT, 20),  # Google, OAuth client
    "gsk_": (_WORD, 40),  # Groq
    "xai-": (_WORD, 40),  # xAI
    "hf_": (_WORD, 30),  # Hugging Face
    "pplx-": (_WORD, 40),  # Perplexity
    "r8_": (_WORD, 36),  # Replicate
    "nvapi-": (_TEXT, 40),  # NVIDIA
    "csk-": (_WORD, 40),  # Cerebras
    "fw_": (_WORD, 22),  # Fireworks
    "tgp_v1_": (_TEXT, 40),  # Together
    "pylf_v": (r"[A-Za-z0-9_]", 30),  # Pydantic Logfire
    "lsv2_": (r"[A-Za-z0-9_]", 40),  # LangSmith
    "tvly-": (_TEXT, 24),  # Tavily
    "pcsk_": (r"[A-Za-z0-9_]", 40),  # Pinecone
    # code and packages
    **dict.fromkeys(("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), (_WORD, 36)),  # GitHub
    "github_pat_": (r"[A-Za-z0-9_]", 60),
    "glpat-": (_TEXT, 20),  # GitLab
    "npm_": (_WORD, 36),
    "pypi-AgE": (_TEXT, 50),
    # clouds and services
    "AKIA": (r"[A-Z0-9]", 16),  # AWS, the id of a key; the key itself is known by its name
    "ASIA": (r"[A-Z0-9]", 16),
    **dict.fromkeys(("xoxa-", "xoxb-", "xoxe-", "xoxp-", "xoxr-", "xoxs-", "xapp-"), (r"[A-Za-z0-9\-]", 20)),  # Slack
    **dict.fromkeys(("sk_live_", "sk_test_", "rk_live_", "rk_test_"), (_WORD, 16)),  # Stripe
    "whsec_": (r"[A-Za-z0-9+/]", 24),  # Stripe, Svix
    "dop_v1_": (r"[a-f0-9]", 60),  # DigitalOcean
    "shpat_": (r"[a-fA-F0-9]", 32),  # Shopify
    "ntn_": (_WORD, 40),  # Notion
    "lin_api_": (_WORD, 32),  # Linear
    "dapi": (r"[a-f0-9]", 32),  # Databricks
    "hvs.": (_TEXT, 24),  # Vault
    "AGE-SECRET-KEY-1": (r"[A-Z0-9]", 50),
}
"""The characters that follow each prefix, and how many of them at least."""

_DASHES = "-----"
_BREAK = r"(?:\s|\\{1,4}[nr])*+"  # also as JSON escapes it
_LINE = r"[A-Za-z0-9+/]"
_PEM = Format(
    "PRIVATE KEY",
    re.compile(
        rf"{_DASHES}BEGIN [A-Z ]{{0,30}}PRIVATE KEY(?: BLOCK)?{_DASHES}{_BREAK}"
        rf"(?:(?:Proc-Type|DEK-Info|Version|Comment): [^\n\\]{{0,100}}+{_BREAK}){{0,5}}+"
        rf"(?:{_LINE}{{16,}}+={{0,2}}{_BREAK})*+(?:{_LINE}{{1,15}}+={{0,2}}{_BREAK}(?=[=\-]))?+"
        rf"(?:={_LINE}{{4}}{_BREAK})?+(?:{_DASHES}END[A-Z ]{{0,40}}{_DASHES})?+"
    ),
)
"""RFC 7468 and OpenPGP's armour. What was cut off before its end goes as far as its lines look like base64."""

_JWT = Format(
    "eyJ",
    re.compile(_after("eyJ", r"A-Za-z0-9_\-") + rf"{_TEXT}{{8,}}+\.{_TEXT}{{8,}}+\.{_TEXT}*+"),
)
"""RFC 7519, three parts; ``eyJ`` is how ``{"`` begins in base64. Inside of a run it is not looked for again."""

_SENDGRID = Format("SG.", re.compile(_after("SG.") + rf"{_TEXT}{{16,}}+\.{_TEXT}{{16,}}+"))

FORMATS = (
    _format("sk-", rf"{_TEXT}{{20,}}+", is_random),  # OpenAI, Anthropic, OpenRouter, DeepSeek; CSS has sk-… as well
    *(_format(prefix, f"{body}{{{least},}}+") for prefix, (body, least) in _PREFIXES.items()),
    _JWT,
    _SENDGRID,
    _PEM,
)
"""What is masked wherever it stands."""

EAGER = (
    _format("sk-", r"[A-Za-z0-9_*.\-]{8,}+"),  # also as providers repeat a wrong key, with its middle left out
    *(_format(prefix, f"{body}{{{min(least, 16)},}}+") for prefix, (body, least) in _PREFIXES.items()),
    _JWT,
    _SENDGRID,
    _PEM,
)
"""What is masked in what a provider said of a failure, where a word too many is better than a part of a key."""

_ENDS = {
    sign: re.compile("|".join(f"{sign}(?<={re.escape(form.hint)})" for form in FORMATS if form.hint[-1] == sign))
    for sign in "_-"
}
"""Most prefixes end in one of two signs: one look for each of these instead of one for each prefix."""


def find_keys(text: str, eager: bool) -> Iterator[tuple[int, int]]:
    """Where keys stand that tell by themselves what they are."""
    absent = {sign for sign, ends in _ENDS.items() if not ends.search(text)}
    for form in EAGER if eager else FORMATS:
        if form.hint[-1] not in absent:
            yield from form.find(text)
