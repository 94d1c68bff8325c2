"""Segments, runs of equal keys and axes on the command line: dpr reduce --offsets, --by and --axis."""

import ast
import itertools
import json
import math
import os
import random
import resource
import signal
import struct
import subprocess
import unittest
from pathlib import Path

from support import DPR, ToolTest, header, npy, run


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
        self.assertEqual(found["more"], 30)
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

    def test_any_shape_and_order(self):
        """Elements and keys are taken in C order, whichever of them the file has in another one."""
        order = lambda shape: itertools.product(*map(range, reversed(shape)))
        for shape in ((500,), (20, 25), (1, 500), (5, 1, 100), (5, 4, 5, 5)):
            place = lambda index: sum(i * n for i, n in zip(index, (math.prod(shape[d + 1:]) for d in range(len(shape)))))
            turned = [place(index[::-1]) for index in order(shape)]
            keys = [n // 7 for n in range(500)]
            fortran = self.file("f.npy", npy("i16", [self.numbers[i] for i in turned], shape, fortran=True))
            big = self.file("b.npy", npy("i16", [self.numbers[i] for i in turned], shape, fortran=True, order=">"))
            by = [self.file("flat.npy", npy("u8", keys)), self.file("same.npy", npy("u8", keys, shape)),
                  self.file("k.npy", npy("u8", [keys[i] for i in turned], shape, fortran=True))]
            for x in (fortran, big, self.file("c.npy", npy("i16", self.numbers, shape))):
                self.assertEqual([int(v) for v in self.values(x, "--offsets", self.o)], [sum(p) for p in self.parts])
                for k in by:
                    self.assertEqual([int(v) for v in self.values(x, "--by", k)], [sum(run) for _, run in self.runs(keys)])
        empty = self.file("empty.npy", npy("i16", [], (0, 3), fortran=True))
        self.assertEqual(self.values(empty, "--by", self.file("k.npy", npy("u8", [], (0, 3), fortran=True))), [])

    def test_several_operations(self):
        """One after another; what one of them cannot do does not end the others."""
        square = self.file("square.npy", npy("i16", self.numbers[:400], shape=(20, 20)))
        by = self.file("by.npy", npy("u8", [i // 10 for i in range(500)]))
        for args in ((self.x, "--offsets", self.o), (self.x, "--by", by), (square, "--axis", "0")):
            each = [self.values(*args, "-o", op) for op in ("max", "mean", "argmin")]
            self.assertEqual(self.values(*args, "-o", "max,mean,argmin"), sum(each, []))
            found = self.document("reduce", *args, "-o", "max,mean,argmin")["arrays"]
            self.assertEqual([f["op"] for f in found], ["max", "mean", "argmin"])
            text = self.good("reduce", *args, "-o", "max,mean")
            self.assertRegex(text, r"(?s)max of each of .*mean of each of ")
        floats = self.file("f.npy", npy("f32", [1, 2, 3]))
        one = self.file("one.npy", npy("i32", [0, 3]))
        code, out, err = run("reduce", "-q", floats, "--offsets", one, "-o", "sum,band,max")
        self.assertEqual((code, out, err), (1, "6\n3\n", f"dpr: reduce: {floats}: band has no meaning for f32\n"))
        every = self.document("reduce", floats, "--offsets", one, "-o", "every")["arrays"]
        self.assertNotIn("band", [f["op"] for f in every])
        self.assertEqual(len(every), len(self.document("reduce", floats, "-o", "every")["arrays"][0]["results"]))
        columns = self.file("columns.npy", npy("f32", [], (0, 2)))
        code, out, err = run("reduce", "-q", columns, "--axis", "0", "-o", "every")
        self.assertEqual((code, err.count("argmin has no result for zero elements"), out[:4]), (0, 1, "0\n0\n"))

    def test_strategy_and_rate(self):
        by = self.file("by.npy", npy("u8", [i // 10 for i in range(500)]))
        square = self.file("square.npy", npy("i16", self.numbers[:400], shape=(20, 20)))
        for args, chosen in (((self.x, "--offsets", self.o), r"cpu\.\w+"), ((square, "--axis", "0"), r"cpu\.\w+"),
                             ((self.x, "--by", by), None)):
            for named in (None, "cpu.simd"):
                more = ("-s", named) if named else ()
                heading = self.good("reduce", *args, *more).splitlines()[0]
                strategy = named or chosen
                by_strategy = f", by {strategy}" if strategy else ""
                self.assertRegex(heading, rf" of i16{by_strategy}, in [0-9.e-]+ ms, [0-9.e-]+ GB/s$")
                found = self.document("reduce", *args, *more)["arrays"][0]
                rate, seconds = float(found["bytes_per_second"]), float(found["seconds"])
                self.assertAlmostEqual(rate * seconds / int(found["count"]), 2, 3)
                if strategy:
                    self.assertRegex(found["strategy"], rf"^{strategy}$")
                else:
                    self.assertNotIn("strategy", found)

    def test_the_strategy_is_the_one_for_the_elements_in_segments(self):
        few, many = self.file("few.npy", npy("u8", bytes(16))), self.file("many.npy", npy("u8", bytes(1 << 24)))
        offsets = self.file("offsets.npy", npy("i64", [0, 8, 16]))
        chosen = {self.document("reduce", file, "-d", "cpu", "--offsets", offsets, env={"DPR_NUM_THREADS": "2"})["arrays"][0]
                  ["strategy"] for file in (few, many)}
        self.assertEqual(len(chosen), 1, chosen)

    def test_keys_have_no_place_next_to_a_device(self):
        elements, keys, pipe = self.file("x.npy", npy("f32", [1, 2])), self.file("k.npy", npy("i32", [5, 5])), self.folder + "/pipe"
        os.mkfifo(pipe)
        for output in ("/dev/null", pipe):
            self.bad("is no regular file, next to which the keys' file could be", "reduce", elements, "--by", keys, "-O", output, expect=2)
        self.assertEqual([name for name in os.listdir(self.folder) if "keys" in name], [])
        self.good("reduce", elements, "--axis", "0", "-O", "/dev/null")

    def test_no_keys(self):
        empty = self.file("empty.npy", npy("f64", []))
        found = json.loads(self.good("reduce", empty, "--by", self.file("none.npy", npy("i8", [])), "--json"))["arrays"][0]
        self.assertEqual((found["runs"], found["results"], found["more"]), (0, [], 0))

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
                (1, f"{self.x}: by the offsets in {outside}, segment 1 ends at 501, and the array has 500 elements", self.x,
                 "--offsets", outside),
                (1, "segment 1 ends at 501", self.x, "--offsets", outside, "-o", "sum,min,max"),
                (1, "offsets are i32, u32, i64 or u64, and these are i16", self.x, "--offsets", self.x),
                (1, "at least one number", self.x, "--offsets", self.file("none.npy", npy("i32", []))),
                (1, "at least one number", self.x, "--offsets",
                 self.file("square.npy", npy("i32", [0, 1, 2, 3], shape=(2, 2)))),
                (1, "cannot be opened", self.x, "--offsets", os.path.join(self.folder, "missing")),
                (1, "cannot be written", self.x, "--offsets", self.o, "-O", os.path.join(self.folder, "no", "x.npy")),
                (2, "mean takes no initial value", self.x, "--offsets", self.o, "-o", "mean", "--init", 1),
                (2, "the initial value 'x' is not one value of i64", self.x, "--offsets", self.o, "--init", "x"),
                (2, "the initial value '1' is not two values, with a space between them, of i16", self.x,
                 "--offsets", self.o, "-o", "minmax", "--init", 1),
                (2, "goes with one file", self.x, self.x, "--offsets", self.o),
                (2, "goes with one file", "--generate", 64, "--offsets", self.o),
                (2, "--output goes with one operation", self.x, "--offsets", self.o, "-o", "sum,min", "-O", "y.npy"),
                (2, "--output goes with one operation", self.x, "--axis", "0", "-o", "every", "-O", "y.npy"),
                (2, "--window does not go with --offsets", self.x, "--offsets", self.o, "--window", "4KiB"),
                (2, "--window does not go with --axis", self.x, "--axis", "0", "--window", "64MiB"),
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
                (1, "the keys have another shape than", self.file("s.npy", npy("i16", [0] * 6, shape=(2, 3))), "--by",
                 self.file("t.npy", npy("u8", [0] * 6, shape=(3, 2)))),
                (1, "keys are integers or truth values, and these are f32", self.x, "--by",
                 self.file("k.npy", npy("f32", [1])))):
            self.bad(wanted, "reduce", *args, expect=expect)

    def test_more_results_than_can_be_counted(self):
        """An empty array can have any shape, and the sums of its columns can be more than 2^64 - 1."""
        text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': (0, {2**33}, {2**33}), }}"
        empty = self.file("empty.npy", header(text))
        err = self.bad("empty.npy: without the dimensions of --axis, its shape has more than 2^64 - 1 indices",
                       "reduce", empty, "--axis", "0")
        self.assertNotIn("->", err)
        self.assertEqual(self.values(empty, "--axis", "1"), [])

    def contents(self):
        """What each file of the folder holds; None: it is a folder."""
        return {p.name: p.read_bytes() if p.is_file() else None for p in Path(self.folder).iterdir()}

    def test_what_is_read_is_not_written(self):
        """By its own name, the name of the keys, or a link; what was in the folder stays as it was."""
        path = lambda name: os.path.join(self.folder, name)
        self.file("q.keys.npy", npy("i16", self.numbers))
        self.file("k.npy", npy("u8", [0] * 500))
        os.symlink("q.keys.npy", path("soft.npy"))
        os.link(path("k.npy"), path("hard.keys.npy"))
        before = self.contents()
        for written, read, *args in (
                ("q.keys.npy", "q.keys.npy", "q.keys.npy", "--by", "k.npy", "-O", "q.npy"),
                ("q.keys.npy", "q.keys.npy", "x.npy", "--by", "q.keys.npy", "-O", "q.npy"),
                ("hard.keys.npy", "k.npy", "x.npy", "--by", "k.npy", "-O", "hard.npy"),
                ("q.keys.npy", "soft.npy", "soft.npy", "--by", "k.npy", "-O", "q.npy"),
                ("soft.npy", "q.keys.npy", "q.keys.npy", "--axis", "0", "-O", "soft.npy"),
                ("x.npy", "x.npy", "x.npy", "--offsets", "o.npy", "-O", "x.npy"),
                ("./o.npy", "o.npy", "x.npy", "--offsets", "o.npy", "-O", "./o.npy"),
                ("k.npy", "k.npy", "x.npy", "--by", "k.npy", "-O", "k.npy")):
            self.bad(f"--output: '{written}' would be overwritten: it is the same file as the input '{read}'", "reduce",
                     *args, expect=2, cwd=self.folder)
            self.assertEqual(self.contents(), before, args)
        with open(self.x, "rb") as f:
            self.bad("the same file as the input '-'", "reduce", "-", "--axis", "0", "-O", self.x, expect=2, stdin_file=f)
        self.assertEqual(self.contents(), before)

    def test_older_files_stay_until_all_are_written(self):
        """Whichever of the two files cannot be written, even if that shows at its end."""
        by = self.file("by.npy", npy("u8", [i // 10 for i in range(500)]))
        for folder, old in (("a.npy", "a.keys.npy"), ("b.keys.npy", "b.npy")):
            self.file(old, b"older")
            os.mkdir(os.path.join(self.folder, folder))
            before = self.contents()
            self.bad(f"{folder}' cannot be written: Is a directory", "reduce", self.x, "--by", by, "-O",
                     os.path.join(self.folder, f"{folder[0]}.npy"))
            self.assertEqual(self.contents(), before)
        for name in ("c.npy", "c.keys.npy"):
            self.file(name, b"older")
        before = self.contents()

        def limit():
            """Lets a file have the 50 keys, and not the 50 sums."""
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
        done = subprocess.run([DPR, "reduce", self.x, "--by", by, "-O", os.path.join(self.folder, "c.npy")],
                              capture_output=True, check=False, restore_signals=False, preexec_fn=limit)
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn(b"c.npy' cannot be written: File too large", done.stderr)
        self.assertEqual(self.contents(), before)

    def test_written_files_keep_links_and_permissions(self):
        target = self.file("target.npy", b"older")
        os.chmod(target, 0o600)
        link = os.path.join(self.folder, "link.npy")
        os.symlink("target.npy", link)
        self.good("reduce", self.x, "--offsets", self.o, "-O", link)
        self.assertTrue(os.path.islink(link))
        self.assertEqual(os.stat(target).st_mode & 0o777, 0o600)
        self.assertEqual(Path(target).read_bytes()[128:], struct.pack("<40q", *map(sum, self.parts)))
        for name in ("/dev/null", os.path.join(self.folder, 251 * "n" + ".npy")):
            self.good("reduce", self.x, "--offsets", self.o, "-O", name)


if __name__ == "__main__":
    unittest.main()
