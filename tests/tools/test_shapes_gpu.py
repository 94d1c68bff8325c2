"""Segments and axes on a GPU: every strategy with every distribution of lengths and every array, whose results
dpr bench compares bit by bit, and what dpr reduce says next to the CPU."""

import json
import random
import unittest
from collections import Counter

from support import ToolTest, has_gpu, npy

DISTRIBUTIONS = ["ones", "uniform-8", "uniform-32", "uniform-256", "uniform-4096", "equal-2^20", "one-huge", "zipf", "three"]
OFFSETS = {"segments.small", "segments.merge", "segments.group"}
DEMONSTRATIONS = {"segments.thread", "segments.warp", "segments.block", "segments.split", "segments.bins", "dp.segments"}


@unittest.skipUnless(has_gpu(), "there is no GPU")
class ShapesOnGpu(ToolTest):
    def check(self, shapes, strategies, problems, *args):
        """Every strategy has a right result for every shape, of each of so many problems. Returns the shapes."""
        document = json.loads(self.good("bench", shapes, "all", "-m", "graph", "-a", "50%", "-b", "60s", "-q", "-f", "json",
                                        "-s", ",".join(sorted(strategies)), *args))
        self.assertEqual(document["left_out"], [])
        for row in document["rows"]:
            self.assertTrue(row["ok"] and row["checked"] > 0 and row["wrong"] == 0, row)
        ran = Counter((row[shapes[2:]], row["strategy"]) for row in document["rows"])
        names = list(dict.fromkeys(name for name, _ in ran))
        self.assertEqual(ran, {(name, strategy): problems for name in names for strategy in {*strategies, "planner"}})
        return names

    def check_segments(self, strategies, problems, *args):
        self.assertEqual(self.check("--segments", strategies, problems, *args), DISTRIBUTIONS)

    def test_segments(self):
        self.check_segments(OFFSETS | DEMONSTRATIONS, 3, "-n", "1000,65537,2^20", "-o", "sum", "-t", "f32")
        self.check_segments(OFFSETS | DEMONSTRATIONS, 2, "-n", "2^18", "-o", "max", "-t", "f64,i32")

    def test_segments_of_small_elements_and_indices(self):
        self.check_segments(OFFSETS, 4, "-n", "2^16,2^19", "-o", "sum", "-t", "u8,f16")
        self.check_segments(OFFSETS, 2, "-n", "2^18", "-o", "argmax", "-t", "u8,f32", "--offsets", "i64")

    def test_axes(self):
        for op, dtype in (("sum", "f32"), ("argmax", "u8"), ("max", "f64")):
            self.assertEqual(len(self.check("--axes", {"axes.tiles"}, 1, "-n", "2^18", "-o", op, "-t", dtype)), 12)

    def test_operations_next_to_the_cpu(self):
        random.seed(21)
        x = self.file("x.npy", npy("i32", [random.randrange(-1000, 1000) for _ in range(3000)]))
        o = self.file("o.npy", npy("u32", sorted(random.choices(range(3001), k=100))))
        k = self.file("k.npy", npy("u8", [i // 7 % 250 for i in range(3000)]))
        m = self.file("m.npy", npy("f32", [random.randrange(-1000, 1000) for _ in range(3000)], (5, 20, 30)))
        for args in ((x, "--offsets", o), (x, "--by", k), (m, "--axis", "0,2"), (m, "--axis", "1", "--keepdims")):
            call = ("reduce", *args, "-o", "sum,max,argmin", "-q", "-d")
            self.assertEqual(self.good(*call, "cpu"), self.good(*call, "0"))
        shown = [self.good("reduce", x, "--offsets", o, "-o", "sum,max", "-d", device) for device in ("cpu", "0")]
        self.assertRegex(shown[0], r", by cpu\.")
        self.assertRegex(shown[1], r"(?s), by segments\..*, by segments\.")


if __name__ == "__main__":
    unittest.main()
