"""Generates a tiny model for llama.cpp and runs its OpenAI-compatible server in another process.

The file is a real GGUF of the `llama` architecture. Its one layer adds nothing, each token's embedding is a separate
direction, and the output matrix defines which token follows which. So the model always writes the same text, at
llama.cpp's full speed. It answers a question with a call of `weather` for Paris, in the format of its chat template,
and a result with a short sentence.

    python -m tests.models.tiny_model FILE       writes the model, serves it, and prints the address
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

__all__ = ["ANSWER", "serving"]

ANSWER = "It is clear in Paris."

_CALL = '\n{"name": "weather", "arguments": {"city": "Paris"}}\n'
_CONTROL = ("<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|ask|>", "<|answer|>")
_WORDS = ("<tool_call>", "</tool_call>", _CALL, "It is ", "clear ", "in Paris.")
_CHAINS = (
    ("<|ask|>", "<tool_call>", _CALL, "</tool_call>", "<|im_end|>"),
    ("<|answer|>", "It is ", "clear ", "in Paris.", "<|im_end|>"),
)
_FEED_FORWARD = 32
_HEADS = 4

_TEMPLATE = r"""
{%- if tools -%}
<|im_start|>system
Tools:
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}Call one as
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call><|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == "tool" %}{{ '<|im_start|>user\n<tool_response>\n' + message.content + '\n</tool_response>' }}
{%- else %}{{ '<|im_start|>' + message.role }}
{%- if message.content %}{{ '\n' + message.content }}{% endif %}
{%- for call in message.tool_calls %}
{{- '\n<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments | tojson }}{{ '}\n</tool_call>' }}
{%- endfor %}
{%- endif %}{{ '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}
{{- '<|answer|>' if messages[-1].role == "tool" else '<|ask|>' }}
{%- endif %}
"""


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Runs a server on a free loopback port inside the block; yields its base URL."""
    command = [sys.executable, "-m", __spec__.name, str(folder / "tiny.gguf")]
    with (
        (folder / "server.log").open("wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log) as server,
    ):
        try:
            assert server.stdout is not None
            address = server.stdout.readline().decode().strip()
            assert address, (folder / "server.log").read_text("utf-8", "replace")
            yield f"{address}/v1"
        finally:
            server.kill()


def _write_model(path: Path) -> None:
    import gguf
    import numpy as np

    tokens = ["<unk>", *_CONTROL, *(f"<0x{byte:02X}>" for byte in range(256)), *_WORDS]
    kinds = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * len(_CONTROL), *[gguf.TokenType.BYTE] * 256]
    kinds += [gguf.TokenType.USER_DEFINED] * len(_WORDS)
    number = {token: place for place, token in enumerate(tokens)}
    width = -(-len(tokens) // 32) * 32
    follows = np.zeros((len(tokens), width), np.float32)
    for chain in _CHAINS:
        for before, after in pairwise(chain):
            follows[number[after], number[before]] = 1

    model = gguf.GGUFWriter(path, "llama")
    model.add_context_length(4096)
    model.add_embedding_length(width)
    model.add_block_count(1)
    model.add_feed_forward_length(_FEED_FORWARD)
    model.add_head_count(_HEADS)
    model.add_head_count_kv(_HEADS)
    model.add_rope_dimension_count(width // _HEADS)
    model.add_layer_norm_rms_eps(1e-5)
    model.add_tokenizer_model("llama")
    model.add_token_list([token.encode() for token in tokens])
    model.add_token_scores([0.0] * len(tokens))
    model.add_token_types(kinds)
    model.add_bos_token_id(number["<s>"])
    model.add_eos_token_id(number["<|im_end|>"])
    model.add_unk_token_id(number["<unk>"])
    model.add_add_bos_token(False)
    model.add_add_space_prefix(False)
    model.add_chat_template(_TEMPLATE.strip())
    model.add_tensor("token_embd.weight", np.eye(len(tokens), width, dtype=np.float32))
    model.add_tensor("output.weight", follows)
    model.add_tensor("output_norm.weight", np.ones(width, np.float32))
    for name in ("attn_norm", "ffn_norm"):
        model.add_tensor(f"blk.0.{name}.weight", np.ones(width, np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        model.add_tensor(f"blk.0.{name}.weight", np.zeros((width, width), np.float32))
    for name, shape in {
        "ffn_gate": (_FEED_FORWARD, width),
        "ffn_up": (_FEED_FORWARD, width),
        "ffn_down": (width, _FEED_FORWARD),
    }.items():
        model.add_tensor(f"blk.0.{name}.weight", np.zeros(shape, np.float32))
    model.write_header_to_file()
    model.write_kv_data_to_file()
    model.write_tensors_to_file()
    model.close()


def _serve(path: Path) -> None:
    import threading

    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = 4096
    params.use_jinja = True
    params.sampling.temp = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    _write_model(Path(sys.argv[1]))
    _serve(Path(sys.argv[1]))
