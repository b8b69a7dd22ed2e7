"""PyTorch's side of the benchmarks: answers heed_bench line by line (the words are in peer.h). A benchmark's name,
op/pass/group/sizes, says all that is needed to build the same call as heed's."""

import gc
import os
import re
import statistics
import subprocess
import sys
import time

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # no workers beside the measurement

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402


def attention_with(bias):
    """The ways to attention with a learned term: PyTorch's own op with the term written out as a mask, plain ops, and both
    compiled. (Its flexible attention has no backward on the CPU.)"""

    def masked(q, k, v, *p):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias(q.shape[2], *p))

    def plain(q, k, v, *p):
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5 + bias(q.shape[2], *p)
        return torch.softmax(scores, -1) @ v

    return [masked, plain, torch.compile(masked), torch.compile(plain)]


def relative_bias(n, table):
    places = torch.arange(n)
    return table[:, (places[None, :] - places[:, None]) + n - 1]


def gaussian_bias(n, alpha, center, width=16):
    places = torch.stack((torch.arange(n) // width, torch.arange(n) % width), -1).float()
    offset = places[:, None] - places[None, :] - center[:, None, None]
    return -alpha[:, None, None] * offset.square().sum(-1)


def window_bias(n, reach=256):
    places = torch.arange(n)
    return (places[None, :] - places[:, None]).abs() <= reach


def composed_window(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=window_bias(q.shape[2]))


def conv2d_inputs(images, channels, side, out, kernel, stride, padding):
    return [(images, channels, side, side), (out, channels, kernel, kernel), (out,)]


# op: (sizes -> shapes of the inputs, sizes -> function of the inputs)
OPS = {
    "linear": (lambda rows, i, o: [(rows, i), (o, i), (o,)], lambda *_: F.linear),
    "matmul": (lambda h, n, d, m: [(h, n, d), (h, d, m)], lambda *_: torch.matmul),
    "attention": (lambda *s: [s] * 3, lambda *_: F.scaled_dot_product_attention),
    "causal_attention": (lambda *s: [s] * 3, lambda *_: lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)),
    "relative_attention": (lambda *s: [s] * 3 + [(s[1], 2 * s[2] - 1)], lambda *_: attention_with(relative_bias)),
    "gaussian_attention": (lambda *s: [s] * 3 + [(s[1],), (s[1], 2)], lambda *_: attention_with(gaussian_bias)),
    "window_attention": (lambda *s: [s] * 3, lambda *_: composed_window),
    "decode_attention": (lambda b, h, m, d: [(b, h, 1, d)] + [(b, h, m, d)] * 2, lambda *_: F.scaled_dot_product_attention),
    "conv2d": (conv2d_inputs, lambda *s: lambda x, w, b: F.conv2d(x, w, b, stride=s[5], padding=s[6])),
    "add": (lambda *s: [s, s], lambda *_: torch.add),
    "multiply": (lambda *s: [s, s], lambda *_: torch.mul),
    "relu": (lambda *s: [s], lambda *_: torch.relu),
    "gelu": (lambda *s: [s], lambda *_: F.gelu),
    "gelu_tanh": (lambda *s: [s], lambda *_: lambda x: F.gelu(x, approximate="tanh")),
    "softmax": (lambda *s: [s], lambda *_: lambda x: torch.softmax(x, -1)),
    "dropout": (lambda *s: [s], lambda *_: lambda x: F.dropout(x, 0.1)),
    "layer_norm": (lambda *s: [s, s[-1:], s[-1:]], lambda *s: lambda x, w, b: F.layer_norm(x, s[-1:], w, b)),
    "add_layer_norm": (lambda *s: [s, s, s[-1:], s[-1:]], lambda *s: lambda x, r, w, b: F.layer_norm(x + r, s[-1:], w, b)),
    "rms_norm": (lambda *s: [s, s[-1:]], lambda *s: lambda x, w: F.rms_norm(x, s[-1:], w, 1e-6)),
    "cross_entropy": (lambda *s: [s], lambda *s: (lambda targets: lambda x: F.cross_entropy(x, targets))(torch.randint(s[1], s[:1]))),
}


def forward(function, inputs):
    return lambda: function(*inputs)


def train(function, inputs):
    out = function(*inputs)
    seed = None if out.numel() == 1 else torch.randn_like(out)
    for x in inputs:
        x.requires_grad_()

    def call():
        function(*inputs).backward(seed)
        for x in inputs:
            x.grad = None

    return call


def chain(length):
    a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)

    def call():
        x = a
        for _ in range(length):
            x = x * b
        x.backward()
        a.grad = b.grad = None

    return call


def parameters(layers):
    """As optimizer.cc: a ViT for CIFAR."""
    d, wide, tokens, patch = 192, 768, 65, 48
    shapes = [(d, patch), (d,), (d,), (tokens, d), (d,), (d,)]
    shapes += [(3 * d, d), (3 * d,), (d, d), (d,), (wide, d), (wide,), (d, wide), (d,), (d,), (d,), (d,), (d,)] * layers
    made = [torch.nn.Parameter(torch.randn(shape)) for shape in shapes]
    for parameter in made:
        parameter.grad = torch.randn_like(parameter)
    return made


def clip(made):
    limit = 1.0

    def call():
        nonlocal limit
        torch.nn.utils.clip_grad_norm_(made, limit)
        limit *= 0.999

    return call


def quickest(calls):
    """Of several ways to the same result; those that do not run here (there may be no compiler) do not count."""
    if len(calls) == 1:
        return calls[0]
    times = []
    for call in calls:
        try:
            for _ in range(3):
                call()
            start = time.perf_counter()
            for _ in range(5):
                call()
            times.append((time.perf_counter() - start, call))
        except Exception as error:  # whatever a compiler may throw
            print(f"peers.py: one way is left out ({type(error).__name__})", file=sys.stderr)
    return min(times, key=lambda timed: timed[0])[1]


def build(name):
    op, kind, group, sizes = name.split("/")
    sizes = tuple(int(size) for size in sizes.split("x"))
    if group in ("torch", "onnx"):
        import peer_models  # takes seconds, and the other lines do not need it

        return peer_models.build(op.removesuffix("_int8"), group, sizes)
    if group in ("eager", "compiled"):
        import peer_training

        return peer_training.build(op, group, sizes)
    if op == "graph":
        return chain(*sizes)
    if op == "adamw":
        fused = True if group.endswith("-fused") else None
        return torch.optim.AdamW(parameters(*sizes), lr=1e-3, weight_decay=0.01, fused=fused).step
    if op == "sgd":
        return torch.optim.SGD(parameters(*sizes), lr=1e-3, momentum=0.9).step
    if op == "clip_gradients":
        return clip(parameters(*sizes))
    shapes, function = OPS[op]
    ways = function(*sizes)
    make = {"forward": forward, "train": train}[kind]
    return quickest([make(way, [torch.randn(shape) for shape in shapes(*sizes)]) for way in (ways if isinstance(ways, list) else [ways])])


def memory_of(name):
    """Bytes that steps of training take at most, in a process of their own."""
    command = [sys.executable, os.path.join(os.path.dirname(__file__), "peer_training.py"), name, str(torch.get_num_threads())]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]


class Timed:
    """As timing.cc, with the same numbers."""

    def __init__(self, call):
        self.call = call
        once = self.run(20e-3, 2)
        self.long = once > 0.5
        self.batch = max(1, round(50e-6 / once))

    def run(self, duration, least):
        spent, calls = 0.0, 0
        while calls < least or spent < duration:
            start = time.perf_counter()
            self.call()
            spent += time.perf_counter() - start
            calls += 1
        return spent / calls

    def round(self, duration):
        if not self.long:
            self.run(5e-3, 1)
        spent, times, call, batch = 0.0, [], self.call, range(self.batch)
        while spent < duration or len(times) < (1 if self.long else 3):
            start = time.perf_counter()
            for _ in batch:
                call()
            took = time.perf_counter() - start
            spent += took
            times.append(took / self.batch)
        return statistics.median(times)


def description():
    config = torch.__config__.show()
    blas = re.search(r"Math Kernel Library Version (\S+?)-", config)
    dnn = re.search(r"MKL-DNN v(\S+)", config)
    parts = [f"MKL {blas[1]}" if blas else re.search(r"BLAS_INFO=(\w+)", config)[1]] + ([f"oneDNN {dnn[1]}"] if dnn else [])
    return f"PyTorch {torch.__version__} ({', '.join(parts)})"


def main():
    gc.disable()  # no pauses of the interpreter in PyTorch's times
    timed = None
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        if word == "threads":
            torch.set_num_threads(int(rest))
            answer = description()
        elif word == "open":
            try:
                timed = Timed(build(rest))
                answer = "ok"
            except (KeyError, ValueError, TypeError, RuntimeError) as error:
                answer = f"PyTorch has no counterpart of {rest} ({type(error).__name__}: {error})".replace("\n", " ")
        elif word == "memory":
            try:
                answer = memory_of(rest)
            except (subprocess.CalledProcessError, IndexError) as error:
                answer = f"no memory of {rest} ({type(error).__name__})"
        elif word == "round":
            answer = repr(timed.round(float(rest)))
        else:
            timed = None
            gc.collect()
            answer = "ok"
        print(answer, flush=True)


main()
