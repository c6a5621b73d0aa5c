"""The static HTML of a transcript: `to_html` makes a fragment for a cell, or a whole page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from toolcall_nb.core.call_nesting import CallNesting
from toolcall_nb.core.escaping import element, escape
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.render.html_output.card import Look
from toolcall_nb.render.html_output.message_nodes import message_node
from toolcall_nb.render.html_output.nodes import Node, serialise
from toolcall_nb.render.html_output.pictures import allowed_hosts
from toolcall_nb.render.stylesheets import stylesheet
from toolcall_nb.render.wording import EMPTY

ROOT_CLASS = "tc mathjax_ignore tex2jax_ignore"
"""The classes of the root element. JupyterLab's typesetter ignores ``$`` below the last two."""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:{hosts}; base-uri 'none'; form-action 'none'"
_PAGE_STYLE = (
    ":root{color-scheme:light dark}"
    "body{margin:24px auto;max-width:900px;padding:0 16px;background:light-dark(#fff,#111)}"
    "h1{margin:0 0 20px;font:600 17px system-ui,sans-serif;color:light-dark(#1f2328,#e6e8eb)}"
)


def to_html(
    transcript: Transcript,
    *,
    page: bool = False,
    opened: Mapping[str, bool] | None = None,
    timings: Mapping[str, float] | None = None,
    images: Iterable[str] = (),
) -> str:
    """Returns the transcript as HTML: complete without scripts, readable without styles, the same each time.

    A fragment (``<style>`` and one ``<div class="tc">``), or with ``page`` a document that loads nothing.
    ``opened`` says which cards the user opened or closed, by call id; ``timings`` seconds by call id.
    ``images`` are the hosts that may serve pictures (see `toolcall_nb.render.html_output.pictures`); raises
    `UsageError` for a name that is not a host. No call is shown as pending, queued or running, since a saved page
    outlasts that.
    """
    nesting = CallNesting(transcript.calls.values(), transcript.messages)
    look = Look(opened or {}, timings or {}, allowed_hosts(images), nesting=nesting)
    html = fragment([message_node(number, message, look) for number, message in enumerate(transcript.messages)])
    return _document(html, str(transcript.metadata.get("title") or "Transcript"), look.hosts) if page else html


def fragment(nodes: Sequence[Node]) -> str:
    """Returns the nodes in the root element, with the style. Without nodes, the root says that it is empty."""
    html = serialise(nodes) or element("p", "tc-empty", EMPTY)
    return f'<style>{stylesheet()}</style><div class="{ROOT_CLASS}">{html}</div>'


def _document(html: str, title: str, hosts: frozenset[str]) -> str:
    policy = _POLICY.format(hosts="".join(f" https://{host}" for host in sorted(hosts)))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{escape(title)}</title>\n<style>{_PAGE_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>{escape(title)}</h1>\n{html}\n</main>\n</body>\n</html>\n"
    )
