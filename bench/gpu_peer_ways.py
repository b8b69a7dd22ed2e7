"""A way to do the work of a line, and the ways that PyTorch has for any function."""

from dataclasses import dataclass
from typing import Callable

import torch
from torch.nn.attention import SDPBackend


@dataclass
class Way:
    name: str
    make: Callable  # () -> call
    rank: int = 0  # 0: measured first, and compiles nothing
    graphs: bool = False  # runs as CUDA graphs
    backend: SDPBackend | None = None  # the kernel for attention; none: whichever PyTorch takes
    complete: bool = True  # computes everything in the line; else it is only shown


def sizes_text(sizes):
    return "x".join(str(size) for size in sizes)


def tensor(shape, device, dtype=torch.bfloat16):
    return torch.randn(shape, device=device, dtype=dtype)


def targets(shape, classes, device):
    return torch.randint(classes, shape, device=device)


def compiled(function, mode=None):
    """A new one each time: the cache of an earlier line's code shall not make it dynamic."""
    return torch.compile(function, mode=mode, dynamic=False)


def forward_call(function, inputs):
    def call():
        with torch.no_grad():
            function(*inputs)

    return call


def backward_call(function, inputs):
    """The backward alone; the forward runs once, here."""
    for x in inputs:
        x.requires_grad_()
    out = function(*inputs)
    seed = torch.ones_like(out) if out.dim() == 0 else torch.randn_like(out)
    return lambda: torch.autograd.grad(out, inputs, seed, retain_graph=True)


def op_call(function, inputs, back):
    return backward_call(function, inputs) if back else forward_call(function, inputs)
