"""dpr bench on the CPU: the command line, what is measured, and formats. Times are not judged."""

import contextlib
import csv
import fcntl
import io
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import termios
import time
import unittest

from support import DPR, QUICK, SMALL_CACHE, BenchTest, ToolTest, available, run, use_small_cache


def setUpModule():
    use_small_cache()


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
                ("--memory: 'pined' is none of host, pinned, managed, device\n", "--memory", "pined"),
                ("--memory: pinned memory is a GPU's, and --device is cpu", "-d", "cpu", "--memory", "pinned"),
                ("--memory: device memory is a GPU's, and --device is cpu", "-d", "cpu", "--memory", "device"),
                ("--ladder and --nested measure device memory", "--memory", "pinned", "--ladder"),
                ("--ladder and --nested measure device memory", "--memory", "host", "--nested"),
                ("--segments and --axes the device's usual kind", "--memory", "managed", "--axes", "all"),
                ("--ladder is of a GPU's strategies", "--ladder", "-d", "cpu"),
                ("--ladder is of at most 16 sizes, and --count has 17", "--ladder", "-n", "1:17:+1"),
                ("--ladder is of one operation and one type", "--ladder", "-o", "sum,min"),
                ("--ladder is of one operation and one type", "--ladder", "-o", "sum+min"),
                ("--ladder is of one operation and one type", "--ladder", "-t", "all"),
                ("leave --mode and --cache out", "--ladder", "-m", "stream"),
                ("leave --mode and --cache out", "--ladder", "-c", "both"),
                ("leave --strategy out", "--ladder", "-s", "all"),
                ("bench: band has no meaning for f32\n", "--ladder", "-o", "band", "-t", "f32"),
                ("--nested and --ladder are measured one at a time", "--nested", "--ladder"),
                ("--nested is of a GPU's strategies", "--nested", "-d", "cpu"),
                ("--nested is of one operation and one type", "--nested", "-o", "sum,min"),
                ("--nested is of one operation and one type", "--nested", "-t", "all"),
                ("--nested is of at most 16 sizes, and --count has 17", "--nested", "-n", "1:17:+1"),
                ("leave --mode and --cache out", "--nested", "-m", "stream"),
                ("leave --mode and --cache out", "--nested", "-c", "hot"),
                ("leave --strategy out", "--nested", "-s", "all"),
                ("bench: band has no meaning for f32\n", "--nested", "-o", "band", "-t", "f32"),
                ("--pools: 'x' is no number", "--nested", "--pools", "64,x"),
                ("--pools: '' is no number", "--nested", "--pools", "64,"),
                ("--pools: '3' is not from 16 to 16777216 launches", "--nested", "--pools", "3"),
                ("there are more than 16 pools", "--nested", "--pools", "64:80:+1"),
                ("--depth: '0' is no number of launches below each other", "--nested", "--depth", "0"),
                ("--depth: 'x' is no number", "--nested", "--depth", "x"),
                ("--depth: '1000' is no number of launches below each other from 1 to 24\n", "--nested", "--depth",
                 "1000"),
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
                ("--axes is of operations with exact results: sum, min, ", "--axes", "all", "-o", "var,prod"),
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


class Memory(ToolTest):
    def gpus(self):
        return self.document("info")["gpus"]

    def test_without_a_gpu(self):
        if self.gpus():
            self.skipTest("there is a GPU")
        self.bad("--memory: pinned memory is a GPU's, and there is none: ", "bench", "--memory", "pinned")
        self.assertIn("cpu.simd", self.good("bench", "--memory", "host", "-n", "1000", "-b", "2s", "-a", "50%"))

    def test_of_a_gpu(self):
        if not self.gpus():
            self.skipTest("there is no GPU")
        self.bad("--memory: the GPU does not read host memory that is not pinned", "bench", "--memory", "host", expect=2)
        for memory in ("pinned", "managed"):
            rows = json.loads(self.good("bench", "--memory", memory, "-m", "all", "-n", "1000,2^18", "-o", "sum,argmax",
                                        "-a", "20%", "-b", "20s", "-f", "json"))["rows"]
            self.assertTrue(all(r["ok"] and r["memory"] == memory for r in rows), rows)
            for mode in ("graph", "stream", "blocking"):
                by_both = memory == "pinned" and mode == "blocking"
                chosen = [r["strategy"] for r in rows if r["mode"] == mode and r["chosen"]]
                self.assertEqual(len(chosen), 4, chosen)
                self.assertTrue(by_both or not any(s.startswith("cpu.") for s in chosen), chosen)
                strategies = {r["strategy"] for r in rows if r["mode"] == mode}
                self.assertEqual(("flat.block" in strategies, "cpu.simd" in strategies), (True, by_both), strategies)
            for r in rows:
                launched = r["mode"] != "graph" and not r["strategy"].startswith("cpu.")
                self.assertEqual("launch_us" in r, launched, r)
                short = launched and r["samples"] >= 6 and r["median_us"] <= 4 * r["launch_us"]
                self.assertTrue("steady_us" in r if short else launched or "steady_us" not in r, r)
        usual = self.good("bench", "--memory", "device", "-n", "1000", "-a", "20%", "-b", "5s", "-f", "json")
        self.assertNotIn('"memory":', usual.split('"rows"')[1])


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
            document = self.measured("-n", "1,20000", "-o", "all", "-t", dtypes, "-b", "90s")
            self.assertEqual(document["left_out"], [])
            self.assertTrue(all(r["ok"] for r in document["rows"]))
            self.assertEqual({r["strategy"] for r in document["rows"]}, cpu)

    def test_sets_of_operations(self):
        cpu = {s["name"] for s in self.document("info")["strategies"] if s["side"] == "cpu"}
        ops = ["min+max+mean", "sum", "sum+var", "prod+argmin+argmax+all+any+count+minmax+norm2"]
        document = self.measured("-n", "1,65536,65537", "-o", ",".join(ops), "-t", "u8,f64", "-b", "90s")
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
        self.assertEqual(document["left_out"][0]["why"], "argmax has no result for zero elements")

    def test_sizes_that_do_not_fit_are_left_out(self):
        document = self.measured("-n", "100,2^62", "-c", "cold")
        self.assertEqual({r["count"] for r in document["rows"]}, {100})
        why = document["left_out"][0]["why"]
        self.assertRegex(why, r"^the array has 16 EiB or more, and there is memory for [0-9.]+ [KMGT]iB$")
        bytes_of = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
        number, unit = why.split()[-2:]
        self.assertLess(float(number) * bytes_of[unit], available())
        self.assertGreater(float(number) * bytes_of[unit], min(available() / 4, 2**31))

    def test_nothing_is_measured(self):
        code, out, err = run(*QUICK, "-n", "2^62", "-f", "json")
        self.assertEqual((code, json.loads(out)["rows"]), (0, []))
        self.assertIn("1 combination was left out; the first: the array has 16 EiB or more", err)
        self.assertIn("Exit status: 0 if all went well, even if every combination was left out; 1 if a strategy ",
                      self.good("help", "bench"))

    def test_a_large_array_needs_no_round_size(self):
        """Where it makes up all of the pool, which has whole blocks, and for this cache at least 64 MiB."""
        document = self.measured("-t", "u8", "-n", str(2**26 + 1), "-s", "cpu.simd")
        self.assertEqual(document["left_out"], [])
        self.assertTrue(document["rows"] and all(r["ok"] for r in document["rows"]))
        cache = document["device"]["cache_bytes"]
        self.assertIn("stay in a cache", self.measured("-n", str(cache // 4), "-c", "hot")["left_out"][0]["why"])

    def test_document(self):
        for name in SMALL_CACHE:  # this one has the machine's own caches
            del os.environ[name]
        self.addCleanup(os.environ.update, SMALL_CACHE)
        document = self.measured("-n", "100", "--commit", "a \"name\"")
        self.assertEqual((document["benchmark"], document["commit"]), ("dpr bench", "a \"name\""))
        self.assertIn(f"dpr {document['version']}\n", self.good("--version"))
        self.assertEqual(document["device"]["kind"], "cpu")
        self.assertEqual(document["device"]["name"], self.document("info")["cpu"]["name"])
        self.assertEqual(document["interrupted"], False)
        for definition in ("blocking", "cold", "hot", "interval", "block"):
            self.assertIn(definition, document["definitions"])


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

    def test_markup_in_markdown(self):
        code, out, _ = run(*QUICK, "-q", "-n", "10", "-f", "markdown", "--commit", "a|b<img src=x>")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"\A## .* a\\\|b&lt;img src=x&gt;\n")

    def test_output_to_a_link(self):
        """The link stays, and its target is written."""
        link, target = (os.path.join(self.folder, name) for name in ("link.json", "target"))
        os.symlink(target, link)
        for _ in range(2):  # at first it leads to nothing
            self.assertEqual(run(*QUICK, "-q", "-n", "10", "-O", link), (0, "", ""))
            self.assertTrue(os.path.islink(link))
            with open(target, encoding="utf-8") as f:
                self.assertEqual(json.load(f)["interrupted"], False)
        self.assertEqual(sorted(os.listdir(self.folder)), ["link.json", "target"])

    def test_a_file_of_a_killed_program_is_not_complete(self):
        """The file is there in time although its name is a link."""
        path, target = (os.path.join(self.folder, name) for name in ("x.json", "target"))
        os.symlink(target, path)
        with subprocess.Popen([DPR, "bench", "-d", "cpu", "-n", "1000:1000000:+1000", "-a", "0.001%", "-b", "10m", "-q",
                               "-O", path]) as p:
            self.addCleanup(p.kill)
            began = time.monotonic()
            while (not os.path.exists(path) or os.path.getsize(path) == 0) and time.monotonic() - began < 60:
                time.sleep(0.1)
            p.kill()
        with open(path, encoding="utf-8") as f:
            document = json.load(f)
        self.assertTrue(os.path.islink(path))
        self.assertEqual((document["interrupted"], document["rows"] == []), (True, False))
        _, out, _ = run("bench", "--compare", path, path)
        self.assertIn("\nWarning: OLD was interrupted\n", out)

    def test_a_file_that_a_killed_program_left_aside(self):
        """It may have had the number of this process."""
        path = os.path.join(self.folder, "x.json")
        subprocess.run(["sh", "-c", 'touch "$0.$$-0.part"; exec "$@"', path, DPR, *QUICK, "-q", "-n", "10", "-O", path], check=True)
        with open(path, encoding="utf-8") as f:
            self.assertFalse(json.load(f)["interrupted"])
        self.assertRegex(" ".join(sorted(os.listdir(self.folder))), r"\Ax\.json x\.json\.\d+-0\.part\Z")

    def test_output_to_a_file_that_is_mounted(self):
        """It cannot be replaced, as in containers."""
        path = os.path.join(self.folder, "x.json")
        with open(path, "w", encoding="utf-8"):
            pass
        for read_only in ("", 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && '):
            mount = ["unshare", "-m", "sh", "-c", read_only + 'mount --bind "$0" "$0" && mount -o remount,bind,rw "$0" && shift && '
                     'exec "$@"', path, self.folder]
            if not shutil.which("unshare") or subprocess.run([*mount, "true"], stderr=subprocess.DEVNULL).returncode != 0:
                self.skipTest("nothing can be mounted here")
            subprocess.run([*mount, DPR, *QUICK, "-q", "-n", "10", "-O", path], check=True)
            with open(path, "r+", encoding="utf-8") as f:
                self.assertFalse(json.load(f)["interrupted"])
                f.truncate(0)
            self.assertEqual(os.listdir(self.folder), ["x.json"])

    def test_output_to_what_is_no_file(self):
        code, out, err = run(*QUICK, "-n", "10", "-f", "csv", "-O", "/dev/stdout")
        self.assertEqual((code, err), (0, ""))
        self.assertTrue(out.startswith("strategy,"))
        with open("/dev/full", "wb") as full:
            code, _, err = run(*QUICK, "-n", "10", stdout=full)
        self.assertEqual(code, 1)
        self.assertIn("cannot be written", err)


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
            rows = json.load(f)["rows"]
        named = [r for r in rows if r["strategy"] in ("cpu.serial", "cpu.simd")]
        self.assertEqual(len(named), 2 * 2 * 6)
        self.assertTrue(all(r["chosen"] for r in rows if r not in named), rows)  # the planner's choice comes along

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
