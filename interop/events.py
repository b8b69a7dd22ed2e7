"""Compares heed's event files with TensorBoard: random scalars, histograms, images and texts are written by heed and read by its own readers,
the one of records, the one of summaries and the one that turns summaries into what the pages show. The file of a short training must show its
curves, its histograms, and where every layer looks after every epoch.

Exits with 1 when a value comes back differently."""
import argparse
import io
import math
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]  # tokenizers.py has a package's name

import numpy
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader, RawEventFileLoader
from tensorboard.util import tensor_util

KINDS = ["scalar", "histogram", "image", "text"]


def limits():
    """The upper ends of TensorFlow's buckets."""
    above, limit = [], 1e-12
    while limit < 1e20:
        above.append(limit)
        limit *= 1.1
    above.append(sys.float_info.max)
    return numpy.array([-each for each in reversed(above)] + [0.0] + above)


def make_scalar(rng, box, number):
    value = rng.choice([rng.uniform(-10, 10), 10 ** rng.uniform(-30, 30), 0.0, math.nan, math.inf, -math.inf])
    return repr(value), numpy.float32(value)


def make_histogram(rng, box, number):
    random_values = numpy.random.default_rng(number)
    values = random_values.normal(0, 10 ** rng.uniform(-8, 8), rng.choice([1, 2, 1000])).astype(numpy.float32)
    values[random_values.random(values.size) < 0.1] = 0
    values.tofile(box / f"{number}.f32")
    return box / f"{number}.f32", values.astype(numpy.float64)


def make_image(rng, box, number):
    shades = numpy.random.default_rng(number).integers(0, 256, (rng.randrange(1, 40), rng.randrange(1, 40), 3)).astype(numpy.uint8)
    Image.fromarray(shades).save(box / f"{number}.png")
    return box / f"{number}.png", shades


def make_text(rng, box, number):
    text = "".join(rng.choice(["word ", "# ", "\n\n", "| a | b |\n", "\u00e4\u4e2d\U0001F600"]) for _ in range(rng.randrange(0, 200)))
    (box / f"{number}.txt").write_text(text, encoding="utf-8", newline="")
    return box / f"{number}.txt", text


def same_scalar(found, value):
    return numpy.float32(found.value).tobytes() == value.tobytes() or (math.isnan(found.value) and math.isnan(value))


def same_histogram(found, values):
    histogram, expected = found.histogram_value, {}
    for limit in limits()[numpy.searchsorted(limits(), values, side="right")]:
        expected[limit] = expected.get(limit, 0) + 1
    filled = {limit: count for limit, count in zip(histogram.bucket_limit, histogram.bucket) if count}
    sums = [math.isclose(histogram.sum, values.sum(), rel_tol=1e-9, abs_tol=1e-9 * numpy.abs(values).sum()),
            math.isclose(histogram.sum_squares, (values**2).sum(), rel_tol=1e-9)]
    return filled == expected and (histogram.min, histogram.max, histogram.num) == (values.min(), values.max(), values.size) and all(sums)


def same_image(found, shades):
    image = numpy.asarray(Image.open(io.BytesIO(found.encoded_image_string)))
    return (found.height, found.width) == shades.shape[:2] and numpy.array_equal(image, shades)


def same_text(found, text):
    return tensor_util.make_ndarray(found.tensor_proto).tolist() == [text.encode()]


def shown(path):
    """Plugin -> how many values the pages get; and how many things all histograms counted."""
    plugins, seen, counted = {}, {}, 0
    for event in EventFileLoader(str(path)).Load():
        for value in event.summary.value:
            name = seen.setdefault(value.tag, value.metadata.plugin_data.plugin_name)
            plugins[name] = plugins.get(name, 0) + 1
            if name == "histograms":
                counted += int(tensor_util.make_ndarray(value.tensor)[:, 2].sum())
    return plugins, counted


def training_shows(program, box, layers=2, epochs=3):
    """Whether the event file of a run has all that is promised, each image as large as it says."""
    settings = ["data=shapes:60", f"layers={layers}", "width=16", "heads=2", "patch=8", f"epochs={epochs}", "--quiet", "--runs", box]
    subprocess.run([program, "train", "classify", *settings], check=True)
    [path] = (Path(box) / "classify" / "001").glob("events.out.tfevents.*")
    reader = EventAccumulator(str(path), size_guidance=dict(scalars=0, histograms=0, images=0))
    reader.Reload()
    tags = reader.Tags()
    wanted = {"samples": 1} | {f"attention/layer_{layer}": epochs for layer in range(layers)}
    images = {tag: reader.Images(tag) for tag in tags["images"]}
    good = {tag: len(events) for tag, events in images.items()} == wanted
    for event in [event for events in images.values() for event in events]:
        good = good and Image.open(io.BytesIO(event.encoded_image_string)).size == (event.width, event.height)
    good = good and all(len(reader.Histograms(tag)) == epochs for tag in tags["histograms"])
    good = good and {tag.split("/")[0] for tag in tags["histograms"]} == {"weights", "gradients"}
    return good and {"epoch/train_loss", "epoch/validation_accuracy"} <= set(tags["scalars"]), sum(wanted.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/heed_interop_events")
    parser.add_argument("--heed", default="build/heed")
    parser.add_argument("--values", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    failed = False

    def judge(what, of, good):
        nonlocal failed
        failed = failed or not good
        print(f"{what:28} {of:6}  {'equal' if good else 'DIFFERS'}")

    with tempfile.TemporaryDirectory() as box:
        box = Path(box)
        folder = box / "run"
        folder.mkdir()
        lines, expected = [], {kind: {} for kind in KINDS}
        for number in range(arguments.values):
            kind = KINDS[number % len(KINDS)]
            tag, step = f"{kind}/{rng.randrange(5)}", number * rng.choice([1, 10**9])
            given, value = globals()[f"make_{kind}"](rng, box, number)
            lines += [f"{kind} {tag} {step} {given}"] + ["again"] * (number % 50 == 7)
            expected[kind].setdefault(tag, []).append((step, value))
        began = time.time()
        subprocess.run([arguments.program, folder], input="\n".join(lines), text=True, check=True)
        [path] = folder.iterdir()
        judge("records", arguments.values + 1, len(list(RawEventFileLoader(str(path)).Load())) == arguments.values + 1)

        reader = EventAccumulator(str(folder), size_guidance=dict(scalars=0, histograms=0, images=0, tensors=0), purge_orphaned_data=False)
        reader.Reload()
        lists = dict(scalar=reader.Scalars, histogram=reader.Histograms, image=reader.Images, text=reader.Tensors)
        for kind in KINDS:
            good = sorted(reader.Tags()[{"text": "tensors"}.get(kind, kind + "s")]) == sorted(expected[kind])
            for tag, values in expected[kind].items():
                found = lists[kind](tag) if good else []
                good = good and [event.step for event in found] == [step for step, _ in values]
                good = good and all(globals()[f"same_{kind}"](event, value) for event, (_, value) in zip(found, values))
                good = good and all(began - 1 <= event.wall_time <= time.time() + 1 for event in found)
            judge(f"{kind}s", sum(map(len, expected[kind].values())), good)

        plugins, counted = shown(path)
        wanted = {plugin: sum(map(len, expected[kind].values())) for plugin, kind in zip(["scalars", "histograms", "images", "text"], KINDS)}
        values_in_all = sum(value.size for events in expected["histogram"].values() for _, value in events)
        judge("what the pages get", sum(wanted.values()), plugins == wanted and counted == values_in_all)
    with tempfile.TemporaryDirectory() as box:
        good, images = training_shows(arguments.heed, box)
        judge("images of a training", images, good)
    sys.exit(1 if failed else 0)


main()
