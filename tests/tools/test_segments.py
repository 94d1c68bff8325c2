"""Segments, runs of equal keys and axes on the command line: dpr reduce --offsets, --by and --axis."""

import ast
import itertools
import json
import os
import random
import struct
import unittest
from pathlib import Path

from support import ToolTest, npy


class Segments(ToolTest):
    def setUp(self):
        super().setUp()
        random.seed(20)
        self.numbers = [random.randrange(-1000, 1000) for _ in range(500)]
        self.offsets = sorted(random.choices(range(501), k=41))
        self.x = self.file("x.npy", npy("i16", self.numbers))
        self.o = self.file("o.npy", npy("i32", self.offsets))
        self.parts = [self.numbers[a:b] for a, b in zip(self.offsets, self.offsets[1:])]

    def written(self, *args):
        """The header's text and the bytes of what -O has written."""
        out = os.path.join(self.folder, "out.npy")
        self.good("reduce", self.x, "--offsets", self.o, "-O", out, *args)
        data = Path(out).read_bytes()
        self.assertEqual(data[:8], b"\x93NUMPY\x01\x00")
        length = struct.unpack("<H", data[8:10])[0]
        self.assertEqual((10 + length) % 64, 0)
        return data[10:10 + length].decode(), data[10 + length:]

    def test_all_results_are_written(self):
        for offsets in ("i32", "u32", "i64", "u64"):
            self.o = self.file("o.npy", npy(offsets, self.offsets))
            text, data = self.written("-q")
            self.assertEqual(ast.literal_eval(text), {"descr": "<i8", "fortran_order": False, "shape": (40,)})
            self.assertEqual(list(struct.unpack("<40q", data)), [sum(p) for p in self.parts])

    def test_results_of_two_values(self):
        text, data = self.written("--op", "minmax")
        self.assertEqual(ast.literal_eval(text), {"descr": "<i2", "fortran_order": False, "shape": (40, 2)})
        for p, pair in zip(self.parts, struct.iter_unpack("<2h", data)):
            self.assertEqual(pair, (min(p), max(p)) if p else (32767, -32768))

    def test_what_is_written_can_be_read(self):
        self.written()
        total = self.good("reduce", "-q", os.path.join(self.folder, "out.npy"))
        self.assertEqual(int(total), sum(self.numbers[self.offsets[0]:self.offsets[-1]]))

    def test_first_results_are_shown(self):
        for strategy in ("cpu.serial", "cpu.simd", "cpu.threads"):
            lines = self.good("reduce", self.x, "--offsets", self.o, "-o", "argmax", "-s", strategy).splitlines()
            self.assertIn("argmax of each of 40 segments of i16", lines[0])
            for i, line in enumerate(lines[2:12]):
                p = self.parts[i]
                self.assertEqual([int(w) for w in line.split()], [i, len(p), p.index(max(p)) if p else -1])
            self.assertIn("30 more; -O FILE writes all of them", lines)

    def test_values_alone(self):
        lines = self.good("reduce", "-q", self.x, "--offsets", self.o, "--init", 7).split()
        self.assertEqual([int(v) for v in lines], [7 + sum(p) for p in self.parts])

    def test_json(self):
        found = json.loads(self.good("reduce", self.x, "--offsets", self.o, "--op", "mean", "--json"))["arrays"][0]
        self.assertEqual((found["segments"], found["count"], found["op"], len(found["results"])), (40, 500, "mean", 10))
        for p, row in zip(self.parts, found["results"]):
            self.assertEqual(row["value"], sum(p) / len(p) if p else "nan")

    def runs(self, keys):
        """Each key of a run, and the numbers in it."""
        return [(key, [n for _, n in run]) for key, run in itertools.groupby(zip(keys, self.numbers), lambda pair: pair[0])]

    def test_runs_of_equal_keys(self):
        for dtype, code in (("u8", "B"), ("i16", "h"), ("i64", "q")):
            keys = [random.randrange(3) for _ in self.numbers]
            runs = self.runs(keys)
            out = os.path.join(self.folder, "sums.npy")
            by = self.file("by.npy", npy(dtype, keys))
            lines = self.good("reduce", self.x, "--by", by, "-O", out, "-s", "cpu.threads").splitlines()
            self.assertIn(f"sum of each of {len(runs)} runs of i16", lines[0])
            self.assertEqual([[int(w) for w in line.split()] for line in lines[2:12]],
                             [[key, sum(run)] for key, run in runs[:10]])
            self.assertEqual(Path(out).read_bytes()[128:], struct.pack(f"<{len(runs)}q", *(sum(r) for _, r in runs)))
            unique = Path(self.folder, "sums.keys.npy").read_bytes()[128:]
            self.assertEqual(unique, struct.pack(f"<{len(runs)}{code}", *(key for key, _ in runs)))

    def test_no_keys(self):
        empty = self.file("empty.npy", npy("f64", []))
        found = json.loads(self.good("reduce", empty, "--by", self.file("none.npy", npy("i8", [])), "--json"))["arrays"][0]
        self.assertEqual((found["runs"], found["results"]), (0, []))

    def test_axes(self):
        shape = (5, 4, 3)
        numbers = self.numbers[:60]
        c_order = self.file("c.npy", npy("i16", numbers, shape=shape))
        turned = [numbers[12 * i + 3 * k + m] for m in range(3) for k in range(4) for i in range(5)]
        fortran = self.file("fortran.npy", npy("i16", turned, shape=shape, fortran=True))
        out = os.path.join(self.folder, "out.npy")
        for axes, keepdims, wanted in (("0", False, (4, 3)), ("1", True, (5, 1, 3)), ("-1,0", False, (4,)),
                                       ("0,1,2", False, ()), ("2,0", True, (1, 4, 1))):
            reduced = {int(a) % 3 for a in axes.split(",")}
            sums = {}
            for i, number in zip(itertools.product(*map(range, shape)), numbers):
                key = tuple(n for d, n in enumerate(i) if d not in reduced)
                sums[key] = sums.get(key, 0) + number
            for file in (c_order, fortran):
                self.good("reduce", file, "--axis", axes, "-O", out, *(["--keepdims"] if keepdims else []))
                data = Path(out).read_bytes()
                self.assertEqual(ast.literal_eval(data[10:128].decode())["shape"], wanted)
                self.assertEqual(list(struct.unpack(f"<{len(sums)}q", data[128:])), [sums[k] for k in sorted(sums)])
            lines = self.good("reduce", c_order, "--axis", axes).splitlines()
            self.assertEqual(lines[2].split()[-1], str(sums[min(sums)]))
        self.assertEqual(self.good("reduce", "-q", c_order, "--axis", "1", "--op", "argmax").split()[0],
                         str(max(range(4), key=lambda k: (numbers[3 * k], -k))))

    def test_device(self):
        """Of a machine without a GPU, 'auto' is the CPU; a GPU has the same results."""
        square = self.file("square.npy", npy("i16", list(range(-200, 200)), shape=(20, 20)))
        for op in ("sum", "max", "argmin"):
            for args in ((self.x, "--offsets", self.o), (square, "--axis", "0"), (square, "--axis", "1")):
                wanted = self.values(*args, "-o", op, "-d", "cpu")
                self.assertGreater(len(wanted), 1)
                self.assertEqual(self.values(*args, "-o", op, "-d", "auto"), wanted)

    def test_mistakes(self):
        outside = self.file("outside.npy", npy("i64", [0, 3, 501]))
        for expect, wanted, *args in (
                (1, "segment 1 ends at 501, and the array has 500 elements", self.x, "--offsets", outside),
                (1, "offsets are i32, u32, i64 or u64, and these are i16", self.x, "--offsets", self.x),
                (1, "at least one number", self.x, "--offsets", self.file("none.npy", npy("i32", []))),
                (1, "at least one number", self.x, "--offsets",
                 self.file("square.npy", npy("i32", [0, 1, 2, 3], shape=(2, 2)))),
                (1, "cannot be opened", self.x, "--offsets", os.path.join(self.folder, "missing")),
                (1, "in Fortran order", self.file("f.npy", npy("i16", [0, 1, 2, 3], shape=(2, 2), fortran=True)),
                 "--offsets", self.file("two.npy", npy("i32", [0, 4]))),
                (1, "cannot be written", self.x, "--offsets", self.o, "-O", os.path.join(self.folder, "no", "x.npy")),
                (2, "mean takes no initial value", self.x, "--offsets", self.o, "-o", "mean", "--init", 1),
                (2, "is none of i64", self.x, "--offsets", self.o, "--init", "x"),
                (2, "goes with one file", self.x, self.x, "--offsets", self.o),
                (2, "goes with one file", "--generate", 64, "--offsets", self.o),
                (2, "goes with one operation", self.x, "--offsets", self.o, "-o", "sum,min"),
                (2, "goes with one strategy", self.x, "--offsets", self.o, "-s", "all"),
                (2, "is for many results", self.x, "-O", "x.npy"),
                (1, "band has no meaning for f32", self.file("f32.npy", npy("f32", [1])), "--offsets",
                 self.file("one.npy", npy("i32", [0, 1])), "--op", "band", "--init", "x"),
                (1, "whose number must be known here", "-", "-t", "i16", "--offsets", self.o),
                (2, "not '-'", self.x, "--offsets", "-"),
                (2, "not '-'", self.x, "--offsets", self.o, "-O", "-"),
                (1, "axis 1 is none of its 1 dimensions", self.x, "--axis", "1"),
                (1, "axis -1 is named twice", self.x, "--axis", "0,-1"),
                (2, "'x' is no dimension", self.x, "--axis", "x"),
                (2, "--keepdims goes with --axis", self.x, "--keepdims"),
                (2, "exclude each other", self.x, "--axis", "0", "--by", self.o),
                (2, "exclude each other", self.x, "--offsets", self.o, "--by", self.x),
                (1, "there are 41 keys, and", self.x, "--by", self.o),
                (1, "keys are integers or truth values, and these are f32", self.x, "--by",
                 self.file("k.npy", npy("f32", [1])))):
            self.bad(wanted, "reduce", *args, expect=expect)


if __name__ == "__main__":
    unittest.main()
