"""Files as HTML: `file_html` shows a picture where that is safe, and writes a link or a name for any other file."""

from __future__ import annotations

from toolcall_nb.core.escaping import attribute, escape, image_source, link_target
from toolcall_nb.core.transcript import FilePart
from toolcall_nb.render.html_output.pictures import allowed_source
from toolcall_nb.render.wording import file_words

_DOWNLOADS = {
    "application/json": "json",
    "application/pdf": "pdf",
    "application/zip": "zip",
    "text/csv": "csv",
    "text/markdown": "md",
    "text/plain": "txt",
}
_ADDRESS = 200


def file_html(part: FilePart, hosts: frozenset[str]) -> str:
    """Returns a picture if its data is there or its host allowed; else a link, the data to download, or its type."""
    words = file_words(part)
    picture = image_source(part.url)
    if picture is None and part.media_type.lower().startswith("image/"):
        picture = allowed_source(part.url, hosts)
    if picture is not None:
        name = f"{escape(words.name)}, " if words.name else ""
        title = f' title="{escape(words.name)}"' if words.name else ""
        return (
            f'<p class="tc-file"><img src="{picture}" alt="{words.label}, {name}{escape(part.media_type)}"{title}></p>'
        )
    details = escape(words.about)
    if words.kind is None:
        return f'<p class="tc-file">{words.label}: {link_html(part.url, part.url[:_ADDRESS])} ({details})</p>'
    if words.kind not in _DOWNLOADS:
        label = f"{words.label}: {escape(words.name)} ({details})" if words.name else f"{words.label}: {details}"
        return f'<p class="tc-file">{label}</p>'
    name = words.name or f"file.{_DOWNLOADS[words.kind]}"
    link = f'<a href="{attribute(part.url)}" download="{attribute(name)}">{escape(name)}</a>'
    return f'<p class="tc-file">{words.label}: {link} ({details})</p>'


def link_html(url: str, text: str) -> str:
    """Returns a link, or the text with the address where that is none that may be opened."""
    target = link_target(url)
    if target is None:
        return escape(text) if url.startswith(text) else f"{escape(text)} ({escape(url[:_ADDRESS])})"
    return f'<a href="{target}" target="_blank" rel="noopener noreferrer nofollow">{escape(text)}</a>'
