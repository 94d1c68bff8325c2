"""Segments on the command line: dpr reduce --offsets."""

import ast
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

    def test_mistakes(self):
        outside = self.file("outside.npy", npy("i64", [0, 3, 501]))
        for expect, wanted, *args in (
                (1, "segment 1 has the elements 3 to 500, and count is 500", self.x, "--offsets", outside),
                (1, "offsets are i32, u32, i64 or u64, and these are i16", self.x, "--offsets", self.x),
                (1, "at least one number", self.x, "--offsets", self.file("none.npy", npy("i32", []))),
                (1, "at least one number", self.x, "--offsets",
                 self.file("square.npy", npy("i32", [0, 1, 2, 3], shape=(2, 2)))),
                (1, "cannot be opened", self.x, "--offsets", os.path.join(self.folder, "missing")),
                (1, "in Fortran order", self.file("f.npy", npy("i16", [0, 1, 2, 3], shape=(2, 2), fortran=True)),
                 "--offsets", self.file("two.npy", npy("i32", [0, 4]))),
                (1, "cannot be written", self.x, "--offsets", self.o, "-O", os.path.join(self.folder, "no", "x.npy")),
                (1, "mean has no initial value", self.x, "--offsets", self.o, "-o", "mean", "--init", 1),
                (2, "is none of i64", self.x, "--offsets", self.o, "--init", "x"),
                (2, "goes with one file", self.x, self.x, "--offsets", self.o),
                (2, "goes with one file", "--generate", 64, "--offsets", self.o),
                (2, "goes with one operation", self.x, "--offsets", self.o, "-o", "sum,min"),
                (2, "goes with one strategy", self.x, "--offsets", self.o, "-s", "all"),
                (2, "is for results of segments", self.x, "-O", "x.npy")):
            self.bad(wanted, "reduce", *args, expect=expect)


if __name__ == "__main__":
    unittest.main()
