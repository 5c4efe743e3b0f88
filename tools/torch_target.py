# SPDX-License-Identifier: Apache-2.0
"""A model of Llama's kind from a GGUF, in PyTorch: for training heads on a GPU (train_head_torch.py) and generating texts
there (head_texts_torch.py). Weights are those of the file, dequantised; states are float32, products TF32 on a GPU, so that
they are those of hunch but for its rounding of activations. Needs torch, numpy and gguf."""
import gguf
import torch
import torch.nn.functional as F

CONTROL = 3  # a token's type in a GGUF


def norm(x, gain, eps):
    return F.rms_norm(x, (x.shape[-1],), gain, eps)


def angles(pos, dim, theta):
    turn = theta ** (-torch.arange(0, dim, 2, device=pos.device, dtype=torch.float64) / dim)
    angle = pos[..., None, None].double() * turn
    return angle.cos().float(), angle.sin().float()


def rotate_pairs(x, turned):
    """Of neighbours, as a GGUF of Llama's kind has them. x [.., heads, dim]"""
    c, s = turned
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * c - b * s, b * c + a * s), -1).flatten(-2)


class Target:
    def __init__(self, path, device):
        file = gguf.GGUFReader(path)
        self.device = device
        key = lambda name: file.fields[name].contents()
        if key("general.architecture") != "llama":
            raise SystemExit("%s: a model of kind %s, expected llama" % (path, key("general.architecture")))
        tensor = {t.name: torch.from_numpy(gguf.dequantize(t.data, t.tensor_type).copy()).to(device) for t in file.tensors}
        self.name = key("general.name") if "general.name" in file.fields else path
        self.layers = key("llama.block_count")
        self.heads, self.kv_heads = key("llama.attention.head_count"), key("llama.attention.head_count_kv")
        self.eps, self.theta = key("llama.attention.layer_norm_rms_epsilon"), key("llama.rope.freq_base")
        self.context, self.ffn = key("llama.context_length"), key("llama.feed_forward_length")
        self.end = key("tokenizer.ggml.eos_token_id")
        self.special = [i for i, kind in enumerate(key("tokenizer.ggml.token_type")) if kind == CONTROL]
        self.embedding = tensor["token_embd.weight"]
        self.output = tensor.get("output.weight", self.embedding)
        self.norm = tensor["output_norm.weight"]
        self.vocab, self.hidden = self.embedding.shape
        self.dim = self.hidden // self.heads
        names = ("attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down")
        self.weights = [[tensor["blk.%d.%s.weight" % (i, n)] for n in names] for i in range(self.layers)]

    def run(self, ids, pos, attend, taps=()):
        """ids, pos [texts, rows]; attend(layer, q, k, v [texts, rows, heads, dim]) -> [texts, rows, heads, dim]. The states that
        enter the layers `taps`, and the last one behind the final norm."""
        x, states, turned = self.embedding[ids], [], angles(pos, self.dim, self.theta)
        for i, (n1, q, k, v, o, n2, gate, up, down) in enumerate(self.weights):
            if i in taps:
                states.append(x)
            h = norm(x, n1, self.eps)
            split = lambda w: (h @ w.T).unflatten(-1, (-1, self.dim))
            y = attend(i, rotate_pairs(split(q), turned), rotate_pairs(split(k), turned), split(v))
            x = x + y.flatten(-2) @ o.T
            h = norm(x, n2, self.eps)
            x = x + (F.silu(h @ gate.T) * (h @ up.T)) @ down.T
        return states, norm(x, self.norm, self.eps)


def attend_masked(q, k, v, bias):
    """bias: None (causal), or what is added to the scores, [texts, 1, rows, rows]."""
    group = q.shape[2] // k.shape[2]
    q, k, v = q.transpose(1, 2), k.transpose(1, 2).repeat_interleave(group, 1), v.transpose(1, 2).repeat_interleave(group, 1)
    bias = None if bias is None else bias.expand(-1, q.shape[1], -1, -1)
    return F.scaled_dot_product_attention(q, k, v, bias, is_causal=bias is None).transpose(1, 2)
