"""The formats of keys that can be recognised alone, by a prefix or a unique shape: `find_keys` finds such keys.

Facts (prefixes, alphabets, lengths; as of 2026) come from gitleaks' rules (github.com/gitleaks/gitleaks, commit
b58d3f102cf3a2c84cb7f923d05c25c9b1aed84b), GitHub's "Supported secret scanning patterns" (docs.github.com/code-security)
and the providers' own documentation; Okta's from trufflehog, Cursor's from keyhog, JSR's from its source. Each shape is
one format, as `value_shapes.shape_regex` explains. Many lengths are a little below those of today's keys, because keys
have become longer before.

A key of letters and digits without a prefix (Mistral's, Cohere's, Azure's) is found only by the name beside it: see
`toolcall_nb.redaction.secret_names`.

All formats are one regular expression, which is tried only on long runs of the characters of keys. It is linear: a
format begins where a word does, and takes a bounded number of characters or a whole run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial

from msgspec import Struct
from msgspec.structs import replace

from toolcall_nb.redaction.value_shapes import is_mixed, is_random, shape_regex


class _KeyFormat(Struct, frozen=True):
    """One format of keys: a literal ``prefix``, and a regular expression for what follows it.

    ``is_key`` says whether a text of this format is a key. ``is_base64`` if other text may have the format in the
    middle of base64, where ``+`` and ``/`` do not end a word. The first ``kept`` characters are not masked.
    """

    prefix: str
    body: str
    eager_body: str
    is_key: Callable[[str], bool] | None = None
    is_base64: bool = False
    kept: int = 0


_LAST_GROUP = re.compile(r"<([a-z])(\d{1,4})(?:\+|-\d{1,4})?>$")


def _form(
    shape: str, is_key: Callable[[str], bool] | None = None, *, is_base64: bool = False, is_prefix_kept: bool = False
) -> _KeyFormat:
    prefix = shape.partition("<")[0]
    body = shape.removeprefix(prefix)
    eager_body = _LAST_GROUP.sub(lambda group: f"<{group[1]}{min(int(group[2]), 16)}+>", body)
    kept = len(prefix) if is_prefix_kept else 0
    return _KeyFormat(prefix, shape_regex(body), shape_regex(eager_body), is_key, is_base64, kept)


def _is_random_or_long(key: str) -> bool:
    """Whether a key of ``sk_test_`` or ``xoxa-`` is long, or not a word."""
    return len(key) >= 24 or is_mixed(key[key.rindex("_" if "_" in key else "-") :])


def _is_parted(key: str) -> bool:
    """Whether three parts with dots between them are a key, and not names of a program."""
    first, middle, last = key.split(".")
    return is_mixed(first) and is_mixed(last) and _WORD.fullmatch(middle) is None


_WORD = re.compile("[A-Z]?[a-z]+|[A-Z]+")

_PLAIN = """
AIza<t35+> ya29.<p20+> GOCSPX-<t20+> gsk_<w40+> xai-<w40+> hf_<w30+> api_org_<w30+> pplx-<w40+> r8_<w36+>
nvapi-<t40+> csk-<w40+> fw_<w22+> tgp_v1_<t40+> pylf_v<s30+> lsv2_<s40+> ls__<x32+> tvly-<t24+> pcsk_<s40+>
jina_<w40+> wandb_v1_<s40+> sk_<x48> e2b_<x40+> fc-<x32> crsr_<x40+> cpk_<x32>.<w32>.<w30+> bedrock-api-key-<b28+>
sk_car_<w20+> github_pat_<s60+> npm_<w36+> pypi-AgE<t50+> rubygems_<x48+> CLOJARS_<w60+> dckr_pat_<t20+>
dckr_oat_<t20+> GR1348941<t20+> CCIPAT_<w20+> bkua_<x40+> ATATT3<e100+> ATCTT3<e100+> pul-<x40+> ops_eyJ<b100+>
sbp_<x40+> AKIA<u16+> ASIA<u16+> dop_v1_<x60+> doo_v1_<x60+> dor_v1_<x60+> dapi<x32+> dkea<x32+> dose<x32+>
HRKU-<t30+> hvs.<p24+> hvb.<p24+> hvr.<p24+> glsa_<w32>_<x8> glc_<b32+> fo1_<t43+> fm1a_<b100+> fm1r_<b100+>
fm2_<b100+> whsec_<b24+> shpat_<x32+> shpca_<x32+> shppa_<x32+> shpss_<x32+> ntn_<w40+> lin_api_<w32+>
lin_oauth_<w32+> xapp-<t20+> xoxe.xoxb-<t40+> xoxe.xoxp-<t40+> figd_<t40+> PMAK-<x24>-<x34> PMAT-<u26+>
AGE-SECRET-KEY-1<u50+> dp.pt.<w40+> dp.ct.<w40+> dp.sa.<w40+> dp.scim.<w40+> dp.audit.<w40+> dp.st.<w40+>
dp.st.<t2-35>.<w40+> A3-<u6>-<u11>-<u5>-<u5>-<u5> A3-<u6>-<u6>-<u5>-<u5>-<u5>-<u5> p8e-<w32+> pat<w14>.<x64>
CFPAT-<t43+> sc_<w5-30>.<w4-6>.acc<t11-33>.<k30+> ext_<w5-30>.<w4-6>.acc<t11-33>.<k30+>
scauth_<w5-30>.<w4-6>.acc<t11-33>.<k30+> authress_<w5-30>.<w4-6>.acc<t11-33>.<k30+> v1.0-<x24>-<x146> dnkey-<e60+>
duffel_test_<e43+> duffel_live_<e43+> dt0c01.<w24>.<w64> EZAK<w54> EZTK<w54> FLWSECK_TEST-<t12+>
FLWPUBK_TEST-<t32+> FLWSECK-<t32+> fio-u-<e64+> pat.<t22>.<w24>.<w20> sat.<t22>.<w24>.<w20> pat-na1-<uuid>
pat-eu1-<uuid> live_<x35> test_<x35> live_pub_<x31> test_pub_<x31> key-<x32> pubkey-<x32> NRAK-<w27+> NRJS-<x19+>
NRII-<t32+> nfp_<w36+> vcp_<w24+> vck_<w24+> vca_<w24+> vci_<w24+> API-<u26> sha256~<t43> pscale_tkn_<q32+>
pscale_oauth_<q32+> pscale_pw_<q32+> pnu_<w36+> pnb_<w36+> rdme_<w70+> xkeysib-<x64>-<w16> xsmtpsib-<x64>-<w16>
sntrys_eyJ<k60+> sntryu_<x60+> sm_aat_<w16+> sm_pat_<w16+> sm_sat_<w16+> shippo_live_<x40+> shippo_test_<x40+>
squ_<t40+> sqp_<t40+> sqa_<t40+> sgp_<x16>_<x40> sgp_local_<x40+> sgp_<x40+> sq0atp-<t22+> sq0csp-<t40+> tfp_<q50+>
access-sandbox-<uuid> access-development-<uuid> access-production-<uuid> s-s4t2ud-<x64+> s-s4t2af-<x64+> SG.<q40+>
LLM|<d14-18>|<t27-40> bot<d5-16>:A<t34> 1/<d16>:<x32> tskey-api-<t12+> tskey-auth-<t12+> tskey-client-<t12+>
tskey-scim-<t12+> tskey-webhook-<t12+> vercel_blob_rw_<s20+> phx_<t32+> phs_<t32+> pha_<t32+> phr_<t32+>
napi_<w32+> cfk_<w40+> cfut_<w40+> cfat_<w40+> cio<w32> re_<w8>_<w20+> st.<x24>.<x32>.<x32> ddp_<w36> ddo_<w36>
hcaik_<w40+> hcxik_<w40+> hcamk_<w40+> xaat-<uuid> xapt-<uuid> mdb_sa_sk_<t30+> AVNS_<t16+> CCDB1_<w20+>
apify_api_<w30+> dtn_<w40+> bb_live_<t20+> bb_test_<t20+> KGAT_<x32+> tr_dev_<w20> tr_prod_<w20> tr_stg_<w20>
signkey-prod-<x32+> signkey-test-<x32+> oy2<q43> flp_<w40+> esecret_<w20+> m0-<w38+> sk-let-<b40+> sdk-<uuid>
glrtr-<p20+> glwt-<p20+> sess-<w40+> figu_<t40+> sntryi_<x60+> glrt-t<d1-2>_<p20+> snyk_uat.<x8>.<k40+>
snyk_sat.<x8>.<k40+> dp.pst.<w40+> hf_oauth_<p40+> shpua_<x32+> shptka_<x32+> dckr_scim_<t20+> secret-live-<t30+>
secret-test-<t30+> 0.<uuid>.<w30>:<b22+> xwfp-<t20+> hl_sk_<w30+> jsrd_<w35+> jsrp_<w35+> jsrw_<w35+>
ddapp_<w30+> z_1dWlkIjoi<p60+> key_<x64> <uuid>:<x32>
"""
"""Shapes that only keys have."""
_GITHUB = ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")
_GITLAB = ("pat", "rt", "dt", "ft", "fft", "ffct", "imt", "agent", "oas", "cbt", "ptt", "soat", "wt")
_RANDOM = """
AQ.<t30+> 1//0<t38+> pa-<t40-50> sb_secret_<t20+> BSA<t28> ak-<w22> as-<w22> rnd_<w20+> rpa_<w40+> secret_<w43>
ico-<w32> tk-us-<t48> s.<w24> sl.<t100+> pk.<t50+>.<t20+> sk.<t50+>.<t20+> LTAI<w16-24> ATBB<w24-32> A3T<u17>
sk_<w30+> ak_<w20+> re_<w30+> ck-<w40+> ABIA<u16> ACCA<u16> SK<x32> AQVN<t35-38> t1.<e9+>.<e86+> sk-<t20+>
ddpat_<s30+> ddsat_<s30+>
"""
"""Shapes that other text has too, such as words with hyphens: the key must look random."""
_IN_BASE64 = """
ABSK<b100+> eyJrIjoi<b50+> eyJ2MiI6<b40+> EAAA<t22-60> EAAM<w100+> EAAC<w100+> AKCp<w69> cmVmd<w59> dG9rO<b40+>
ZXlK<k60+>
"""
"""Shapes that begin with letters that other base64 may have."""
_WEBHOOKS = {
    "hooks.slack.com/services/": "<h40+>",
    "hooks.slack.com/workflows/": "<h40+>",
    "hooks.slack.com/triggers/": "<h40+>",
    "discord.com/api/webhooks/": "<h60+>",
    "discordapp.com/api/webhooks/": "<h60+>",
    "discord.com/api/v10/webhooks/": "<h60+>",
    "webhook.office.com/webhookb2/": "<h100+>",
    "with/key/": "<t40+>",  # IFTTT
}
"""Addresses that allow everybody who has them to write. The host is not masked."""

_INSIDE = {
    "|": (15, "<d15>", "<t27-40>"),  # Facebook
    ":A": (5, "<d5>", "<t34>"),  # Telegram's bots
    "-us": (32, "<x32>", "<d1-2>"),  # Mailchimp
    ".atlasv1.": (14, "<w14>", "<e60+>"),  # Terraform
    "_mmk": (36, "<w6>_<w29>", "<w0>"),  # MaxMind
    "JQQJ99": (52, "<w52>", "<w20+>"),  # Azure's AI services
    "Q~": (4, "<a3><d1>", "<a31+>"),  # Azure AD
}
"""Formats with a fixed text inside: the number of characters before it, their shape, and the shape behind it."""

_TOKEN = r"[A-Za-z0-9_\-]"
_JWT = rf"{_TOKEN}{{8,}}+\.{_TOKEN}{{8,}}+\.{_TOKEN}*+(?:\.{_TOKEN}{{8,}}+){{0,2}}"
_JWT_OF_WORDS = rf"[A-Za-z0-9]{{17,}}+\.ey{_TOKEN}{{17,}}+\.{_TOKEN}*+"
_DISCORD = rf"{_TOKEN}{{22,27}}\.{_TOKEN}{{6,7}}\.{_TOKEN}{{27,40}}(?!{_TOKEN})"
_STRUCTURED = (
    _KeyFormat("eyJ", _JWT, _JWT, is_base64=True),
    _KeyFormat("ey", _JWT_OF_WORDS, _JWT_OF_WORDS, is_base64=True),
    *(_KeyFormat(first, _DISCORD, _DISCORD, _is_parted, is_base64=True) for first in "MNO"),
)
"""JSON web tokens (RFC 7519; encrypted ones have five parts), and the tokens of Discord's bots."""


def _forms() -> Iterator[_KeyFormat]:
    """Yields the formats of keys that are masked anywhere."""
    yield from (_form(prefix + shape, is_prefix_kept=True) for prefix, shape in _WEBHOOKS.items())
    yield from (_form(f"{prefix}<w36+>") for prefix in _GITHUB)
    yield from (_form(f"gl{kind}-<p20+>") for kind in _GITLAB)
    for kind in "sk", "rk":
        yield from (_form(f"{kind}_{mode}_<w10+>", _is_random_or_long) for mode in ("live", "test", "prod"))
    yield from (_form(f"xox{kind}-<t8+>", _is_random_or_long) for kind in "abcdeoprs")
    yield from (_form(shape) for shape in _PLAIN.split())
    yield from (_form(shape, is_random) for shape in _RANDOM.split())
    yield from (_form(shape, is_base64=True) for shape in _IN_BASE64.split())
    yield from (_form(shape, partial(is_random, digests=False)) for shape in ("4b1d<w38>", "00<t40>"))
    yield from _STRUCTURED


_SHORTEST = 11
"""The length of the shortest key, which is the beginning of one that a provider repeats."""
_CORE, _WIDE, _OUTSIDE = b"a. "
_KINDS = bytes(
    next(
        (kind for kind, inside in ((_CORE, r"[A-Za-z0-9_*\-]"), (_WIDE, "[./:|~+=@]")) if re.match(inside, chr(code))),
        _OUTSIDE,
    )
    for code in range(256)
)
"""The kind of each byte: in any part of a key, between the parts of one, or outside."""
_LONG_RUN = bytes([_CORE]) * _SHORTEST
_MARK = b"x"
_MARKS = bytes(_MARK[0] if re.match(r"[0-9A-Z]", chr(code)) else _OUTSIDE for code in range(256))
"""Characters of which every key has one, except that Hugging Face's keys may be small letters alone."""
_OF_LETTERS = ("hf_", "api_org_")
_ESCAPES = re.compile(r"[nrtbf]|u[0-9a-fA-F]{4}"), re.compile(r"[0-9a-fA-F]{2}")
"""The escapes of JSON after a backslash, and of URLs after a percent sign: they end a word."""


def _all_in_one(forms: Iterable[_KeyFormat]) -> tuple[re.Pattern[str], list[_KeyFormat]]:
    """Returns one regular expression with a group for each format, and the formats in the order of the groups.

    It begins with the character before a key. Formats with a common beginning of their prefixes share a branch.
    """
    ordered: list[_KeyFormat] = []
    return re.compile(f"[^A-Za-z0-9]{_branch([*forms], 0, ordered)}"), ordered


def _branch(forms: list[_KeyFormat], depth: int, ordered: list[_KeyFormat]) -> str:
    """Returns the expression for formats with the same prefix up to ``depth``; the longest prefix is tried first."""
    longer: dict[str, list[_KeyFormat]] = {}
    for form in forms:
        if len(form.prefix) > depth:
            longer.setdefault(form.prefix[depth], []).append(form)
    branches = [re.escape(letter) + _branch(group, depth + 1, ordered) for letter, group in longer.items()]
    for form in forms:
        if len(form.prefix) == depth:
            ordered.append(form)
            begins = rf"(?<![+/_\-]{re.escape(form.prefix)})" if form.is_base64 else ""
            branches.append(f"({begins}{form.body})")
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


_WRONG_KEY = r"[A-Za-z0-9_*.\-]{8,}+"
"""A key as a provider repeats it in an error, without its middle."""


@cache
def _all_formats(eager: bool) -> tuple[re.Pattern[str], list[_KeyFormat]]:
    """Returns all formats as `_all_in_one` does. To compile them takes as long as to import half of this package.

    The ``eager`` ones are for error texts: 16 characters at the end of a key are enough, since it may be cut off.
    """
    if not eager:
        return _all_in_one(_forms())
    forms = (replace(form, body=form.eager_body) for form in _forms())
    return _all_in_one((_KeyFormat("sk-", _WRONG_KEY, _WRONG_KEY), *forms))


_DASHES = "-----"
_BREAK = r"(?:\s|\\{1,4}[nr])*+"  # also as JSON escapes it
_LINE = r"[A-Za-z0-9+/]"
_LINES = rf"(?:{_LINE}{{16,}}+={{0,2}}{_BREAK})*+(?:{_LINE}{{1,15}}+={{0,2}}{_BREAK}(?=[=\-]))?+"
BLOCKS = {
    "PRIVATE KEY": re.compile(
        rf"{_DASHES}BEGIN [A-Z0-9 ]{{0,30}}PRIVATE KEY(?: BLOCK)?{_DASHES}{_BREAK}"
        rf"(?:(?:Proc-Type|DEK-Info|Version|Comment): [^\n\\]{{0,100}}+{_BREAK}){{0,5}}+"
        rf"{_LINES}(?:={_LINE}{{4}}{_BREAK})?+(?:{_DASHES}END[A-Z0-9 ]{{0,40}}{_DASHES})?+"
    ),
    "Private-Lines": re.compile(rf"Private-Lines: \d{{1,3}}{_BREAK}(?:{_LINE}{{16,}}+={{0,2}}{_BREAK})*+"),
}
"""RFC 7468, OpenPGP's armour, and PuTTY's files. A block without its end ends where lines are not base64."""


INSIDE = {
    hint: re.compile(f"{re.escape(hint)}(?<={shape_regex(before + hint)}){shape_regex(behind)}")
    for hint, (_, before, behind) in _INSIDE.items()
}
"""The expressions for `_INSIDE`. Each begins with the fixed text, which is found fast, and then looks back."""


def find_keys(text: str, eager: bool) -> Iterator[tuple[int, int]]:
    """Yields where keys that can be recognised alone start and end."""
    has_run = False
    for start, end in _long_runs(text, eager):
        has_run = True
        pattern, forms = _all_formats(eager)
        if start and not text[start - 1].isalnum():
            run, offset, match = text, 0, pattern.search(text, start - 1, end)
        else:
            run, offset = f" {text[start:end]}", start - 1
            match = pattern.search(run)
        while match is not None:
            key = match[0][1:].rstrip(".")  # the end of a sentence
            form = forms[(match.lastindex or 1) - 1]
            if form.is_key is None or form.is_key(key):
                begin = offset + match.start() + 1
                close = begin + len(key)
                while text[close : close + 1] == "=":  # of base64
                    close += 1
                yield begin + form.kept, close
            match = pattern.search(run, match.end(), end - offset)
    for hint, shape in INSIDE.items():
        for match in shape.finditer(text) if has_run and hint in text else ():
            begin = match.start() - _INSIDE[hint][0]
            while begin and text[begin - 1 : begin + 1].isdecimal():  # the number of an app or a bot
                begin -= 1
            yield begin, match.start() + len(match[0].rstrip("."))
    for hint, block in BLOCKS.items():
        if hint in text:
            yield from (match.span() for match in block.finditer(text))


def _long_runs(text: str, eager: bool) -> Iterator[tuple[int, int]]:
    """Yields runs of characters of keys with a part that is long enough, and without runs of words alone.

    A run that begins with an escape is yielded a second time without it.
    """
    codes = text.encode("ascii", "replace")
    kinds = codes.translate(_KINDS)
    end, long = 0, kinds.find(_LONG_RUN)
    if long < 0:
        return
    marks = codes.translate(_MARKS)
    is_of_letters = eager or any(prefix in text for prefix in _OF_LETTERS)
    while long >= 0:
        start, end = kinds.rfind(_OUTSIDE, end, long) + 1 or end, kinds.find(_OUTSIDE, long)
        end = len(text) if end < 0 else end
        if is_of_letters or marks.find(_MARK, start, end) >= 0:
            yield start, end
            before = text[start - 1 : start]
            if before in "\\%" and before and (escape := _ESCAPES[before == "%"].match(text, start, end)):
                yield escape.end(), end
        long = kinds.find(_LONG_RUN, end)
