"""Made-up keys in real formats, built at run time so that secret scanners don't report this file."""

from __future__ import annotations

import random
import string
from base64 import b64encode

__all__ = ["HARMLESS", "made_up_key", "sample_keys"]

_ALL = string.ascii_letters + string.digits
_FORMS: dict[str, tuple[str, int]] = {
    **{f"sk-{kind}": (_ALL, 48) for kind in ("", "proj-", "svcacct-", "ant-api03-", "or-v1-")},
    "AI" + "za": (_ALL + "-_", 35),
    "ya29" + ".": (_ALL, 60),
    "GOCSPX" + "-": (_ALL, 28),
    **{prefix: (_ALL, 52) for prefix in ("gsk_", "pplx-", "xai-", "csk-", "pcsk_", "ntn_", "lin_api_")},
    "hf_": (string.ascii_letters, 34),
    "r8_": (_ALL, 37),
    "nvapi" + "-": (_ALL + "-_", 64),
    "fw_": (_ALL, 24),
    "tgp_v1_": (_ALL + "-_", 43),
    "pylf_v1_us_": (_ALL, 40),
    "lsv2_pt_": (string.hexdigits.lower(), 43),
    "tvly" + "-": (_ALL, 32),
    **{f"gh{kind}_": (_ALL, 36) for kind in "pousr"},
    "github_pat_": (_ALL + "_", 82),
    "glpat" + "-": (_ALL + "-_", 20),
    "npm_": (_ALL, 36),
    "pypi-" + "AgEI": (_ALL + "-_", 90),
    "AK" + "IA": (string.ascii_uppercase + string.digits, 16),
    "AS" + "IA": (string.ascii_uppercase + string.digits, 16),
    **{f"xox{kind}-": (string.digits, 48) for kind in "abeprs"},
    "xapp" + "-": (_ALL, 40),
    **{f"{kind}_{mode}_": (_ALL, 24) for kind in ("sk", "rk") for mode in ("live", "test")},
    "whsec_": (_ALL, 32),
    "dop_v1_": ("0123456789abcdef", 64),
    "shpat_": ("0123456789abcdef", 32),
    "dapi": ("0123456789abcdef", 32),
    "hvs" + ".": (_ALL, 40),
    "AGE-SECRET-KEY-1": (string.ascii_uppercase + string.digits, 58),
    **{f"sk-{kind}": (_ALL + "-_", 80) for kind in ("admin-", "ant-oat01-", "ant-admin01-", "lf-")},
    **{prefix: (_ALL, 52) for prefix in ("jina_", "wandb_v1_", "vcp_", "rpa_", "rnd_", "lin_oauth_", "nfp_")},
    **{f"{prefix}_": ("0123456789abcdef", 46) for prefix in ("sk", "ls_", "e2b", "crsr")},
    "sbp_": ("0123456789abcdef", 38),
    "sb_secret" + "_": (_ALL + "_", 30),
    "AQ" + ".Ab8": (_ALL + "-_", 50),
    "pa" + "-": (_ALL, 41),
    "figd" + "_": (_ALL + "-", 40),
    **{f"hv{kind}.": (_ALL + "-_", 100) for kind in "sbr"},
    **{f"dckr_{kind}_": (_ALL + "-", 26) for kind in ("pat", "oat")},
    **{f"gl{kind}-": (_ALL, 20) for kind in ("rt", "dt", "ft", "imt", "agent", "oas", "cbt")},
    "ABSK": (_ALL, 120),
    **{f"tskey-{kind}-": (_ALL + "-", 40) for kind in ("api", "auth", "client", "scim", "webhook")},
    "vercel_blob_rw" + "_": (_ALL + "_", 47),
    **{f"ph{kind}_": (_ALL, 43) for kind in "xsar"},
    **{prefix: (_ALL, 64) for prefix in ("napi_", "apify_api_", "dtn_", "flp_", "hcaik_", "hcxik_", "m0-")},
    **{f"cf{kind}_": (_ALL, 48) for kind in ("k", "ut", "at")},
    "cio": (_ALL, 30),
    "mdb_sa_sk_": (_ALL + "-_", 40),
    "AVNS" + "_": (_ALL + "-_", 19),
    "bb_live_": (_ALL + "-_", 40),
    "KGAT" + "_": ("0123456789abcdef", 32),
    "signkey-prod-": ("0123456789abcdef", 64),
    "glrtr" + "-": (_ALL + "-_", 20),
    **{f"jsr{kind}_": (_ALL, 33) for kind in "dpw"},
    **{f"dd{kind}_": (_ALL, 32) for kind in ("app", "pat", "sat")},
    "z_1dWlkIjoi": (_ALL + "-_", 120),
    "key" + "_": ("0123456789abcdef", 62),
    "0" * 2: (_ALL, 38),
}


def made_up_key(prefix: str = "", length: int = 40, characters: str = _ALL, seed: str = "") -> str:
    """Returns a made-up key with a digit near its beginning, as random keys nearly always have."""
    chance = random.Random(f"{prefix}{length}{seed}")
    return prefix + "a7" * (set("a7") <= set(characters)) + "".join(chance.choices(characters, k=length))


def sample_keys() -> dict[str, str]:
    """Returns one key of each known format, by its prefix or name."""
    found = {prefix: made_up_key(prefix, length, characters) for prefix, (characters, length) in _FORMS.items()}
    part = made_up_key(length=30)
    lines = "\n".join(made_up_key(length=62, seed=f"{number}") for number in range(6))
    dashes, digits = "-" * 5, "0123456789abcdef"
    return {
        **found,
        "a JSON web token": ".".join(("ey" + "J" + part, part, part)),
        "SendGrid": "SG" + f".{part}.{part}",
        "Convex": b64encode(b'{"v2":"' + made_up_key("", 30, digits).encode() + b'"}').decode(),
        "Fal": f"2dcd76a9-7b2e-4b9b-9be7-b2dea678ca1d:{made_up_key('', 30, digits)}",
        "a private key": f"{dashes}BEGIN RSA PRIVATE KEY{dashes}\n{lines}\nabc=\n{dashes}END RSA PRIVATE KEY{dashes}",
    }


HARMLESS = (
    "The token: string, the key: value12345, and a password of eight letters.",
    '{"type": "object", "properties": {"api_key": {"type": "string"}, "key": {"const": "value12345"}}}',
    '{"key": "9b2f6a3c1d4e5f60718293a4b5c6d7e8f9012345", "token": "550e8400-e29b-41d4-a716-446655440000"}',
    "commit 9b2f6a3c1d4e5f60718293a4b5c6d7e8f9012345",
    "Merge 550e8400-e29b-41d4-a716-446655440000 into main",
    "api_key=os.environ['OPENAI_API_KEY'], token=get_token2(), password=config.password2, secret=secret_key_2",
    "password = getpass.getpass('Password 2: ')",
    "def ask(api_key: Optional[str] = None, token: Token2Type = None) -> str: ...",
    "export OPENAI_API_KEY=your-api-key-1 and OPENAI_API_KEY=sk-... and key=<your key 1>",
    "postgresql://user:password@localhost:5432/db and https://docs.python.org/3/library/re.html",
    '<div class="sk-container-id-1 sk-estimator-doc-link sk-toggleable__content sk-text-repr-fallback">',
    "task-management-system-2024-for-12345 and risk-averse-behaviour, a disk-based1234567890 thing",
    "max_tokens=4096, total_tokens: 12345678, tokens=123456789, monkey=12345678abc, keyboard: layout12345",
    "a bearer authentication header is needed; basic understanding; Basic authentication2 works",
    "hf_transformers_model_with_a_long_name_2024 and gsk_ and npm_config_registry_of_mine",
    "sort(key=lambda row: row[1]), key: k1234567, cache_key=user12345:page67890",
    "data:image/png;base64," + b64encode(bytes(range(256)) * 8).decode(),
    "arn:aws:iam::123456789012:role/My-Role-2024 at 12:30:45, a:b:c:d1234567",
    "key_9b2f6a3c1d4e5f60718293a4b5c6 is an id, 00-9b2f6a3c1d4e5f60718293a4b5c6d7e8-9b2f6a3c1d4e5f60-01 a trace",
    "550e8400-e29b-41d4-a716-446655440000:550e8400-e29b-41d4-a716-446655440000 joins two ids, co_authored_by_2024 none",
    "jsrp_dry_run_of_the_whole_release_2024 and ddapp_page_title_of_the_settings_2024, 00:00:00-2024-01-01T00:00:00",
    "0000000000000000000000000000000000000000001 and 009b2f6a3c1d4e5f60718293a4b5c6d7e8f9012345, z_index_2024_of_all",
    "eyJ is how it begins; -----BEGIN PUBLIC KEY----- is public, -----BEGIN CERTIFICATE----- too",
)
"""Texts that resemble keys and must not be masked when they are saved."""
