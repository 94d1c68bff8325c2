"""The command line: help, messages, exit codes, JSON, plan and info."""

import glob
import json
import os
import pty
import re
import resource
import select
import stat
import struct
import subprocess
import time
import unittest
from pathlib import Path

from support import DPR, EDGES, RECURSIONS, SMALL_CACHE, SOURCE, ToolTest, memory, npy, run


def names_of(list_file):
    """Names and texts of a list of dpr.h's."""
    with open(f"{SOURCE}/core/include/dpr/{list_file}", encoding="utf-8") as f:
        rows = [re.findall(r'"([^"]*)"', line) for line in f if line.startswith("    X(A, ")]
    return [(row[0], row[-1]) for row in rows]


class Help(ToolTest):
    def test_every_way_to_ask(self):
        top = self.good("--help")
        for args in (["help"], ["-h"], ["help", "help"]):
            self.assertEqual(self.good(*args), top)
        for command in ("reduce", "plan", "recurse", "report", "info", "env"):
            self.assertIn(f"  {command} ", top)
            text = self.good("help", command)
            self.assertTrue(text.startswith(f"Usage: dpr {command} "), text)
            self.assertIn("Examples:", text)
            self.assertEqual(self.good(command, "--help"), text)
            self.assertEqual(self.good(command, "-h"), text)

    def test_lists_are_in_it(self):
        ops, dtypes = names_of("ops.def"), names_of("dtypes.def")
        self.assertEqual((len(ops) >= 12, len(dtypes) >= 15), (True, True))
        for command in ("reduce", "plan"):
            text = self.good("help", command)
            for name, described in ops + dtypes:
                self.assertRegex(text, rf"(?m)^{name} +{re.escape(described)}")
        strategies = self.document("info")["strategies"]
        for strategy in strategies:
            self.assertIn(f"\n{strategy['name']} ", self.good("help", "plan"))

    def test_version(self):
        with open(f"{SOURCE}/core/include/dpr.h", encoding="utf-8") as f:
            version = ".".join(re.findall(r"#define DPR_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", f.read()))
        self.assertEqual(self.good("--version"), f"dpr {version}\n")

    def test_lines_fit_a_terminal(self):
        for args in (["--help"], ["help", "reduce"], ["help", "plan"], ["help", "tune"], ["help", "recurse"],
                     ["help", "report"], ["help", "info"], ["help", "env"]):
            for line in self.good(*args).splitlines():
                self.assertLessEqual(len(line), 110, line)


class Recurse(ToolTest):
    def test_list(self):
        text = self.good("recurse", "--list")
        for name in (*RECURSIONS, "cpu", "serial"):
            self.assertRegex(text, rf"(?m)^{name} +\w")

    def test_every_engine_is_right(self):
        for name, size in RECURSIONS.items():
            rows = json.loads(self.good("recurse", name, "--size", size, "--engine", "all", "--threads", 3, "--json",
                                        "--device", "cpu"))["engines"]
            ran = [row for row in rows if "error" not in row]
            self.assertEqual([row["engine"] for row in ran], ["cpu", "serial", "auto"])
            self.assertEqual(len({row["answer"] for row in ran}), 1, ran)
            for row in ran:
                self.assertTrue(row["right"], row)
                self.assertEqual(row["tasks"], ran[0]["tasks"])

    def test_auto_is_the_default(self):
        for args in ([], ["--engine", "auto"]):
            row, = json.loads(self.good("recurse", "fib", "--size", 5, "--json", "--device", "cpu", *args))["engines"]
            self.assertEqual(row["engine"], "auto")
            self.assertIn(row["ran"], ("cpu", "serial"))

    def test_edges(self):
        """Sizes at which a recursion begins to divide, and odd ones."""
        for name, sizes in EDGES.items():
            for size in sizes:
                self.good("recurse", name, "--size", size, "--engine", "serial", "--device", "cpu")

    def test_short_runs_are_repeated(self):
        """Times of few tasks scatter; long runs are repeated a few times at most."""
        for size, least, most in ((5, 100, 500), (36, 1, 9)):
            row, = json.loads(self.good("recurse", "fib", "--size", size, "--engine", "serial", "--json", "--device",
                                        "cpu"))["engines"]
            self.assertGreaterEqual(row["samples"], least)
            self.assertLessEqual(row["samples"], most)

    def test_reasons(self):
        out = self.good("recurse", "fib", "--size", 5, "--device", "cpu")
        self.assertRegex(out, r"(?m)^auto: engine (cpu|serial), because it ")
        out = self.good("recurse", "fib", "--size", 5, "--device", "cpu", "--engine", "cpu")
        self.assertNotIn("because", out)

    def test_ranks(self):
        """The program itself compares with a sort, or counts what is smaller."""
        found = []
        for rank in (0, 389, 390, 25000, 75000, 99609, 99610, 99999):  # a 256th is -inf, and one is inf
            out = self.good("recurse", "select", "--size", 100000, "--rank", rank, "--device", "cpu")
            self.assertIn(f"element {rank} in ascending order is ", out)
            found.append(float(out.splitlines()[0].split()[-1]))
        self.assertEqual(found, sorted(found))
        self.assertEqual([x in (float("-inf"), float("inf")) for x in found], [True, True] + [False] * 4 + [True, True])
        for rank in (0, 4194305, 5000000):  # an interval is guessed from few elements
            self.good("recurse", "select", "--size", 5000001, "--rank", rank, "--engine", "cpu", "--device", "cpu")

    def test_mistakes(self):
        for wanted, *args in (("no recursion is named", "recurse"),
                              ("more than one recursion", "recurse", "fib", "fib"),
                              ("'fob' is none of sum_tree, fib, nqueens, quadrature", "recurse", "fob"),
                              ("--engine: 'steam' is none of ", "recurse", "fib", "--engine", "steam"),
                              ("--size: fib has sizes from 0 to 47", "recurse", "fib", "--size", "48"),
                              ("--size: fib has sizes from 0 to 47", "recurse", "fib", "--size", str(2**64 - 1)),
                              ("--size: sum_tree has sizes from 1 to", "recurse", "sum_tree", "--size", "0"),
                              ("--threads: '0' is no number of threads", "recurse", "fib", "--threads", "0"),
                              ("--input: fib reads no file", "recurse", "fib", "--input", "x"),
                              ("--size and --input exclude each other", "recurse", "expression", "--size", "9", "--input", "x"),
                              ("--list takes no recursion and no other option", "recurse", "--list", "fib"),
                              ("--list takes no recursion and no other option", "recurse", "--json", "--list"),
                              ("--rank: fib looks for no element", "recurse", "fib", "--rank", "1"),
                              ("--rank: there are 9 elements, so K is at most 8", "recurse", "select", "--size", "9", "--rank", "9"),
                              ("--output: fib draws no picture", "recurse", "fib", "-O", "x.png"),
                              ("'' is no name of a file", "recurse", "mandelbrot", "-O", ""),
                              ("'' is no name of a file", "recurse", "fib", "--trace", ""),
                              ("--output and --trace both name 'x'", "recurse", "mandelbrot", "-O", "x", "--trace", "x")):
            code, out, err = run(*args)
            self.assertEqual((code, out), (2, ""), args)
            self.assertIn(wanted, err)

    def test_smallest_size(self):
        self.assertIn("fib(0) = 0", self.good("recurse", "fib", "--size", 0, "--device", "cpu"))

    def test_too_little_memory(self):
        """Sizes that need more address space than there is."""
        if b"__asan_init" in Path(DPR).read_bytes() or b"__tsan_init" in Path(DPR).read_bytes():
            self.skipTest("sanitizers reserve more address space than the test leaves")

        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
        for name, size in (("sum_tree", 1 << 30), ("mergesort", 1 << 28), ("select", 1 << 28), ("quadtree", 1 << 26),
                           ("quadrature", 1 << 24), ("mandelbrot", 16384)):
            done = subprocess.run([DPR, "recurse", name, "--size", str(size), "--device", "cpu", "--engine", "serial"],
                                  preexec_fn=limit, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (1, f"dpr: recurse: {name}: there is not enough memory\n"))

    def test_expressions(self):
        path = os.path.join(self.folder, "x.txt")
        for text, wanted in (("7", 7), ("-7", -7), ("1+2*(3-4)*-5 - -(2*3)\n", 17), ("-(-(-1))", -1), ("--2*-+3", -6),
                             ("2-3-4", -5), ("(" * 100000 + "1" + ")" * 100000, 1), ("+".join(["2"] * 70001), 140002),
                             ("*".join(["3"] * 40), 3**40 - 2**64), ("-(1)*-(2-(-3))", 5)):
            Path(path).write_text(text)
            for engine in ("serial", "cpu"):
                out = self.good("recurse", "expression", "--input", path, "--engine", engine, "--device", "cpu")
                self.assertIn(f"the value is {wanted} modulo", out)
        for text, wanted in (("", "a number is missing at its end"), ("1+", "a number is missing"), ("(1", "a ')' is missing"),
                             ("2\0+3", "it has 0x00 at byte 1"), ("1+\x7f", "it has 0x7f at byte 2"),
                             ("\u00b5", "it has 0xc2 at byte 0"), ("1)", "it has ')' at byte 1"), ("1 2", "it has '2' at byte 2"),
                             ("2/3", "it has '/' at byte 1"), ("()", "it has ')' at byte 1")):
            Path(path).write_text(text)
            for engine in ("auto", "all", "cpu"):
                self.bad(f"this is no expression: {wanted}", "recurse", "expression", "--input", path, "--engine", engine,
                         "--device", "cpu")
        self.assertIn("the value is 5 modulo", self.good("recurse", "expression", "--input", "/dev/stdin", "--engine", "all",
                                                         "--device", "cpu", stdin=b"2+3"))
        code, _, err = run("recurse", "expression", "--input", path + ".none")
        self.assertEqual(code, 1)
        self.assertIn("cannot be read", err)

    def test_pictures(self):
        for name, size in (("mandelbrot", 50), ("quadtree", 1000)):
            path = os.path.join(self.folder, f"{name}.png")
            self.good("recurse", name, "--size", size, "-O", path, "--device", "cpu")
            head = Path(path).read_bytes()[:24]
            self.assertEqual(head[:8], b"\x89PNG\r\n\x1a\n")
            side = 50 if name == "mandelbrot" else 1024
            self.assertEqual(struct.unpack(">II", head[16:]), (side, side))

    def test_files_are_tried_first(self):
        """A file that cannot be written is found before measuring, and what is there stays as it is until after it."""
        for option, name, *more in (("-O", "mandelbrot"), ("--trace", "mandelbrot"), ("--trace", "fib", "--json")):
            for path in (os.path.join(self.folder, "none", "x"), self.folder):
                self.bad(f"{path}: cannot be written: ", "recurse", name, "--size", 9, option, path, *more)
        new, old = os.path.join(self.folder, "new"), self.file("old", b"old")
        for path in (new, old):
            self.bad("has no serial()", "recurse", "fib", "--cutoff", 5, "--trace", path, "--device", "cpu", expect=2)
        self.assertEqual((os.path.exists(new), Path(old).read_bytes()), (False, b"old"))

    def test_a_picture_that_does_not_fit_leaves_no_file_and_its_device(self):
        full = os.path.join(self.folder, "full")
        try:
            os.mknod(full, stat.S_IFCHR | 0o600, os.makedev(1, 7))
        except PermissionError:
            self.skipTest("only root makes devices")
        for size in (64, 2000):  # closing the file fails, or writing to it
            err = self.bad("the picture '", "recurse", "mandelbrot", "--size", size, "-O", full, "--device", "cpu")
            self.assertRegex(err, r"cannot be written: \w")
        self.assertTrue(stat.S_ISCHR(os.stat(full).st_mode))

    def test_timelines(self):
        path = os.path.join(self.folder, "trace.json")
        self.good("recurse", "nqueens", "--size", 9, "--engine", "all", "--threads", 3, "--trace", path, "--device", "cpu")
        events = json.loads(Path(path).read_text())
        names = {e["args"]["name"]: e["pid"] for e in events if e["ph"] == "M"}
        self.assertEqual(set(names), {"cpu", "serial"})
        for name, pid in names.items():
            spans = [e for e in events if e["ph"] == "X" and e["pid"] == pid]
            self.assertTrue(spans)
            for worker in {e["tid"] for e in spans}:
                ends = 0
                for e in sorted((e for e in spans if e["tid"] == worker), key=lambda e: e["ts"]):
                    self.assertGreaterEqual(e["ts"], ends - 0.01)
                    ends = e["ts"] + e["dur"]

    def test_nested(self):
        row, = json.loads(self.good("recurse", "fib", "--size", 9, "--nested", "--json", "--device", "cpu"))["engines"]
        self.assertEqual(("auto", True), (row["engine"], row["right"]))
        self.assertIn(row["ran"], ("cpu", "serial"))

    def test_cutoff(self):
        plain, cut = (json.loads(self.good("recurse", "nqueens", "--size", 9, "--engine", "serial", "--json", "--device",
                                           "cpu", *args))["engines"][0] for args in ((), ("--cutoff", 700)))
        self.assertEqual(plain["answer"], cut["answer"])
        self.assertLess(2 * cut["tasks"], plain["tasks"])
        self.assertIn("fib(9) = 34", self.good("recurse", "fib", "--size", 9, "--cutoff", "none", "--device", "cpu"))
        for engine in ("auto", "all", "serial"):
            for form in ((), ("--json",)):
                self.bad("--cutoff: the policy of fib has no serial()\n", "recurse", "fib", "--cutoff", 5, "--engine",
                         engine, *form, "--device", "cpu", expect=2)

    def test_levels(self):
        """They are not known on the CPU."""
        args = ("recurse", "fib", "--size", 9, "--engine", "serial", "--device", "cpu")
        heads, cells = self.good(*args).splitlines()[-2:]
        self.assertEqual(heads.split()[-3:], ["deepest", "levels", "widest"])
        self.assertEqual(cells.split()[-3:], ["8", "-", "-"])
        row, = json.loads(self.good(*args, "--json"))["engines"]
        self.assertEqual({"levels", "widest", "rounds"} & set(row), set())


class Usage(ToolTest):
    def test_mistakes(self):
        path = self.file("x.npy", npy("f64", [1]))
        for wanted, *args in (
                ("no command is named",),
                ("dpr: 'redcue' is none of reduce, plan, bench, tune, recurse, report, info, env, help\n", "redcue"),
                ("dpr: 'xyzzy' is none of reduce, plan", "xyzzy"),
                ("dpr: 'xyzzy' is none of reduce, plan", "help", "xyzzy"),
                ("unknown option '--nope'", "--nope"),
                ("unknown option '--nope'", "help", "--nope"),
                ("dpr: the operand 'extra' makes no sense here\n", "help", "reduce", "extra"),
                ("dpr: the operand 'extra' makes no sense here\n", "help", "help", "extra"),
                ("dpr: the operand 'reduce' makes no sense here\n", "--help", "reduce"),
                ("dpr: the operand 'reduce' makes no sense here\n", "-h", "reduce"),
                ("dpr: the operand 'x' makes no sense here\n", "--version", "x"),
                ("dpr: the operand '--json' makes no sense here\n", "-V", "--json"),
                ("reduce: no file is named", "reduce"),
                ("reduce: --op: 'summ' is none of sum, prod, min, max, argmin, argmax, all, any, band, bor, bxor, count, "
                 "sumsq, norm1, norm2, mean, var, minmax\n",
                 "reduce", path, "--op", "summ"),
                ("reduce: --op: '' is none of sum, ", "reduce", path, "--op", "sum,"),
                ("reduce: --op: '' is none of sum, ", "reduce", path, "--op", ""),
                ("reduce: --op: 'min' is asked for twice", "reduce", path, "--op", "min,min"),
                ("reduce: --dtype: 'f31' is none of bool, i8, ", "reduce", path, "--dtype", "f31"),
                ("reduce: unknown or ambiguous option '--opp'\n", "reduce", path, "--opp", "sum"),
                ("reduce: unknown or ambiguous option '--d'\n", "reduce", path, "--d", "f32"),
                ("reduce: unknown or ambiguous option '--d=f32'\n", "reduce", path, "--d=f32"),
                ("reduce: standard input ('-') is named twice", "reduce", "-", path, "-"),
                ("reduce: unknown option '-z'", "reduce", path, "-z"),
                ("reduce: unknown option '-z'", "reduce", path, "--json", "-qzo"),
                ("reduce: option '--op' needs an argument", "reduce", path, "--op"),
                ("reduce: option '--json=1' takes no argument", "reduce", path, "--json=1"),
                ("reduce: --nan: 'ignored' is none of propagate, ignore\n", "reduce", path, "--nan", "ignored"),
                ("reduce: --divisor: 'n' is none of population, sample\n", "reduce", path, "--divisor", "n"),
                ("reduce: --strategy: 'cpu.serail' is none of cpu.serial, ", "reduce", path, "-s", "cpu.serail"),
                ("reduce: --device: 'gpu' is no device", "reduce", path, "--device", "gpu"),
                ("reduce: --device: '-1' is no device", "reduce", path, "--device", "-1"),
                ("reduce: --window: '0' is no number of bytes for a window", "reduce", path, "--window", "0"),
                ("reduce: --window: '1.5' is not a whole number", "reduce", path, "--window", "1.5"),
                ("reduce: --generate: '2^64' is more than 2^64 - 1", "reduce", "--generate", "2^64"),
                ("reduce: --generate and the file", "reduce", "--generate", "1K", path),
                ("plan: the operand 'x' makes no sense", "plan", "x"),
                ("plan: band has no meaning for f32\n", "plan", "--op", "band"),
                ("plan: --memory: 'hots' is none of host, pinned, managed, device\n", "plan", "--memory", "hots"),
                ("plan: --machine and --device exclude", "plan", "--machine", path, "--device", "cpu"),
                ("plan: --count: '20000000000000000000' is more than 2^64 - 1", "plan", "-n", "20000000000000000000"),
                ("plan: --count: '1e30' is more than 2^64 - 1", "plan", "-n", "1e30"),
                ("plan: --count: 9223372036854775808 elements of f32 do not fit the address space\n", "plan", "-n",
                 "2^63"),
                ("plan: --count: 2305843009213693952 elements of f32 do not fit the", "plan", "-n", "2^61", "-t", "f32"),
                ("plan: --count: 18446744073709551615 elements of u8 do", "plan", "-t", "u8", "-n",
                 "18446744073709551615"),
                ("plan: --count: argmax has no result for zero elements\n", "plan", "-n", "0", "--op", "argmax"),
                ("plan: --count: '-5' is no number", "plan", "-n", "-5"),
                ("plan: --block: '100' is none of 32", "plan", "--block", "100"),
                ("plan: --depth: '0' is no number of launches", "plan", "--depth", "0"),
                ("plan: --depth: '25' is no number of launches below each other from 1 to 24\n", "plan", "--depth",
                 "25"),
                ("plan: --count: 'nan' is no number", "plan", "-n", "nan"),
                ("plan: --count: '0x10' is no number", "plan", "-n", "0x10"),
                ("plan: --segments, --by-key and --axes exclude", "plan", "--segments", "3", "--by-key", "i8",
                 "-n", "9"),
                ("plan: --by-key needs --count", "plan", "--by-key", "i8"),
                ("plan: --room needs --by-key", "plan", "--room", "8", "-n", "9"),
                ("plan: --by-key: 'f32' is no type of keys, which are integers or truth values\n", "plan", "--by-key",
                 "f32", "-n", "9"),
                ("plan: --count: 9223372036854775808 elements of f32 with keys of i8 do not fit the address space\n",
                 "plan", "--by-key", "i8", "-n", "2^63"),
                ("plan: --segments: '0' is no number of segments", "plan", "--segments", "0"),
                ("plan: --segments, --by-key and --axes exclude", "plan", "--segments", "3", "--axes", "4x5:1"),
                ("plan: --axes takes a single array\n", "plan", "--axes", "all"),
                ("plan: --axes: '4x5' does not say which dimensions are reduced", "plan", "--axes", "4x5"),
                ("plan: 'Nx300:1' has no array of so few elements\n", "plan", "--axes", "Nx300:1", "-n", "10"),
                ("plan: --count: '3x4:1' has no N\n", "plan", "--axes", "3x4:1", "-n", "12"),
                ("plan: --segments: the offsets and results of 18446744073709551615 segments do not fit the address "
                 "space\n", "plan", "--segments", "18446744073709551615"),
                ("plan: --count: 9223372036854775808 elements", "plan", "--segments", "3", "-n", "2^63"),
                ("plan: --axes: 'Nx16384:0' of f32 does not fit the address space\n", "plan", "--axes", "Nx16384:0",
                 "-n", "2^62"),
                ("plan: --axes: '3x3/2^62:1' of f32 does not fit the", "plan", "--axes", "3x3/2^62:1"),
                ("info: --capture and --json exclude", "info", "--capture", "--json"),
                ("info: the operand 'x' makes no sense", "info", "x"),
                ("env: the operand 'x' makes no sense", "env", "--json", "x"),
                ("bench: the operand 'x' makes no sense", "bench", "x"),
                ("tune: the operand 'x' makes no sense", "tune", "x"),
                ("recurse: more than one recursion is named", "recurse", "fib", "x"),
                ("recurse: --list takes no recursion and no other option", "recurse", "--list", "x")):
            err = self.bad(wanted, *args, expect=2)
            self.assertRegex(err.splitlines()[1], r"^Try 'dpr( [a-z]+)? ?--help' for more\.$")

    def test_devices_that_are_not_there(self):
        path = self.file("x.npy", npy("f64", [1]))
        wisdom = os.path.join(self.folder, "wisdom")
        for args in (["reduce", path], ["reduce", "--generate", "1K"], ["plan"], ["bench"], ["tune", "-O", wisdom],
                     ["recurse", "fib"], ["info"], ["info", "--capture"]):
            self.bad(f"dpr: {args[0]}: --device: there is no GPU 1023: ", *args, "--device", "1023")
        self.assertFalse(os.path.exists(wisdom))

    def test_options_that_no_strategy_takes(self):
        self.assertIn("sum of f32", self.good("plan", "--depth", "24", "-d", "cpu"))
        self.bad("plan: --block: no strategy whose block size can be chosen can run this\n", "plan", "--block", "64",
                 "-d", "cpu")

    def test_options_after_files_and_double_dash(self):
        path = self.file("x.npy", npy("f64", [1, 5]))
        self.assertEqual(self.good("reduce", path, "-q", "-omax"), "5\n")
        os.chdir(self.folder)
        self.file("-q", npy("f64", [1, 5]))
        self.assertEqual(self.good("reduce", "--quiet", "--", "-q"), "6\n")

    def test_more_memory_than_there_is(self):
        """Of the machine's memory, what is in use is none to take."""
        for size, text in (("1PiB", "1.00 PiB"), (f"{memory('MemTotal') // 1024 - 4}KiB", r"[0-9.]+ [MGT]iB")):
            err = self.bad("there is no memory for", "reduce", "--generate", size)
            self.assertRegex(err, rf"no memory for {text} of generated data: [0-9.]+ [KMGT]iB are available$")

    def test_no_such_gpu(self):
        path = self.file("x.npy", npy("f64", [1]))
        for args in (["reduce", path, "--device", "1000"], ["plan", "--device", "1000"], ["info", "--device", "1000"]):
            self.bad("1000", *args)


class Output(ToolTest):
    def test_text(self):
        path = self.file("x.npy", npy("f32", [1, 2, 3, 4, 5, 6], (2, 3), fortran=True, order=">"))
        lines = self.good("reduce", path, "--op", "sum,argmax").splitlines()
        self.assertEqual(lines[0], f"{path}: 6 f32, shape (2, 3), 24 bytes, big-endian, Fortran order")
        self.assertRegex(lines[1], r"^operation  value  strategy +GB/s +time$")
        self.assertRegex(lines[2], r"^sum           21  cpu\.\w+ +[0-9.]+ +[0-9.]+ [nu]s$")
        self.assertRegex(lines[3], r"^argmax         5  cpu\.\w+ +[0-9.]+ +[0-9.]+ [nu]s$")
        empty = self.good("reduce", self.file("x.npy", npy("f32", [])), "--op", "every").splitlines()
        self.assertEqual(empty[0], f"{path}: 0 f32, 0 bytes")
        self.assertIn("argmin: argmin has no result for zero elements", empty)

    def test_json(self):
        path = self.file("x.npy", npy("i64", [2**62, 2**62 - 1], (2, 1)))
        floats = self.file("f.npy", npy("f64", [float("inf"), float("nan"), 0.1]))
        code, out, err = run("reduce", "--json", path, floats, self.folder + "/none", "--op", "sum,max,count")
        self.assertEqual((code, err.count("\n")), (1, 1))
        document = json.loads(out)
        first, second, third = document["arrays"]
        self.assertEqual((first["file"], first["dtype"], first["shape"], first["count"], first["bytes"]),
                         (path, "i64", [2, 1], 2, 16))
        self.assertEqual([r["value"] for r in first["results"]], [2**63 - 1, 2**62, 2])
        self.assertIn(":9223372036854775807", out)
        self.assertEqual([r["value"] for r in second["results"]], ["nan", "nan", 3])
        self.assertIn("No such file", third["error"])
        for result in first["results"]:
            self.assertEqual(set(result), {"op", "strategy", "result_dtype", "value", "seconds", "bytes_per_second"})
            self.assertGreater(result["bytes_per_second"], 0)
        results = self.document("reduce", self.file("c.npy", npy("c128", [1.5 - 2j])))["arrays"][0]["results"]
        self.assertEqual(results[0]["value"], ["1.5", "-2"])
        results = self.document("reduce", path, "--op", "minmax,mean")["arrays"][0]["results"]
        self.assertEqual([(r["result_dtype"], r["value"]) for r in results],
                         [("i64", [str(2**62 - 1), str(2**62)]), ("f64", "4.611686018427388e+18")])

    def test_minus_zero_in_json(self):
        """It stays the number it is; readers take -0 for the integer."""
        for dtype in ("f16", "f32", "f64"):
            out = self.good("reduce", "--json", self.file("x.npy", npy(dtype, [0.0, -0.0])), "--op", "min,max,argmin")
            values = [r["value"] for r in json.loads(out)["arrays"][0]["results"]]
            self.assertEqual([str(v) for v in values], ["-0.0", "0", "1"], (dtype, out))
        self.assertEqual(self.values(self.file("x.npy", npy("f64", [-0.0])), "--op", "min"), ["-0"])
        out = self.good("reduce", "--json", self.file("x.npy", npy("i8", [0])), "--op", "every")
        self.assertNotRegex(out, r"value\":\s*-")

    def test_streams_that_are_closed(self):
        """No file takes their place."""
        path, other = self.file("x.npy", npy("f64", [1])), self.file("y.npy", npy("f64", [2]))
        done = subprocess.run(["sh", "-c", '"$0" reduce -q "$@" <&-', DPR, path, "-", other], capture_output=True,
                              timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, b"1\n2\n"))
        self.assertEqual(done.stderr, b"dpr: reduce: standard input: cannot be read: Bad file descriptor\n")
        out = self.folder + "/out.json"
        done = subprocess.run(["sh", "-c", '"$0" bench -d cpu -n 10,2^62 -a 50% -O "$1" >&- 2>&-', DPR, out],
                              timeout=60, check=False)
        self.assertEqual(done.returncode, 0)
        with open(out, encoding="utf-8") as f:
            self.assertTrue(json.load(f)["rows"])

    def test_progress_bar_only_on_a_terminal_and_after_a_second(self):
        path = self.file("\x1b]0;huge\a.bin", b"")
        os.truncate(path, 1 << 40)
        terminal, other = pty.openpty()
        shown, began = b"", time.monotonic()
        with subprocess.Popen([DPR, "reduce", "-q", path, "--dtype", "u8", "--window", "4MiB"], stderr=other,
                              stdout=subprocess.DEVNULL) as p:
            os.close(other)
            while b"%" not in shown and time.monotonic() - began < 60:
                if select.select([terminal], [], [], 1)[0]:
                    shown += os.read(terminal, 4096)
            seen = time.monotonic() - began
            p.kill()
        os.close(terminal)
        self.assertRegex(shown.decode(), r"\?\]0;huge\?\.bin  \[[.#]{24}\] +\d+ %  [0-9.]+ .iB of 1\.00 TiB")
        self.assertGreaterEqual(seen, 1)


class Plan(ToolTest):
    def test_numbers(self):
        for text, count in (("0", 0), ("1000", 1000), ("1e6", 10**6), ("1.5e3", 1500), ("2^20", 2**20), ("2^60", 2**60),
                            ("64Ki", 65536), ("64KiB", 65536), ("3K", 3000), ("3kB", 3000), ("1.5Mi", 3 * 2**19),
                            ("2T", 2 * 10**12), ("7B", 7), ("2305843009213693951", 2**61 - 1)):
            self.assertEqual(self.document("plan", "-n", text, "--device", "cpu")["count"], str(count), text)

    def test_table_covers_all_sizes(self):
        for op, dtype in (("sum", "f32"), ("argmax", "f64"), ("bxor", "u8"), ("prod", "c128")):
            document = self.document("plan", "--op", op, "--dtype", dtype, "--device", "cpu", "-n", "1e6")
            steps = document["steps"]
            self.assertEqual((steps[0]["from"], steps[-1]["upto"], document["memory"]), ("0", None, "host"))
            for before, after in zip(steps, steps[1:]):
                self.assertEqual(int(before["upto"]) + 1, int(after["from"]))
            chosen = [s["strategy"] for s in steps
                      if int(s["from"]) <= 10**6 and (s["upto"] is None or 10**6 <= int(s["upto"]))]
            self.assertEqual([document["choice"]], chosen)
            times = {s["name"]: float(s["seconds"]) for s in document["strategies"] if "seconds" in s}
            self.assertEqual(times[document["choice"]], min(times.values()))

    def test_text(self):
        text = self.good("plan", "--device", "cpu", "-n", "2^16", "--op", "max", "--dtype", "i8")
        self.assertTrue(text.startswith("max of i8 in host memory, "), text)
        self.assertRegex(text, r"(?m)^ +0 +\d+ +cpu\.\w+ +[0-9.]+ ns")
        self.assertIn("problem:   max of 65536 i8 in host memory", text)
        for strategy in self.document("info")["strategies"]:
            self.assertEqual(strategy["name"] in text, strategy["side"] == "cpu")
        self.assertIn("assumed, not measured: one core reads ", text)

    def test_refusals_have_reasons(self):
        document = self.document("plan", "--device", "cpu")
        for strategy in document["strategies"]:
            self.assertEqual("refused" in strategy, not strategy["name"].startswith("cpu."), strategy)
        self.bad("device memory", "plan", "--device", "cpu", "--memory", "device")

    def test_by_key(self):
        cpu = self.document("plan", "--device", "cpu", "--by-key", "u8", "-n", "2^20")
        self.assertEqual((cpu["key_dtype"], cpu["room"]), ("u8", "1048576"))
        self.assertEqual((cpu["one_pass"], cpu["one_pass_refused"]), (False, "needs a GPU"))
        few = self.document("plan", "--device", "cpu", "--by-key", "u8", "-n", "2^20", "--room", "9", "-o", "max")
        self.assertEqual(few["room"], "9")
        args = ("plan", "-m", f"{SOURCE}/tests/machines/h200.caps", "--by-key", "u8", "-n", "2^20")
        if any(s["name"] == "segments.merge" for s in cpu["strategies"]):  # not in a build without CUDA
            with_gpu = self.document(*args)
            self.assertEqual((with_gpu["one_pass"], with_gpu["choice"]), (True, None))
            self.assertNotIn("*", self.good(*args))
            self.assertEqual(self.document(*args, "--room", "9")["choice"], "segments.small")
        self.assertIn("max of f32 by keys of u8, with room for 9 runs, in host memory",
                      self.good("plan", "--device", "cpu", "--by-key", "u8", "-n", "2^20", "--room", "9", "-o", "max"))

    def test_segments_and_axes(self):
        many = self.document("plan", "--device", "cpu", "--segments", "1e6", "-n", "2^20")
        few = self.document("plan", "--device", "cpu", "--segments", "2", "-n", "2^20")
        self.assertEqual((many["segments"], few["segments"]), ("1000000", "2"))
        seconds = [next(s["seconds"] for s in d["strategies"] if s["name"] == "cpu.serial") for d in (many, few)]
        self.assertGreater(seconds[0], 2 * seconds[1])
        text = self.good("plan", "--device", "cpu", "--axes", "4096x65536:0")
        self.assertIn("problem:   sum of 268435456 f32 along axes, 65536 results, in host memory\n", text)
        self.assertRegex(text, r"\n  cpu\.serial +refused: runs one array, not along axes or with gaps\n")
        document = self.document("plan", "--device", "cpu", "--axes", "Nx16:1", "-n", "1600")
        self.assertEqual((document["axes"], document["results"], document["count"]), ("Nx16:1", "100", "1600"))

    def test_by_name(self):
        document = self.document("plan", "--device", "cpu", "--strategy", "cpu.serial")
        self.assertEqual([s["strategy"] for s in document["steps"]], ["cpu.serial"])

    def test_captured_machine(self):
        path = self.file("this.caps", self.good("info", "--capture", "--device", "cpu").encode())
        for args in (["-n", "1e6"], ["--json"], ["--op", "prod", "--dtype", "c64"]):
            self.assertEqual(self.good("plan", "--machine", path, *args), self.good("plan", "--device", "cpu", *args))
        with open(path, "rb") as f:
            longest = self.file("longest.caps", f.read().ljust(65535, b"#") + b"\n")
        self.assertEqual(self.good("plan", "--machine", longest), self.good("plan", "--device", "cpu"))
        with open(path, "rb") as f:
            self.assertEqual(self.good("plan", "--machine", "-", stdin=f.read()), self.good("plan", "--device", "cpu"))

    def test_other_machines(self):
        gpu = [s["name"] for s in self.document("info")["strategies"] if s["side"] == "gpu"]
        machines = glob.glob(f"{SOURCE}/tests/machines/*.caps")
        self.assertGreaterEqual(len(machines), 3)
        for machine in machines:
            host = self.document("plan", "--machine", machine, "--memory", "host", "-n", "1000")
            self.assertTrue(host["choice"].startswith("cpu."), host)
            if "gpu_name" not in host:
                self.assertEqual(self.document("plan", "--machine", machine)["memory"], "host")
            elif gpu:
                device = self.document("plan", "--machine", machine, "-n", "2^28")
                self.assertEqual(device["memory"], "device")
                self.assertIn(device["choice"], gpu)
                self.assertIn(device["choice"], self.good("plan", "--machine", machine, "-n", "2^28"))
            else:
                self.bad("no strategy reaches device memory", "plan", "--machine", machine)

    def test_broken_machines(self):
        good = self.good("info", "--capture", "--device", "cpu")
        for text, wanted in (("", "missing"), ("nonsense", "line 1"), (good + "cpu.more = 3\n", "cpu.more"),
                             (re.sub(r"cpu\.cores = .*", "cpu.cores = many", good), "cpu.cores"),
                             (re.sub(r"cpu\.cores = .*\n", "", good), "cpu.cores"), (good + "\0", "zero byte"),
                             ("#" * 65537, "longer than 64 KiB")):
            path = self.file("x.caps", text.encode())
            self.bad(f"{path}: is no captured machine", "plan", "--machine", path)
            self.bad(wanted, "plan", "--machine", path)
        self.bad("none: cannot be read: No such file or directory", "plan", "--machine", self.folder + "/none")
        self.bad("cannot be read: Is a directory", "plan", "--machine", self.folder)

    def range_of(self, text, key):
        """What `key` may be, from the refusal of a value that is out of every range."""
        path = self.file("x.caps", re.sub(rf"(?m)^{key} = .*", f"{key} = {-10**30}", text).encode())
        line = text[:text.index(f"{key} = ")].count("\n") + 1
        err = self.bad(f"line {line}: {key} is {-10**30}; it should be from ", "plan", "--machine", path)
        return [int(end) for end in re.findall(r"from (-?\d+) to (\d+)$", err.strip())[0]]

    def check_plan(self, path, *args):
        """A plan for a machine ends well, with times above 0."""
        code, out, err = run("plan", "--machine", path, "-n", "2^20", *args)
        if code and "no strategy reaches" in err:
            return
        self.assertEqual((code, err), (0, ""), (path, args))
        self.assertNotRegex(out, r"\bnan\b|\binf\b|-[0-9.]+ [num]?s")
        document = json.loads(run("plan", "--machine", path, "-n", "2^20", "--json", *args)[1])
        times = [s["seconds"] for s in document["strategies"] if "seconds" in s]
        times += [t for s in document["steps"] for key, t in s.items() if key.startswith("seconds")]
        self.assertTrue(times and all(t > 0 for t in times), document)

    def test_machines_at_both_ends_of_every_range(self):
        for name, arguments in (("h200", ([], ["--memory", "host"])), ("one-core", ([], ["-o", "prod", "-t", "c128"]))):
            with open(f"{SOURCE}/tests/machines/{name}.caps", encoding="utf-8") as f:
                text = f.read()
            keys = re.findall(r"(?m)^([cg]pu\.\w+) = ", text)
            self.assertGreaterEqual(len(keys), 7)
            for key in keys:
                for end in self.range_of(text, key):
                    path = self.file("x.caps", re.sub(rf"(?m)^{key} = .*", f"{key} = {end}", text).encode())
                    for args in arguments:
                        self.check_plan(path, *args)


class WithoutGpu(ToolTest):
    """Strategies that need a GPU are one line where there is none, and a list on request."""

    def setUp(self):
        super().setUp()
        info = json.loads(self.good("info", "--json"))
        self.names = [s["name"] for s in info["strategies"] if s["side"] == "gpu"]
        if info["gpus"] or not self.names:
            self.skipTest("there is a GPU, or a build without strategies for one")

    def expect_line(self, text):
        self.assertEqual(text.count(f"{len(self.names)} more strategies run on a GPU"), 1, text)
        for name in self.names:
            self.assertNotIn(name, text)

    def test_info(self):
        self.expect_line(self.good("info"))
        everything = self.good("info", "--all")
        self.assertNotIn("more strategies", everything)
        for name in self.names:
            self.assertIn(name, everything)

    def test_plan(self):
        self.expect_line(self.good("plan"))
        self.expect_line(self.good("plan", "-n", "1000"))

    def test_reduce(self):
        path = self.file("x.npy", npy("f32", [1, 2, 3]))
        self.expect_line(self.good("reduce", path, "--op", "sum,max", "--strategy", "all"))


class Env(ToolTest):
    def variables(self, **env):
        document = json.loads(self.good("env", "--json", env=env))
        return {v["name"]: v for v in document["variables"]}, {v["name"]: v["closest"] for v in document["unknown"]}

    def test_the_list(self):
        with open(f"{SOURCE}/core/environment.def", encoding="utf-8") as f:
            names = re.findall(r"(?m)^    X\(A, (\w+), [A-Z]+,", f.read().partition("DPR_LOG_LIST(X, A) ")[0])
        variables, _ = self.variables()
        self.assertEqual(list(variables), [f"DPR_{name}" for name in names])
        text = self.good("env")
        for variable in variables.values():
            self.assertIn(variable["name"], text)
            self.assertIn(variable["text"], text)
            self.assertEqual((variable["value"], variable["understood"]), (os.environ.get(variable["name"]), True))

    def test_what_is_set(self):
        variables, _ = self.variables(DPR_NUM_THREADS="3", DPR_LOG="plan,lunch", DPR_CPU_ISA="")
        self.assertEqual((variables["DPR_NUM_THREADS"]["value"], variables["DPR_NUM_THREADS"]["understood"]), ("3", True))
        self.assertEqual((variables["DPR_LOG"]["value"], variables["DPR_LOG"]["understood"]), ("plan,lunch", False))
        self.assertEqual((variables["DPR_CPU_ISA"]["value"], variables["DPR_CPU_ISA"]["understood"]), (None, True))
        text = self.good("env", env={"DPR_NUM_THREADS": "three"})
        self.assertRegex(text, r"(?m)^DPR_NUM_THREADS +three ")
        self.assertIn("DPR_NUM_THREADS is 'three', and the library understands only a whole number from 1",
                      text)
        for name in ("baseline", "avx2", "avx512", "sse9", "baseline, avx2"):
            understood = self.variables(DPR_CPU_ISA=name)[0]["DPR_CPU_ISA"]["understood"]
            text = self.good("env", env={"DPR_CPU_ISA": name})
            sentence = f"DPR_CPU_ISA is '{name}', and the library understands only baseline, avx2, avx512, as far as the"
            self.assertEqual(sentence in text, not understood)
        self.assertIn("?[31m", self.good("env", env={"DPR_LOG_FILE": "\x1b[31m"}))

    def test_names_that_nobody_reads(self):
        _, unknown = self.variables(DPR_NUM_THREAD="3", DPR_LOGS="plan", DPR_LOGFILE="x", DPR_="", DPR_SOMETHING_ELSE="1",
                                    NODPR_LOG="1")
        self.assertEqual([unknown[name] for name in ("DPR_NUM_THREAD", "DPR_LOGS", "DPR_LOGFILE")],
                         ["DPR_NUM_THREADS", "DPR_LOG", "DPR_LOG_FILE"])
        self.assertEqual((unknown["DPR_"], unknown["DPR_SOMETHING_ELSE"]), (None, None))
        self.assertNotIn("NODPR_LOG", unknown)
        text = self.good("env", env={"DPR_LOGS": "plan", "DPR_" + "X" * 300: ""})
        self.assertIn("DPR_LOGS is set, and nobody reads it: is DPR_LOG meant?\n", text)
        self.assertRegex(text, r"DPR_X+ is set, and nobody reads it\n")

    def test_variables_of_the_system(self):
        """All that the sources ask for."""
        with open(f"{SOURCE}/host/api/wisdom_file.c", encoding="utf-8") as f:
            names = re.findall(r'dpr_env_of_system\("(\w+)"\)', f.read())
        with open(f"{SOURCE}/tools/common/terminal.c", encoding="utf-8") as f:
            names += re.findall(r'"(L\w+)"', f.read())
        others = json.loads(self.good("env", "--json", env={"HOME": "/x", "LANG": ""}))["others"]
        self.assertEqual([v["name"] for v in others], names)
        values = {v["name"]: v["value"] for v in others}
        self.assertEqual((values["HOME"], values["LANG"]), ("/x", None))
        self.assertRegex(self.good("env", env={"HOME": "/x"}), r"(?m)^HOME +/x +without XDG_STATE_HOME")

    def test_operands(self):
        self.bad("the operand 'x' makes no sense here", "env", "x", expect=2)


class Wisdom(ToolTest):
    """What is said of files of wisdom that are named and not used."""

    def expect_lines(self, wanted, env):
        self.assertIn(wanted, json.loads(self.good("env", "--json", env=env))["wisdom"])
        self.assertIn(f"\n{wanted}\n", self.good("env", env=env))

    def expect_note(self, wanted, env):
        code, _, err = run("plan", "-d", "cpu", "-n", "1000", env=env)
        self.assertEqual((code, err), (0, f"dpr: plan: note: {wanted}\n"))
        bench = ("bench", "-d", "cpu", "-n", "1000", "-a", "50%", "-b", "1s")
        code, _, err = run(*bench, env={**env, **SMALL_CACHE})
        self.assertIn(f"dpr: bench: note: {wanted}\n", err)
        self.assertEqual(run(*bench, "-q", env={**env, **SMALL_CACHE})[2], "")

    def test_a_file_that_does_not_exist(self):
        long = self.folder + 15 * ("/" + "x" * 200)
        self.assertIn(f"missing: {long}", json.loads(self.good("env", "--json", env={"DPR_WISDOM": long}))["wisdom"])
        env = {"DPR_WISDOM": self.folder + "/wisdon"}
        self.expect_lines(f"missing: {self.folder}/wisdon", env)
        self.expect_note(f"there is no wisdom: DPR_WISDOM names '{self.folder}/wisdon', which does not exist", env)

    def test_a_file_of_another_version(self):
        path = self.file("wisdom", b"dpr wisdom 1\nlibrary 0.1.0 0123456789abcdef\nend 0 0123456789abcdef\n")
        status = [line for line in json.loads(self.good("env", "--json", env={"DPR_WISDOM": path}))["wisdom"] if path in line]
        self.assertRegex(status[0], rf"\Arefused: {re.escape(path)}: line 2: ")
        self.expect_lines(status[0], {"DPR_WISDOM": path})
        self.expect_note("wisdom is refused: " + status[0].partition(": ")[2], {"DPR_WISDOM": path})

    def test_no_file(self):
        self.assertEqual(json.loads(self.good("env", "--json"))["wisdom"], ["0 times of 0 processors"])
        self.good("plan", "-d", "cpu", "-n", "1000")


class Log(ToolTest):
    def test_a_recursion(self):
        code, out, err = run("recurse", "fib", "--size", "10", "--engine", "serial", "-d", "cpu", env={"DPR_LOG": "recursion"})
        self.assertEqual(code, 0, err)
        lines = err.splitlines()
        self.assertRegex(lines[0], r"^dpr: 0\.0 us, thread \d+, recursion: fib of 1 roots: engine serial, because it was asked for")
        self.assertRegex(lines[1], r"^dpr: [\d.]+ us, thread \d+, recursion: fib: engine serial did \d+ tasks, the deepest at "
                                   r"depth \d+, with 0 launches in [\d.]+ us$")

    def test_results_are_the_same(self):
        quiet = self.good("reduce", "-q", "--generate", "4096", "-d", "cpu")
        code, out, err = run("reduce", "-q", "--generate", "4096", "-d", "cpu", env={"DPR_LOG": "all"})
        self.assertEqual((code, out), (0, quiet))
        for line in err.splitlines():
            self.assertRegex(line, r"^dpr: [\d.]+ us, thread \d+, (plan|launch|memory): ")


class Info(ToolTest):
    def test_lists(self):
        document = self.document("info")
        for key, file, kind in (("ops", "ops.def", "name"), ("dtypes", "dtypes.def", "name"),
                                ("statuses", "status.def", "id")):
            with open(os.path.join(SOURCE, "core/include/dpr", file), encoding="utf-8") as f:
                entries = re.findall(r'^    X\(A, (\w+), \w+, "([^"]*)"', f.read(), re.M)
            wanted = [name for _, name in entries] if kind == "name" else [f"DPR_{id}" for id, _ in entries]
            self.assertGreater(len(wanted), 5)
            self.assertEqual([entry[kind] for entry in document[key]], wanted)

    def test_json(self):
        document = self.document("info")
        cpu = document["cpu"]
        cores = len(os.sched_getaffinity(0))
        self.assertTrue(1 <= int(cpu["cores"]) <= cores, cpu)
        self.assertTrue(1 <= int(cpu["threads"]) <= cores, cpu)
        self.assertGreaterEqual(len(cpu["nodes"]), 1)
        self.assertEqual(sum(int(n["threads"]) for n in cpu["nodes"]), cores)
        self.assertEqual(sum(int(n["cores"]) for n in cpu["nodes"]), int(cpu["cores"]))
        self.assertIn("cpu.serial", [s["name"] for s in document["strategies"]])
        self.assertEqual(bool(document["gpus"]), "no_gpu" not in document)
        supported = {(s["name"]) for s in document["strategies"] if s["side"] == "gpu"}
        for gpu in document["gpus"]:
            self.assertEqual({k["strategy"] for k in gpu["kernels"]}, supported)
            for kernel in gpu["kernels"]:
                self.assertTrue(0 < float(kernel["occupancy"]) <= 1, kernel)
                self.assertTrue(kernel["limited_by"], kernel)

    def test_text(self):
        document = self.document("info")
        text = self.good("info", *([] if document["gpus"] else ["--all"]))
        self.assertIn(document["cpu"]["name"], text)
        self.assertIn("NUMA node", text)
        for strategy in document["strategies"]:
            self.assertIn(f"\n{strategy['name']} ", text)
        if document["gpus"]:
            self.assertIn("Theoretical occupancy", text)
        else:
            self.assertIn(f"No GPU: {document['no_gpu']}", text)

    def test_own_cpuset(self):
        one = min(os.sched_getaffinity(0))
        out = subprocess.run(["taskset", "-c", str(one), DPR, "info", "--json"], capture_output=True, check=True).stdout
        cpu = json.loads(out)["cpu"]
        self.assertEqual((cpu["cores"], cpu["threads"]), (1, 1))


if __name__ == "__main__":
    unittest.main()
