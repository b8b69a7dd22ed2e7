"""Attention for gpu_peers.py: PyTorch's kernels, FlexAttention, the term written out as a mask, and plain ops compiled."""

import math

import torch
import torch._functorch.config
import torch.nn.functional as F
from torch.nn.attention import SDPBackend
from torch.nn.attention.flex_attention import flex_attention

from gpu_peer_ways import Way, backward_call, compiled, op_call, sizes_text, tensor

torch._functorch.config.donated_buffer = False  # a backward is walked many times

CASES = [
    ("plain", 16, 12, 1024, 64),
    ("causal", 16, 12, 1024, 64),
    ("gaussian", 16, 12, 1024, 64),
    ("relative", 16, 12, 1024, 64),
    ("relative_2d", 16, 12, 1024, 64),
    ("plain", 4, 16, 4096, 128),
    ("causal", 4, 16, 4096, 128),
    ("gaussian", 4, 16, 4096, 128),
    ("plain", 1024, 3, 65, 64),
    ("plain", 64, 12, 197, 64),
    ("plain", 1024, 6, 65, 32),
    ("plain", 16, 24, 1024, 32),
    ("gaussian", 100, 9, 65, 400),
    ("gaussian", 100, 9, 256, 400),
    ("plain-f32", 16, 12, 1024, 64),
]

BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION}
# The default tiles of FlexAttention need too much shared memory for some terms.
TILES = {
    "flex": None,
    "flex, 2 stages": {"fwd_num_stages": 2, "bwd_num_stages": 2},
    "flex, small tiles": {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_M1": 32, "BLOCK_N1": 64, "BLOCK_M2": 64, "BLOCK_N2": 32, "num_stages": 2},
}


def smaller(kind, B, H, N, D):
    return kind, min(B, 2), min(H, 3), 64 if N > 65 else N, D


class Term:
    """What a term learns, its score for FlexAttention and its bias (H, N, N)."""

    def __init__(self, kind, H, N, device):
        self.kind, self.H, self.N, self.device = kind, H, N, device
        self.W = math.isqrt(N)
        self.R = -(-N // self.W)

    def parameters(self):
        H, device = self.H, self.device
        if self.kind == "gaussian":
            return [torch.rand(H, device=device) * 0.19 + 0.01, torch.randn(H, 2, device=device) * 2]
        if self.kind == "relative":
            return [torch.randn(H, 2 * self.N - 1, device=device)]
        return [torch.randn(H, (2 * self.R - 1) * (2 * self.W - 1), device=device)]

    def score(self, *learned):
        N, W, R = self.N, self.W, self.R
        if self.kind == "gaussian":
            alpha, center = learned

            def score(s, b, h, i, j):
                down, along = (i // W - j // W) - center[h, 0], (i % W - j % W) - center[h, 1]
                return s - alpha[h] * (down * down + along * along)

        elif self.kind == "relative":
            (table,) = learned

            def score(s, b, h, i, j):
                return s + table[h, j - i + N - 1]

        else:
            (table,) = learned

            def score(s, b, h, i, j):
                return s + table[h, (j // W - i // W + R - 1) * (2 * W - 1) + j % W - i % W + W - 1]

        return score

    def bias(self, *learned):
        i = torch.arange(self.N, device=self.device)
        heads = torch.arange(self.H, device=self.device)[:, None, None]
        return self.score(*learned)(0.0, None, heads, i[:, None], i[None, :])


def plain_ways(kind, qkv, back):
    def attend(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=kind == "causal")

    names = ("efficient",) if kind == "plain-f32" else ("cudnn", "flash")
    return [Way(name, lambda: op_call(attend, qkv(), back), backend=BACKENDS[name]) for name in names]


def term_ways(term, qkv, back, short):
    def flex(tiles):
        inner, scores = compiled(flex_attention), []

        def attend(q, k, v, *learned):
            if not scores:  # every call has the same parameters: one function, so that nothing is compiled twice
                scores.append(term.score(*learned))
            return inner(q, k, v, score_mod=scores[0], kernel_options=tiles)

        return attend

    def masked(q, k, v, *learned):
        mask = term.bias(*learned).to(q.dtype).expand(q.shape[0], -1, -1, -1)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    def composed(q, k, v, *learned):
        scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5 + term.bias(*learned)
        return torch.softmax(scores, -1).to(q.dtype) @ v

    def inputs():
        return qkv() + term.parameters()

    def frozen_flex():
        """FlexAttention while the term does not learn."""
        score, inner = term.score(*term.parameters()), compiled(flex_attention)
        return backward_call(lambda q, k, v: inner(q, k, v, score_mod=score), qkv())

    ways = [
        Way(name, lambda tiles=tiles: op_call(flex(tiles), inputs(), back), rank=1 if tiles is None else 2) for name, tiles in TILES.items()
    ]
    for name in ("efficient", "cudnn"):
        ways.append(Way(f"mask, {name}", lambda: op_call(masked, inputs(), back), backend=BACKENDS[name]))
    if short:
        ways.append(Way("plain ops compiled", lambda: op_call(compiled(composed), inputs(), back), rank=1))
    if back:
        ways.append(Way("flex, term not learned", frozen_flex, rank=2, complete=False))
    return ways


def line_of(case, back, device):
    kind, B, H, N, D = case
    dtype = torch.float32 if kind.endswith("f32") else torch.bfloat16

    def qkv():
        return [tensor((B, H, N, D), device, dtype) for _ in range(3)]

    def ways():
        if kind in ("plain", "causal", "plain-f32"):
            return plain_ways(kind, qkv, back)
        return term_ways(Term(kind, H, N, device), qkv, back, N <= 256)

    return {
        "name": f"attention/{'backward' if back else 'forward'}/{kind}/{sizes_text(case[1:])}",
        "ways": ways,
        "flops": (10 if back else 4) * B * H * N * N * D * (0.5 if kind == "causal" else 1),
        "bytes": (8 if back else 4) * B * H * N * D * dtype.itemsize,
    }


def separable_line(images, tiny, back, device):
    """A map over rows and one over columns, for values that all heads share: one product after the other, or with the map of both."""
    B, H, side, D = (2, 3, 4, 32) if tiny else (images, 9, 16, 400)
    N = side * side

    def inputs():
        maps = [torch.softmax(torch.randn(H, side, side, device=device), -1) for _ in range(2)]
        return maps + [tensor((B, N, D), device, torch.bfloat16)]

    def whole(rows, columns, v):
        both = torch.einsum("hyr,hxc->hyxrc", rows, columns).reshape(H, N, N).to(v.dtype)
        return torch.einsum("hnm,bmd->bnhd", both, v)

    def one_by_one(rows, columns, v):
        joined = torch.einsum("hyr,brcd->bhycd", rows.to(v.dtype), v.view(B, side, side, D))
        return torch.einsum("hxc,bhycd->byxhd", columns.to(v.dtype), joined)

    def ways():
        return [
            Way("whole map", lambda: op_call(whole, inputs(), back)),
            Way("whole map compiled", lambda: op_call(compiled(whole), inputs(), back), rank=1),
            Way("rows, then columns", lambda: op_call(one_by_one, inputs(), back)),
        ]

    return {
        "name": f"separable/{'backward' if back else 'forward'}/{sizes_text((B, H, N, D))}",
        "ways": ways,
        "bytes": 2 * B * N * D * (H + (2 if back else 1)),
    }


def lines(tiny, device):
    cases = list(dict.fromkeys(smaller(*case) if tiny else case for case in CASES))
    separable = [separable_line(images, tiny, back, device) for images in ((2,) if tiny else (100, 1000)) for back in (False, True)]
    return separable + [line_of(case, back, device) for case in cases for back in (False, True)]
