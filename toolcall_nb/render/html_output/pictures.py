"""Pictures that another host serves: shown where the reader has allowed that host, else a link stands in their place.

Loading a picture tells its host who reads, and when; and whatever the model was led to write into the address. So
none is loaded by itself: `toolcall_nb.render.markdown.flavor` writes a link of the class ``tc-image``, which nothing
but
that makes, and here such links become pictures again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from toolcall_nb.errors import UsageError
from toolcall_nb.render.escaping import attribute

__all__ = ["NO_HOSTS", "allowed_hosts", "allowed_source", "with_pictures"]

NO_HOSTS: frozenset[str] = frozenset()

_HOST = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*(?::[0-9]{1,5})?")
# No user, no backslash and no blank: nothing that a browser may read as another host than we do.
_ADDRESS = re.compile(r"https://([A-Za-z0-9.:-]+)(?:[/?#][!-\[\]-~]*)?")
_LINK = re.compile(r'<a href="([^"]*)" class="tc-image"( title="[^"]*")?[^>]*>([^<]*)</a>')


def allowed_hosts(names: Iterable[str]) -> frozenset[str]:
    """The hosts, as they are compared: ``example.org``, or ``example.org:8443``. Raises `UsageError` for what is none.

    A host is allowed by its whole name, and over https alone. There is no way to allow all.
    """
    hosts = frozenset(name.strip().lower() for name in names)
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise UsageError(
                f"{host!r:.100} is no name of a host from which pictures may be loaded. Give it whole, without "
                "https:// and without a path: example.org"
            )
    return hosts


def allowed_source(url: str, hosts: frozenset[str]) -> str | None:
    """The address, escaped, if one of the hosts serves it."""
    found = _ADDRESS.fullmatch(url) if hosts else None
    return attribute(url) if found is not None and found[1].lower() in hosts else None


def with_pictures(html: str, hosts: frozenset[str]) -> str:
    """A block of our own Markdown, with the pictures that one of the hosts serves."""
    if not hosts or 'class="tc-image"' not in html:
        return html
    return _LINK.sub(lambda link: _picture(link, hosts), html)


def _picture(link: re.Match[str], hosts: frozenset[str]) -> str:
    source, title, text = link[1], link[2] or "", link[3]
    if allowed_source(source.replace("&amp;", "&"), hosts) is None:
        return link[0]
    return f'<img src="{source}" alt="{text}"{title} referrerpolicy="no-referrer" loading="lazy">'
