"""Compresses small pieces of the renderer's HTML: `compress_html` and `decompress_html`."""

from __future__ import annotations

import zlib

_LEVEL = 6
_COMMON = b"""
<h2></h2>
<h3></h3>
<hr>
<blockquote>
</blockquote>
<ol>
</ol>
<table>
<thead>
<tr>
<th></th>
</tr>
</thead>
<tbody>
<tr>
<td></td>
</tr>
</tbody>
</table>
<a href="https://" target="_blank" rel="noopener noreferrer"></a>&quot;&lt;&gt;&amp;<em></em><strong></strong><ul>
<li></li>
</ul>
<div class="tc-call tc-output-available"><details></details></div><summary><b class="tc-name"></b>
<span class="tc-args"></span> <span class="tc-state">Completed</span> <span class="tc-time"></span></summary>
<div class="tc-io"><b class="tc-label">Output</b><b class="tc-label">Input</b><pre></pre></div>
<span>
<span class="n"></span><span class="k"></span>: </span>
<pre class="tc-code"><code class="language-python"></code></pre>
<code></code><p></p>
<span class="tc-h-c"></span><span class="tc-h-s"></span><span class="tc-h-m"></span><span class="tc-h-nf"></span>
<span class="tc-h-k"></span>
"""
"""A dictionary for zlib, so that small texts shrink too: the renderer's own tags, the most common last."""


# zlib clears the memory that its settings ask for, which takes longer than to compress a small text. A copy of a new
# compressor has read the dictionary already.
_FOR_SMALL = zlib.compressobj(_LEVEL, zdict=_COMMON, wbits=12, memLevel=5)


def compress_html(data: bytes) -> bytes:
    """Compresses ``data``."""
    is_small = len(data) + len(_COMMON) < 1 << 12
    compressor = _FOR_SMALL.copy() if is_small else zlib.compressobj(_LEVEL, zdict=_COMMON)
    return compressor.compress(data) + compressor.flush()


def decompress_html(packed: bytes) -> bytes:
    """Returns the data that `compress_html` was given."""
    return zlib.decompressobj(zdict=_COMMON).decompress(packed)
