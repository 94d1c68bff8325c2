"""Inputs for the fuzzers to begin with, and dictionaries of words that these have.

usage: seeds.py SOURCE_FOLDER OUTPUT_FOLDER

Most come from files of the tests. Files of results are cut down, because short inputs are quicker.
"""
import json
import pathlib
import re
import struct
import sys

LISTS = 3  # items of a list that are kept

WISDOM = [
    "",
    "time cpu.serial sum f32 host call array 64:90000\n"
    "time cpu.simd sum f32 host call array 1024:1000000 4096:2000000\n"
    "time cpu.simd sum f32 host warm-call array 1024:500000 3000:900000\n"
    "time cpu.threads sum f32 host call array 1048576:50000000 9007199254740992:1000000000000000\n",
    "time cpu.simd sum f32 host call offsets:3 1:1\ntime cpu.simd argmax f64 host stream axes:63 1000:1\n"
    "cpu 0123456789abcdef Another CPU\ntime cpu.simd minmax i8 pinned call ranges:0 7:7 8:9\n"
    "gpu 0123456789abcdef A GPU\n",
]

COMMANDS = [
    "-n 2^10:2^30:x4,1000:5000:+1000,64Ki,1e6,1.5e9,64MiB -o sum,sum+var,all -t f32,all -c both -b 500ms -a 0.5%",
    "--segments=all --axes 16384x16384:1,Nx64/96x3:0,2 --offsets u64 --pools 64,512 --block 256 --depth 24 -q",
    "--one-op argmax --one-dtype bf16 --nan ignore --one-strategy cpu.simd -s cpu.*,all -d cpu operand -- -n",
    "-o argmax -t f64 -n 1e6 --memory host -d cpu", "--segments 1e6 -n 2^26 --json", "--axes 4096x65536:0 --nan ignore",
    "1+2i -0.0 nan -inf 1e-45 0x1p-3 -9223372036854775808 18446744073709551615 true 1e400 0.1", "--help", "-h",
]


def short(value):
    """The value, with the first items of its lists."""
    if isinstance(value, list):
        return [short(item) for item in value[:LISTS]]
    return {key: short(item) for key, item in value.items()} if isinstance(value, dict) else value


def words_of(value):
    """The keys and strings of a JSON value."""
    if isinstance(value, str):
        yield value
    for item in value if isinstance(value, list) else value.values() if isinstance(value, dict) else []:
        yield from words_of(item)
    yield from value if isinstance(value, dict) else []


def results(source):
    texts, words = [], set()
    for file in sorted((source / "tests/results").glob("*.json")):
        document = short(json.loads(file.read_text()))
        several = document if isinstance(document, list) else [document]
        texts += [json.dumps(one, separators=(",", ":")) for one in several]
        words |= {f'"{word}"' for word in words_of(document) if len(word) < 32}
    return texts + [f"[{texts[0]},{texts[0]}]"], words | {"null", "true", "1e999", "-0", "[]", "{}", '"\\u001b"'}


def machines(source):
    texts = [re.sub(r"^#.*\n", "", file.read_text(), flags=re.M)
             for file in sorted((source / "tests/machines").glob("*.caps"))]
    return texts, {line.partition("=")[0] + "= " for text in texts for line in text.splitlines()}


def npy(text, major=1):
    return b"\x93NUMPY" + bytes([major, 0]) + struct.pack("<H" if major == 1 else "<I", len(text)) + text.encode()


def npy_files():
    kinds = ["|b1", "|i1", "|u1", "<i2", ">u4", "<i8", "<u8", "<f2", "<f4", ">f8", "<c8", "<c16", "|V2"]
    shapes = ["()", "(3,)", "(2, 3)", "(0, 18446744073709551615)", "(" + "1, " * 64 + ")"]
    texts = [npy(f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shapes[i % len(shapes)]}, }}\n", 1 + i % 3)
             for i, kind in enumerate(kinds)]
    return texts, {"'descr': ", "'fortran_order': ", "'shape': ", "True", "False", "18446744073709551615", *kinds}


def words_in(texts, pattern):
    return {word for text in texts for word in re.findall(pattern, text)}


def write(folder, name, inputs, words):
    (folder / name).mkdir(parents=True, exist_ok=True)
    for i, data in enumerate(inputs):
        (folder / name / f"{i:02}").write_bytes(data if isinstance(data, bytes) else data.encode())
    lines = ("".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\x{b:02x}" for b in word.encode())
             for word in sorted(words) if word)
    (folder / f"{name}.dict").write_text("".join(f'"{line}"\n' for line in lines))


def main():
    source, folder = (pathlib.Path(name) for name in sys.argv[1:3])
    commands = [line.replace(" ", "\n") for line in COMMANDS]
    write(folder, "wisdom", WISDOM, words_in(WISDOM, r"[a-z0-9.-]+"))
    write(folder, "machine", *machines(source))
    write(folder, "npy", *npy_files())
    write(folder, "results", *results(source))
    write(folder, "command", commands, words_in(COMMANDS, r"[^ ,:=]+"))


main()
