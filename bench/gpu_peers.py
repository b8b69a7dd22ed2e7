"""PyTorch's side of heed_gpu_bench: the same lines, by name, each in several ways (eager, compiled, with CUDA graphs, every kernel for
attention), of which the quickest counts. What matters most comes first, so that a time budget cuts off the least."""

import argparse
import contextlib
import gc
import json
import re
import signal
import statistics
import sys
import time
from dataclasses import dataclass
from typing import Callable

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import gpu_peer_attention
import gpu_peer_models
import gpu_peer_ops

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"


@dataclass
class Line:
    name: str
    ways: Callable  # () -> list of Way
    flops: float = 0  # of one call, as in gpu.h
    bytes: float = 0
    items: float = 0


class OutOfTime(BaseException):  # not an Exception: code that runs benchmarks must not catch it
    pass


@contextlib.contextmanager
def time_limit(seconds):
    def stop(*_):
        raise OutOfTime(f"took more than {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def synchronize():
    if CUDA:
        torch.cuda.synchronize()


def seconds_of_calls(call, calls):
    """Between two events, so that the host's time is hidden wherever the device has more to do."""
    synchronize()
    if not CUDA:
        start = time.perf_counter()
        for _ in range(calls):
            call()
        return time.perf_counter() - start
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


def measure(make, tiny, graphs):
    """As gpu.cc: three calls to warm up, rounds of at least 20 ms, the median of seven. Memory is what the tensors of the call hold at
    most; with graphs, what is reserved for them, since their memory is taken once, when they are recorded."""
    if CUDA:
        torch.cuda.empty_cache()
        before, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    call = make()
    for _ in range(1 if tiny else 3):
        seconds_of_calls(call, 1)
    calls = 1
    while not tiny and seconds_of_calls(call, calls) < 20e-3:
        calls *= 2
    if CUDA:
        torch.cuda.reset_peak_memory_stats()
    rounds = [seconds_of_calls(call, calls) / calls for _ in range(2 if tiny else 7)]
    memory = 0
    if CUDA and graphs:
        torch.cuda.empty_cache()
        memory = torch.cuda.memory_reserved() - reserved
    elif CUDA:
        memory = torch.cuda.max_memory_allocated() - before
    return {"us": statistics.median(rounds) * 1e6, "rounds_us": [each * 1e6 for each in rounds], "calls": calls, "peak_bytes": memory}


def clean_up(way):
    if way.rank > 0:  # may have compiled something
        torch._dynamo.reset()
    gc.collect()
    if CUDA:
        with contextlib.suppress(RuntimeError):
            torch.cuda.empty_cache()


class Report:
    def __init__(self, path):
        self.path, self.lines, self.skipped = path, {}, []

    def add(self, line, way, result):
        entry = self.lines.setdefault(line.name, {"name": line.name, "ways": {}})
        entry["ways"][way.name] = result
        done = {name: each for name, each in entry["ways"].items() if "us" in each and each.get("complete", True)}
        if done:
            best = min(done, key=lambda name: done[name]["us"])
            entry.update(way=best, us=done[best]["us"], peak_bytes=done[best]["peak_bytes"])
            seconds = entry["us"] / 1e6
            for key, amount, unit in (("tflop_s", line.flops, 1e12), ("gb_s", line.bytes, 1e9), ("items_s", line.items, 1)):
                if amount:
                    entry[key] = amount / seconds / unit
        self.write()

    def write(self):
        if not self.path:
            return

        def ceiling(op, key):
            return max((line.get(key, 0) for name, line in self.lines.items() if name.startswith(op)), default=0)

        whole = {
            "by": f"PyTorch {torch.__version__}",
            "machine": torch.cuda.get_device_name() if CUDA else "the CPU",
            "ceilings": {"flops": ceiling("product/", "tflop_s") * 1e12, "bytes": ceiling("copy/", "gb_s") * 1e9},
            "lines": list(self.lines.values()),
            "skipped": self.skipped,
        }
        with open(self.path, "w") as out:
            json.dump(whole, out, indent=1)


def text_of(line, way, result):
    if "error" in result:
        return f"{line.name:44s} {way.name:28s} failed: {result['error']}"
    seconds = result["us"] / 1e6
    rate = f"{line.flops / seconds / 1e12:9.1f} TFLOP/s" if line.flops else ""
    rate += f"{line.bytes / seconds / 1e9:8.0f} GB/s" if line.bytes else ""
    rate += f"{line.items / seconds:12.0f} items/s" if line.items else ""
    return f"{line.name:44s} {way.name:28s} {result['us']:12.1f} us {rate} {result['peak_bytes'] / 1e6:9.0f} MB"


def all_lines(tiny):
    parts = (gpu_peer_ops.ceilings, gpu_peer_models.lines, gpu_peer_attention.lines, gpu_peer_ops.lines)
    return [Line(**line) for part in parts for line in part(tiny, DEVICE)]


def run(options):
    lines = [line for line in all_lines(options.tiny) if re.search(options.filter, line.name)]
    if options.list:
        print("\n".join(line.name for line in lines))
        return
    started, report = time.monotonic(), Report(options.json)
    tasks = sorted(((way.rank, place, line, way) for place, line in enumerate(lines) for way in line.ways()), key=lambda task: task[:2])
    for _, _, line, way in tasks:
        left = options.budget - (time.monotonic() - started)
        if left < 2:
            report.skipped.append(f"{line.name}: {way.name}")
            continue
        try:
            backend = sdpa_kernel(way.backend) if way.backend else contextlib.nullcontext()
            with time_limit(min(left, options.way_seconds)), backend:
                result = measure(way.make, options.tiny, way.graphs)
            if not way.complete:
                result["complete"] = False
        except (Exception, OutOfTime) as error:
            result = {"error": f"{type(error).__name__}: {error}".replace("\n", " ")[:300]}
        clean_up(way)
        report.add(line, way, result)
        print(text_of(line, way, result), flush=True)
    report.write()
    print(f"\n{len(report.skipped)} skipped for lack of time" + "".join(f"\n  {name}" for name in report.skipped), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--filter", default="", help="only lines whose name matches this regular expression")
    parser.add_argument("--tiny", action="store_true", help="small sizes and two calls, to try the program on any machine")
    parser.add_argument("--json", help="write all numbers to this file, again after every measurement")
    parser.add_argument("--list", action="store_true", help="only print the names")
    parser.add_argument("--budget", type=float, default=540, help="seconds in all; what does not fit is skipped and named")
    parser.add_argument("--way-seconds", type=float, default=100, help="seconds of one way, its compiler included")
    torch.set_float32_matmul_precision("highest")
    torch.manual_seed(1)
    best_first = [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    with sdpa_kernel(best_first, set_priority=True):
        run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
