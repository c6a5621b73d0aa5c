"""Keys without a form of their own, which are known by the name of their provider beside them.

``discord_token = "…"`` with exactly the characters that such a key has. The facts (names, alphabets, lengths) come from
gitleaks' rules (github.com/gitleaks/gitleaks, commit b58d3f102cf3a2c84cb7f923d05c25c9b1aed84b) and the providers' own
documentation. Shapes are written as `shapes.shape_regex` explains.
"""

from __future__ import annotations

import re
from functools import lru_cache

from toolcall_nb.redaction.value_shapes import is_digest, is_mixed, shape_regex

__all__ = ["is_key_of_provider", "keys_beside"]

_SHAPES = """
adafruit <t32>
adobe <x32>
airtable <w17>
algolia <w32>
alibaba <w30>
asana <d16> <w32>
atlassian|confluence|jira <w24>
beamer b_<e44>
bitbucket <w32> <e64>
bittrex <w32>
cloudflare <t40> <x37>
codecov <w32>
cohere|co_api_key <w40>
coinbase <t64>
confluent <w16> <w64>
contentful <e43>
contribsys <x8>:<x8>
datadog <w40> <w32>
discord <x64> <d17-19> <e32>
droneci <w32>
dropbox <w15> <w11>AAAAAAAAAA<e43> sl.<e135>
etsy <w24>
facebook <x32>
fastly <e32>
finicity <x32> <w20>
finnhub <w20>
flickr <w32>
freshbooks <w64>
gitlab_session <w32>
gitter <t40>
gocardless live_<e40>
heroku <uuid>
hubspot <uuid>
intercom <e60>
jfrog|artifactory|bintray|xray <w73> <w64>
kraken <k80-90>
kucoin <x24> <uuid>
launchdarkly <e40>
linear <x32>
linked_in|linked-in|linkedin <w14> <w16>
looker <w20> <w24>
mailgun <x32>-<x8>-<x8>
mattermost <w26>
meraki <x40>
messagebird|message-bird|message_bird <w25> <uuid>
netlify <e40-46>
new-relic|newrelic|new_relic <w64>
nytimes|new-york-times|newyorktimes <e32>
okta 00<e40>
plaid <w24> <w30>
privateai|private_ai|private-ai <w32>
rapidapi <t50>
sendbird <uuid> <x40>
sentry <x64>
snyk <uuid>
sonar <e40>
sourcegraph <x40>
squarespace <uuid>
sumo su<w12> <w64>
travis <w22>
twitch <w30>
twitter <w45> <d15-25>-<w20-40> <w25> <w50> AAAAAAAAAAAAAAAAAAAAAA<v80-100>
yandex YC<t38>
zendesk <w40>
ai21|aleph_alpha <t32-60>
assemblyai <x32>
azure <w32> <w52>
buildkite|circleci|deepgram|serper|todoist|wandb|weights_and_biases <x40>
cerebras|together <x64>
elevenlabs <x32>
exa_|railway|sambanova <uuid>
jenkins <x32-34>
jupyter <x32-64>
mistral <w32>
modal <w20-40>
ngrok <w26-28>_<w20-24>
pagerduty <t20>
pinecone <uuid>
trello <x32> <x64>
twilio <x32>
vercel <w24>
"""


def _table() -> dict[str, re.Pattern[str]]:
    rows = {}
    for row in _SHAPES.split("\n")[1:-1]:
        names, *shapes = row.split()
        rows.update(dict.fromkeys(names.split("|"), re.compile("|".join(map(shape_regex, shapes)))))
    return rows


_TABLE = _table()
_OF_KEYS = re.compile(r"key|token|secret|passw|pwd|pass\b|auth|cred|login|bearer|session|client|access|license")
_SURELY_RANDOM = 20
"""Characters of a value that is beside the bare name of a provider; shorter ones may be the name of a user."""
_COMMIT = 40


def is_key_of_provider(name: str, value: str) -> bool:
    """Whether the value has the form of the keys of the provider that is named.

    A digest (of a release, of a commit) and a short value count only where the name says that it is a key or an id.
    """
    keys = keys_beside(name)
    if keys is None or not keys.fullmatch(value):
        return False
    lower = name.lower()
    if _OF_KEYS.search(lower):
        return True
    if is_digest(value):
        return lower in _TABLE and len(value) != _COMMIT and not value.isdigit()
    return is_mixed(value) and len(value) >= _SURELY_RANDOM


@lru_cache(maxsize=1024)
def keys_beside(name: str) -> re.Pattern[str] | None:
    """The form of the keys of the provider that is named; None where none is named."""
    lower = name.lower()
    return next((keys for provider, keys in _TABLE.items() if provider in lower), None)
