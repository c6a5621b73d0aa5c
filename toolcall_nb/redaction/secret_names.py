"""The meaning of a name: whether the value of a variable, field, header or parameter of this name is a secret.

`naming` says how likely that is. `is_key_of_provider` recognises keys without a format of their own: the name of the
provider stands beside them, as in ``discord_token = "…"``, and they have exactly the characters of such a key. The
names, alphabets and lengths come from gitleaks' rules (github.com/gitleaks/gitleaks, commit
b58d3f102cf3a2c84cb7f923d05c25c9b1aed84b) and the providers' own documentation.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

from toolcall_nb.redaction.value_shapes import is_digest, is_mixed, shape_regex


class Naming(Enum):
    """The likelihood that a value is a secret, judged by its name."""

    SECRET = "secret"
    """``OPENAI_API_KEY``, ``password``, ``clientSecret``: the value is a secret, unless it does not look like one."""
    LIKELY = "likely"
    """``bot_token``, ``CI_TOKEN``, ``?token=``: the value is a secret if it looks random; a digest counts as random."""
    PERHAPS = "perhaps"
    """``key``, ``token``: public things are called so too. The value is a secret if it looks random, but no digest."""
    NOTHING = "nothing"


_SECRET_WORDS = """
accesskey accesstoken accountkey apikey apitoken appkey authkey authorization authtoken bearertoken clientkey
consumerkey credential credentials encryptionkey licencekey licensekey masterkey passcode passphrase passwd password
presharedkey privatekey pwd refreshtoken secret secretkey secrettoken servicekey sessiontoken sharedkey signingkey
subscriptionkey adminpass dbpass mailpass rootpass smtppass userpass
"""
_SECRETS = tuple(_SECRET_WORDS.split())
_PERHAPS = frozenset({"auth", "cookie", "key", "pass", "token"})
_LIKELY = frozenset({"auth", "pass", "token"})
"""These words say more if another word stands before them."""
_LISTS = "next previous prev page paging pagination continuation continue sync delta cursor resume cancel cancellation"
_MODELS = (
    "pad eos bos mask sep cls unk special start end stop first last max min num new total input output prompt "
    "completion predicted decoded generated"
)
_TABLES = (
    "primary foreign cache partition sort row group unique composite index hash map dict object translation query "
    "routing shard bucket item column field entity surrogate sitekey site idempotency"
)
_PUBLIC = frozenset(f"{_LISTS} {_MODELS} {_TABLES} public publishable".split())
"""Words before ``key`` or ``token`` of something that is not a secret."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LONGEST = 80


@lru_cache(maxsize=1024)
def naming(name: str) -> Naming:
    """Returns the meaning of the name's last words; digits at the end (``KEY_2``) are ignored.

    It is `Naming.NOTHING` for ``KEYBOARD``, ``monkey``, ``TOKENIZERS_PARALLELISM``, ``max_tokens``, ``nextPageToken``
    and ``key_file``.
    """
    words = [word.lower() for word in _WORD.findall(name[-_LONGEST:])]
    if "".join(words).endswith(_SECRETS):
        return Naming.SECRET
    if not words or words[-1] not in _PERHAPS or _PUBLIC.intersection(words[-3:-1]):
        return Naming.NOTHING
    is_variable = name.isupper() and words[-1] != "key"
    return Naming.LIKELY if words[-1] in _LIKELY and (len(words) > 1 or is_variable) else Naming.PERHAPS


# Keys of providers -----------------------------------------------------------------------------------------------

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
"""The names of providers and the shapes of their keys, as `value_shapes.shape_regex` explains them."""


_TABLE = {
    name: re.compile("|".join(map(shape_regex, shapes)))
    for names, *shapes in map(str.split, _SHAPES.strip().split("\n"))
    for name in names.split("|")
}
_OF_KEYS = re.compile(r"key|token|secret|passw|pwd|pass\b|auth|cred|login|bearer|session|client|access|license")
_SURELY_RANDOM = 20
"""The least characters of a key beside the bare name of a provider. A shorter value may be the name of a user."""
_COMMIT = 40


def is_key_of_provider(name: str, value: str) -> bool:
    """Whether the value has the form of the keys of the provider in the name.

    A digest (of a release or a commit) or a short value counts only if the name says that it is a key or an id.
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
    """Returns the form of the keys of the provider in the name; None if it names none."""
    lower = name.lower()
    return next((keys for provider, keys in _TABLE.items() if provider in lower), None)
