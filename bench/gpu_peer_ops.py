"""Ceilings and ops for gpu_peers.py, as in gpu_ops.cc."""

import math

import torch
import torch.nn.functional as F

from gpu_peer_ways import Way, compiled, forward_call, op_call, sizes_text, targets, tensor


def ceilings(tiny, device):
    size, numbers = (64, 1000) if tiny else (8192, 1_000_000_000)

    def copy():
        source, to = tensor((numbers,), device, torch.float32), torch.empty(numbers, device=device)
        return lambda: to.copy_(source)

    def product():
        return forward_call(torch.matmul, [tensor((size, size), device), tensor((size, size), device)])

    return [
        {"name": f"product/forward/{sizes_text((size,) * 3)}", "ways": lambda: [Way("eager", product)], "flops": 2 * size**3},
        {"name": f"copy/forward/{numbers}", "ways": lambda: [Way("eager", copy)], "bytes": 8 * numbers},
    ]


def ways_of(function, inputs, back):
    """inputs: () -> list of tensors"""
    return lambda: [
        Way("eager", lambda: op_call(function, inputs(), back)),
        Way("compiled", lambda: op_call(compiled(function), inputs(), back), rank=3),
    ]


def linear_line(rows, wide_in, wide_out, device):
    def inputs():
        return [tensor((rows, wide_in), device), tensor((wide_out, wide_in), device), tensor((wide_out,), device)]

    return {
        "name": f"linear/forward/{sizes_text((rows, wide_in, wide_out))}",
        "ways": ways_of(F.linear, inputs, False),
        "flops": 2 * rows * wide_in * wide_out,
        "bytes": 2 * (rows * wide_in + rows * wide_out + wide_in * wide_out),
    }


def stream_lines(op, shape, dtype, parameters, function, reduces, device):
    bytes_of_x = math.prod(shape) * dtype.itemsize

    def inputs():
        return [tensor(shape, device, dtype)] + [tensor(each, device, dtype) for each in parameters]

    return [
        {
            "name": f"{op}/{'backward' if back else 'forward'}/{sizes_text(shape)}",
            "ways": ways_of(function, inputs, back),
            "bytes": (1 if reduces else 2) * bytes_of_x + (bytes_of_x if back else 0),
        }
        for back in (False, True)
    ]


def vit_shapes(layers, width):
    shapes = [(width, 768), (width,), (width,), (197, width), (width,), (width,), (1000, width), (1000,)]
    layer = [(width, width), (width,)] * 4 + [(4 * width, width), (4 * width,), (width, 4 * width)] + [(width,)] * 5
    return shapes + layer * layers


def adamw_line(layers, width, device):
    shapes = vit_shapes(layers, width)

    def step(**form):
        made = [torch.nn.Parameter(tensor(shape, device, torch.float32)) for shape in shapes]
        for parameter in made:
            parameter.grad = torch.randn_like(parameter)
        return torch.optim.AdamW(made, lr=1e-3, weight_decay=0.01, **form).step

    return {
        "name": f"adamw/step/{sizes_text((layers, width))}",
        "ways": lambda: [Way("fused", lambda: step(fused=True)), Way("foreach", lambda: step(foreach=True), rank=3)],
        "bytes": 28 * sum(math.prod(shape) for shape in shapes),
    }


def lines(tiny, device):
    def rows(many):
        return 6 if tiny else many

    out = [linear_line(rows(128 * 197), *sizes, device) for sizes in ((768, 768), (768, 3072), (3072, 768))]
    out += [linear_line(rows(1024 * 65), *sizes, device) for sizes in ((192, 192), (192, 768), (768, 192))]
    half, single = torch.bfloat16, torch.float32
    for many, width in ((512 * 197, 768), (4096 * 65, 192)):
        norm = lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b)  # noqa: E731
        out += stream_lines("layer_norm", (rows(many), width), half, [(width,), (width,)], norm, False, device)
    out += stream_lines("gelu", (rows(128 * 197), 3072), half, [], F.gelu, False, device)
    out += stream_lines("softmax", (rows(256 * 12 * 197), 197), half, [], lambda x: torch.softmax(x, -1), False, device)
    logits = (rows(64 * 128), 100 if tiny else 30522)
    labels = targets(logits[:1], logits[1], device)
    out += stream_lines("cross_entropy", logits, single, [], lambda x: F.cross_entropy(x, labels), True, device)
    out.append(adamw_line(*((1, 32) if tiny else (12, 768)), device))
    return out
