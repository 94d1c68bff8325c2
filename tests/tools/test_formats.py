"""Files: .npy in all its forms, hostile headers, raw files, pipes, files that fail or change."""

import os
import random
import signal
import subprocess
import threading
import time
import unittest

from support import DPR, DTYPES, ToolTest, header, npy, pack, run, small_cache


def flat(shape, fortran_values):
    """Column-major values in row-major order."""
    strides, step = [], 1
    for extent in shape:
        strides.append(step)
        step *= extent
    out = []

    def walk(d, at):
        if d == len(shape):
            out.append(fortran_values[at])
        else:
            for i in range(shape[d]):
                walk(d + 1, at + i * strides[d])
    walk(0, 0)
    return out


class Npy(ToolTest):
    def test_versions(self):
        for version in (1, 2, 3):
            path = self.file("x.npy", npy("f64", [1.5, 2, -8], version=version))
            self.assertEqual(self.values(path), ["-4.5"])
            self.assertEqual(self.values("-", stdin=npy("f64", [1.5, 2, -8], version=version)), ["-4.5"])

    def test_types_in_both_byte_orders(self):
        for dtype, (_, parts, _) in DTYPES.items():
            values = [1, 0, 1] if dtype == "bool" else [3 + 4j, -2j] if parts == 2 else [100, 27, 3]
            wanted = {"bool": "2", "c64": "3+2i", "c128": "3+2i"}.get(dtype, "130")
            for order in "<>":
                path = self.file("x.npy", npy(dtype, values, order=order))
                self.assertEqual(self.values(path), [wanted], (dtype, order))
                self.assertEqual(self.values(path, "--window", 16), [wanted], (dtype, order))
                self.assertEqual(self.values("-", stdin=npy(dtype, values, order=order)), [wanted], (dtype, order))

    def test_big_endian_index(self):
        path = self.file("x.npy", npy("f32", [1, 2.5, -7, -7, 3], order=">"))
        self.assertEqual(self.values(path, "--op", "argmin,min,argmax", "--window", 8), ["2", "-7", "4"])

    def test_header_forms_that_numpy_reads(self):
        data = pack("f64", [1, 2])
        for text in ("{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}",
                     '{"descr": "<f8", "fortran_order": False, "shape": (2,), }',
                     "{'shape': (2,), 'descr': '=f8', 'fortran_order': False}",
                     "{'descr':'f8','fortran_order':False,'shape':(1,2)}",
                     "{'descr': '<f8', 'fortran_order': True, 'shape': (2,1,1,), }",
                     "  { 'descr' : '<f8' , 'fortran_order' : False , 'shape' : ( 2 , ) , }  \n"):
            for pad in (False, True):  # without padding the data is at an odd place, too
                path = self.file("x.npy", header(text, pad=pad) + data)
                self.assertEqual(self.values(path), ["3"], (text, pad))

    def test_shapes(self):
        self.assertEqual(self.values(self.file("x.npy", npy("i8", [-5], ()))), ["-5"])
        self.assertEqual(self.values(self.file("x.npy", npy("i8", range(24), (2, 3, 4)))), ["276"])
        huge = header("{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775808, 4, 0)}")
        self.assertEqual(self.values(self.file("x.npy", huge)), ["0"])
        deep = (1,) * 64
        self.assertEqual(self.values(self.file("x.npy", npy("i8", [3], deep))), ["3"])

    def test_fortran_order(self):
        random.seed(1)
        for shape in ((3, 4), (2, 3, 5), (7, 1, 2), (1, 6), (4, 4, 1, 3)):
            count = 1
            for extent in shape:
                count *= extent
            values = [random.choice((-3.0, 0.0, 4.0, float("nan"))) for _ in range(count)]
            for rule in ("propagate", "ignore"):
                row_major = flat(shape, values)
                order = [(v != v and rule == "propagate", v, i) for i, v in enumerate(row_major)
                         if v == v or rule == "propagate"]
                nans = [i for nan, _, i in order if nan]
                least = nans[0] if nans else min((v, i) for _, v, i in order)[1]
                most = nans[0] if nans else min((-v, i) for _, v, i in order)[1]
                for byte_order in "<>":
                    path = self.file("x.npy", npy("f32", values, shape, fortran=True, order=byte_order))
                    for window in (4, 12, 1 << 20):
                        self.assertEqual(self.values(path, "--op", "argmin,argmax,count", "--nan", rule, "--window", window),
                                         [str(least), str(most), str(sum(v != 0 for _, v, _ in order))], (shape, rule))

    def test_fortran_order_of_truth_values(self):
        # In memory: 0 1 2 | 0 3 0, so in rows 0 0, 1 3, 2 0; all true values tie.
        data = header("{'descr': '|b1', 'fortran_order': True, 'shape': (3, 2)}") + bytes([0, 1, 2, 0, 3, 0])
        self.assertEqual(self.values(self.file("x.npy", data), "--op", "argmin,argmax"), ["0", "2"])

    def test_bfloat16_as_numpy_saves_it(self):
        data = header("{'descr': '|V2', 'fortran_order': False, 'shape': (2,)}") + pack("bf16", [1.5, 2])
        path = self.file("x.npy", data)
        self.assertEqual(self.values(path, "--dtype", "bf16"), ["3.5"])
        self.bad("its dtype '|V2' is none that dpr reduces", "reduce", path)

    def test_named_type_must_be_that_of_the_header(self):
        path = self.file("x.npy", npy("f32", [1]))
        self.assertEqual(self.values(path, "--dtype", "f32"), ["1"])
        self.bad("x.npy: is a .npy file of f32, not of i32", "reduce", path, "--dtype", "i32")

    def test_bytes_after_the_array_are_noted(self):
        data = npy("i16", [4, 5]) + b"more"
        for args, name in (([self.file("x.npy", data)], "x.npy"), (["-"], "standard input")):
            code, out, err = run("reduce", "-q", *args, stdin=data)
            self.assertEqual((code, out), (0, "9\n"))
            self.assertIn(f"{name}: bytes after the array are ignored", err)


class Hostile(ToolTest):
    def refuse(self, wanted, data):
        path = self.file("x.npy", data)
        self.assertIn("x.npy: ", self.bad(wanted, "reduce", path))
        self.bad(wanted, "reduce", "-", stdin=data)

    def descr(self, descr, shape="(1,)"):
        return header(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}") + bytes(64)

    def test_types_that_cannot_be_reduced(self):
        for descr in ("|O", "<U5", "|S3", "|V8", "<M8[ns]", "<m8[s]", "<f16", "<c32", "<f3", "", "<", "<<f8", "f" * 5000):
            self.refuse(f"its dtype '{descr[:31]}' is none that dpr reduces", self.descr(f"'{descr}'"))
        for descr in ("[('a', '<f8'), ('b', '<i4')]", "('<f8', (2,))"):
            self.refuse("not that of a plain array: {'descr': " + descr, self.descr(descr))

    def test_shapes_that_make_no_sense(self):
        for shape, wanted in ((f"({10**30},)", "address space"), ("(4294967296, 4294967296)", "address space"),
                              ("(9223372036854775807,)", "address space"), ("(" + "1," * 65 + ")", "64 dimensions")):
            self.refuse(wanted, self.descr("'<f8'", shape))
        for shape in ("(-1,)", "(3)", "3", "[3]", "(3,,)", "(3, 'a')", "(1.5,)", "(1, 1.5)", "(3", "(1, 2", "(,)", "(1 2,)",
                      "(((((1,)", "(+3,)", "(0x3,)", "(True,)", "None"):
            self.refuse("not that of a plain array: {'descr': '<f8', ", self.descr("'<f8'", shape))

    def test_dictionaries_that_make_no_sense(self):
        whole = "'descr': '<f8', 'fortran_order': False, 'shape': (1,)"
        for text in ("", "{", "[]", "{}", "{'descr': '<f8', 'shape': (1,)}", f"{{{whole}, 'descr': '<f8'}}",
                     "{'descr': '<f8', 'fortran_order': False, 'descr': '<f8'}", f"{{{whole}, 'more': 1}}",
                     f"{{{whole}}} + 1", f"{{{whole}}}}}", f"{{{whole}", f"x{{{whole}}}", f"{{{whole}\0}}",
                     f"{{{whole}}}\0", f"{{{whole}, \xe9}}", f"{{{whole},,}}", "{'d\0escr': '<f8'}", "{'de\\x73cr': '<f8'}",
                     "{'descr", "{descr: '<f8'}", "{'descr' '<f8'}", "{'descr': f8}", "{'fortran_order': 1}",
                     whole.replace("False", "false"), whole.replace("', '", "' '"), "{" * 60000,
                     "{'descr': " + "[" * 60000):
            self.refuse("not that of a plain array: ", header(text, pad=False) + bytes(64))

    def test_padding_of_a_header_is_not_shown(self):
        for text in ("{'descr': '<f8'}", "{'descr': '<f8', 'more': [" + 160 * "1" + "]}"):
            err = self.bad("not that of a plain array: ", "reduce", self.file("x.npy", header(text) + bytes(64)))
            self.assertTrue(err.endswith(f": {text}\n"), err)

    def test_lengths_that_lie(self):
        good = npy("f64", [1, 2])
        for size in range(6, 128):
            self.refuse("cut off", good[:size])
        for size in (128, 129, 136, 143):
            missing = 144 - size
            self.refuse(f"is truncated: {missing} byte", good[:size])
        text = "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}"
        self.refuse("claims 4294967295 bytes", header(text, 2, length=2**32 - 1) + bytes(64))
        self.refuse("claims 65537 bytes", header(text, 3, length=2**16 + 1) + bytes(64))
        self.refuse("cut off", header(text, length=65535) + bytes(64))
        self.refuse("header", header(text, length=10) + bytes(64))
        self.refuse("header", header(text, length=0) + bytes(64))

    def test_versions_that_do_not_exist(self):
        for major, minor in ((0, 0), (1, 1), (4, 0), (255, 255)):
            self.refuse(f"version {major}.{minor}", b"\x93NUMPY" + bytes([major, minor]) + bytes(100))

    def test_a_claim_of_much_data_allocates_nothing(self):
        data = header("{'descr': '>f8', 'fortran_order': False, 'shape': (1125899906842624,)}") + bytes(800)
        self.refuse("is truncated: 9007199254740192 bytes", data)

    def test_random_damage_never_crashes(self):
        random.seed(7)
        good = npy("f64", [1, 2], version=1)
        processes = 0
        for _ in range(150):
            data = bytearray(good)
            for _ in range(random.randint(1, 4)):
                data[random.randrange(6, 128)] = random.choice(b"{}()[]'\",: 0123456789<>|LTF\0\\\n\xff")
            code, out, err = run("reduce", "-q", "-", stdin=bytes(data))
            processes += 1
            self.assertIn(code, (0, 1), (bytes(data), out, err))
        self.assertEqual(processes, 150)


class Raw(ToolTest):
    def test_needs_a_type(self):
        self.bad("x.bin: has no .npy header; --dtype says", "reduce", self.file("x.bin", b"12345678"))
        self.bad("standard input: has no .npy header", "reduce", "-", stdin=b"12345678")

    def test_size_must_fit(self):
        path = self.file("x.bin", b"1234567890")
        self.bad("has 10 bytes, which is no multiple of the 4", "reduce", path, "--dtype", "f32")
        self.bad("ends in the middle of an element: 2 bytes of 4", "reduce", "-", "--dtype", "f32", stdin=b"1234567890")
        self.assertEqual(self.values(path, "--dtype", "u8"), [str(sum(b"1234567890"))])

    def test_empty(self):
        path = self.file("x.bin", b"")
        self.bad("x.bin: is empty", "reduce", path)
        self.bad("standard input: is empty", "reduce", "-")
        self.assertEqual(self.values(path, "--dtype", "f32"), ["0"])
        self.assertEqual(self.values("-", "--dtype", "f32", "--op", "sum,count"), ["0", "0"])
        self.bad("x.bin: ", "reduce", path, "--dtype", "f32", "--op", "argmax")


class Pipes(ToolTest):
    def test_longer_than_a_window_and_in_pieces(self):
        values = [(i * 7919) % 65536 for i in range(40000)]
        for data, args in ((npy("u16", values), []), (pack("u16", values), ["--dtype", "u16"])):
            for window in (2, 30000, 80000, 80001, 1 << 20):
                with subprocess.Popen([DPR, "reduce", "-q", "-", "--op", "sum,argmax,max", "--window", str(window), *args],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
                    for at in range(0, len(data), 9001):
                        p.stdin.write(data[at:at + 9001])
                        p.stdin.flush()
                    out = p.communicate()[0].decode().split()
                self.assertEqual(p.returncode, 0)
                self.assertEqual(out, [str(sum(values)), str(values.index(max(values))), str(max(values))], window)

    def test_named_pipe(self):
        path = os.path.join(self.folder, "fifo")
        os.mkfifo(path)

        def write():
            with open(path, "wb") as f:
                f.write(npy("f64", [1, 2, 4]))
        thread = threading.Thread(target=write)
        thread.start()
        self.assertEqual(self.values(path), ["7"])
        thread.join()

    def test_redirected_file(self):
        with open(self.file("x.npy", b"skipped!" + npy("f64", [1, 2, 4])), "rb", buffering=0) as f:
            f.seek(8)
            self.assertEqual(self.values("-", stdin_file=f), ["7"])

    def test_files_of_the_kernel(self):
        # Their size is 0, whatever they hold.
        with open("/proc/version", "rb") as f:
            wanted = str(len(f.read()))
        self.assertEqual(self.values("/proc/version", "--dtype", "u8", "--op", "count"), [wanted])


class Failures(ToolTest):
    def test_files_that_cannot_be_read(self):
        self.bad("none.npy: cannot be opened: No such file or directory", "reduce", self.folder + "/none.npy")
        self.bad("cannot be read: Is a directory", "reduce", self.folder)
        self.bad("/x.npy: cannot be opened: Not a directory", "reduce", self.file("f", b"") + "/x.npy")
        self.bad("cannot be read: Input/output error", "reduce", "/proc/self/mem", "--dtype", "u8")

    def test_forbidden_file(self):
        path = self.file("x.npy", npy("f64", [1]))
        os.chmod(path, 0)
        os.chmod(self.folder, 0o755)
        nobody = (lambda: os.setuid(65534)) if os.geteuid() == 0 else None  # root may read every file
        try:
            done = subprocess.run([DPR, "reduce", path], capture_output=True, check=False, preexec_fn=nobody)
        except PermissionError:
            self.skipTest("this is root, and others cannot run the command where it lies")
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn(b"x.npy: cannot be opened: Permission denied", done.stderr)

    def test_the_other_files_are_still_done(self):
        good = self.file("good.npy", npy("f64", [1, 2]))
        code, out, err = run("reduce", "-q", self.folder + "/none.npy", good, self.folder, good)
        self.assertEqual((code, out), (1, "3\n3\n"))
        self.assertEqual(len(err.splitlines()), 2)

    def test_operation_without_meaning(self):
        path = self.file("x.npy", npy("f32", [1, 2]))
        code, out, err = run("reduce", "-q", path, "--op", "sum,band,max")
        self.assertEqual((code, out), (1, "3\n2\n"))
        self.assertEqual(err, f"dpr: reduce: {path}: band has no meaning for f32\n")

    def test_names_with_odd_characters(self):
        path = self.file("a\n\033[31m.npy", npy("f32", [1, 2]))
        self.assertIn("a??[31m.npy: 2 f32", self.good("reduce", path))
        self.assertEqual(self.document("reduce", path)["arrays"][0]["file"], path)
        self.bad("b??c", "reduce", self.folder + "/b\n\033c")
        raw = os.fsencode(self.folder) + b"/\xff\xfe.npy"
        with open(raw, "wb") as f:
            f.write(npy("f32", [1]))
        done = subprocess.run([os.fsencode(DPR), b"reduce", b"--json", raw], capture_output=True, check=True)
        self.assertIn("/\ufffd\ufffd.npy", done.stdout.decode())

    def endless(self, args, action):
        """Reduces a file too large to end, does `action` once it is mapped, and returns how that went."""
        path = self.file("huge.bin", b"")
        os.truncate(path, 1 << 40)
        good = self.file("good.bin", b"\1\2")
        with subprocess.Popen([DPR, "reduce", "-q", path, good, "--dtype", "u8", *args], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as p:
            deadline = time.monotonic() + 60
            while True:
                with open(f"/proc/{p.pid}/maps", encoding="utf-8", errors="replace") as f:
                    if "huge.bin" in f.read():
                        break
                self.assertIsNone(p.poll())
                self.assertLess(time.monotonic(), deadline)
            action(path)
            out, err = p.communicate(timeout=100)
        return p.returncode, out.decode(), err.decode()

    def test_truncated_while_read(self):
        for window in ("64KiB", "64MiB", "1GiB"):
            for size in (0, 5000):
                code, out, err = self.endless(["--window", window], lambda path, to=size: os.truncate(path, to))
                self.assertEqual((code, out), (1, "3\n"), err)
                self.assertIn(f"huge.bin: was truncated from {1 << 40} to {size} bytes while it was read", err)

    def test_changed_while_read(self):
        def change(path):
            with open(path, "r+b") as f:
                f.write(b"x")
        code, out, err = self.endless(["--window", "1MiB"], change)
        self.assertEqual((code, out), (1, "3\n"), err)
        self.assertIn("huge.bin: was changed while it was read", err)

    def commands(self):
        """One of each that prints, whatever it prints."""
        path = self.file("x.npy", npy("f64", [1]))
        bench = ["bench", "-d", "cpu", "-n", "10", "-a", "50%", "-q", "-f"]
        return (["reduce", path], ["reduce", "-q", path], ["reduce", "--json", path], ["info"], ["info", "--json"],
                ["info", "--capture"], ["plan"], ["plan", "--json"], ["--help"], ["--version"], ["help", "reduce"],
                [*bench, "table"], [*bench, "json"])

    @small_cache()
    def test_full_disk(self):
        for args in self.commands():
            with open("/dev/full", "wb") as full:
                code, _, err = run(*args, stdout=full)
            self.assertEqual(code, 1, args)
            self.assertIn("dpr: standard output cannot be written: No space left on device", err)

    def test_closed_pipe(self):
        for ignored in (False, True):
            reading, writing = os.pipe()
            os.close(reading)
            handler = signal.SIG_IGN if ignored else signal.SIG_DFL
            p = subprocess.run([DPR, "--help"], stdout=writing, stderr=subprocess.PIPE, check=False, restore_signals=False,
                               preexec_fn=lambda h=handler: signal.signal(signal.SIGPIPE, h))
            os.close(writing)
            if ignored:
                self.assertEqual(p.returncode, 1)
                self.assertIn(b"cannot be written: Broken pipe", p.stderr)
            else:
                self.assertEqual((p.returncode, p.stderr), (-signal.SIGPIPE, b""))

    @small_cache()
    def test_closed_output(self):
        for args in self.commands():
            p = subprocess.run([DPR, *args], stderr=subprocess.PIPE, check=False, preexec_fn=lambda: os.close(1))
            self.assertEqual(p.returncode, 1, args)
            self.assertIn(b"dpr: standard output cannot be written: Bad file descriptor", p.stderr)


if __name__ == "__main__":
    unittest.main()
