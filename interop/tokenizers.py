"""Compares heed's tokenizers with the package `tokenizers`: ids, offsets and decoded text of 20,000 lines of real and random text,
every character of Unicode, and the speed of both on 10 MB with one thread.

The tokenizers are published ones (a folder each under --models) and small ones that the package trains here, one for each kind of
model and pre-tokenizer. Exits with 1 when an id differs, or when heed is the slower one."""
import argparse
import json
import os
import random
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
sys.path = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]  # this file has the package's name

from faker import Faker
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LOCALES = ["en_US", "de_DE", "fr_FR", "cs_CZ", "el_GR", "ru_RU", "he_IL", "ar_AA", "fa_IR", "hy_AM", "ka_GE", "zh_CN", "zh_TW", "ja_JP", "th_TH",
           "vi_VN", "la", "pl_PL", "az_AZ", "nl_BE"]
# Lines that may differ: among cuts of the same tokens in another order, which are equally likely, the last bit of a sum decides.
TOLERATED = {"unigram-metaspace": 10}
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CLIP = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
DEEPSEEK = [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
            "| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"]


def real_lines(rng, count, own):
    """Sentences in twenty languages, lines of the tree's documents and of Python's library, and of the files in `own`."""
    Faker.seed(1)
    lines = []
    for locale in LOCALES:
        fake = Faker(locale)
        lines += [fake.text(max_nb_chars=rng.randrange(20, 200)).replace("\n", " ") for _ in range(150)]
        lines += [f"{fake.name()}, {fake.date()} {fake.address()}".replace("\n", ", ") for _ in range(50)]
    for path in sorted(Path(".").glob("docs/*.md")) + sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[:40] + own:
        lines += [line for line in path.read_text("utf8", "replace").split("\n") if line.strip()]
    rng.shuffle(lines)
    return lines[:count]


def random_char(rng):
    """A character of a random plane, or one of those that tokenizers treat in a special way."""
    kind = rng.randrange(10)
    if kind < 2:
        return chr(rng.randrange(32, 127))
    if kind < 3:
        return rng.choice(" \t\r\x00\x0b\x1f\x7f\x85\xa0\xad\u00df\u0130\u017f\u0301\u0323\u0345\u200b\u200d\u2028\u2581\u3000\ufe0f\ufeff\ufffd\U0001f468\U0001f3fd")
    low, high = [(0x80, 0x590), (0x300, 0x370), (0x590, 0x2000), (0x2000, 0x3400), (0x3400, 0xD800), (0xE000, 0x10000), (0x10000, 0x110000)][kind - 3]
    return chr(rng.randrange(low, high))


def random_lines(rng, count):
    return ["".join(random_char(rng) for _ in range(rng.randrange(40))) for _ in range(count)]


def mixed_lines(rng, real, count):
    """Real lines with random characters put into them, or joined from the ends of others."""
    lines = []
    for _ in range(count):
        line = list(rng.choice(real))
        for _ in range(rng.randrange(1, 6)):
            line.insert(rng.randrange(len(line) + 1), rng.choice([random_char(rng), "\u0301", " ", "  ", "'s", "\u4f60", "1"]))
        lines.append("".join(line))
    return lines


def every_char_lines():
    """Every character between letters, between spaces, and doubled."""
    chars = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000 and c != 10]
    return ["".join(f"a{c}b {c} {c}{c}" for c in chars[i:i + 64]) for i in range(0, len(chars), 64)]


def heed_lines(program, model, lines, *flags):
    text = "".join(line + "\n" for line in lines).encode("utf8")
    return subprocess.run([program, "tokenize", model, "--lines", *flags], input=text, check=True, capture_output=True).stdout.decode("utf8").split("\n")


def byte_offsets(line, offsets):
    ends = [0]
    for c in line:
        ends.append(ends[-1] + len(c.encode("utf8")))
    return [(ends[a], ends[b]) for a, b in offsets]


def compare(program, model, package, lines, show):
    """How many lines differ in ids, in offsets, and in the text that the ids decode to."""
    expected = [encoding for i in range(0, len(lines), 4096) for encoding in package.encode_batch(lines[i:i + 4096])]
    printed = heed_lines(program, model, lines, "--ids", "--offsets")
    wrong_ids = wrong_offsets = wrong_text = 0
    for i, (line, encoding) in enumerate(zip(lines, expected)):
        if printed[2 * i] != " ".join(map(str, encoding.ids)):
            wrong_ids += 1
            if wrong_ids <= show:
                print(f"  {ascii(line[:120])}\n    heed    {printed[2 * i][:160]}\n    package {encoding.ids[:30]}")
            continue
        offsets = " ".join(f"{a}-{b}" for a, b in byte_offsets(line, encoding.offsets))
        if printed[2 * i + 1] != offsets:
            wrong_offsets += 1
            if wrong_offsets <= show:
                print(f"  {ascii(line[:120])}\n    heed    {printed[2 * i + 1][:160]}\n    package {offsets[:160]}")
    ids = [" ".join(map(str, encoding.ids)) for encoding in expected]
    for line, printed_text, encoding in zip(lines, heed_lines(program, model, ids, "--decode", "--json"), expected):
        text = package.decode(encoding.ids)
        if json.loads(printed_text)["text"] != text:
            wrong_text += 1
            if wrong_text <= show:
                print(f"  {encoding.ids[:20]}\n    heed    {ascii(json.loads(printed_text)['text'][:120])}\n    package {ascii(text[:120])}")
    return wrong_ids, wrong_offsets, wrong_text


def speeds(program, model, package, path):
    """MB/s of heed and of the package (its fastest way), one thread each."""
    environment = {**os.environ, "HEED_THREADS": "1"}
    with open(path, "rb") as text:
        told = subprocess.run([program, "tokenize", model, "--count", "--json"], stdin=text, env=environment, check=True, capture_output=True).stdout
    lines = path.read_text("utf8").split("\n")
    start = time.perf_counter()
    for i in range(0, len(lines), 4096):
        package.encode_batch_fast(lines[i:i + 4096])
    return json.loads(told)["mb_per_second"], path.stat().st_size / 1e6 / (time.perf_counter() - start)


def trained(lines, folder):
    """Small tokenizers of every kind, trained by the package."""

    def made(name, tokenizer, trainer, post_processor=None):
        tokenizer.train_from_iterator(lines, trainer)
        if post_processor:
            tokenizer.post_processor = post_processor(tokenizer)
        (folder / name).mkdir(parents=True, exist_ok=True)
        tokenizer.save(str(folder / name / "tokenizer.json"))

    def bert_template(tokenizer):
        return processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                             special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")])

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    cased = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    cased.normalizer = normalizers.BertNormalizer(lowercase=False)
    cased.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    cased.decoder = decoders.WordPiece()
    made("wordpiece-cased", cased, trainers.WordPieceTrainer(vocab_size=3000, special_tokens=special, show_progress=False), bert_template)

    llama = Tokenizer(models.BPE(ignore_merges=True))
    llama.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)])
    llama.decoder = decoders.ByteLevel()
    made("byte-bpe-llama3", llama, trainers.BpeTrainer(vocab_size=3000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                                       special_tokens=["<|end|>"], show_progress=False))

    deepseek = Tokenizer(models.BPE())
    deepseek.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(each), "isolated") for each in DEEPSEEK] +
                                                     [pre_tokenizers.ByteLevel(False, use_regex=False)])
    deepseek.decoder = decoders.ByteLevel()
    made("byte-bpe-deepseek", deepseek, trainers.BpeTrainer(vocab_size=3000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                                            show_progress=False))

    # As CLIPTokenizer writes it. Every byte must be a token, and one at the end of a word.
    clip = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    clip.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    clip.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(CLIP), "removed", invert=True), pre_tokenizers.ByteLevel(False)])
    clip.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<|startoftext|>", "<|endoftext|>"]
    clip.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=3000, initial_alphabet=alphabet, special_tokens=special,
                                                        end_of_word_suffix="</w>", show_progress=False))
    clip_json = json.loads(clip.to_str())
    vocabulary = clip_json["model"]["vocab"]
    for token in sorted(alphabet):
        vocabulary.setdefault(token + "</w>", len(vocabulary))
    clip_json["model"]["unk_token"] = "<|endoftext|>"
    clip_json["post_processor"] = {"type": "RobertaProcessing", "sep": [special[1], vocabulary[special[1]]],
                                   "cls": [special[0], vocabulary[special[0]]], "trim_offsets": False, "add_prefix_space": False}
    (folder / "clip").mkdir(parents=True, exist_ok=True)
    (folder / "clip" / "tokenizer.json").write_text(json.dumps(clip_json), "utf8")

    regex = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, end_of_word_suffix="</w>"))
    regex.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), normalizers.Strip()])
    regex.pre_tokenizer = pre_tokenizers.Split(Regex(r"\d|[^\s\d]+"), "removed", invert=True)
    regex.decoder = decoders.BPEDecoder()
    made("bpe-suffix-nfkc", regex, trainers.BpeTrainer(vocab_size=3000, special_tokens=["<unk>"], end_of_word_suffix="</w>", limit_alphabet=300,
                                                       show_progress=False))

    fallback = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    fallback.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    fallback.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    made("bpe-byte-fallback", fallback, trainers.BpeTrainer(vocab_size=2000, limit_alphabet=200, max_token_length=12, show_progress=False,
                                                            special_tokens=["<unk>", "<s>"] + [f"<0x{byte:02X}>" for byte in range(256)]),
         lambda t: processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", t.token_to_id("<s>"))]))

    unigram = Tokenizer(models.Unigram())
    unigram.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Replace(Regex(" {2,}"), " ")])
    unigram.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    unigram.decoder = decoders.Metaspace()
    made("unigram-metaspace", unigram, trainers.UnigramTrainer(vocab_size=3000, special_tokens=["<unk>", "</s>"], unk_token="<unk>", show_progress=False),
         lambda t: processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", t.token_to_id("</s>"))]))

    words = Tokenizer(models.WordLevel(unk_token="<unk>"))
    words.normalizer = normalizers.NFC()
    words.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("merged_with_previous"),
                                                   pre_tokenizers.Digits(individual_digits=True)])
    made("words", words, trainers.WordLevelTrainer(vocab_size=3000, special_tokens=["<unk>"], show_progress=False))


def open_package(folder):
    if (folder / "tokenizer.json").exists():
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer
    tokenizer = Tokenizer(models.BPE.from_file(str(folder / "encoder.json"), str(folder / "vocab.bpe")))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True, add_prefix_space=False)
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/heed")
    parser.add_argument("--models", type=Path, default=Path(".venv-interop/models"), help="a folder of folders of published tokenizers")
    parser.add_argument("--text", type=Path, action="append", default=[], help="real text of your own; may come again")
    parser.add_argument("--lines", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=0, help="print so many of the differences of each kind")
    parser.add_argument("--every-char", action="store_true", help="compare every character of Unicode too; takes a minute a tokenizer")
    arguments = parser.parse_args()
    arguments.models.mkdir(parents=True, exist_ok=True)

    rng = random.Random(arguments.seed)
    real = real_lines(rng, arguments.lines // 2, arguments.text)
    lines = real + mixed_lines(rng, real, arguments.lines // 4)
    lines += random_lines(rng, arguments.lines - len(lines)) + ["", " ", "\t", "a", "[MASK] x[SEP]y", "<|endoftext|> <|endoftext|>a", "<unk></s>"]
    lines = [line.replace("\n", " ") for line in lines]
    own = arguments.models.parent / "trained"
    trained(real, own)
    speed_text = arguments.models.parent / "speed.txt"
    library = sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py"))
    text = "\n".join(path.read_text("utf8", "replace") for path in arguments.text) or "\n".join(path.read_text("utf8", "replace") for path in library)
    speed_text.write_bytes(text.encode("utf8")[:10_000_000].decode("utf8", "ignore").encode("utf8"))

    failed = False
    print(f"{len(lines)} lines, {sum(len(line.encode()) for line in lines)} bytes; lines that differ from the package\n")
    print(f"{'tokenizer':20} {'ids':>6} {'offsets':>8} {'decoded':>8} {'heed MB/s':>10} {'package MB/s':>13} {'times':>6}")
    for folder in sorted(arguments.models.iterdir()) + sorted(own.iterdir()):
        package = open_package(folder)
        wrong = compare(arguments.program, str(folder), package, lines, arguments.show)
        if arguments.every_char:
            more = compare(arguments.program, str(folder), package, every_char_lines(), arguments.show)
            wrong = tuple(a + b for a, b in zip(wrong, more))
        mine, theirs = speeds(arguments.program, str(folder), package, speed_text)
        failed = failed or wrong[0] > TOLERATED.get(folder.name, 0) or mine < theirs
        print(f"{folder.name:20} {wrong[0]:6} {wrong[1]:8} {wrong[2]:8} {mine:10.1f} {theirs:13.1f} {mine / theirs:6.1f}", flush=True)
    sys.exit(1 if failed else 0)


main()
