"""Made-up sample keys, one for each rule of gitleaks, generated when a test runs.

A row has the rule's name, the name that precedes the key (``-``: none), and the key's format. Source:
config/gitleaks.toml (github.com/gitleaks/gitleaks, commit b58d3f102cf3a2c84cb7f923d05c25c9b1aed84b).
``<w36>`` is 36 characters of the alphabet ``w``, ``<w20-40>`` between 20 and 40, ``<uuid>`` a UUID.
"""

from __future__ import annotations

import re
from random import Random
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits
from uuid import UUID

__all__ = ["BESIDE_A_NAME", "BY_THEMSELVES", "LEFT", "SPECIAL", "key_of"]

_ALPHABETS = {
    "d": digits,
    "x": "0123456789abcdef",
    "u": ascii_uppercase + digits,
    "A": ascii_uppercase + "234567",
    "l": ascii_letters,
    "n": ascii_lowercase + digits,
    "w": ascii_letters + digits,
    "s": ascii_letters + digits + "_",
    "t": ascii_lowercase + digits + "_-",
    "T": ascii_letters + digits + "_-",
    "e": ascii_lowercase + digits + "_-=",
    "E": ascii_letters + digits + "_-=",
    "q": ascii_lowercase + digits + "_-=.",
    "a": ascii_letters + digits + "_~.-",
    "b": ascii_letters + digits + "+/",
    "k": ascii_lowercase + digits + "+/=_-",
    "v": ascii_letters + digits + "%",
}
_GROUP = re.compile(r"<(?:(?P<uuid>uuid)|(?P<alphabet>\w)(?P<least>\d+)(?:-(?P<most>\d+))?)>")

_ROWS = """
1password-secret-key - A3-<u6>-<u11>-<u5>-<u5>-<u5>
1password-service-account-token - ops_eyJ<b250-400>
adafruit-api-key adafruit <t32>
adobe-client-id adobe <x32>
adobe-client-secret - p8e-<n32>
age-secret-key - AGE-SECRET-KEY-1<u58>
airtable-api-key airtable <n17>
airtable-personnal-access-token - pat<w14>.<x64>
algolia-api-key algolia <n32>
alibaba-access-key-id - LTAI<n20>
alibaba-secret-key alibaba <n30>
anthropic-admin-api-key - sk-ant-admin01-<T93>AA
anthropic-api-key - sk-ant-api03-<T93>AA
artifactory-api-key - AKCp<w69>
artifactory-reference-token - cmVmd<w59>
asana-client-id asana <d16>
asana-client-secret asana <n32>
atlassian-api-token jira <n20><x4>
authress-service-client-access-key - authress_<n5-30>.<n4-6>.acc_<n10-32>.<k30-120>
aws-access-token - AKIA<A16>
aws-amazon-bedrock-api-key-long-lived - ABSK<b109-269>
aws-amazon-bedrock-api-key-short-lived - bedrock-api-key-<b60-100>
azure-ad-client-secret - <w3><d1>Q~<a31-34>
beamer-api-token beamer b_<e44>
bitbucket-client-id bitbucket <n32>
bitbucket-client-secret bitbucket <e64>
bittrex-access-key bittrex <n32>
bittrex-secret-key bittrex <n32>
cisco-meraki-api-key meraki <x40>
clickhouse-cloud-api-secret-key - 4b1d<w38>
clojars-api-token - CLOJARS_<n60>
cloudflare-api-key cloudflare <t40>
cloudflare-global-api-key cloudflare <x37>
cloudflare-origin-ca-key - v1.0-<x24>-<x146>
codecov-access-token codecov <n32>
cohere-api-token cohere <w40>
coinbase-access-token coinbase <t64>
confluent-access-token confluent <n16>
confluent-secret-key confluent <n64>
contentful-delivery-api-token contentful <e43>
databricks-api-token - dapi<x32>
datadog-access-token datadog <n40>
defined-networking-api-token dnkey dnkey-<e26>-<e52>
digitalocean-access-token - doo_v1_<x64>
digitalocean-pat - dop_v1_<x64>
digitalocean-refresh-token - dor_v1_<x64>
discord-api-token discord <x64>
discord-client-id discord <d18>
discord-client-secret discord <e32>
doppler-api-token - dp.pt.<n43>
droneci-access-token droneci <n32>
dropbox-api-token dropbox <n15>
dropbox-long-lived-api-token dropbox <n11>AAAAAAAAAA<e43>
dropbox-short-lived-api-token dropbox sl.<e135>
duffel-api-token - duffel_live_<e43>
dynatrace-api-token - dt0c01.<n24>.<n64>
easypost-api-token - EZAK<n54>
easypost-test-api-token - EZTK<n54>
etsy-access-token etsy <n24>
facebook-access-token - <d15-16>|<t27-40>
facebook-page-access-token - EAAC<n100-200>
facebook-secret facebook <x32>
fastly-api-token fastly <e32>
finicity-api-token finicity <x32>
finicity-client-secret finicity <n20>
finnhub-access-token finnhub <n20>
flickr-access-token flickr <n32>
flutterwave-encryption-key - FLWSECK_TEST-<x12>
flutterwave-public-key - FLWPUBK_TEST-<x32>-X
flutterwave-secret-key - FLWSECK_TEST-<x32>-X
flyio-access-token - fm2_<b100-200>
frameio-api-token - fio-u-<e64>
freshbooks-access-token freshbooks <n64>
gcp-api-key - AIza<T35>
github-app-token - ghs_<w36>
github-fine-grained-pat - github_pat_<s82>
github-oauth - gho_<w36>
github-pat - ghp_<w36>
github-refresh-token - ghr_<w36>
gitlab-cicd-job-token - glcbt-<w1-5>_<T20>
gitlab-deploy-token - gldt-<T20>
gitlab-feature-flag-client-token - glffct-<T20>
gitlab-feed-token - glft-<T20>
gitlab-incoming-mail-token - glimt-<T25>
gitlab-kubernetes-agent-token - glagent-<T50>
gitlab-oauth-app-secret - gloas-<T64>
gitlab-pat - glpat-<T20>
gitlab-pat-routable - glpat-<T27-300>.<n2><n7>
gitlab-ptt - glptt-<x40>
gitlab-rrt - GR1348941<T20>
gitlab-runner-authentication-token - glrt-<T20>
gitlab-runner-authentication-token-routable - glrt-t<d1>_<T27-300>.<n2><n7>
gitlab-scim-token - glsoat-<T20>
gitter-access-token gitter <t40>
gocardless-api-token gocardless live_<e40>
grafana-api-key - eyJrIjoi<w70-400>
grafana-cloud-api-token - glc_<b32-400>
grafana-service-account-token - glsa_<w32>_<x8>
harness-api-key - sat.<T22>.<w24>.<w20>
hashicorp-tf-api-token - <n14>.atlasv1.<e60-70>
heroku-api-key heroku <uuid>
heroku-api-key-v2 - HRKU-AA<T58>
hubspot-api-key hubspot <uuid>
huggingface-access-token - hf_<l34>
huggingface-organization-api-token - api_org_<l34>
infracost-api-token - ico-<w32>
intercom-api-key intercom <e60>
intra42-client-secret - s-s4t2af-<x64>
jfrog-api-key jfrog <n73>
jfrog-identity-token artifactory <n64>
jwt - eyJ<w20-60>.eyJ<T20-80>.<T40-60>
jwt-base64 - ZXlKaGJHY2lPaU<b60-200>
kraken-access-token kraken <k80-90>
kucoin-access-token kucoin <x24>
kucoin-secret-key kucoin <uuid>
launchdarkly-access-token launchdarkly <e40>
linear-api-key - lin_api_<n40>
linear-client-secret linear <x32>
linkedin-client-id linkedin_client_id <n14>
linkedin-client-secret linked_in <n16>
lob-api-key lob live_<x35>
lob-pub-api-key lob test_pub_<x31>
looker-client-id looker <n20>
looker-client-secret looker <n24>
mailchimp-api-key mailchimp <x32>-us<d2>
mailgun-private-api-token mailgun key-<x32>
mailgun-pub-key mailgun pubkey-<x32>
mailgun-signing-key mailgun <x32>-<x8>-<x8>
mapbox-api-token mapbox pk.<n60>.<n22>
mattermost-access-token mattermost <n26>
maxmind-license-key - <w6>_<w29>_mmk
messagebird-api-token message_bird <n25>
messagebird-client-id messagebird_client_id <uuid>
microsoft-teams-webhook - https://acme.webhook.office.com/webhookb2/<uuid>@<uuid>/IncomingWebhook/<n32>/<uuid>
netlify-access-token netlify <e40-46>
new-relic-browser-api-token newrelic NRJS-<x19>
new-relic-insert-key newrelic NRII-<t32>
new-relic-user-api-id new_relic <n64>
new-relic-user-api-key newrelic NRAK-<n27>
notion-api-token - ntn_<d11><w32><w3>
npm-access-token - npm_<n36>
nytimes-access-token nytimes <e32>
octopus-deploy-api-key - API-<u26>
okta-access-token okta 00<E40>
openai-api-key - sk-proj-<T74>T3BlbkFJ<T74>
openshift-user-token - sha256~<T43>
perplexity-api-key - pplx-<w48>
plaid-api-token plaid access-sandbox-<uuid>
plaid-client-id plaid <n24>
plaid-secret-key plaid <n30>
planetscale-api-token - pscale_tkn_<q32-64>
planetscale-oauth-token - pscale_oauth_<q32-64>
planetscale-password - pscale_pw_<q32-64>
postman-api-token - PMAK-<x24>-<x34>
prefect-api-token - pnu_<w36>
privateai-api-token private_ai <n32>
pulumi-api-token - pul-<x40>
pypi-upload-token - pypi-AgEIcHlwaS5vcmc<T50-1000>
rapidapi-access-token rapidapi <t50>
readme-api-token - rdme_<n70>
rubygems-api-token - rubygems_<x48>
scalingo-api-token - tk-us-<T48>
sendbird-access-id sendbird <uuid>
sendbird-access-token sendbird <x40>
sendgrid-api-token - SG.<q66>
sendinblue-api-token - xkeysib-<x64>-<n16>
sentry-access-token sentry <x64>
sentry-org-token - sntrys_eyJpYXQiO<b10-200>LCJyZWdpb25fdXJs<b10-200>_<b43>
sentry-user-token - sntryu_<x64>
settlemint-application-access-token - sm_aat_<w16>
settlemint-personal-access-token - sm_pat_<w16>
settlemint-service-access-token - sm_sat_<w16>
shippo-api-token - shippo_live_<x40>
shopify-access-token - shpat_<x32>
shopify-custom-access-token - shpca_<x32>
shopify-private-app-access-token - shppa_<x32>
shopify-shared-secret - shpss_<x32>
sidekiq-secret BUNDLE_ENTERPRISE__CONTRIBSYS__COM <x8>:<x8>
slack-app-token - xapp-<d1>-<u10>-<d12>-<n30>
slack-bot-token - xoxb-<d10-13>-<d10-13>-<w24>
slack-config-access-token - xoxe.xoxp-<d1>-<u163-166>
slack-config-refresh-token - xoxe-<d1>-<u146>
slack-legacy-bot-token - xoxb-<d8-14>-<w18-26>
slack-legacy-token - xoxs-<d10>-<d10>-<d10>-<x10>
slack-legacy-workspace-token - xoxa-<d1>-<w8-48>
slack-user-token - xoxp-<d12>-<d12>-<d12>-<w28-34>
slack-webhook-url - https://hooks.slack.com/services/<b43-56>
snyk-api-token snyk <uuid>
sonar-api-token sonar_token <e40>
sourcegraph-access-token sourcegraph <x40>
square-access-token - EAAA<T22-60>
squarespace-access-token squarespace <uuid>
stripe-access-token - sk_live_<w10-99>
sumologic-access-id sumo su<w12>
sumologic-access-token sumo <n64>
telegram-bot-api-token telegram <d5-16>:A<t34>
travisci-access-token travis <n22>
twilio-api-key - SK<x32>
twitch-api-token twitch <n30>
twitter-access-secret twitter <n45>
twitter-access-token twitter <d15-25>-<w20-40>
twitter-api-key twitter <n25>
twitter-api-secret twitter <n50>
twitter-bearer-token twitter AAAAAAAAAAAAAAAAAAAAAA<v80-100>
typeform-api-token typeform tfp_<t59>
vault-batch-token - hvb.<T138-300>
vault-service-token - hvs.<T90-120>
yandex-access-token yandex t1.<T20-40>.<T86>
yandex-api-key yandex AQVN<T35-38>
yandex-aws-access-token yandex YC<T38>
zendesk-secret-key zendesk <n40>
"""
_TABLE = [tuple(row.split()) for row in _ROWS.split("\n")[1:-1]]
BY_THEMSELVES = {rule: shape for rule, name, shape in _TABLE if name == "-"}
BESIDE_A_NAME = {rule: (name, shape) for rule, name, shape in _TABLE if name != "-"}

LEFT = {
    "private-key": "no row here: `tests.support.secret_samples` has a sample with several lines",
    "pkcs12-file": "the rule matches a file's name; the content is binary and never in a transcript's text",
}
"""Rules for which a text contains nothing to mask, with the reason."""


def key_of(shape: str, seed: int) -> str:
    """Returns a made-up key of this format. Its first and last random characters are letters or digits."""
    chance = Random(f"{shape}{seed}")

    def group(found: re.Match[str]) -> str:
        if found["uuid"]:
            return str(UUID(int=chance.getrandbits(128), version=4))
        letters = _ALPHABETS[found["alphabet"]]
        count = chance.randint(int(found["least"]), int(found["most"] or found["least"]))
        inner = "".join(chance.choices(letters, k=count))
        plain = [letter for letter in letters if letter.isalnum()]
        return chance.choice(plain) + inner[1:-1] + chance.choice(plain) if count > 1 else inner

    return _GROUP.sub(group, shape)


SPECIAL = {
    "curl-auth-header": ('curl -H "Authorization: Token {}" https://example.org', "<w24>"),
    "curl-auth-user": ("curl -s -u admin:{} https://example.org", "<n12>"),
    "freemius-secret-key": ("'secret_key' => '{}',", "sk_<s29>"),
    "generic-api-key": ('service_credentials = "{}"', "<n24>"),
    "gitlab-session-cookie": ("Cookie: _gitlab_session={}; theme=dark", "<n32>"),
    "hashicorp-tf-password": ('administrator_login_password = "{}"', "<n6><d2><n4>"),
    "kubernetes-secret-yaml": ("apiVersion: v1\nkind: Secret\nmetadata:\n  name: mine\ndata:\n  entry: {}\n", "<w24>"),
    "nuget-config-password": ('<add key="ClearTextPassword" value="{}" />', "<n6><d2><n4>"),
    "sidekiq-sensitive-url": ("source https://abcdef12:{}@gems.contribsys.com/", "<x8>"),
}
"""Rules that match the text around a secret: the text, and the format of the secret in it."""
