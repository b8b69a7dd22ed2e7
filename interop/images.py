"""Compares heed's images with Pillow and with the processors of `transformers`: random images of odd sizes as PNG, JPEG, WebP and BMP, in
every Exif orientation, every filter, and random preprocessor_config.json files.

Exits with 1 when a shade differs from Pillow's, or a value from the processors' by more than 1e-6."""
import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]  # tokenizers.py has a package's name

import numpy
import transformers
from PIL import Image
from transformers.image_utils import load_image

FILTERS = ["nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"]
MODES = ["RGB", "L", "P", "1", "CMYK", "LA", "RGBA"]


def make_image(rng, folder, number):
    """Smooth colours with noise, so that nothing is left out: flat parts, steep parts and shades at both ends."""
    width, height = rng.randrange(4, 300), rng.randrange(4, 300)
    y, x = numpy.mgrid[0:height, 0:width]
    waves = numpy.stack([numpy.sin(x / rng.uniform(2, 40)) + numpy.cos(y / rng.uniform(2, 40)) for _ in range(3)], -1)
    noise = numpy.random.default_rng(number).normal(0, rng.choice([0, 20, 200]), waves.shape)
    image = Image.fromarray(numpy.clip(127 + 80 * waves + noise, 0, 255).astype(numpy.uint8)).convert(MODES[number % len(MODES)])
    exif = Image.Exif()
    exif[0x0112] = rng.randrange(1, 9)
    if image.mode in ("RGB", "RGBA") and rng.random() < 0.3:
        path = folder / f"{number}.webp"
        image.save(path, lossless=rng.random() < 0.5, quality=rng.randrange(40, 96), exif=exif)
    elif image.mode in ("RGB", "L", "P", "1") and rng.random() < 0.2:
        path = folder / f"{number}.bmp"
        image.save(path)
    elif image.mode in ("RGB", "L", "CMYK") and (image.mode == "CMYK" or rng.random() < 0.5):
        path = folder / f"{number}.jpg"
        image.save(path, quality=rng.randrange(40, 96), progressive=rng.random() < 0.5, subsampling=rng.randrange(3), exif=exif)
    else:
        path = folder / f"{number}.png"
        image.save(path, exif=exif)
    return path


def side(rng):
    return rng.choice([rng.randrange(1, 300), 224])


def processor_of(rng):
    name = rng.choice(["ViTImageProcessorPil", "DeiTImageProcessorPil", "CLIPImageProcessorPil", "BitImageProcessorPil", "ConvNextImageProcessorPil"])
    convnext = name.startswith("ConvNext")  # crops a share of its own
    keys = dict(size=rng.choice([side(rng), dict(height=side(rng), width=side(rng)), dict(shortest_edge=rng.randrange(1, 90)),
                                 dict(max_height=rng.randrange(80, 160), max_width=rng.randrange(80, 160))]))
    for key, value in dict(resample=rng.randrange(6), do_center_crop=True, crop_size=dict(height=side(rng), width=side(rng)), do_rescale=False,
                           rescale_factor=rng.uniform(0.001, 0.1), do_normalize=False, image_mean=[rng.random() for _ in range(3)],
                           image_std=[rng.uniform(0.1, 1) for _ in range(3)]).items():
        if (rng.random() < 0.4 or key == "crop_size") and not (convnext and "crop" in key):
            keys[key] = value
    if convnext:
        keys |= dict(size=dict(shortest_edge=rng.choice([rng.randrange(1, 90), 384])), crop_pct=rng.uniform(0.3, 1))
    return getattr(transformers, name)(**keys)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/heed_interop_images")
    parser.add_argument("--images", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as box:
        box = Path(box)
        lines, expected = [], []
        for number in range(arguments.images):
            path = make_image(rng, box, number)
            image = load_image(str(path))
            for filter, name in enumerate(FILTERS):
                width, height = side(rng), side(rng)
                lines.append(f"resize {path} {width} {height} {filter} {box}/{len(lines)}.npy")
                expected.append((name, numpy.asarray(image.resize((width, height), filter))))
            processor = processor_of(rng)
            processor.save_pretrained(box / f"p{number}")
            lines.append(f"process {box}/p{number} {path} {box}/{len(lines)}.npy")
            values = numpy.asarray(processor(image, return_tensors="np")["pixel_values"][0]).astype(numpy.float32)
            expected.append((processor.to_dict()["image_processor_type"], values))
        subprocess.run([arguments.program], input="\n".join(lines), text=True, check=True)
        rows = {}
        for number, (name, value) in enumerate(expected):
            found = numpy.load(box / f"{number}.npy")
            same = found.shape == value.shape
            off = float(numpy.abs(found.astype(numpy.float64) - value).max() / max(1.0, numpy.abs(value).max() / 255)) if same else float("inf")
            rows.setdefault(name, []).append(off)
    failed = False
    print(f"{'against':24} {'images':>8} {'equal':>6}  largest difference")
    for name, off in rows.items():
        wrong = max(off) > (0 if name in FILTERS else 1e-6)
        failed = failed or wrong
        print(f"{name:24} {len(off):8} {off.count(0):6}  {max(off):.1e}{'  DIFFERS' if wrong else ''}")
    sys.exit(1 if failed else 0)


main()
