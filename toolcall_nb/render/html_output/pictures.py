"""Pictures on other hosts: they are shown if the reader has allowed the host; otherwise a link takes their place.

Loading a picture tells its host who reads and when, and whatever the model was led to write into the address. So
`toolcall_nb.incremental_markdown.flavor` writes a link of the class ``tc-image``, which nothing else has, and
`with_pictures` turns such links back into pictures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from toolcall_nb.core.escaping import attribute
from toolcall_nb.errors import UsageError

NO_HOSTS: frozenset[str] = frozenset()

_HOST = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*(?::[0-9]{1,5})?")
# It has no user, backslash or blank, which could make a browser read another host than this pattern does.
_ADDRESS = re.compile(r"https://([A-Za-z0-9.:-]+)(?:[/?#][!-\[\]-~]*)?")
_LINK = re.compile(r'<a href="([^"]*)" class="tc-image"( title="[^"]*")?[^>]*>([^<]*)</a>')


def allowed_hosts(names: Iterable[str]) -> frozenset[str]:
    """Returns the hosts in lower case: ``example.org``, or ``example.org:8443``. Raises `UsageError` for others.

    A host is allowed by its whole name, and over https only. There is no way to allow all hosts.
    """
    hosts = frozenset(name.strip().lower() for name in names)
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise UsageError(
                f"{host!r:.100} is not the name of a host from which pictures may be loaded. Give the whole name, "
                "without https:// and without a path: example.org"
            )
    return hosts


def allowed_source(url: str, hosts: frozenset[str]) -> str | None:
    """Returns the address, escaped, if one of the hosts serves it."""
    match = _ADDRESS.fullmatch(url) if hosts else None
    return attribute(url) if match is not None and match[1].lower() in hosts else None


def with_pictures(html: str, hosts: frozenset[str]) -> str:
    """Returns a block of our own Markdown with the pictures that one of the hosts serves."""
    if not hosts or 'class="tc-image"' not in html:
        return html
    return _LINK.sub(lambda link: _picture(link, hosts), html)


def _picture(link: re.Match[str], hosts: frozenset[str]) -> str:
    source, title, text = link[1], link[2] or "", link[3]
    if allowed_source(source.replace("&amp;", "&"), hosts) is None:
        return link[0]
    return f'<img src="{source}" alt="{text}"{title} referrerpolicy="no-referrer" loading="lazy">'
