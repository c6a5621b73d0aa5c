"""The tool callout as a markdown-it-py plugin, `tool_callout_plugin`, for any program that renders Markdown.

    from markdown_it import MarkdownIt
    from toolcall_nb.markdown import tool_callout_plugin

    md = MarkdownIt().use(tool_callout_plugin)
    md.render("> [!tool search call_1]\\n> input:\\n>   query: cats\\n")

A callout becomes one ``tool_callout`` token; ``token.meta["callout"]`` is its `ToolCallout`, ``token.content`` its
body. A callout whose body cannot be read is an ordinary blockquote of its own lines.

Lines are read by `toolcall_nb.markdown.callout` and bodies by `toolcall_nb.markdown.tool_callout`, as in a stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from toolcall_nb.core.invisible_characters import escape_invisible
from toolcall_nb.markdown.callout import Header, HeaderGrammar, body_line
from toolcall_nb.markdown.tool_callout import CalloutIds, ToolCallout, read_tool_callout
from toolcall_nb.markdown.yaml_text import BodyError


def tool_callout_plugin(md: MarkdownIt) -> None:
    """Teaches ``md`` the tool callout."""
    grammar = HeaderGrammar(("tool",))

    def rule(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        if state.level or state.blkIndent:
            return False
        header = grammar.read(_line(state, start))
        if header is None:
            return False
        if silent:
            return True
        body = []
        line = start + 1
        while line < end:
            raw = _line(state, line)
            content = body_line(raw)
            if content is None or grammar.read(raw) is not None:
                break
            body.append(content + "\n")
            line += 1
        state.line = line
        _push_callout(state, header, "".join(body), start)
        return True

    # It comes before the other rules, because a header line is never the head of a table.
    md.block.ruler.before("table", "tool_callout", rule, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    md.add_render_rule("tool_callout", _render_tool)


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] : state.eMarks[line]]


def _push_callout(state: StateBlock, header: Header, body: str, start: int) -> None:
    ids: CalloutIds = state.env.setdefault("tool_callout_ids", CalloutIds())
    try:
        callout = read_tool_callout(header, body, ids)
    except BodyError:
        _push_quote(state, start)
        return
    token = state.push("tool_callout", "", 0)
    token.block = True
    token.map = [start, state.line]
    token.content = body
    token.meta = {"callout": callout}


def _push_quote(state: StateBlock, start: int) -> None:
    """Pushes the callout's lines as a blockquote with one paragraph."""
    lines = [body_line(_line(state, line)) or "" for line in range(start, state.line)]
    state.push("blockquote_open", "blockquote", 1).map = [start, state.line]
    state.push("paragraph_open", "p", 1).map = [start, state.line]
    inline = state.push("inline", "", 0)
    inline.content = "\n".join(lines)
    inline.map = [start, state.line]
    inline.children = []
    state.push("paragraph_close", "p", -1)
    state.push("blockquote_close", "blockquote", -1)


def _render_tool(
    renderer: RendererProtocol, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    token = tokens[index]
    callout: ToolCallout = token.meta["callout"]
    open_attribute = " open" if callout.open else ""
    state = f" ({callout.state})" if callout.state else ""
    name, body = (escape(escape_invisible(text)) for text in (callout.title or callout.name, token.content))
    summary = f"<summary>{name}{escape(state)}</summary>"
    return f'<details class="tool-callout"{open_attribute}>{summary}<pre>{body}</pre></details>\n'
