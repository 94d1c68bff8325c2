"""dpr bench --compare: which rows are compared, exit codes, formats, and files that make no sense."""

import copy
import csv
import io
import json
import os
import subprocess
import unittest

from support import DPR, SOURCE, ToolTest, run, small_cache
from test_terminal import HOSTILE, OBEYED

RESULTS = os.path.join(SOURCE, "tests", "results")


def row(strategy="cpu.simd", us=100.0, count=1 << 20, width=0.01, **more):
    return {"strategy": strategy, "op": "sum", "dtype": "f32", "count": count, "mode": "blocking", "cache": "cold",
            "samples": 20, "calls": 1, "median_us": us, "low_us": us * (1 - width), "high_us": us * (1 + width),
            "spread": 0.01, "ok": True, "settled": True, "doubtful": False, "wrong": 0, **more}


def document(*rows, **more):
    return {"benchmark": "dpr bench", "version": "0.2.0", "commit": "abc",
            "device": {"name": "A CPU", "kind": "cpu"}, "settings": {"accuracy": 0.01}, "interrupted": False,
            "rows": list(rows), "left_out": [], **more}


class CompareTest(ToolTest):
    def write(self, name, what):
        return self.file(name, what if isinstance(what, bytes) else json.dumps(what).encode())

    def compare(self, old, new, *args, expect=0):
        """The JSON report on two documents."""
        code, out, err = run("bench", "--compare", self.write("old.json", old), self.write("new.json", new), "-f",
                             "json", *args)
        self.assertEqual((code, err), (expect, ""), out)
        return json.loads(out)

    def lacks(self, wanted, old, new, *args):
        """The JSON report on two documents, which say too little."""
        code, out, err = run("bench", "--compare", self.write("old.json", old), self.write("new.json", new), "-f",
                             "json", *args)
        self.assertEqual(code, 2, out)
        self.assertRegex(err, rf"\Adpr: bench: the comparison says too little: {wanted}\n\Z")
        return json.loads(out)

    def trouble(self, wanted, *args, **kwargs):
        """stderr of a comparison that has no report, with one sentence that has `wanted` in it."""
        code, out, err = run("bench", "--compare", *args, **kwargs)
        self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
        self.assertIn(wanted, err)
        return err

    def verdicts(self, old, new, *args, expect=0):
        return [r["verdict"] for r in self.compare(old, new, *args, expect=expect)["rows"]]


class Verdicts(CompareTest):
    def test_exit_codes(self):
        old = document(row())
        for wanted, expect, new in (("same", 0, row()), ("same", 0, row(us=101)), ("faster", 0, row(us=80)),
                                    ("slower", 1, row(us=120)), ("failed", 1, row(ok=False, wrong=4)), ("failed", 1, {**row(), "ok": False})):
            self.assertEqual(self.verdicts(old, document(new), expect=expect), [wanted], new)
        failed = {k: v for k, v in row(ok=False, error="it broke").items() if not k.endswith("_us")}
        self.assertEqual(self.verdicts(old, document(failed), expect=1), ["failed"])
        for first, new in ((old, row(us=120, width=0.3)), (old, row(us=120, doubtful=True)), (old, row(us=120, samples=3)),
                           (document(failed), row())):
            report = self.lacks("1 of 1 rows are unsure", first, document(new))
            self.assertEqual([r["verdict"] for r in report["rows"]], ["unsure"])

    def test_comparisons_that_say_too_little(self):
        """A slower row counts, whatever NEW lacks."""
        names = [f"s{i}" for i in range(10)]
        old = document(*map(row, names))
        few = document(row("s0"))
        self.lacks(r".*new\.json was interrupted", old, {**few, "interrupted": True})
        self.lacks(r".*new\.json was interrupted", old, [{**old, "interrupted": False}, document(row("x"), interrupted=True)])
        self.lacks(r".*new\.json lacks 9 of 10 rows", old, few)
        self.lacks(r".*new\.json lacks 9 of 10 rows", old, {**few, "ended_early": "the budget was spent"})
        self.lacks("6 of 10 rows are unsure", old, document(*(row(n, 500, doubtful=n < "s6") if n < "s6" else row(n) for n in names)))
        self.compare(old, document(*(row(n, 500, doubtful=True) if n < "s5" else row(n) for n in names)))
        self.compare(few, old)
        self.compare({**old, "interrupted": True}, old)
        self.compare(old, {**document(row("s0", 500)), "interrupted": True}, expect=1)

    def test_threshold(self):
        old, new = document(row()), document(row(us=115))
        self.assertEqual(self.verdicts(old, new, expect=1), ["slower"])
        self.assertEqual(self.verdicts(old, new, "--threshold", "10%", expect=1), ["slower"])
        self.assertEqual(self.verdicts(old, new, "--threshold", "20%"), ["same"])
        self.assertEqual(self.compare(old, new, "--threshold", "20")["threshold"], 0.2)
        self.assertEqual(self.compare(old, old)["threshold"], 0.03)

    def test_intervals_are_those_that_justify_the_verdict(self):
        (r,) = self.compare(document(row()), document(row(us=120)), expect=1)["rows"]
        self.assertEqual((r["old_us"], r["new_us"], r["ratio"]), (100, 120, 1.2))
        self.assertEqual((r["old_low_us"], r["old_high_us"], r["new_low_us"]), (99, 101, 118.8))
        self.assertTrue(1.03 < r["ratio_low"] < 1.2 < r["ratio_high"] < 1.25, r)

    def test_summary(self):
        old = document(row("a", 100), row("b", 100), row("c", 100), row("gone"))
        new = document(row("new"), row("b", 400), row("a", 25), row("c", 100))
        report = self.compare(old, new, expect=1)
        self.assertEqual([(r["strategy"], r["verdict"]) for r in report["rows"]],
                         [("b", "slower"), ("a", "faster"), ("c", "same")])
        self.assertEqual([r["strategy"] for r in report["only_in_old"]], ["gone"])
        self.assertEqual([r["strategy"] for r in report["only_in_new"]], ["new"])
        summary = report["summary"]
        self.assertEqual([summary[k] for k in ("same", "faster", "slower", "unsure", "failed", "only_in_old",
                                               "only_in_new", "geometric_mean")], [1, 1, 1, 0, 0, 1, 1, 1])
        self.assertEqual(summary["worst"]["name"], "b, sum of f32, 2^20 elements, blocking, cold")
        self.assertEqual(summary["worst"]["verdict"], "slower")

    def test_rows_of_new_alone_that_failed(self):
        """They are named, however many other rows are new."""
        old = document(row())
        new = document(row(), *(row(f"n{i}") for i in range(30)), row("broken", ok=False, wrong=2))
        report = self.compare(old, new, expect=1)
        self.assertEqual([r["verdict"] for r in report["only_in_new"]], ["only in NEW"] * 30 + ["failed"])
        self.assertEqual((report["summary"]["failed"], report["summary"]["only_in_new"]), (1, 31))
        paths = self.write("old.json", old), self.write("new.json", new)
        for form, pattern in (("table", r"\nFailed:\nstrategy .*\nbroken +- +failed "),
                              ("markdown", r"\n### Failed\n\n.*\n.*\n\| broken +\| +- \| failed \|"),
                              ("csv", r"\nfailed,,broken,")):
            code, out, err = run("bench", "--compare", *paths, "-f", form)
            self.assertEqual((code, err, out.count("broken")), (1, "", 1), form)
            self.assertRegex(out, pattern)
            self.assertEqual("and 10 more\n" in out, form != "csv")

    def test_other_memory_is_another_row(self):
        old = document(row(us=100), row(us=300, memory="pinned"))
        new = document(row(us=300, memory="pinned"), row(us=100, memory="managed"))
        report = self.lacks(".*lacks 1 of 2 rows", old, new)
        self.assertEqual([(r["memory"], r["verdict"]) for r in report["rows"]], [("pinned", "same")])
        self.assertEqual(["memory" in r for r in report["only_in_old"]], [False])
        self.assertEqual([r["memory"] for r in report["only_in_new"]], ["managed"])
        self.assertEqual(report["summary"]["worst"]["name"],
                         "cpu.simd, sum of f32, 2^20 elements, blocking, cold, pinned memory")
        _, out, _ = run("bench", "--compare", self.write("o.json", old), self.write("n.json", new), "-f", "csv")
        self.assertEqual([r["memory"] for r in csv.DictReader(io.StringIO(out))], ["pinned", "", "managed"])

    def test_the_planners_choice(self):
        old = document(row("a", chosen=True), row("b", 200, chosen=False))
        new = document(row("a", chosen=False), row("b", 200, chosen=True))
        report = self.compare(old, new, expect=1)
        self.assertEqual([(r["strategy"], r["verdict"]) for r in report["rows"]],
                         [("a", "same"), ("b", "same"), ("planner's choice", "slower")])
        self.assertEqual((report["rows"][2]["old_choice"], report["rows"][2]["new_choice"]), ("a", "b"))
        self.assertEqual(len(self.compare(old, old)["rows"]), 2)

    def test_a_changed_choice_is_no_missing_row(self):
        """With -s, the old choice may not be measured again."""
        old = document(row("a", chosen=False), row("b", 200, chosen=True), row("d"))
        new = document(row("a", chosen=False), row("c", chosen=True), row("d"))
        self.assertEqual([(r["strategy"], r["verdict"]) for r in self.compare(old, new)["rows"]],
                         [("a", "same"), ("planner's choice", "faster"), ("d", "same")])
        self.lacks(r".*new\.json lacks 1 of 3 rows", old, document(row("a", chosen=False), row("c", chosen=True)))
        self.lacks(r".*new\.json lacks 2 of 3 rows", old, document(row("a")))

    def test_a_report_that_cannot_be_written_ends_with_2(self):
        path = self.write("same.json", document(row()))
        for args in ((), ("-O", "/dev/full")):
            with open("/dev/full", "wb") as full:
                code, _, err = run("bench", "--compare", path, path, *args, stdout=full)
            self.assertEqual(code, 2)
            self.assertIn("cannot be written", err)

    def test_warnings(self):
        old = document(row())
        self.assertEqual(self.compare(old, old)["warnings"], [])
        for wanted, more in (("device: name is A CPU in OLD, and B in NEW", {"device": {"name": "B", "kind": "cpu"}}),
                             ("settings: accuracy is 0.01 in OLD, and 0.5 in NEW", {"settings": {"accuracy": 0.5}}),
                             ("benchmark is dpr bench in OLD, and dpr peers in NEW", {"benchmark": "dpr peers"}),
                             ("NEW ended early: the budget was spent", {"ended_early": "the budget was spent"})):
            self.assertEqual(self.compare(old, document(row(), **more))["warnings"], [wanted])
        self.assertEqual(self.lacks(".*interrupted", old, document(row(), interrupted=True))["warnings"], ["NEW was interrupted"])
        spent = {"ended_early": "the budget was spent"}
        for new in ([document(row(), **spent)], [document(row()), document(row("x"), **spent)]):
            self.assertEqual(self.compare(old, new)["warnings"], ["NEW ended early: the budget was spent"])
        out = self.good("bench", "--compare", self.write("o.json", document(row(), interrupted=True)),
                        self.write("n.json", old))
        self.assertIn("\nWarning: OLD was interrupted\n", out)

    def test_wisdom_that_differs(self):
        """Older files have no word of it, which is no difference to none."""
        def of(wisdom):
            return document(row(), settings={"accuracy": 0.01, **({"wisdom": wisdom} if wisdom else {})})
        for old, new in ((None, None), (None, "none"), ("none", None), ("/a", "/a")):
            self.assertEqual(self.compare(of(old), of(new))["warnings"], [])
        self.assertEqual(self.compare(of("none"), of("/a"))["warnings"], ["settings: wisdom is none in OLD, and /a in NEW"])
        self.assertEqual(self.compare(of("/a"), of(None))["warnings"], ["settings: wisdom is /a in OLD, and none in NEW"])

    def test_drift(self):
        """Of rates that make sense."""
        old = document(row(), reference={"read_gb_per_s": 10})
        warning = "a fixed piece of work ran 25 % slower in one of the runs; all intervals include this"
        for rate, drift, warnings in ((8, 0.25, [warning]), (1e308, 0, []), (1e-308, 0, [])):
            new = document(row(), reference={"read_gb_per_s": rate})
            report = self.lacks("1 of 1 rows are unsure", old, new) if drift else self.compare(old, new)
            self.assertEqual((report["drift"], report["warnings"]), (drift, warnings))


class Files(CompareTest):
    def test_results_of_all_kinds(self):
        """Each with itself, and with one time that is doubled."""
        for name in ("gpu", "ladder-24", "ladder-28", "nested", "fused", "peers", "segments", "axes"):
            path = os.path.join(RESULTS, f"h200-{name}.json")
            with open(path, encoding="utf-8") as f:
                old = json.load(f)
            report = json.loads(self.good("bench", "--compare", path, path, "-f", "json"))
            self.assertEqual(len(report["rows"]), len(old["rows"]), name)
            self.assertEqual(report["warnings"], [])
            summary = report["summary"]
            self.assertEqual([summary[k] for k in ("faster", "slower", "failed", "only_in_old", "only_in_new")], [0] * 5)
            if name not in ("peers", "nested"):  # of which many samples scatter
                self.assertGreater(summary["same"], 0.95 * len(old["rows"]), name)
            new = copy.deepcopy(old)
            for key in ("median_us", "low_us", "high_us"):
                new["rows"][5][key] *= 2
            report = self.compare(old, new, expect=1)
            self.assertEqual((report["summary"]["slower"], report["rows"][5]["verdict"]), (1, "slower"), name)

    @small_cache()
    def test_a_measurement(self):
        paths = [os.path.join(self.folder, f"{side}.json") for side in ("old", "new")]
        for path in paths:
            self.good("bench", "-d", "cpu", "-q", "-a", "50%", "-n", "1000,2^16", "-c", "both", "-O", path)
        code, out, err = run("bench", "--compare", *paths, "-f", "json")
        self.assertIn((code, err == ""), ((0, True), (1, True), (2, False)), err)
        report = json.loads(out)
        self.assertGreaterEqual(len(report["rows"]), 12)
        self.assertEqual((report["only_in_old"], report["only_in_new"]), ([], []))
        self.assertEqual(report["old"]["device"], report["new"]["device"])

    def test_formats(self):
        old, new = self.write("o.json", document(row("a|b"))), self.write("n.json", document(row("a|b", 90), row("d", count=7)))
        text = self.good("bench", "--compare", old, new)
        self.assertIn("\nFaster:\nstrategy  elements", text)
        self.assertTrue(text.rstrip().splitlines()[-1].startswith("NEW / OLD: geometric mean of 1 row 0.900"), text)
        more = self.write("more.json", document(row("a|b"), row("c", count=7)))
        _, out, _ = run("bench", "--compare", more, new, "-f", "csv")
        rows = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual([(r["strategy"], r["verdict"]) for r in rows],
                         [("a|b", "faster"), ("c", "only in OLD"), ("d", "only in NEW")])
        self.assertEqual((rows[0]["old_us"], rows[0]["new_us"], rows[0]["ratio"]), ("100", "90", "0.9"))
        lines = self.good("bench", "--compare", old, new, "-f", "markdown").splitlines()
        table = lines[lines.index("### Faster") + 2:][:3]
        self.assertEqual(len({line.replace("\\|", "").count("|") for line in table}), 1, table)
        for end, begin in ((".md", "## NEW"), (".csv", "verdict,"), (".json", "{"), (".txt", "NEW compared")):
            path = os.path.join(self.folder, "report" + end)
            self.assertEqual(self.good("bench", "--compare", old, new, "-O", path), "")
            with open(path, encoding="utf-8") as f:
                self.assertTrue(f.read().startswith(begin), end)

    def test_markdown_of_text_that_looks_like_markup(self):
        new = document(row("<i>"), commit="<img src=x>", device={"name": "[x](y)"}, settings={"accuracy": "<b>`"})
        out = self.good("bench", "--compare", self.write("<o>.json", document(row("<i>"))), self.write("n.json", new), "-f",
                        "markdown")
        self.assertNotRegex(out, r"<|(?<!\\)\]\(|(?<!\\)`")
        for part in ("/&lt;o&gt;.json: dpr bench 0.2.0 abc, ", " &lt;img src=x&gt;, [x\\](y), 1 rows\n", "| &lt;i&gt; ",
                     "\nWarning: settings: accuracy is 0.01 in OLD, and &lt;b&gt;\\` in NEW\n"):
            self.assertIn(part, out)

    def test_standard_input(self):
        path = self.write("x.json", document(row()))
        data = json.dumps(document(row(us=200))).encode()
        code, out, _ = run("bench", "--compare", path, "-", stdin=data)
        self.assertEqual(code, 1)
        self.assertIn("NEW: standard input: ", out)
        code, out, _ = run("bench", "--compare", "-", path, stdin=data)
        self.assertEqual(code, 0)
        self.assertIn("1 faster", out)


class Refused(CompareTest):
    def refuse(self, wanted, data):
        """As either side."""
        bad, good = self.write("bad.json", data), self.write("good.json", document(row()))
        for pair in ((bad, good), (good, bad)):
            self.assertIn("bad.json: ", self.trouble(wanted, *pair))

    def test_usage(self):
        path = self.write("x.json", document(row()))
        for wanted, *args in (("--compare takes two files, OLD and NEW", "--compare"),
                              ("--compare takes two files, OLD and NEW", "--compare", path),
                              ("--compare takes two files, OLD and NEW", "--compare", path, path, path),
                              ("standard input ('-') is named twice", "--compare", "-", "-"),
                              ("--compare measures nothing", "--compare", path, path, "-n", "100"),
                              ("--compare measures nothing", "--compare", path, path, "-d", "cpu"),
                              ("--compare measures nothing", "--compare", path, path, "--ladder"),
                              ("--compare measures nothing", "--compare", path, path, "--axes", "all"),
                              ("--compare measures nothing", "--compare", path, path, "-b", "5s"),
                              ("--compare measures nothing", "--compare", path, path, "-a", "1%"),
                              ("--compare measures nothing", "--compare", path, path, "--commit", "abc"),
                              ("--threshold belongs to --compare", "--threshold", "3%"),
                              ("--threshold: '0' is no share", "--compare", path, path, "--threshold", "0"),
                              ("--threshold: '200%' is no share", "--compare", path, path, "--threshold", "200%"),
                              ("--threshold: 'nan' is no share", "--compare", path, path, "--threshold", "nan"),
                              ("option '--compare=x' takes no argument", "--compare=x", path),
                              ("the operand 'x' makes no sense here", "x")):
            self.bad(wanted, "bench", *args, expect=2)

    def test_no_row_in_common(self):
        code, out, err = run("bench", "--compare", self.write("o.json", document(row("a"))),
                             self.write("n.json", document(row("b"))))
        self.assertEqual(code, 2)
        self.assertIn("1 only in OLD, 1 only in NEW", out)
        self.assertRegex(err, r"^dpr: bench: the comparison says too little: no row of .*n\.json is in .*o\.json\n$")

    def test_files_that_cannot_be_read(self):
        path = self.write("x.json", document(row()))
        self.trouble("none.json: cannot be read: ", self.folder + "/none.json", path)
        self.trouble(": cannot be read: ", path, self.folder)
        self.trouble("cannot be written", path, path, "-O", self.folder + "/none/x.json")

    def test_a_report_replaces_no_measurement(self):
        """By whatever name."""
        old, new, link = (os.path.join(self.folder, name) for name in ("old.json", "new.json", "link.json"))
        for path in (old, new):
            self.write(path, document(row()))
        os.link(new, link)
        for output in (old, new, link):
            self.bad(f"--output: '{output}' would be overwritten: it is the same file as the input '{old if output == old else new}'",
                     "bench", "--compare", old, new, "-O", output, expect=2)
        with open(new, "rb") as f:
            self.bad("it is the same file as the input '-'", "bench", "--compare", old, "-", "-O", new, expect=2, stdin_file=f)
        for path in (old, new):
            with open(path, encoding="utf-8") as f:
                self.assertEqual(json.load(f), document(row()))
        self.good("bench", "--compare", old, new, "-O", "/dev/null")

    def test_text_that_is_no_json(self):
        for data in (b"", b" \n", b"{", b"{\"rows\": [", b"rows", b"NaN", b"{}x", b"{\"rows\": [}]}", b"\xff\xfe{}",
                     b"[1,]", b"{\"rows\": [{\"median_us\": NaN}]}", b"{'rows': []}", b"\"" + b"x" * 100000):
            self.refuse("is no JSON: line ", data)
        self.refuse("is no JSON: line 3 cannot be understood", b"{\n\"rows\":\n[,]}")
        self.refuse("is no JSON: it has a zero byte", b"{}\0")
        self.refuse("is no JSON: it has a zero byte", bytes(1000))

    def test_documents_of_another_kind(self):
        for data in (b"{}", b"[]", b"7", b"null", b"\"x\"", b"{\"rows\": []}", b"{\"rows\": 3}", b"{\"Rows\": [1]}", b"[[]]", b"[{}]",
                     b"{\"engines\": {}}"):
            self.refuse("cannot be compared: it has no list 'rows' or 'engines' with rows in it", data)
        for name in ("h200-cpu", "xeon-cpu"):
            path = os.path.join(RESULTS, name + ".json")
            self.trouble("it has no list 'rows'", path, path)

    def test_recursions(self):
        """One document of dpr recurse, and a list of several. On a busy machine most rows are unsure."""
        fib, both = (os.path.join(self.folder, name) for name in ("fib.json", "both.json"))
        documents = [self.good("recurse", name, "--size", "5", "--engine", "all", "-d", "cpu", "--json") for name in ("fib", "nqueens")]
        with open(fib, "w", encoding="utf-8") as f:
            f.write(documents[0])
        with open(both, "w", encoding="utf-8") as f:
            f.write(f"[{documents[0]}, {documents[1]}]")
        code, out, err = run("bench", "--compare", both, both, "-f", "json")
        self.assertIn((code, err == ""), ((0, True), (2, False)), err)
        rows = json.loads(out)["rows"]
        self.assertEqual({(r["engine"], r["recursion"], r["size"]) for r in rows},
                         {(e, r, 5) for e in ("cpu", "serial", "auto") for r in ("fib", "nqueens")})
        self.assertEqual({r["ratio"] for r in rows}, {1})
        _, text, _ = run("bench", "--compare", fib, both)
        self.assertRegex(text, r"Only in NEW:\nstrategy +recursion\ncpu +nqueens\n")
        self.assertNotIn("Warning", text)

    def test_recursions_with_other_options_are_other_rows(self):
        def of(us, **more):
            times = {key: us for key in ("median_us", "low_us", "high_us")}
            return {"benchmark": "dpr recurse", "recursion": "select", **more,
                    "engines": [{"engine": "cpu", "right": True, "samples": 20, "spread": 0, **times}]}
        ways = ({"size": 9}, {"size": 9, "rank": 1}, {"size": 9, "rank": 2}, {"input": "a" * 300}, {"input": "b"},
                {"size": 9, "cutoff": 5}, {"size": 9, "cutoff": "none"}, {"size": 9, "threads": 2},
                {"size": 9, "nested": "allowed"})
        both = [of(i + 1, **way) for i, way in enumerate(ways)]
        report = self.compare(both, both[::-1])
        self.assertEqual({(r["ratio"], r["verdict"]) for r in report["rows"]}, {(1, "same")})
        self.assertEqual(len(report["rows"]), len(ways))
        for way in ways[1:]:
            self.lacks("no row of .* is in .*", of(1, size=9), of(1, **way))
        code, text, _ = run("bench", "--compare", self.write("old.json", [of(2, **w) for w in ways]),
                            self.write("new.json", both[:3]), "-f", "csv")
        self.assertEqual(code, 1)
        self.assertEqual([(r["rank"], r["verdict"]) for r in csv.DictReader(io.StringIO(text))][:3],
                         [("", "faster"), ("1", "same"), ("2", "slower")])

    def test_rows_that_make_no_sense(self):
        def without(key):
            return document({k: v for k, v in row().items() if k != key})
        for key in ("median_us", "low_us", "high_us", "samples", "spread"):
            self.refuse(f"row 1: it has no '{key}'" if key == "median_us" else f"row 1: its '{key}' is no finite number",
                        without(key))
        self.refuse("row 1: it is no object that names a 'strategy'", without("strategy"))
        self.refuse("row 2: its 'median_us' is no finite number above 0", document(row(), row("b", us=0)))
        self.refuse("row 1: its 'median_us' is no finite number above 0", document(row(us=-1)))
        self.refuse("row 1: its 'median_us' is no finite number above 0",
                    json.dumps(document(row(us=7777))).replace("7777.0", "1e999").replace("7777,", "1e999,").encode())
        self.refuse("not from 'low_us' to 'high_us'", document(row(low_us=200)))
        self.refuse("two rows are of cpu.simd, sum of f32, 2^20 elements, blocking, cold",
                    document(row(), row("b"), row(us=3)))
        self.refuse("its 'op' is neither a text of less than 4096 bytes nor", document(row(op="x" * 5000)))

    def test_sizes(self):
        deep = b"{\"rows\": " + b"[" * 100000 + b"]" * 100000 + b"}"
        self.refuse("it is nested more than 32 levels deep", deep)
        self.refuse("it is nested more than 32 levels deep", b"{\"a\":" * 40)
        self.refuse("it is longer than 32 MiB", b" " * (32 * 2**20 + 1))
        with open(os.path.join(SOURCE, "tools", "bench", "README.md"), encoding="utf-8") as f:
            self.assertIn("A file has at most 32 MiB, ", f.read())
        self.refuse("cannot be compared: row 1: ", b"{\"rows\": [" + b"1," * 2**19 + b"1]}")
        many = b",".join(b"\"k%d\": 1" % i for i in range(200000))
        path = self.write("many.json", b"{\"settings\": {" + many + b"}, \"rows\": [" + json.dumps(row()).encode() + b"]}")
        self.good("bench", "--compare", path, path)

    def test_endless_input(self):
        with open("/dev/zero", "rb") as zero:
            done = subprocess.run([DPR, "bench", "--compare", "-", self.write("x.json", document(row()))], stdin=zero,
                                  capture_output=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"standard input: cannot be compared: it is longer than 32 MiB", done.stderr)

    def test_damage_never_crashes(self):
        """Every place of a small document is cut, and has bytes that matter put in."""
        good = json.dumps(document(row(), row("b", chosen=True), definitions={"cold": "x"}), separators=(",", ":")).encode()
        path = self.write("good.json", good)
        for at in range(0, len(good), 7):
            for put in (b"", b"\"", b"}", b"[", b"9e99", b"\\u0000", b"\xed\xa0\x80"):
                data = good[:at] + put + good[at + 1:] if put else good[:at]
                code, _, err = run("bench", "--compare", path, self.write("x.json", data))
                self.assertIn(code, (0, 1, 2), (data, err))
                self.assertNotIn("Sanitizer", err)


class Terminal(CompareTest):
    def test_hostile_text(self):
        name = "x" + "".join(HOSTILE).encode("utf-8", "surrogateescape").decode("utf-8", "replace") + "y"
        old = document(row(name), row("a", op=name), row("gone" + name), commit=name, device={"name": name})
        new = document(row(name, 200), row("a", op=name, doubtful=True, us=300), device={"name": name[::-1], name: name},
                       ended_early=name, settings={name: name})
        for form in ("table", "markdown", "csv", "json"):
            code, out, err = run("bench", "--compare", self.write(f"o{form}.json", old), self.write("n.json", new), "-f", form)
            self.assertEqual((code, err), (1, ""))
            self.assertIsNone(OBEYED.search(out), form)
        report = json.loads(out)
        self.assertEqual(report["rows"][0]["strategy"], name)

    def test_hostile_names_of_files(self):
        for word in HOSTILE:
            path = os.path.join(self.folder, f"a{word}b.json")
            code, out, err = run("bench", "--compare", path, path)
            self.assertEqual((code, out), (2, ""))
            self.assertIsNone(OBEYED.search(err.replace("\n", "")), err)
            with open(path, "w", encoding="utf-8") as f:
                json.dump(document(row()), f)
            out = self.good("bench", "--compare", path, path)
            self.assertIsNone(OBEYED.search(out), out)


if __name__ == "__main__":
    unittest.main()
