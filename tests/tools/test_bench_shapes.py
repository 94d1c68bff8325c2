"""dpr bench --segments, --axes, --ladder and --nested. Times are not judged."""

import csv
import io
import json
import os
import unittest

from support import QUICK, BenchTest, run, use_small_cache


def setUpModule():
    use_small_cache()


class ManyResults(BenchTest):
    """--segments and --axes."""

    def check_rows(self, document, names, key):
        cpu = {s["name"] for s in self.document("info")["strategies"] if s["side"] == "cpu"}
        self.assertEqual(document["left_out"], [])
        self.assertEqual(list(dict.fromkeys(r[key] for r in document["rows"])), names)
        self.assertGreater(document["read_gb_per_s"], 0)
        for row in document["rows"]:
            self.assertTrue(row["ok"] and row["checked"] > 0 and row["wrong"] == 0, row)
            self.assertIn(row["strategy"], {"planner", *cpu})
            self.assertEqual(row["chosen"], row["strategy"] == "planner")
            self.assertAlmostEqual(row["gb_per_s"] * row["median_us"] / row["bytes"] * 1e3, 1, 3)
            self.assertAlmostEqual(row["over_floor"] * row["gb_per_s"] / document["read_gb_per_s"], 1, 3)
        self.assertEqual([r[key] for r in document["regret"]], names)

    def test_segments(self):
        names = ["ones", "uniform-8", "uniform-32", "uniform-256", "uniform-4096", "equal-2^20", "one-huge", "zipf",
                 "three"]
        document = self.measured("--segments", "all", "-n", "100000", "-o", "argmax", "-t", "u8", "--offsets", "i64")
        self.check_rows(document, names, "segments")
        self.assertEqual(document["settings"]["offsets"], "i64")
        for row in document["rows"]:
            self.assertEqual(row["count"], 100000)
            self.assertEqual(row["bytes"], row["count"] + 8 * (row["results"] + 1) + 8 * row["results"])
        results = {r["segments"]: r["results"] for r in document["rows"]}
        self.assertEqual([results[name] for name in ("ones", "equal-2^20", "three")], [100000, 1, 3])
        self.assertIn("cpu.serial", {r["strategy"] for r in document["rows"]})

    def test_axes(self):
        names = ["30x50:1", "30x50:0", "NxN:1", "4x5x6/8:0,2"]
        document = self.measured("--axes", ",".join(names), "-n", "10000,40000", "-t", "f64")
        cases = list(dict.fromkeys((r["axes"], r["count"], r["results"]) for r in document["rows"]))
        self.assertEqual(cases, [("30x50:1", 1500, 30), ("30x50:0", 1500, 50), ("NxN:1", 10000, 100),
                                 ("NxN:1", 40000, 200), ("4x5x6/8:0,2", 120, 5)])
        self.assertNotIn("offsets", document["settings"])
        self.check_rows(self.measured("--axes", ",".join(names), "-n", "10000"), names, "axes")

    def test_every_array(self):
        document = self.measured("--axes", "all", "-n", "50000", "-o", "min", "-t", "i16")
        self.assertEqual(len(document["regret"]), 12)
        self.assertEqual({r["strategy"] for r in document["rows"]}, {"planner", "cpu.simd", "cpu.threads"})

    def test_the_usual_memory_may_be_named(self):
        document = self.measured("--segments", "ones", "-d", "cpu", "--memory", "host", "-n", "1000")
        self.assertTrue(document["rows"] and all("memory" not in row for row in document["rows"]))

    def test_strategies_that_cannot_run_are_noted(self):
        code, out, err = run(*QUICK, "--axes", "Nx16:1", "-n", "1000", "-s", "cpu.serial", "-f", "json")
        self.assertEqual((code, {r["strategy"] for r in json.loads(out)["rows"]}), (0, {"planner"}))
        self.assertRegex(err, "^dpr: bench: note: .*cpu.serial")

    def test_what_cannot_be_is_left_out(self):
        for wanted, *args in (("memory for", "--segments", "ones", "-n", "2^60"),
                              ("no array of so few elements", "--axes", "Nx4096:1", "-n", "4095")):
            document = self.measured("-s", "cpu.simd", *args)
            self.assertEqual(document["rows"], [])
            self.assertIn(wanted, document["left_out"][0]["why"])

    def test_formats(self):
        args = ("--segments", "zipf,ones", "-n", "1000", "-s", "cpu.simd")
        code, out, _ = run(*QUICK, *args)
        self.assertEqual(code, 0)
        self.assertRegex(out, r"(?m)^segments +elements +results +planner +cpu\.simd +best +choice +regret$")
        self.assertRegex(out, r"(?m)^ones +1000 +1000 .*\*")
        self.assertIn("Time over that of reading as many bytes", out)
        code, out, _ = run(*QUICK, *args, "-f", "csv")
        rows = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual((code, [r["segments"] for r in rows]), (0, ["zipf"] * 2 + ["ones"] * 2))
        self.assertTrue(all(r["axes"] == "" and r["ok"] == "1" and float(r["over_floor"]) > 0 for r in rows))


class Ladder(BenchTest):
    def setUp(self):
        super().setUp()
        self.gpus = self.document("info")["gpus"]

    def test_no_gpu(self):
        if self.gpus:
            self.skipTest("there is a GPU")
        self.bad("--ladder needs a GPU, and there is none: ", "bench", "--ladder")
        self.bad("--ladder needs a GPU, and there is none: ", "bench", "--ladder", "--memory", "device")
        self.bad("--ladder needs a GPU", "bench", "--ladder", "-n", "1000", "-t", "f32", "--block", "64", "-f", "json")

    def test_no_gpu_leaves_files_as_they_are(self):
        if self.gpus:
            self.skipTest("there is a GPU")
        for name, there in (("new.md", None), ("empty.md", b""), ("old.md", b"old\n")):
            path = self.folder + "/" + name if there is None else self.file(name, there)
            self.bad("--ladder needs a GPU", "bench", "--ladder", "-O", path)
            self.assertEqual(os.path.exists(path), there is not None)
            if there is not None:
                with open(path, "rb") as f:
                    self.assertEqual(f.read(), there)

    def ladder(self, *args):
        if not self.gpus:
            self.skipTest("there is no GPU")
        return json.loads(self.good("bench", "--ladder", "-q", "-a", "20%", "-f", "json", *args))

    def test_rows(self):
        document = self.ladder("-n", "2^20")
        rows = {r["strategy"]: r for r in document["rows"]}
        names = [s["name"] for s in self.document("info")["strategies"]
                 if s["side"] == "gpu" and not s["name"].startswith("dp.")]
        self.assertEqual(sorted(names), sorted([*rows, *(r["strategy"] for r in document["without_time"])]))
        families = [r["strategy"].split(".")[0] for r in document["rows"]]
        self.assertEqual(families, sorted(families, key=("ladder", "atomic", "coop", "flat").index))
        self.assertGreater(document["read_gb_per_s"], 0)
        first = rows["ladder.neighbored"]
        for row in rows.values():
            self.assertTrue(row["ok"], row)
            self.assertEqual((row["op"], row["dtype"], row["count"], row["mode"], row["cache"]),
                             ("sum", "i32", 2**20, "graph", "cold"))
            self.assertAlmostEqual(row["speedup"] * row["median_us"] / first["median_us"], 1, 3)
            self.assertAlmostEqual(row["share"] * document["read_gb_per_s"] / row["gb_per_s"], 1, 3)
            self.assertTrue(row["registers"] > 0 and 0 < row["occupancy"] <= 1, row)
            self.check_grid(row, document["device"]["sm_count"])
            if row["strategy"].startswith("ladder."):
                self.assertEqual(row["threads"], 512)

    def check_grid(self, row, sm_count):
        """What limits the occupancy is the grid where it has fewer blocks than the SMs hold."""
        self.assertGreater(row["blocks"], 0)
        self.assertEqual(row["limited_by"] == "grid", row["blocks"] < row["blocks_per_sm"] * sm_count, row)
        if row["strategy"] == "flat.block":
            self.assertEqual((row["blocks"], row["limited_by"]), (1, "grid"))
            self.assertLess(row["occupancy"] * sm_count, 1.001)

    def test_block(self):
        document = self.ladder("-n", "2^16", "--block", "64")
        for row in document["rows"]:
            self.assertTrue(row["ok"], row)
            if row["strategy"].startswith("ladder."):
                self.assertEqual(row["block"], 64)
            if "block" in row:
                self.assertEqual(row["threads"], 64)

    def test_strategies_that_cannot_run_are_named(self):
        document = self.ladder("-n", "2^16", "-o", "argmax", "-t", "bf16")
        self.assertIn("flat.lastblock", {r["strategy"] for r in document["rows"]})
        self.assertTrue(all(r["ok"] for r in document["rows"]))
        self.assertTrue(all(r["why"] for r in document["without_time"]))


class Nested(BenchTest):
    def setUp(self):
        super().setUp()
        info = self.document("info")
        self.gpus = info["gpus"]
        self.names = [s["name"] for s in info["strategies"] if s["name"].startswith("dp.")]

    def test_no_gpu(self):
        if self.gpus:
            self.skipTest("there is a GPU")
        self.bad("--nested needs a GPU, and there is none: ", "bench", "--nested")
        self.bad("--nested needs a GPU", "bench", "--nested", "-n", "1000", "--pools", "64", "--depth", "2", "-f",
                 "json")

    def test_no_gpu_leaves_files_as_they_are(self):
        if self.gpus:
            self.skipTest("there is a GPU")
        path, old = self.folder + "/new.md", self.file("old.md", b"old\n")
        for name in (path, old):
            self.bad("--nested needs a GPU", "bench", "--nested", "-O", name)
        self.assertFalse(os.path.exists(path))
        with open(old, "rb") as f:
            self.assertEqual(f.read(), b"old\n")

    def nested(self, *args):
        if not self.gpus:
            self.skipTest("there is no GPU")
        return json.loads(self.good("bench", "--nested", "-q", "-a", "20%", "-b", "20s", "-f", "json", *args))

    def check_cost(self, cost):
        """A launch has a time, or a reason why not."""
        self.assertNotEqual("median_us" in cost, "why" in cost, cost)
        if "median_us" in cost:
            self.assertTrue(0 < cost["median_us"] and cost["low_us"] <= cost["median_us"] <= cost["high_us"], cost)
            self.assertGreaterEqual(cost["samples"], 7)

    def test_launches(self):
        document = self.nested("-n", "2^12", "--pools", "2048")
        launches = {cost["launch"]: cost for cost in document["launches"]}
        for cost in launches.values():
            self.check_cost(cost)
            self.assertTrue(cost["text"], cost)
        for name in ("empty", "host", "graph.node", "graph", "chain.tail", "chain.forget", "fan.forget", "fan.block"):
            self.assertIn("median_us", launches[name])
        self.assertGreater(launches["chain.tail"]["median_us"], launches["graph.node"]["median_us"])
        self.assertGreater(launches["first.tail"]["median_us"], launches["chain.tail"]["median_us"])
        self.assertLessEqual(document["fan"][0] * document["fan"][1], document["pending"])

    def test_pools(self):
        document = self.nested("-n", "2^12", "--pools", "64,8192")
        for asked, pool in zip((64, 8192), document["pools"]):
            self.check_cost(pool)
            self.assertIn("median_us", pool)
            self.assertEqual(pool["asked"], asked)
            self.assertGreaterEqual(pool["pending"], asked)
        small, large = document["pools"]
        self.assertLess(small["reserved_bytes"], large["reserved_bytes"])

    def test_rows(self):
        document = self.nested("-n", "1000,2^16", "--pools", "2048")
        rows = document["rows"]
        self.assertEqual(document["without_time"], [])
        for count in (1000, 2**16):
            here = [r for r in rows if r["count"] == count]
            self.assertEqual([r["strategy"] for r in here[1:]], self.names)
            self.assertEqual([r["chosen"] for r in here], [True] + [False] * len(self.names))
            for row in here:
                self.assertTrue(row["ok"], row)
                self.assertEqual((row["op"], row["dtype"], row["mode"], row["cache"]), ("sum", "i32", "graph", "cold"))
                self.assertAlmostEqual(row["ratio"] * here[0]["median_us"] / row["median_us"], 1, 3)
                self.assertEqual("nested" in row, row is not here[0])
            for row in here[1:]:
                self.assertEqual(row["nested"]["failed"], 0, row)
                if row["strategy"] != "dp.tree":
                    self.assertTrue(row["nested"]["launched"] > 0 and row["nested"]["deepest"] > 0, row)

    def test_depth_and_block(self):
        document = self.nested("-n", "2^12", "--pools", "2048", "--depth", "2", "--block", "64")
        for row in document["rows"][1:]:
            self.assertTrue(row["ok"] and row["depth"] == 2 and row["nested"]["deepest"] <= 2, row)
            if row["strategy"] != "dp.tree":
                self.assertTrue(row["block"] == 64 and row["nested"]["in_line"] > 0, row)

    def test_strategies_that_cannot_run_are_named(self):
        document = self.nested("-n", "2^12", "-o", "argmax", "-t", "bf16", "--pools", "2048")
        self.assertIn("dp.tree", {r["strategy"] for r in document["rows"]})
        missing = [r["strategy"] for r in document["without_time"]]
        self.assertEqual(missing, [name for name in self.names if name != "dp.tree"])
        self.assertTrue(all(r["why"] for r in document["without_time"]))


if __name__ == "__main__":
    unittest.main()
