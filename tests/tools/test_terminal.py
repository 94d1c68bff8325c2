"""Text from outside that terminals would obey: names of files and machines, arguments, what files hold."""

import csv
import io
import json
import os
import re
import unittest

from support import SOURCE, ToolTest, header, npy, run, small_cache

HOSTILE = ("\x1b]0;t\a", "\r", "\x7f", "\u009b31m", "\u0085", "\u061c", "\u200e\u200f", "\u202a\u202b\u202c\u202d\u202e",
           "\u2066\u2067\u2068\u2069", "\u2028\u2029", "\udc9b31m", "\udcff\udcc2")  # the last are bytes, no UTF-8
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def shown(text):
    """The text as people are to see it."""
    return re.sub("[\udc80-\udcff]", "?", re.sub(OBEYED, "?", text))


class Terminal(ToolTest):
    def harmless(self, wanted, *args, code=0, **kwargs):
        """What a run writes, which has `wanted` in it and nothing that a terminal obeys."""
        got, out, err = run(*args, **kwargs)
        self.assertEqual(got, code, err)
        self.assertIsNone(OBEYED.search(out + err), (args, out, err))
        self.assertNotIn("\ufffd", err)  # what is no UTF-8 is decoded as that
        self.assertIn(wanted, out + err)
        return out

    def names(self):
        """Hostile words, one at a time and all in one."""
        return [f"a{word}b" for word in HOSTILE] + ["x" + "".join(HOSTILE) + "y"]

    def test_names_of_files(self):
        for name in self.names():
            path = os.path.join(self.folder, name + ".npy")
            self.harmless(shown(name), "reduce", path, code=1)
            with open(path, "wb") as f:
                f.write(npy("f64", [1, 2]))
            self.harmless(shown(name), "reduce", path)
            self.harmless(shown(name), "reduce", path, "--init", name, code=2)
            self.harmless(shown(name), "plan", "--machine", path, code=1)
            self.harmless(shown(name), "bench", "-O", f"{self.folder}/none/{name}", code=1)

    def test_names_of_files_in_json(self):
        for name in self.names():
            path = os.path.join(self.folder, name + ".npy")
            with open(path, "wb") as f:
                f.write(npy("f64", [1, 2]))
            out = self.harmless("", "reduce", "--json", path)
            self.assertEqual(json.loads(out)["arrays"][0]["file"], re.sub("[\udc80-\udcff]", "\ufffd", path))

    def test_arguments(self):
        for name in self.names():
            for args in (["reduce", "--op", name], ["reduce", "x", "--dtype", name], ["plan", "-n", name], [name],
                         ["plan", "--strategy", name], ["reduce", "--" + name], ["info", name], ["bench", "-f", name],
                         ["bench", "-n", name], ["plan", "--device", name], ["help", name], ["bench", "-b", name]):
                self.harmless("", *args, code=2)

    def test_what_files_hold(self):
        for name in self.names():
            raw = os.fsencode(name)
            for text in (b"{'descr': '" + raw[:20] + b"', 'fortran_order': False, 'shape': (1,), }",
                         b"{'" + raw[:20] + b"': '<f8', 'fortran_order': False, 'shape': (1,), }"):
                self.harmless("", "reduce", self.file("x.npy", header(text) + bytes(8)), code=1)
            for text in (raw, raw + b" = 3", b"cpu.cores = " + raw, b"cpu.cores = 1\n" + raw):
                self.harmless("", "plan", "--machine", self.file("x.caps", text), code=1)

    def machine(self, name, like):
        """A captured machine whose names are `name`."""
        with open(f"{SOURCE}/tests/machines/{like}.caps", "rb") as f:
            text = re.sub(rb"(?m)^([cg]pu_name) = .*", lambda found: found[1] + b" = " + os.fsencode(name), f.read())
        return self.file("x.caps", text)

    def test_names_of_machines(self):
        for name in self.names():
            name = name[:20]
            for like in ("h200", "cpu-only"):
                path = self.machine(name, like)
                self.harmless(shown(name), "plan", "--machine", path, "--memory", "host")
                self.harmless(shown(name), "plan", "--machine", path, "--memory", "host", "-n", "1000")
                document = json.loads(self.harmless("", "plan", "--machine", path, "--memory", "host", "--json"))
                self.assertEqual(document["cpu_name"], re.sub("[\udc80-\udcff]", "\ufffd", name))

    @small_cache()
    def test_reports_of_bench(self):
        name = self.names()[-1]
        args = ("bench", "-d", "cpu", "-n", "10", "-b", "1s", "-a", "50%", "-q", "--commit", name)
        for form in ("table", "markdown"):
            self.harmless(shown(name), *args, "-f", form)
        self.assertTrue(list(csv.reader(io.StringIO(self.harmless("", *args, "-f", "csv")))))
        document = json.loads(self.harmless("", *args, "-f", "json"))
        self.assertEqual(document["commit"], re.sub("[\udc80-\udcff]", "\ufffd", name))

    def test_what_is_no_danger_is_shown(self):
        path = self.file("é ß 中文 \U0001f600.npy", npy("f64", [1]))
        self.harmless("é ß 中文 \U0001f600.npy: 1 f64", "reduce", path)


if __name__ == "__main__":
    unittest.main()
