"""One table of two files: heed_gpu_bench --json HEED and gpu_peers.py --json PEERS. Usage: gpu_report.py HEED PEERS [-o TABLE.md]"""

import argparse
import json


def by_name(report):
    return {line["name"]: line for line in report["lines"]}


def time_text(microseconds):
    return f"{microseconds:.1f} us" if microseconds < 1e3 else f"{microseconds / 1e3:.2f} ms"


def rate_text(line):
    """What the line is counted in: items, operations or bytes."""
    if "items_s" in line:
        return f"{line['items_s']:,.0f} {line.get('item', 'items')}/s"
    if "tflop_s" in line:
        return f"{line['tflop_s']:.0f} TFLOP/s"
    return f"{line['gb_s']:,.0f} GB/s" if "gb_s" in line else ""


def heed_text(line):
    if line is None:
        return "not measured"
    if "error" in line:
        return "failed: " + line["error"].replace("|", "\\|").replace("\n", " ")[:60]
    return f"{time_text(line['us'])}, {rate_text(line)}"


def peer_text(line):
    if line is None:
        return "not measured"
    if "us" not in line:
        return "failed"
    shown = [f"{time_text(line['us'])} ({line['way']})"]
    shown += [f"{time_text(way['us'])} ({name})" for name, way in line["ways"].items() if not way.get("complete", True)]
    return ", ".join(shown)


def share_text(line, ceilings):
    """The time that the ceilings allow, over the time taken."""
    if line is None or "us" not in line:
        return ""
    needed = [line[work] / ceilings[work] for work in ("flops", "bytes") if line.get(work) and ceilings[work] > 0]
    return f"{max(needed) / line['us'] * 1e8:.0f}%" if needed else ""


def ratio_text(ours, theirs, key):
    if not ours or not theirs or not ours.get(key) or not theirs.get(key):
        return ""
    return f"{theirs[key] / ours[key]:.2f}"


def memory_text(line):
    return f"{line['peak_bytes'] / 1e6:,.0f}" if line and line.get("peak_bytes") else ""


def table(heed, peers):
    ours, theirs = by_name(heed), by_name(peers)
    ceilings = {work: max(heed.get("ceilings", {}).get(work, 0), peers.get("ceilings", {}).get(work, 0)) for work in ("flops", "bytes")}
    rows = [
        f"Machine: {heed['machine']}. Beside heed: {peers['by']}, the quickest of its ways. Ceilings, the better of both: "
        f"{ceilings['flops'] / 1e12:.0f} TFLOP/s (bf16 product), {ceilings['bytes'] / 1e9:,.0f} GB/s (copy, bytes read and written).",
        "Ratios are PyTorch / heed: above 1, heed is quicker or needs less memory.",
        "",
        "| line | heed | PyTorch | ratio | of ceiling | heed MB | PyTorch MB | memory ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in list(ours) + [name for name in theirs if name not in ours]:
        a, b = ours.get(name), theirs.get(name)
        cells = [name, heed_text(a), peer_text(b), ratio_text(a, b, "us"), share_text(a, ceilings), memory_text(a), memory_text(b)]
        rows.append("| " + " | ".join(cells + [ratio_text(a, b, "peak_bytes")]) + " |")
    if peers.get("skipped"):
        rows += ["", "PyTorch's budget did not reach: " + "; ".join(peers["skipped"]) + "."]
    return "\n".join(rows) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("heed")
    parser.add_argument("peers")
    parser.add_argument("-o", "--output", help="write the table there, not to standard output")
    options = parser.parse_args()
    with open(options.heed) as heed, open(options.peers) as peers:
        text = table(json.load(heed), json.load(peers))
    if options.output:
        with open(options.output, "w") as out:
            out.write(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
