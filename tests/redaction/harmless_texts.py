"""Harmless texts that resemble secrets and must not be masked when they are saved.

Each line is one text, in which ``⏎`` stands for a line end. ``<x40>`` and the like are replaced when a test runs, as
`tests.support.gitleaks_rules` explains: digests, ids of calls and replies, public keys.
"""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from random import Random

from tests.support.gitleaks_rules import key_of

__all__ = ["harmless_texts"]

_LINES = r"""
password = input()
token=max_tokens
"password": null
password: required
the password is wrong
password=password
password = getpass()
def f(user: str, password: str = ""): ...
connect(user=user, password=password)
connect(user=user, password=user_input)
password = user_input
    password=settings.password,
    password=user_value,
  password: string;
  password: string
  password: SecretStr
"password": "string"
"password": {"type": "string"}
"password": "The password of the user"
Password: please enter it
type="password"
"password": "your-password"
"password": "********"
password: <your password>
password: ${DB_PASSWORD}
DB_PASSWORD=$PASSWORD
DB_PASSWORD=${PASSWORD}
API_KEY=your_api_key_here
API_KEY=xxxxxxxxxxxx
credentials: "include"
apiKey: "X-API-Key"
authorization: Bearer
password: incorrect
"password": "required"
"error": "wrong password: denied"
secret: my-registry-secret
secretKeyRef: mysecret
password: password
"secret": "secret"
if password == expected:
password != confirmed
passwd:         files systemd
<label for="password">Password</label>
"forgotPassword": "Vergessen"
password=changeme
password = os.environ["X"]
password = response.json
lambda password: validate
assert secret == expected_value
"license": "Apache"
PASSWORD_HASHERS = x
authorization: string
commit <x40>⏎Author: Ann <a@b.org>
* <x7> Merge branch 'token-cache-2'
request id <uuid>
"id": "<uuid>"
hash = "sha256:<x64>"
--hash=sha256:<x64>
{ url = "https://files.example.org/packages/<x2>/<x2>/<x60>/numpy-2.1.0.tar.gz", hash = "sha256:<x64>", size = 12345 }
md5: <x32>
sha1 = <x40>
etag: "<x32>"
ETag: W/"<x40>"
X-Request-Id: <uuid>
traceparent: 00-<x32>-<x16>-01
registry.example.org/library/python@sha256:<x64>
image: redis@sha256:<x64>
uses: codecov/codecov-action@<x40>
uses: actions/checkout@<x40> # v4
cloudflare: <x40>
rev = "<x40>"
pkg:pypi/sentry-sdk@2.1.0 <x64>
token = next(tokens)
api_key=os.environ['OPENAI_API_KEY2']
password: str
password: str | None = None
api_key = YOUR_API_KEY
OPENAI_API_KEY=YOUR_API_KEY_1
sk-...
<token>
token: <your-token-1>
Authorization: Bearer <token1>
Authorization: Bearer $TOKEN1
Authorization: Bearer ${API_TOKEN1}
-H "Authorization: Bearer $OPENAI_API_KEY"
curl -u $USER:$PASS1 https://x
curl -u user:password https://x
curl -u ${U1}:${P1} https://x
docker run -p 8080:80 -u 1000:1000 x
docker run --user 1000:1000 nginx1
ssh -p 2222 me@host1
mkdir -p a1/b2/c3
mysql -h host1 -P 3306 -u root -p db1
cp -a src1 dst2
grep -P '\d+' file1
zip -r x1.zip folder1
tar -p abc123
http://localhost:8888/lab?token=...
https://example.org/search?q=api+key+2024&page=12
https://www.youtube.com/watch?v=dQw4w9WgXcQ
https://docs.google.com/document/d/1aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789abcdEFG/edit
https://github.com/psf/requests/commit/<x40>
https://example.org/a?utm_source=newsletter2024&utm_campaign=spring12&id=<uuid>
https://example.com/?sort=key1&order=desc2
https://example.com/?session=12&hash=<x40>
tokens: 12345, total_tokens=6789, max_tokens: 4096
"usage": {"prompt_tokens": 1234, "completion_tokens": 567}
"nextPageToken": "CAUQAA<w20>"
"next_page_token": "<w40>"
continuationToken: "<w50>"
pad_token: <pad1>, eos_token: </s>, bos_token='<|begin_of_text1|>'
public_key: <w43>=
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI<w43> me@host
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC<w300>== me@host
primary_key = 'user_2024_<w8>'
partition_key: user#12345#abcdef
cache_key: 'v2:model:<x64>'
"encrypted_content": "gAAAAAB<w300>=="
chatcmpl-<w29>
call_<w24>
toolu_01<w22>
msg_01<w22>
resp_<x48>
fc_<x48>
rs_<x48>
run-<uuid>
asst_<w24>
file-<w22>
req_<w24>
system_fingerprint: fp_<x10>
gen-1712345678-<w20>
thread_<w24>
vs_<x32>
"tool_call_id": "call_<w24>"
cmpl-<w32>
ft:gpt-4o-mini-2024-07-18:org::<w8>
projects/123/locations/us/keyRings/r1/cryptoKeys/k2
arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/db1-<w6>
secret: arn:aws:secretsmanager:us-east-1:123456789012:secret:x1
secretKeyRef: {name: my-secret-1, key: password1}
password: ${DB_PASSWORD1}
password: {{ .Values.db.password1 }}
password = var.db_password1
password=@/run/secrets/db1
password: !vault 1
password_hash_rounds=12345a
passwordless12 login
secret santa2024 party: room12345
keyboard: us104key
key: F12+shift1
Press key: ctrl12alt
key=lambda x1: x1[0]
sorted(d1, key=itemgetter1)
key: value12345
for key, value1 in d.items(): print(key, value1)
def f(token: Uint8Array, password: OAuth2PasswordBearer, secret: Base64String = None)
credentials: 'same-origin'
credentials: 'include'
auth: OAuth2Session
auth = HTTPBasicAuth2
token_type: bearer
"token_type": "Bearer"
token=tokenizer.eos_token_id2
tokenizer = AutoTokenizer.from_pretrained('bert-base-uncased2')
secret=config['SECRET1']
secret = settings.SECRET_KEY2
password=get_password2(user1)
password = user_input2
password=args.password1
pwd: /home/user1/project2
PWD=/home/user1/project2
OLDPWD=/usr/src/app2
SSH_AUTH_SOCK=/tmp/ssh-XXXX1/agent.123
AUTH=/etc/auth1/x
PASS: 12 tests, FAIL: 1 tests1
PASS=test_foo_bar1
pass: test_login_2024
key: 2024-01-01T00:00:00Z
key='2024-Q1-revenue'
key: 'chart-1-axis-2'
| key | value1 |⏎|---|---|⏎| k1 | v1 |
| token | count1 |⏎| the | 12345 |
| Password | 8 characters1 |
array([0.123456789, 1.23456789e-10, 12345678.9])
[[1. 2. 3.]⏎ [4. 5. 6.]]
   a1        b2⏎0  0.12345  abcdef123
<div id="key1" class="sk-container-id-12345678901234567890">
sk-learn-contrib-package-name2024version
pa-rticularly-long-hyphenated-identifier-number-2024-version-12
as-many-hyphens-2024
ak-47-rifle-model-1947
fw_version_1_2_3_4_5_6_7_8_9_10
hf_model_name_with_many_parts_2024_v2
gsk_some_function_name_2024_test_value
npm_config_user_agent_2024
key-value-store-2024-benchmarks-results
s.toLowerCaseAndTrimAllTheText1
this.s.getElementById('x12345')
test_pub_sub_roundtrip_2024
live_dashboard_2024_refresh_rate_seconds
test_function_with_a_very_long_name_2024
secret_santa_generator_for_the_office_party_2024
rnd_number_generator_seed_1234567890
API-REFERENCE-DOCUMENTATION-V2
AKIAEXAMPLE
NRAK-
SKU1234567890
SK12345 is a part
LTAIwan2024
pk.eyJ
pul-request-1234
ico-arrow-left-2024
tk-us-east-1-cluster-name-with-many-words-2024
sl.pool.acquire.connection2
t1.micro.instances.in.us-east-1
1/2024
1//0
v1.0-rc1-20240101
dp.st.x1
pat.com
ey = 12345; eyes.eyelids.x
MODULE_NAME_1234567890ABCD.method.function_name_which_is_long_enough2
NumericPrecisionConverter24.format.anotherLongFunctionName123456
Q~
a|b|c|d12345
12345:AAAA
123456789012345|some-text-with-hyphens
https://user:password@example.org/
https://user:<password>@example.org
https://user:${PASSWORD1}@host
postgres://postgres:postgres@localhost:5432/postgres
ssh://git@github.com/org/repo1.git
https://medium.com/@user1234567/title-2024
mailto:me@example.org
https://x.org/@scope/pkg@1.2.3
git+ssh://git@github.com:22/x1
npm i @angular/core@17.1.0
Basic auth and Bearer tokens2024
Bearer authentication2024
bearer token_value_2
Set-Cookie: theme=dark2024; Path=/
Cookie: consent=yes; lang=en-GB
cookies: 12 pieces1
value: 12345, name: token
{"name": "token_count", "value": "1234567890abcd"}
{"name": "color", "value": "1234567890abcd"}
<input name="q" value="python3.11">
kind: Secret agent⏎data: 123
---⏎kind: Secret⏎type: Opaque⏎---⏎kind: ConfigMap⏎data:⏎  key: value12345678⏎
login: user1 and password: see below1
--token-limit 4096
--max-tokens 123456
--key-file /etc/x1.pem
--auth-type oauth2
--password-file /run/x1
--token=$TOKEN1
--token $TOKEN1
--api-key YOUR_KEY_1
--api-key <key1>
the token limit: 128000tokens
Token usage: 1234in/567out
token: 0x1f
key 1: value2
twitter: @someuser12345678901234567
twitter: https://twitter.com/user12345
linkedin: john-smith-12345
linkedin: johnsmith12345
discord: user#1234
discord_guild_id = 123456789012345678
linear: 0.12345678, linear_layer_2: 64x128
looker: dashboard12
sentry release: abc1234def
square: 123
travis: build 1234567890123456789012
model: mistral-large-2407
mistral: open-mixtral-8x22b-instruct
together: meta-llama/Llama-3-70b
azure: eastus2
modal: dialog-2024-close-button
asana task 1234567890123456
confluence page id: 1234567890123456
jira: PROJ-1234
heroku app: my-app-12345
slack channel: C024BE91L
exa_mple: 12
a == b1 and key == 'abc123'
if password == 'test1234':
api_key='test-key-123'
api_key='fake_key_1'
token='my-token-1'
secret: 'not-a-secret-1'
password: 'your_password1'
password='changeme1'
api_key='xxxxxxxx1'
API_KEY=sk-xxxxxxxx1
key='abc'
kwargs['key1'] = value2
session['token1'] = None
The secret ingredient: vitaminB12complex
Secret: the 3rd chapter
private key: RSA2048 bits
Keys: 1a 2b 3c
auth: sha256
signing_key: ed25519
encryption: aes256gcm
encryption_key: aes256
key_size: 4096bits
password_policy: min8chars1digit
password min length: 8characters
pass rate: 98percent1
passes: 12of13
Compass: N45E12degrees
author: user1234
authors = ['A1']
co-author: someone12345678
oauth2: authorization_code
Authorization: see RFC7235
WWW-Authenticate: Basic realm="x12345"
hotkey: ctrl+alt+F12
turkey: 12lbs345
monkey=banana12345
apikeys: 12 found1
tokenA = tokenB1
const token1 = token2
ENV PATH /usr/local/bin1
ENV NODE_VERSION 20.11.1
npm config set registry https://packages.example.org
git config set user.name abc123
git config --global user.email a1@b.org
"""


def harmless_texts() -> list[str]:
    """Returns all texts, and binary data as base64 and hexadecimal, with and without a media type."""
    lines = [key_of(line, 1).replace("⏎", "\n") for line in _LINES.split("\n")[1:-1]]
    chance = Random(1)
    zeros = b64encode(bytes(range(16)) + b"\x10\0\0" * 800).decode()
    signature = b64encode(chance.randbytes(300)).decode()
    return [
        *lines,
        f"data:image/png;base64,{b64encode(chance.randbytes(3_000)).decode()}",
        f'"image/png": "{zeros}"',
        f'"integrity": "sha512-{b64encode(chance.randbytes(64)).decode()}"',
        b64encode(chance.randbytes(30_000)).decode(),
        urlsafe_b64encode(chance.randbytes(30_000)).decode(),
        chance.randbytes(20_000).hex(),
        f'"signature": "{signature}"',
        f'"thoughtSignature": "{signature}"',
        f'"encrypted_content": "gAAAAAB{signature}"',
        f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{signature[:43]} me@host",
    ]
