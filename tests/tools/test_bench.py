"""dpr bench on the CPU: the command line, what is measured, formats, budget and interrupts. Times are not judged."""

import contextlib
import csv
import fcntl
import io
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from support import DPR, ToolTest, run

QUICK = ("bench", "--device", "cpu", "--accuracy", "50%")


def available():
    """Bytes of memory that can be taken."""
    with open("/proc/meminfo", encoding="ascii") as f:
        return [int(line.split()[1]) * 1024 for line in f if line.startswith("MemAvailable:")][0]


class BenchTest(ToolTest):
    def measured(self, *args, expect=0, quiet=True):
        """The JSON document of a measurement."""
        code, out, err = run(*QUICK, "--format", "json", *(["-q"] if quiet else []), *args)
        self.assertEqual(code, expect, err)
        return json.loads(out)


class Help(ToolTest):
    def test_text(self):
        text = self.good("help", "bench")
        self.assertTrue(text.startswith("Usage: dpr bench "), text)
        self.assertEqual(self.good("bench", "-h"), text)
        self.assertIn("  bench ", self.good("--help"))
        for part in ("Examples:", "Operations:", "Types:", "Strategies of this build:", "cold", "Exit status:"):
            self.assertIn(part, text)
        for line in text.splitlines():
            self.assertLessEqual(len(line), 110, line)
        gpu = any(s["side"] == "gpu" for s in self.document("info")["strategies"])
        self.assertEqual("\nDemonstrations, " in text, gpu)

    def test_examples_are_understood(self):
        """With a help option at the end, so that nothing is measured."""
        examples = [line for line in self.good("help", "bench").splitlines() if line.startswith("  dpr bench")]
        self.assertGreaterEqual(len(examples), 3)
        gpu = any(s["side"] == "gpu" for s in self.document("info")["strategies"])
        for line in examples:
            if "flat.*" in line and not gpu:
                continue
            words = re.split(r"  +|>", line.strip())[0].replace("'", "").split()
            self.good(*words[1:], "--help")


class Usage(ToolTest):
    def test_mistakes(self):
        for wanted, *args in (
                ("--count: 'abc' is no number", "-n", "1e6,abc"),
                ("--count: '' is no number", "-n", "1,"),
                ("the range 5:1 goes down", "-n", "5:1"),
                ("by a factor cannot begin at 0", "-n", "0:10"),
                ("the factor 'x1' must be more than 1", "-n", "1:10:x1"),
                ("'y' is no step", "-n", "1:10:y"),
                ("'x2y' is no step", "-n", "1:10:x2y"),
                ("'xnan' is no step", "-n", "1:10:xnan"),
                ("a step of 0 goes nowhere", "-n", "1:10:+0"),
                ("more than 1024 counts", "-n", "1:2^60:+1"),
                ("more than 1024 counts", "-n", "1:2^60:x1.0001"),
                ("--op: 'summ' is none of sum, prod, ", "--op", "sum,summ"),
                ("--op: 'summ' is none of sum, prod, ", "--op", "max,var+summ"),
                ("--op: '' is none of sum, prod, ", "-o", "sum+"),
                ("--op: '" + "+".join(["sum"] * 9) + "' has more than 8 operations", "-o", "+".join(["sum"] * 9)),
                ("--op: 'sum+band': band has no meaning for f32\n", "-o", "sum,sum+band", "-t", "i32,f32"),
                ("--dtype: 'f31' is none of bool, i8, ", "--dtype", "f31"),
                ("--mode: 'grpah' is none of graph, stream, blocking\n", "-m", "grpah"),
                ("--cache: 'warm' is none of cold, hot, both\n", "-c", "warm"),
                ("--strategy: 'cpu.simdd' is none of cpu.serial, cpu.simd, ", "-s", "cpu.simdd"),
                ("--strategy: no name is of the family 'flot.*'", "-s", "flot.*"),
                ("--strategy: no name is of the family '.*'", "-s", ".*"),
                ("--format: 'jsn' is none of table, csv, json, markdown\n", "-f", "jsn"),
                ("--budget: '0' is no time", "-b", "0"),
                ("--budget: '5x' is no time", "-b", "5x"),
                ("--budget: '-1' is no time", "-b", "-1"),
                ("--accuracy: '0' is no share", "-a", "0"),
                ("--accuracy: '101%' is no share", "-a", "101%"),
                ("the CPU has blocking calls only", "-d", "cpu", "-m", "graph"),
                ("has a meaning", "-o", "band", "-t", "f32"),
                ("--block: '48' is none of 32, 64, 128, 256, 512 and 1024", "--block", "48"),
                ("--block: 'x' is no number", "--block", "x"),
                ("--block is of GPU strategies: the CPU has none of them", "-d", "cpu", "--block", "64"),
                ("--ladder is of a GPU's strategies", "--ladder", "-d", "cpu"),
                ("--ladder is of at most 16 sizes, and --count has 17", "--ladder", "-n", "1:17:+1"),
                ("--ladder is of one operation and one type", "--ladder", "-o", "sum,min"),
                ("--ladder is of one operation and one type", "--ladder", "-o", "sum+min"),
                ("--ladder is of one operation and one type", "--ladder", "-t", "all"),
                ("leave --mode and --cache out", "--ladder", "-m", "stream"),
                ("leave --mode and --cache out", "--ladder", "-c", "both"),
                ("leave --strategy out", "--ladder", "-s", "all"),
                ("op band has no meaning for dtype f32", "--ladder", "-o", "band", "-t", "f32"),
                ("--nested and --ladder are measured one at a time", "--nested", "--ladder"),
                ("--nested is of a GPU's strategies", "--nested", "-d", "cpu"),
                ("--nested is of one operation and one type", "--nested", "-o", "sum,min"),
                ("--nested is of one operation and one type", "--nested", "-t", "all"),
                ("--nested is of at most 16 sizes, and --count has 17", "--nested", "-n", "1:17:+1"),
                ("leave --mode and --cache out", "--nested", "-m", "stream"),
                ("leave --mode and --cache out", "--nested", "-c", "hot"),
                ("leave --strategy out", "--nested", "-s", "all"),
                ("op band has no meaning for dtype f32", "--nested", "-o", "band", "-t", "f32"),
                ("--pools: 'x' is no number", "--nested", "--pools", "64,x"),
                ("--pools: '' is no number", "--nested", "--pools", "64,"),
                ("--pools: '3' is not from 16 to 16777216 launches", "--nested", "--pools", "3"),
                ("there are more than 16 pools", "--nested", "--pools", "64:80:+1"),
                ("--depth: '0' is no number of launches below each other", "--nested", "--depth", "0"),
                ("--depth: 'x' is no number", "--nested", "--depth", "x"),
                ("options->launch->max_depth is 1000", "--nested", "--depth", "1000"),
                ("--segments: 'uniform' is none of ones, uniform-8, ", "--segments", "ones,uniform"),
                ("--offsets: 'i16' is none of i32, u32, i64, u64\n", "--segments", "ones", "--offsets", "i16"),
                ("--offsets belongs to --segments", "--axes", "all", "--offsets", "i64"),
                ("--axes: '16x16' does not say which dimensions are reduced", "--axes", "16x16"),
                ("--axes: '16x16:2': '2' is no dimension from 0 to 1 that is named once", "--axes", "16x16:2"),
                ("--axes: '16x16:1,1': '1' is no dimension from 0 to 1 that is named once", "--axes", "16x16:1,1"),
                ("--axes: '16x0:1' has a dimension of 0", "--axes", "16x0:1"),
                ("--axes: 'y' is no number", "--axes", "16xy:1"),
                ("a pitch is that of a number after the first", "--axes", "16/32x2:1"),
                ("a pitch is that of a number after the first", "--axes", "16x32/2:1"),
                ("has more than 8 dimensions", "--axes", "x".join("1" * 9) + ":1"),
                ("--segments and --axes are measured one at a time", "--axes", "all", "--segments", "all"),
                ("without --ladder, --nested and --block", "--segments", "all", "--ladder"),
                ("without --ladder, --nested and --block", "--axes", "all", "--block", "64"),
                ("--segments is of single operations, and sum+max is a set", "--segments", "all", "-o", "sum+max"),
                ("--axes is of operations with exact results: sum, min, ", "--axes", "all", "-o", "mean,prod"),
                ("--pools belongs to --nested", "--pools", "64"),
                ("--depth belongs to --nested", "--ladder", "--depth", "4"),
                ("--plot is without --ladder, --nested, --segments and --axes", "--plot", "--axes", "all"),
                ("--plot is without --ladder, --nested, --segments and --axes", "--plot", "--ladder"),
                ("which has the report as json: name a file with --output", "--plot", "-f", "json"),
                ("the operand 'x' makes no sense here", "x")):
            err = self.bad(wanted, "bench", *args, expect=2)
            self.assertIn("Try 'dpr bench --help'", err)

    def test_no_such_gpu(self):
        self.bad("1000", "bench", "-d", "1000")

    def test_block_without_a_gpu(self):
        if self.document("info")["gpus"]:
            self.skipTest("there is a GPU")
        self.bad("--block is of GPU strategies, and there is no GPU: ", "bench", "--block", "64")

    def test_block_of_strategies_that_have_their_own(self):
        if not self.document("info")["gpus"]:
            self.skipTest("there is no GPU")
        wanted = "no strategy that is asked for lets its block size be chosen"
        hint = " (name some, as -s 'ladder.*', or use --ladder)"
        self.assertIn(wanted + hint, self.bad(wanted, "bench", "--block", "64", expect=2))
        self.assertNotIn(hint, self.bad(wanted, "bench", "-s", "flat.*", "--block", "64", expect=2))

    def test_unwritable_output_is_found_out_before(self):
        began = time.monotonic()
        self.bad("/none/x.json: cannot be written", *QUICK, "-O", self.folder + "/none/x.json")
        self.assertLess(time.monotonic() - began, 5)


class Measurement(BenchTest):
    def test_rows_and_regret(self):
        document = self.measured("-n", "1000,2^16", "-o", "sum,argmax", "-t", "f32,u8", "-c", "both")
        rows, regrets = document["rows"], document["regret"]
        key = ("op", "dtype", "count", "mode", "cache")
        cases = {tuple(r[k] for k in key) for r in rows}
        self.assertEqual(len(cases), 2 * 2 * 2 * 2)
        self.assertEqual(document["left_out"], [])
        self.assertEqual([tuple(r[k] for k in key) for r in regrets], list(dict.fromkeys(tuple(r[k] for k in key) for r in rows)))
        for row in rows:
            self.assertTrue(row["ok"], row)
            self.assertEqual((row["mode"], row["wrong"]), ("blocking", 0))
            self.assertGreaterEqual(row["checked"], row["samples"] * row["calls"])
            self.assertTrue(0 < row["low_us"] <= row["median_us"] <= row["high_us"], row)
            size = row["count"] * (4 if row["dtype"] == "f32" else 1)
            self.assertAlmostEqual(row["gb_per_s"] * row["median_us"] / size * 1e3, 1, 3)
        for regret in regrets:
            here = [r for r in rows if all(r[k] == regret[k] for k in key)]
            best = min(here, key=lambda r: r["median_us"])
            (chosen,) = [r for r in here if r["chosen"]]
            self.assertEqual((regret["winner"], regret["chosen"]), (best["strategy"], chosen["strategy"]))
            self.assertAlmostEqual(regret["regret_us"], chosen["median_us"] - best["median_us"], 2)

    def test_choice_is_that_of_plan(self):
        for row in self.measured("-n", "100,2^20", "-s", "cpu.*")["rows"]:
            plan = self.document("plan", "-n", row["count"], "--device", "cpu")
            self.assertEqual(row["chosen"], row["strategy"] == plan["choice"], row)

    def test_every_operation_is_right(self):
        cpu = {s["name"] for s in self.document("info")["strategies"] if s["side"] == "cpu"}
        for dtypes in ("bool,i8,u32", "f16,f32,c64"):
            document = self.measured("-n", "1,20000", "-o", "all", "-t", dtypes, "-b", "5m")
            self.assertEqual(document["left_out"], [])
            self.assertTrue(all(r["ok"] for r in document["rows"]))
            self.assertEqual({r["strategy"] for r in document["rows"]}, cpu)

    def test_sets_of_operations(self):
        cpu = {s["name"] for s in self.document("info")["strategies"] if s["side"] == "cpu"}
        ops = ["min+max+mean", "sum", "sum+var", "prod+argmin+argmax+all+any+count+minmax+norm2"]
        document = self.measured("-n", "1,65536,65537", "-o", ",".join(ops), "-t", "u8,f64", "-b", "5m")
        self.assertEqual(list(dict.fromkeys(r["op"] for r in document["rows"])), ops)
        self.assertEqual(document["left_out"], [])
        for op in ops:
            rows = [r for r in document["rows"] if r["op"] == op]
            self.assertEqual(len(rows), 3 * 2 * len(cpu))
            self.assertEqual({r["strategy"] for r in rows}, cpu)
            self.assertTrue(all(r["ok"] and r["checked"] for r in rows))
        self.assertEqual({r["op"] for r in document["regret"]}, set(ops))

    def test_strategies_are_those_asked_for_and_the_choice(self):
        document = self.measured("-n", "2^20", "-s", "cpu.serial")
        rows = {r["strategy"]: r["chosen"] for r in document["rows"]}
        self.assertIn("cpu.serial", rows)
        self.assertEqual(sum(rows.values()), 1)
        self.assertLessEqual(len(rows), 2)

    def test_strategies_that_cannot_run_are_noted(self):
        gpu = [s["name"] for s in self.document("info")["strategies"] if s["side"] == "gpu"]
        if not gpu:
            self.skipTest("this build has CPU strategies only")
        code, out, err = run(*QUICK, "-n", "10", "-s", gpu[0], "-f", "csv")
        self.assertEqual((code, gpu[0] in out), (0, False))
        self.assertIn(gpu[0], err)

    def test_no_elements(self):
        document = self.measured("-n", "0", "-o", "sum,argmax,min")
        self.assertEqual({r["op"] for r in document["rows"]}, {"sum", "min"})
        self.assertEqual([(o["op"], o["count"]) for o in document["left_out"]], [("argmax", 0)])
        self.assertIn("argmax has no result for zero elements", document["left_out"][0]["why"])

    def test_sizes_that_do_not_fit_are_left_out(self):
        document = self.measured("-n", "100,2^62", "-c", "cold")
        self.assertEqual({r["count"] for r in document["rows"]}, {100})
        why = document["left_out"][0]["why"]
        self.assertRegex(why, r"^the array has 16 EiB or more, and there is memory for [0-9.]+ [KMGT]iB$")
        bytes_of = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
        number, unit = why.split()[-2:]
        self.assertLess(float(number) * bytes_of[unit], available())
        self.assertGreater(float(number) * bytes_of[unit], min(available() / 4, 2**31))

    def test_a_large_array_needs_no_round_size(self):
        """Where it makes up all of the pool, which has whole blocks."""
        if available() < 2**32:
            self.skipTest("there is little memory")
        document = self.measured("-t", "u8", "-n", str(2**30 + 1), "-s", "cpu.simd")
        self.assertEqual(document["left_out"], [])
        self.assertTrue(document["rows"] and all(r["ok"] for r in document["rows"]))
        cache = document["device"]["cache_bytes"]
        self.assertIn("stay in a cache", self.measured("-n", str(cache // 4), "-c", "hot")["left_out"][0]["why"])

    def test_document(self):
        document = self.measured("-n", "100", "--commit", "a \"name\"")
        self.assertEqual((document["benchmark"], document["commit"]), ("dpr bench", "a \"name\""))
        self.assertIn(f"dpr {document['version']}\n", self.good("--version"))
        self.assertEqual(document["device"]["kind"], "cpu")
        self.assertEqual(document["device"]["name"], self.document("info")["cpu"]["name"])
        self.assertEqual(document["interrupted"], False)
        for definition in ("blocking", "cold", "hot", "interval", "block"):
            self.assertIn(definition, document["definitions"])


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
        self.check_rows(self.measured("--axes", ",".join(names), "-n", "10000"), names, "axes")

    def test_every_array(self):
        document = self.measured("--axes", "all", "-n", "50000", "-o", "min", "-t", "i16")
        self.assertEqual(len(document["regret"]), 12)
        self.assertEqual({r["strategy"] for r in document["rows"]}, {"planner", "cpu.simd", "cpu.threads"})

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


class Formats(BenchTest):
    def test_csv(self):
        code, out, _ = run(*QUICK, "-n", "10,100", "-f", "csv")
        rows = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual((code, {r["count"] for r in rows}), (0, {"10", "100"}))
        for row in rows:
            self.assertTrue(float(row["low_us"]) <= float(row["median_us"]) <= float(row["high_us"]))
            self.assertEqual((row["ok"], row["op"], row["mode"]), ("1", "sum", "blocking"))

    def test_table_and_markdown(self):
        code, out, _ = run(*QUICK, "-n", "2^10,1000", "-o", "max")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"(?m)^max of f32, blocking calls, cold cache:$")
        self.assertRegex(out, r"(?m)^elements +bytes +cpu\.\w+ .* best +choice +regret$")
        self.assertRegex(out, r"(?m)^ *1000 +3\.91 KiB .*\*")
        self.assertRegex(out, r"(?m)^ *2\^10 +4\.00 KiB .*\*")
        code, out, _ = run(*QUICK, "-n", "1000", "-o", "sum+var")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"(?m)^sum\+var of f32, blocking calls, cold cache:$")
        code, out, _ = run(*QUICK, "-n", "100", "-f", "markdown")
        table = [line for line in out.splitlines() if line.startswith("|")]
        self.assertEqual(code, 0)
        self.assertEqual({line.count("|") for line in table[:3]}, {table[0].count("|")})
        self.assertRegex(table[1], r"^(\|--:)+\|$")

    def test_format_follows_the_file(self):
        for name, begin in (("x.json", "{\"benchmark\""), ("x.csv", "strategy,"), ("x.md", "## "), ("x", "")):
            path = self.folder + "/" + name
            code, out, err = run(*QUICK, "-n", "10", "-O", path)
            self.assertEqual((code, out, err), (0, "", ""))
            with open(path, encoding="utf-8") as f:
                self.assertTrue(f.read().startswith(begin))
        self.assertEqual(sorted(os.listdir(self.folder)), ["x", "x.csv", "x.json", "x.md"])

    def test_output_to_what_is_no_file(self):
        code, out, err = run(*QUICK, "-n", "10", "-f", "csv", "-O", "/dev/stdout")
        self.assertEqual((code, err), (0, ""))
        self.assertTrue(out.startswith("strategy,"))
        with open("/dev/full", "wb") as full:
            code, _, err = run(*QUICK, "-n", "10", stdout=full)
        self.assertEqual(code, 1)
        self.assertIn("cannot be written", err)


class Time(BenchTest):
    def test_budget(self):
        began = time.monotonic()
        code, out, err = run("bench", "-d", "cpu", "-n", "2^10:2^24:x2", "-o", "all", "-t", "all", "-b", "3s", "-f",
                             "json")
        spent = time.monotonic() - began
        document = json.loads(out)
        self.assertEqual(code, 0)
        self.assertLess(spent, 20)
        self.assertTrue(document["rows"])
        self.assertTrue(all(o["why"].startswith("the budget was spent") for o in document["left_out"]))
        self.assertRegex(err, rf"(?m)^dpr: bench: note: {len(document['left_out'])} combinations were left out; the first: "
                              r"the budget was spent( when .*)?$")

    def interrupt(self, number, path):
        """Exit code and output after a signal, sent when something has been measured."""
        with subprocess.Popen([DPR, "bench", "-d", "cpu", "-n", "1000:1000000:+1000", "-a", "0.001%", "-b", "10m", "-q",
                               "-O", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            began = time.monotonic()
            while (not os.path.exists(path) or os.path.getsize(path) == 0) and time.monotonic() - began < 60:
                time.sleep(0.1)
            p.send_signal(number)
            out, err = p.communicate(timeout=60)
        return p.returncode, out, err

    def test_interrupt_keeps_what_was_measured(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            path = f"{self.folder}/{number}.json"
            code, out, err = self.interrupt(number, path)
            self.assertEqual((code, out, err), (128 + number, b"", b""))
            with open(path, encoding="utf-8") as f:
                document = json.load(f)
            self.assertEqual(document["interrupted"], True)
            self.assertTrue(document["rows"])
            self.assertEqual({o["why"] for o in document["left_out"]}, {"interrupted"})

    def test_the_file_is_whole_when_the_program_is_killed(self):
        path = self.folder + "/x.json"
        code, _, _ = self.interrupt(signal.SIGKILL, path)
        self.assertEqual(code, -signal.SIGKILL)
        with open(path, encoding="utf-8") as f:
            self.assertTrue(json.load(f)["rows"])

    def large(self):
        """Bytes of an array whose data takes seconds to make, of which a part will be."""
        if available() < 2**32:
            self.skipTest("there is little memory")
        return min(available() // 2, 2**33)

    def test_making_data_is_in_the_budget(self):
        began = time.monotonic()
        count = self.large()
        code, out, err = run("bench", "-d", "cpu", "-t", "u8", "-n", str(count), "-b", "300ms", "-f", "json")
        self.assertLess(time.monotonic() - began, 5)
        (left_out,) = json.loads(out)["left_out"]
        wanted = "the budget was spent when [0-9]+ of [0-9]+ MiB of memory were filled"
        self.assertEqual((code, left_out["count"]), (0, count))
        self.assertRegex(left_out["why"], f"^{wanted}$")
        self.assertRegex(err, f"^dpr: bench: note: 1 combination was left out; the first: {wanted}\n$")

    def test_making_data_can_be_interrupted(self):
        """Long before all of it is there."""
        count = self.large()
        for number in (signal.SIGINT, signal.SIGTERM):
            with subprocess.Popen([DPR, "bench", "-d", "cpu", "-t", "u8", "-n", str(count), "-b", "10m", "-f", "json"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
                resident = 0
                while resident < 2**28:
                    with open(f"/proc/{p.pid}/statm", encoding="ascii") as f:
                        resident = int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
                p.send_signal(number)
                out, err = p.stdout.read(), p.stderr.read()
                _, status, usage = os.wait4(p.pid, 0)
                p.returncode = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
            self.assertEqual(p.returncode, 128 + number, err)
            self.assertLess(usage.ru_maxrss * 1024, count * 3 / 4)
            document = json.loads(out)
            self.assertEqual((document["interrupted"], document["rows"]), (True, []))
            self.assertEqual([o["why"] for o in document["left_out"]], ["interrupted"])

    def test_second_interrupt_ends_the_program(self):
        with subprocess.Popen([DPR, "bench", "-d", "cpu", "-n", "2^26", "-s", "cpu.serial", "-b", "10m"],
                              stdout=subprocess.PIPE) as p:
            began = time.monotonic()
            while p.poll() is None and time.monotonic() - began < 60:
                p.send_signal(signal.SIGINT)
                time.sleep(0.001)
            p.communicate(timeout=60)
        self.assertEqual(p.returncode, -signal.SIGINT)

    def test_live_line_only_on_a_terminal(self):
        for quiet in ([], ["-q"]):
            terminal, other = pty.openpty()
            shown = b""
            with subprocess.Popen([DPR, "bench", "-d", "cpu", "-n", "2^10:2^20:x2", "-a", "0.001%", "-b", "4s", *quiet],
                                  stderr=other, stdout=subprocess.DEVNULL) as p:
                os.close(other)
                while p.poll() is None:
                    if select.select([terminal], [], [], 0.2)[0]:
                        try:
                            shown += os.read(terminal, 4096)
                        except OSError:  # the other end is closed
                            break
            os.close(terminal)
            if quiet:
                self.assertEqual(shown, b"")
            else:
                self.assertRegex(shown.decode(), r"\d+ of 11  sum of f32, blocking, cold, [\d^]+ elements  \d+ s left")


class Plot(ToolTest):
    ARGS = (*QUICK, "-q", "-n", "2^6:2^16:x4", "-t", "f32,u8", "-s", "cpu.serial,cpu.simd", "--plot")

    def plots(self, text):
        """The lines of each plot."""
        parts = text.split(", time against elements:\n")[1:]
        return [[line for line in part.splitlines() if line.startswith(" ")] for part in parts]

    def test_below_the_table(self):
        for env, plain in (({"LC_ALL": "C"}, True), ({"LC_ALL": "", "LC_CTYPE": "", "LANG": "de_DE.utf8"}, False),
                           ({"LC_ALL": "C.UTF-8"}, False), ({"LC_ALL": "POSIX", "LANG": "C.UTF-8"}, True)):
            text = self.good(*self.ARGS, env=env)
            self.assertLess(text.index("Marks: "), text.index(", time against"))
            plots = self.plots(text)
            self.assertEqual(len(plots), 2)
            for lines in plots:
                self.assertEqual("".join(lines).isascii(), plain, env)
                self.assertTrue(all(len(line) <= 80 for line in lines))
                self.assertTrue(lines[-1].split()[1::2][:2] == ["cpu.serial", "cpu.simd"], lines[-1])
                self.assertTrue(lines[-2].startswith("          2^6") and lines[-2].endswith("2^16"), lines[-2])

    def test_next_to_a_file(self):
        path = os.path.join(self.folder, "x.json")
        text = self.good(*self.ARGS, "-O", path, env={"LC_ALL": "C"})
        self.assertTrue(text.startswith("\nsum of u8, blocking calls, cold cache, time against elements:\n"), text)
        with open(path, encoding="utf-8") as f:
            self.assertEqual(len(json.load(f)["rows"]), len({"cpu.serial", "cpu.simd"}) * 2 * 6)

    def test_width_of_the_terminal(self):
        main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
        p = subprocess.Popen([DPR, *self.ARGS], stdout=side, stderr=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C"})
        os.close(side)
        got = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while part := os.read(main, 65536):
                got += part
        os.close(main)
        self.assertEqual(p.wait(60), 0)
        axes = [line for line in got.decode().splitlines() if line.strip().startswith("+---")]
        self.assertEqual([len(line.rstrip()) for line in axes], [119, 119])


if __name__ == "__main__":
    unittest.main()
