"""Segments and axes on a GPU: every strategy with every distribution of lengths and every array, whose results
dpr bench compares bit by bit, and what dpr reduce says next to the CPU."""

import json
import random
import unittest

from support import ToolTest, has_gpu, npy

DISTRIBUTIONS = ["ones", "uniform-8", "uniform-32", "uniform-256", "uniform-4096", "equal-2^20", "one-huge", "zipf", "three"]
OFFSETS = {"segments.small", "segments.merge", "segments.group"}
DEMONSTRATIONS = {"segments.thread", "segments.warp", "segments.block", "segments.split", "segments.bins", "dp.segments"}


@unittest.skipUnless(has_gpu(), "there is no GPU")
class ShapesOnGpu(ToolTest):
    def check(self, key, names, strategies, *args):
        """Every strategy has a right result for every shape."""
        document = json.loads(self.good("bench", f"--{key}", "all", "-m", "graph", "-a", "50%", "-b", "60s", "-q", "-f",
                                        "json", "-s", ",".join(sorted(strategies)), *args))
        self.assertEqual(document["left_out"], [])
        for row in document["rows"]:
            self.assertTrue(row["ok"] and row["checked"] > 0 and row["wrong"] == 0, row)
        counts = {row["count"] for row in document["rows"]} if key == "segments" else {None}
        ran = {(row[key], row["strategy"], row["count"] if key == "segments" else None) for row in document["rows"]}
        self.assertEqual(ran, {(n, s, c) for n in names for s in {*strategies, "planner"} for c in counts})

    def test_segments(self):
        self.check("segments", DISTRIBUTIONS, OFFSETS | DEMONSTRATIONS, "-n", "1000,65537,2^20", "-o", "sum", "-t", "f32")
        self.check("segments", DISTRIBUTIONS, OFFSETS | DEMONSTRATIONS, "-n", "2^18", "-o", "max", "-t", "f64,i32")

    def test_segments_of_small_elements_and_indices(self):
        self.check("segments", DISTRIBUTIONS, OFFSETS, "-n", "2^16,2^19", "-o", "sum", "-t", "u8,f16")
        self.check("segments", DISTRIBUTIONS, OFFSETS, "-n", "2^18", "-o", "argmax", "-t", "u8,f32", "--offsets", "i64")

    def test_axes(self):
        shapes = [row["axes"] for row in json.loads(self.good("bench", "--axes", "all", "-n", "2^16", "-d", "cpu", "-q", "-b",
                                                              "5s", "-a", "50%", "-s", "cpu.simd", "-f", "json"))["rows"]]
        for op, dtype in (("sum", "f32"), ("argmax", "u8"), ("max", "f64")):
            self.check("axes", set(shapes), {"axes.tiles"}, "-n", "2^18", "-o", op, "-t", dtype)

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
