"""The table of fuzz targets: for each a check, seeds, words of its language, and the length of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from tests.fuzz import corpus, model_texts, peer_data, renderings
from toolcall_nb.wire import WIRE_NAMES

__all__ = ["TARGETS", "Target"]


class Target(Struct, frozen=True, kw_only=True):
    """A fuzz target. ``check`` raises if a law is broken. ``seeds`` are our own inputs, ``more`` those of the corpora.

    ``words`` are inserted into inputs as units. ``longest`` is in bytes; ``runs`` is the suite's number of executions.
    """

    check: Callable[[bytes], None]
    seeds: Callable[[], Sequence[bytes]]
    more: Callable[[], Sequence[bytes]] = tuple
    words: tuple[str, ...] = ()
    longest: int = 600
    runs: int = 500


_LINES = ("\n", "\r\n", "\r", "\n\n", "\0", " ", "\t", "    ", "\\", "\u2028", "\u00e9", "\U0001f600")
_MARKDOWN = (
    *("> ", "- ", "1. ", "```\n", "~~~", "---\n", "===\n", "# ", "| a | b |\n|-|-|\n", "[a]: /u\n", "[a]", "![a](b)"),
    *("**", "*", "_", "~~", "`", "$", "$$", "\\(", "\\)", "<div>", "&amp;", "<http://a.b>", "- [x] ", "> [!NOTE]\n"),
)
_CALLOUT = (
    *("> [!tool a b]\n", "> [!tool ", "[!", "> ", ">", "]", "]- ", "id=", "name=", "> id: a\n", "> name: b\n"),
    *("> input:\n>   a: 1\n", "> output: 1\n", "> state: output-error\n", "> error: e\n", "> state: ", "'", '"'),
)
_YAML = (
    *(
        "a: ",
        "- ",
        "? ",
        ": ",
        "|\n",
        ">-\n",
        "&a ",
        "*a",
        "<<: ",
        "!!str ",
        "!x ",
        "{",
        "}",
        "[",
        "]",
        ", ",
        "# ",
        "'",
    ),
    *(
        '"',
        "---\n",
        "...\n",
        "%YAML 1.1\n",
        ".inf",
        ".nan",
        "0x1",
        "0o7",
        "1e9",
        "null",
        "true",
        "~",
        "12:30",
        "\\u0041",
    ),
)
_PORTABLE = (
    *("> [!user]\n", "> [!system]\n", "> [!assistant]\n", "> [!text]\n", "> [!reasoning]\n", "> [!stream-error]\n"),
    *("> [!source-url]\n", "> [!file]\n", "> [!data]\n", "> [!custom]\n", " as=yaml]\n", "---\ntoolcall_nb: 1\n---\n"),
    *("> text: a\n", "> metadata:\n>   a: 1\n", "> finishReason: x\n", "> aborted: x\n", "> name: d\n", "> data: 1\n"),
)
_JSON = ("{", "}", "[", "]", '"', ":", ",", "1", "-1.5e3", "null", "true", '"a"', "\\ud83d", '"a":', "1e999", "NaN")
_SIGNATURE = ("###: ", "###", '{"toolName": "a", "parameters": {}}', '"toolName"', '"parameters"', '"signature"')
_FENCED = ("```json\n", "\n```\n", "~~~JSON\n", '{"tool": "a", "params": {}}', '"tool"', '"params"', '"id"')
_SSE = ("data: ", "data:", "event: ", "id: ", "retry: ", ": ", "\n\n", "\r\n\r\n", "[DONE]", "\ufeff", "retry: 9\n")
_HTML = (
    *("<b>", "</b>", "<a href=", "<img src=", "<table>", "<td colspan=2>", "<svg>", "<math>", "<style>", "<script>"),
    *("javascript:", "data:image/png;base64,", "onerror=", "<!--", "-->", "<![CDATA[", "&lt;", "<p", "<template>"),
)
_TERMINAL = ("\x1b[31m", "\x1b[2J", "\x1b]0;t\x07", "\x9b", "\u202e", "\u200b", "\x7f", "\x08", "\r")
_SECRETS = ("sk-abcdefgh12345678", "api_key=", "password: ", "Bearer ", "https://u:pw@h", "AKIAABCDEFGHIJKLMNOP", "eyJ")

_CHUNKS = (*_JSON, *corpus.chunk_words())

TARGETS: Mapping[str, Target] = {
    "callout": Target(
        check=model_texts.callout_detector,
        seeds=corpus.callouts,
        more=corpus.documents,
        words=(*_LINES, *_CALLOUT, *_YAML, *_MARKDOWN),
        runs=400,
    ),
    "signature": Target(
        check=model_texts.signature_detector, seeds=corpus.signatures, words=(*_LINES, *_SIGNATURE, *_JSON, *_MARKDOWN)
    ),
    "json": Target(check=model_texts.json_detector, seeds=corpus.json_calls, words=(*_LINES, *_FENCED, *_JSON)),
    "body": Target(
        check=model_texts.callout_body,
        seeds=corpus.bodies,
        more=corpus.yaml_documents,
        words=(*_LINES, *_YAML),
        runs=1200,
    ),
    "header": Target(check=model_texts.callout_header, seeds=corpus.headers, words=_CALLOUT, longest=200, runs=1200),
    "markdown": Target(
        check=model_texts.portable_markdown,
        seeds=corpus.transcripts,
        more=corpus.documents,
        words=(*_LINES, *_PORTABLE, *_CALLOUT, *_YAML),
        longest=900,
        runs=400,
    ),
    "incremental": Target(
        check=model_texts.incremental_markdown,
        seeds=corpus.markdown,
        more=corpus.documents,
        words=(*_LINES, *_MARKDOWN),
        longest=160,
        runs=150,
    ),
    "sse": Target(check=peer_data.server_sent_events, seeds=corpus.sse, more=corpus.sse_streams, words=_SSE, runs=1200),
    **{
        f"wire-{name}": Target(
            check=peer_data.wire_of(name),
            seeds=corpus.wire(name),
            words=(*_SSE, *_JSON, *corpus.wire_words(name)),
            longest=900,
            runs=200,
        )
        for name in WIRE_NAMES
    },
    "server": Target(
        check=peer_data.answer_of_a_server,
        seeds=corpus.answers,
        more=corpus.recorded_answers,
        words=(*_SSE, *_JSON),
        runs=400,
    ),
    "chunks": Target(check=peer_data.chunks, seeds=corpus.chunks, words=_CHUNKS, longest=900, runs=300),
    "stages": Target(
        check=peer_data.stage_log, seeds=corpus.stage_logs, words=(*_JSON, *corpus.stage_words()), runs=400
    ),
    "sdk": Target(
        check=peer_data.sdk_objects,
        seeds=corpus.sdk_items,
        more=corpus.recorded_items,
        words=(*_JSON, *corpus.sdk_words()),
        longest=900,
        runs=300,
    ),
    "html": Target(
        check=renderings.html, seeds=corpus.hostile, words=(*_HTML, *_MARKDOWN, *_JSON), longest=200, runs=30
    ),
    "live": Target(check=renderings.live_html, seeds=corpus.chunks, words=_CHUNKS, longest=900, runs=80),
    "result": Target(
        check=renderings.result_html, seeds=corpus.hostile, more=corpus.hostile_html, words=_HTML, runs=1000
    ),
    "terminal": Target(
        check=renderings.terminal_text, seeds=corpus.hostile, words=(*_TERMINAL, *_MARKDOWN), longest=100, runs=10
    ),
    "masking": Target(check=renderings.masking, seeds=corpus.secrets, words=(*_SECRETS, *_LINES), runs=600),
    "printed": Target(check=renderings.printed_text, seeds=corpus.hostile, words=(*_TERMINAL, *_LINES), runs=1000),
}
"""All targets by name."""
