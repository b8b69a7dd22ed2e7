"""The models of gpu_models.cc as plain modules, written to be quick in PyTorch: fused projections, no branches, static caches."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    """A pre-norm layer."""

    def __init__(self, width, heads, wide, approximate="none", eps=1e-6):
        super().__init__()
        self.heads, self.approximate = heads, approximate
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=eps), nn.LayerNorm(width, eps=eps)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, wide), nn.Linear(wide, width)

    def attend(self, x, cache=None, place=None, mask=None):
        B, N, D = x.shape
        q, k, v = self.qkv(x).view(B, N, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if cache is not None:  # (2, B, H, longest, D / H)
            k, v = cache[0].index_copy_(2, place, k), cache[1].index_copy_(2, place, v)
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(seen.transpose(1, 2).reshape(B, N, D))

    def forward(self, x, cache=None, place=None, mask=None):
        x = x + self.attend(self.norm1(x), cache, place, mask)
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate=self.approximate))


class VisionTransformer(nn.Module):
    def __init__(self, image, patch, width, layers, heads, wide, classes):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, (image // patch) ** 2 + 1, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, heads, wide) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, classes)

    def forward(self, pixels):
        x = self.patches(pixels).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(x.shape[0], -1, -1).to(x.dtype), x), 1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, 0]))


class GaussianBlock(nn.Module):
    """Post-norm, with position-only Gaussian heads as wide as the model. The map is the same for all images: one product applies it."""

    def __init__(self, width, heads, wide, side):
        super().__init__()
        self.alpha, self.center = nn.Parameter(torch.ones(heads)), nn.Parameter(torch.randn(heads, 2) * 2)
        self.out, self.up, self.down = nn.Linear(heads * width, width), nn.Linear(width, wide), nn.Linear(wide, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)
        token = torch.arange(side * side)
        self.register_buffer("down_by", ((token // side)[:, None] - (token // side)[None]).float())
        self.register_buffer("along_by", ((token % side)[:, None] - (token % side)[None]).float())

    def map(self):
        down = self.down_by - self.center[:, 0, None, None]
        along = self.along_by - self.center[:, 1, None, None]
        return torch.softmax(-self.alpha[:, None, None] * (down * down + along * along), -1)

    def forward(self, x):
        seen = torch.einsum("hnm,bmd->bnhd", self.map(), x).flatten(2)
        x = self.norm1(x + self.out(seen))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class GaussianTransformer(nn.Module):
    def __init__(self, image, patch, width, layers, heads, wide, classes):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.blocks = nn.ModuleList(GaussianBlock(width, heads, wide, image // patch) for _ in range(layers))
        self.head = nn.Linear(width, classes)

    def forward(self, pixels):
        x = self.patches(pixels).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


class Gpt2(nn.Module):
    """GPT-2 for one sequence, with keys and values in tensors of a fixed size, so that every step is the same graph."""

    def __init__(self, width, layers, heads, wide, words, longest):
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Embedding(1024, width)
        self.blocks = nn.ModuleList(Block(width, heads, wide, "tanh", 1e-5) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for i in range(layers):
            self.register_buffer(f"cache{i}", torch.zeros(2, 1, heads, longest, width // heads))
        self.register_buffer("keys", torch.arange(longest))

    def forward(self, tokens, place):
        """tokens: (1, n), place: (n) -> the next token (1, 1)"""
        x = self.words(tokens) + self.positions(place)
        mask = self.keys[None, :] <= place[:, None]
        for i, block in enumerate(self.blocks):
            x = block(x, getattr(self, f"cache{i}"), place, mask)
        return F.linear(self.norm(x[:, -1:]), self.words.weight).argmax(-1)
