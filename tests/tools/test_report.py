"""dpr report: the page from all kinds of results, whole, partial, huge and hostile, and its tables."""
import base64
import hashlib
import json
import os
import re
import subprocess
import time
import unittest

from report_support import HAS_GNUPLOT, RESULTS, TEXTS, Report, document, hostile_documents, row
from support import DPR, SOURCE, run, small_cache

SECTIONS = ("machines", "sizes", "regret", "peers", "ladder", "nested", "shapes", "recursions", "cpu", "reproduce")
PLOTTED = SECTIONS[1:8]


class Results(Report):
    made = None  # the page of all results and its text, which several tests look at

    def page_of_all(self):
        if not Results.made:
            Results.made = self.page(*RESULTS)
        return Results.made

    def test_all_of_the_project(self):
        page, out = self.page_of_all()
        self.assertLess(len(out), 4e6)
        self.assertTrue(set(SECTIONS) <= page.ids, page.ids)
        for file in RESULTS:
            self.assertIn(os.path.basename(file), out)
        policy = re.search(r"script-src 'sha256-([^']*)'", out).group(1)
        script = re.search(r"<script>(.*)</script>", out, re.S).group(1)
        self.assertEqual(policy, base64.b64encode(hashlib.sha256(script.encode()).digest()).decode())
        self.assertIn("default-src 'none'", out)
        self.assertNotRegex(out, r"https?://")

    def check_plots_of_each_section(self, out):
        for name in PLOTTED:
            section = re.search(rf'<section id="{name}".*?</section>', out, re.S).group(0)
            self.assertTrue('<svg class="plot"' in section, name)

    @unittest.skipUnless(HAS_GNUPLOT, "gnuplot is not installed")
    def test_each_section_of_the_project_has_its_plots(self):
        _, out = self.page_of_all()
        self.assertNotIn("plots are left out", out)
        self.check_plots_of_each_section(out)

    @unittest.skipUnless(HAS_GNUPLOT, "gnuplot is not installed")
    def test_each_section_has_a_share_of_the_plots(self):
        """However many plots the sections before it have."""
        many = [row("a", n, op=f"op{i}") for i in range(300) for n in (1024, 2048)]
        regret = [{**row("a", n, op="sum"), "regret_percent": 1} for n in (1024, 2048)]
        few = [document(many, regret=regret), document([{**r, "subject": "dpr", "ratio": 1} for r in many],
                                                       benchmark="dpr peers"),
               document([row("a", share=0.5)], benchmark="dpr bench --ladder"),
               document([row("a")], benchmark="dpr bench --nested"),
               document([row(segments="ones")]),
               {"benchmark": "dpr recurse", "recursion": "fib", "size": 9,
                "engines": [{"engine": "cpu", "ran": "cpu", "seconds": 1, "right": True}]}]
        _, out = self.of(few)
        self.assertIn("plots are left out", out)
        self.check_plots_of_each_section(out)

    @unittest.skipUnless(HAS_GNUPLOT, "gnuplot is not installed")
    def test_each_mode_has_a_heat_map_of_its_regret(self):
        _, out = self.page_of_all()
        self.assertFalse("The plot is left out" in out)
        names = self.good("report", *RESULTS, "--list").split()
        for name in ("regret-graph-h100-tuned", "regret-blocking-h200-estimated", "regret-stream-pinned-h200-tuned",
                     "regret-h200-gpu", "ladder-h100-ladder-24", "nested-h200-nested", "recursions-h200-recursion"):
            self.assertIn(name, names)
        rows = [row("a", 1 << i, mode=mode, op=f"op{k}", regret_percent=i) for i in (3, 5) for k in range(30)
                for mode in ("graph", "stream", "blocking")]
        page, out = self.of(document([], regret=rows))
        maps = re.findall(r"<figcaption>(Regret in percent[^<]*)", out)
        self.assertEqual([title.split(", ")[-1] for title in maps], ["graph", "stream", "blocking"])
        tables = [t for t in page.tables if t[0] == ["case", "2^3", "2^5"]]
        self.assertEqual([len(t) for t in tables], [31] * 3)
        self.assertEqual(tables[1][30], ["op29 of f32", "3", "5"])

    def test_regret_of_more_modes_than_there_are_is_one_map(self):
        rows = [row("a", mode=f"mode{i}", regret_percent=1) for i in range(9)]
        page, _ = self.of(document([], regret=rows))
        table = next(t for t in page.tables if t[0] == ["case", "2^10"])
        self.assertEqual([line[0] for line in table[1:]], [f"sum of f32, mode{i}, cold" for i in range(9)])

    def test_columns_of_one_table_have_names_of_their_own(self):
        page, _ = self.page_of_all()
        for table in page.tables:
            self.assertEqual(len(set(table[0])), len(table[0]), table[0])

    def test_tables_have_names_and_headings(self):
        page, out = self.page_of_all()
        count = len(page.tables)
        self.assertGreater(count, 100)
        self.assertEqual(out.count("<caption>"), count)
        for tag, attributes in page.tags:
            if tag == "th":
                self.assertIn(attributes.get("scope"), ("col", "row"))
        for table in page.tables:
            self.assertEqual({len(cells) for cells in table}, {len(table[0])}, table[0])

    def test_times_of_a_file_are_in_the_page(self):
        page, _ = self.page(f"{SOURCE}/tests/results/h200-gpu.json")
        with open(f"{SOURCE}/tests/results/h200-gpu.json", encoding="utf-8") as f:
            rows = json.load(f)["rows"]
        def shown(r):
            us = r["median_us"]
            return f"{us:.{3 if us < 10 else 2 if us < 100 else 1}f}" + (" *" if r["chosen"] else "")

        for dtype in ("f32", "u8"):
            wanted = [r for r in rows if (r["op"], r["dtype"], r["count"]) == ("sum", dtype, 1 << 20)]
            table = next(t for t in page.tables if t[0][0] == "elements" and any(
                shown(wanted[0]) in line for line in t if line[0] == "2^20"))
            line = next(line for line in table if line[0] == "2^20")
            for r in wanted:
                self.assertEqual(line[table[0].index(r["strategy"])], shown(r))

    def test_choices_and_crossovers(self):
        rows = [row(s, n, us, chosen=(s == "a") == (n < 3000)) for n, us in ((1024, 1.0), (2048, 2.0), (4096, 3.0))
                for s in ("a", "b")]
        page, out = self.of(document(rows))
        self.assertIn("result.json: the planner chooses <code>a</code> from 2^10 to 2^11, "
                      "<code>b</code> at 2^12 elements.", out)
        self.assertIn(["2^10", "1 *", "1"], page.tables[2])

    def test_two_machines(self):
        rows = [row("a", n, n / 1000, chosen=True) for n in (1000, 2000)]
        one = self.save("one.json", document(rows))
        two = self.save("two.json", document(rows, device={"name": "another CPU", "kind": "cpu"}))
        page, out = self.page(one, two)
        self.assertIn(["elements", "a CPU, one.json", "another CPU, two.json"], [t[0] for t in page.tables])
        self.assertIn(["fact", "a CPU", "another CPU"], [t[0] for t in page.tables])
        self.assertEqual(out.count("<details class=\"case\""), 1)

    def test_files_of_one_name(self):
        os.makedirs(f"{self.folder}/old")
        files = [self.save(name, document([row("a", n, us, chosen=True) for n in (1024, 2048)]))
                 for name, us in (("one.json", 1), ("old/one.json", 2), ("two.json", 3))]
        page, out = self.page(*files)
        table = next(t for t in page.tables if t[0][0] == "elements" and t[0][-1] == "a CPU, two.json")
        self.assertEqual(table[1][1:], ["1", "2", "3"])
        for file in files[:2]:
            self.assertIn(f"<th scope=row data-v={files.index(file)}>{file}", out)

    def test_results_of_one_file_are_apart(self):
        page, _ = self.of([document([row("a", n, us, chosen=True) for n in (1024, 2048)]) for us in (1, 2)])
        table = next(t for t in page.tables if t[0] == ["elements", "a CPU, result.json", "a CPU, result.json (2)"])
        self.assertEqual(table[1], ["1024", "1", "2"])

    def test_devices_of_one_name(self):
        """Facts tell them apart. One without facts is the first, and no rate is borrowed from another."""
        def on(name, read=None, **facts):
            more = {"read_gb_per_s": read} if read else {}
            return document([row(n_us[0], n, n_us[1]) for n, n_us in ((1024, ("a", 1)), (2048, ("a", 2)))],
                            device={"name": name, **facts}, **more)
        page, out = self.of([on("H", sm_count=1, read=5), on("H", sm_count=2), on("H"),
                             on("H", sm_count=2, kind="gpu")])
        table = next(t for t in page.tables if t[0][0] == "fact")
        self.assertEqual(table[0], ["fact", "H", "H (2)"])
        self.assertIn(["SMs", "1", "2"], table)
        self.assertIn(["kind", "-", "gpu"], table)
        self.assertIn(["best measured rate of reading memory, GB/s", "5", "-"], table)
        self.assertEqual(out.count("measured read rate</ul>"), 2 if HAS_GNUPLOT else 0)

    def test_titles_have_units(self):
        rows = [row("a", n, 1, chosen=True, subject="dpr", ratio=1) for n in (1024, 2048)]
        page, out = self.of([document(rows), document(rows), document(rows, benchmark="dpr peers")])
        for title in ("Time in us: sum of f32", "Bandwidth in GB/s: sum of f32",
                      "Time of the planner's choice in us, by result: sum of f32"):
            self.assertIn(f"<caption>{title}".replace("'", "&#39;"), out)
            self.assertIn(f"<figcaption>{title}".replace("'", "&#39;"), out)
        self.assertNotRegex(out, "<caption>(Time|Bandwidth):")

    def test_numbers_keep_their_digits(self):
        times = (0.00012345678, 0.0045678, 0.056789, 1.2345678, 1234567.891)
        page, out = self.of(document([row("a", 1 << i, us) for i, us in enumerate(times)]))
        table = next(t for t in page.tables if t[0] == ["elements", "a"])
        self.assertEqual([line[1] for line in table[1:]], ["0.000123", "0.00457", "0.0568", "1.235", "1234568"])
        for us in times:
            self.assertIn(f"<td data-v={us:.15g}>", out)
        self.assertIn("<td>2", out)  # what is whole has no second number
        pools = [{"asked": n, "pending": n, "median_us": 1} for n in (1234567, 12345678)]
        page, _ = self.of({"benchmark": "dpr bench --nested", "pools": pools})
        self.assertIn(["1234567", "1"], [line for t in page.tables for line in t])

    def test_plots_that_are_left_out_are_named(self):
        steps = [row(f"s{i}", 1024, 1.0, share=0.5) for i in range(61)]
        shapes = [row(segments=f"s{i}") for i in range(61)]
        for benchmark, rows in (("dpr bench --ladder", steps), ("dpr bench", shapes)):
            _, out = self.of(document(rows, benchmark=benchmark))
            self.assertEqual("The plot is left out, because the table has 61 rows, and a plot has room for 60." in out,
                             HAS_GNUPLOT)

    def test_choices_that_are_left_out_are_named(self):
        rows = [row("ab"[i % 2], 1000 + i, 1.0, chosen=True) for i in range(70)]
        _, out = self.of(document(rows))
        self.assertIn("<code>b</code> at 1063 elements, and there are 6 larger sizes, whose choices are left out.", out)
        self.assertIn("The plot has the first dotted lines alone", out)
        self.assertNotIn("larger sizes", self.of(document(rows[:64]))[1])

    @unittest.skipUnless(HAS_GNUPLOT, "gnuplot is not installed")
    def test_lines_with_blocks_have_colours_of_their_own(self):
        rows = [row("a", n, 1.0 + i, block=32 * (i + 1)) for i in range(18) for n in (1024, 2048)]
        _, out = self.of(document(rows))
        legend = re.search(r'<ul class="legend">.*?</ul>', out, re.S).group(0)
        classes = re.findall(r'class="key ([^"]*)"', legend)[:18]
        self.assertEqual(len(set(classes)), 18, classes)
        self.assertEqual((classes[0], classes[8], classes[16]), ("s0", "s0 d", "s0 dd"))
        self.assertIn(".dd .l { stroke-dasharray", out)

    def test_list_and_standard_input(self):
        _, out = self.of([document([row()]), document([row()])])
        self.assertIn("cpu.simd", out)
        code, piped, _ = run("report", "-", stdin=json.dumps(document([row()])).encode())
        self.assertEqual(code, 0)
        self.assertIn("standard input", piped)

    @small_cache()
    def test_every_program(self):
        """What the commands of this build write."""
        self.good("bench", "-q", "-d", "cpu", "-n", "1024,4096", "-b", "30s", "-O", f"{self.folder}/bench.json")
        self.good("bench", "-q", "-d", "cpu", "--segments", "ones", "-n", "4096", "-b", "30s", "-O",
                  f"{self.folder}/many.json")
        recursion = self.save("recursion.json", self.good("recurse", "fib", "--size", "9", "--device", "cpu",
                                                          "--engine", "all", "--json").encode())
        page, _ = self.page(f"{self.folder}/bench.json", f"{self.folder}/many.json", recursion)
        self.assertTrue({"sizes", "shapes", "recursions"} <= page.ids)


    def test_recursions_with_other_options_are_other_rows(self):
        """Each is a row of its own."""
        engines = [{"engine": "cpu", "right": True, "seconds": 1}]
        documents = [{"benchmark": "dpr recurse", "recursion": "x", "size": 9, "engines": engines, **way}
                     for way in ({}, {"rank": 1}, {"rank": 2, "threads": 3}, {"cutoff": "none"})]
        _, out = self.of(documents)
        for name in ("x 9", "x 9, rank 1", "x 9, rank 2, threads 3", "x 9, cutoff none"):
            self.assertIn(f"<th scope=row>{name}<td>", out)

    def test_recursions_with_levels_and_without(self):
        """Files of older versions have none."""
        known = {"levels": 12, "widest": 4096, "rounds": 3}
        for more in ({}, known):
            engine = {"engine": "host", "ran": "host", "seconds": 0.001, "right": True, "deepest": 24, **more}
            page, _ = self.of({"benchmark": "dpr recurse", "recursion": "fib", "size": 25, "engines": [engine]})
            heads, cells = page.tables[-1]
            self.assertEqual({h: c for h, c in zip(heads, cells) if h in known}, {k: str(v) for k, v in more.items()})


class Partial(Report):
    def test_no_results(self):
        for wanted, data in (("is no JSON: line 1 cannot be understood", b""), ("is no JSON", b"{"),
                             ("has no member 'benchmark'", b"{}"), ("has no results", b"[]"),
                             ("has no member 'benchmark'", b"[1]"), ("has no member 'benchmark'", b"null"),
                             ("has no member 'benchmark'", b'{"benchmark": 1}'),
                             ("its 'benchmark' is 'dpr dance'", b'{"benchmark": "dpr dance"}'),
                             ("it has a zero byte", b'{"benchmark": "dpr bench"}\0'),
                             ("cannot be shown: it is nested more than 32 levels deep", b"[" * 100000)):
            self.bad(wanted, "report", self.save("result.json", data))
        self.bad("none.json: cannot be read", "report", f"{self.folder}/none.json")
        self.bad("cannot be read", "report", self.folder)

    def test_one_bad_file_spoils_no_file(self):
        good, bad = self.save("good.json", document([row()])), self.save("bad.json", b"{}")
        self.bad("bad.json: is no result", "report", good, bad, "-O", f"{self.folder}/page.html")
        self.assertFalse(os.path.exists(f"{self.folder}/page.html"))

    def test_cut_off(self):
        with open(f"{SOURCE}/tests/results/h200-nested.json", "rb") as f:
            data = f.read()
        for length in (10, len(data) // 2, len(data) - 3):
            self.bad("is no JSON: line ", "report", self.save("cut.json", data[:length]))

    def test_nothing_in_it(self):
        for benchmark in ("dpr bench", "dpr peers", "dpr bench --ladder", "dpr bench --nested", "dpr recurse", "cpu"):
            _, out = self.of({"benchmark": benchmark})
            self.assertIn("unknown device", out)
            self.of({"benchmark": benchmark, "rows": [], "regret": [], "launches": [], "pools": [], "engines": []})
            self.of({"benchmark": benchmark, "rows": {"a": row()}})
            self.of({"benchmark": benchmark, "rows": {}, "regret": 1, "launches": "x", "pools": [1], "engines": [[]],
                     "device": [], "settings": 3, "definitions": [1], "left_out": 7})
            self.of({"benchmark": benchmark, "rows": [{}, 1, None, [], "x", {"count": {}}], "regret": [{}, 1, None],
                     "launches": [{}, 3], "pools": [{}, 3], "engines": [{}, None]})

    def test_interrupted(self):
        _, out = self.of(document([row()], interrupted=True, left_out=[{"op": "sum", "why": "the budget was spent"}]))
        self.assertIn("the measurement ended early (it was interrupted). 1 case was left out; the first because: the "
                      "budget was spent.", out)
        _, out = self.of(document([row()], ended_early="the device is gone"))
        self.assertIn("ended early (the device is gone)", out)
        for n, state in ((0, "complete"), (1, "1 case left out"), (2, "2 cases left out")):
            page, _ = self.of(document([row()], left_out=[{"op": "sum", "why": "the budget was spent"}] * n))
            self.assertEqual(page.tables[0][-1][-1], state)

    def test_state_of_a_group_is_the_worst(self):
        page, _ = self.of([document([row()]), document([row()], ended_early="the device is gone"), document([row()])])
        self.assertEqual([line[-1] for line in page.tables[0]], ["state", "the device is gone"])

    def test_choices_that_are_not_the_quickest_are_listed(self):
        def page(*percents):
            return self.of(document([], regret=[{**row("x", 1000 + i), "winner": "w", "chosen": f"c{i}", "winner_us": 1,
                                                 "chosen_us": 1, "regret_percent": p} for i, p in enumerate(percents)]))[1]
        listed = page(0, 12, 0).split("<summary>Choices that are not the quickest</summary>")[1].split("</details>")[0]
        self.assertEqual(re.findall(r">(c\d)<", listed), ["c1"])
        self.assertNotIn("Choices that are not the quickest", page(0, 0))

    def test_regret_without_a_count(self):
        regret = [{"op": "sum", "dtype": "f32", "winner": "a", "chosen": "b", "regret_percent": 7}]
        _, out = self.of(document([row()], regret=regret))
        self.assertIn(": 1 choice, which takes 7.00 %", out)
        self.assertIn("The worst is 7 %: sum of f32.</p>", out)

    def test_failed_rows(self):
        page, _ = self.of(document([row("a", ok=False), row("b", doubtful=True, settled=False)]))
        self.assertIn(["2^10", "failed", "1.500~?"], page.tables[2])


NUMBERS = ("null", "true", '"1"', "[]", "-1", "0", "-0.0", "1e999", "-1e999", "1e-320", "1e308", "18446744073709551616")
class Hostile(Report):
    def test_texts(self):
        for text in TEXTS:
            page, out = self.of(hostile_documents(text), cwd=self.folder)
            self.assertEqual([tag for tag, _ in page.tags].count("script"), 1, text)
            self.assertEqual([tag for tag, _ in page.tags].count("img"), 0, text)
            for character in "\u202e\u2028\x1b\x07\x7f\uffff":
                self.assertNotIn(character, out)
            self.assertEqual(os.listdir(self.folder), ["result.json"], text)
            if len(text) > 1000:
                self.assertLess(len(out), 3e6)

    def test_commands_to_reproduce_have_plain_words(self):
        for text in TEXTS:
            page, out = self.of(hostile_documents(text))
            commands = re.findall(r"<pre><code>(.*?)</code></pre>", out, re.S)
            self.assertTrue(commands)
            for command in commands:
                command = re.sub("(?m)^DPR_WISDOM=", "", command)
                self.assertRegex(command.replace(" # (incomplete)\n", "\n"), r"\A[-\w ./%:,+^\n]*\Z")
                self.assertNotIn("hacked", command)

    def commands(self, *documents):
        _, out = self.of(list(documents))
        return "".join(re.findall(r"<pre><code>(.*?)</code></pre>", out, re.S)).splitlines()

    def test_commands_to_reproduce(self):
        common = "-o sum -t f32"
        tail = "-m blocking -c cold -a 1% -b 60s -f json"
        shapes = [row("planner", n, axes=a) for a, n in (("Nx16:1", 4096), ("NxN:0", 3969), ("8x8:1", 64),
                                                          ("Nx16:1", 1024))]
        gpu = {"name": "a GPU", "kind": "gpu"}
        block = [row("basic.tree", block=256, depth=3)]
        self.assertEqual(self.commands(document([row()])), [f"dpr bench -d cpu {common} -n 2^10 -s cpu.simd {tail}"])
        self.assertEqual(self.commands(document([row(memory="pinned")], device=gpu)),
                         [f"dpr bench {common} -n 2^10 -s cpu.simd -m blocking -c cold --memory pinned -a 1% -b 60s -f json"])
        self.assertEqual(self.commands(document(shapes, device=gpu)),
                         [f"dpr bench --axes Nx16:1,NxN:0,8x8:1 {common} -n 2^10,2^12 {tail}"])
        self.assertEqual(self.commands(document(shapes[2:3], device=gpu)),
                         [f"dpr bench --axes 8x8:1 {common} {tail}"])
        self.assertEqual(self.commands(document(block, device=gpu)),
                         [f"dpr bench {common} -n 2^10 -s basic.tree --block 256 {tail}"])
        self.assertEqual(self.commands(document(block, device=gpu, benchmark="dpr bench --ladder")),
                         [f"dpr bench --ladder {common} -n 2^10 --block 256 -a 1% -b 60s -f json"])
        self.assertEqual(self.commands(document(block, device=gpu, benchmark="dpr bench --nested")),
                         [f"dpr bench --nested {common} -n 2^10 --block 256 --depth 3 -a 1% -b 60s -f json"])
        self.assertEqual(self.commands({"benchmark": "dpr recurse", "recursion": "fib", "size": 9,
                                        "device": {"name": "a CPU", "cpu": "a CPU"}}),
                         ["dpr recurse fib -d cpu --size 9 --engine all --json"])

    def test_commands_of_recursions(self):
        def of(**more):
            return self.commands({"benchmark": "dpr recurse", "recursion": "x", "device": {"name": "G", "cpu": "C"}, **more})
        self.assertEqual(of(size=9, rank=0, cutoff=7, threads=2, nested="allowed"),
                         ["dpr recurse x --size 9 --rank 0 --cutoff 7 --threads 2 --nested --engine all --json"])
        self.assertEqual(of(size=9, cutoff="none"), ["dpr recurse x --size 9 --cutoff none --engine all --json"])
        self.assertEqual(of(size=9, cutoff="$(a)"), ["dpr recurse x --size 9 --engine all --json # (incomplete)"])
        self.assertEqual(of(input="/a/b"), ["dpr recurse x --input FILE --engine all --json # (incomplete)"])

    def test_commands_of_files_that_kept_their_regret_alone(self):
        """The strategies that were compared, and the wisdom, are known if the file says so."""
        rows = [{"op": op, "dtype": "f32", "count": n, "mode": mode, "cache": "cold", "memory": "pinned", "winner": "a",
                 "chosen": "b", "regret_percent": 1}
                for op in ("sum", "max") for n in (1, 4096) for mode in ("graph", "stream")]
        command = "dpr bench -o sum,max -t f32 -n 2^0,2^12 -m graph,stream -c cold --memory pinned -a 1% -b 60s -f json"
        self.assertEqual(self.commands(document([], regret=rows, device={"name": "H", "kind": "gpu"})),
                         [f"{command} # (incomplete)"])
        for wisdom, first in (("none", "DPR_WISDOM=none "), ("/a/b.wisdom", "DPR_WISDOM=/a/b.wisdom "), ("a b", "")):
            settings = {"accuracy": 0.01, "budget_seconds": 60, "wisdom": wisdom}
            self.assertEqual(self.commands(document([], regret=rows, device={"name": "H"}, settings=settings)),
                             [f"{first}{command} # (incomplete)"])

    def test_commands_have_settings(self):
        def of(settings, *rows):
            return self.commands(document(rows, device={"name": "H"}, settings=settings))[0]
        self.assertEqual(of({"wisdom": "none"}, row()),
                         "DPR_WISDOM=none dpr bench -o sum -t f32 -n 2^10 -s cpu.simd -m blocking -c cold -f json")
        self.assertEqual(of({"offsets": "i64"}, row(segments="ones")), "dpr bench --segments ones --offsets i64 -o sum "
                         "-t f32 -n 2^10 -s cpu.simd -m blocking -c cold -f json")
        for wrong in ({"wisdom": "$(touch hacked)"}, {"offsets": "a b"}):
            self.assertTrue(of(wrong, row()).endswith(" -f json # (incomplete)"))

    def test_commands_that_lack_something_say_so(self):
        for rows in ([row(op="rm -rf $HOME"), row()], [row(block=256), row(block=512)]):
            self.assertRegex(self.commands(document(rows))[0], r"\Adpr bench .* # \(incomplete\)\Z")
        _, out = self.of(document([row(op="a b")]))
        self.assertIn("A command with <code>(incomplete)</code> is not the whole one: ", out)

    def test_commands_are_grouped_by_commit(self):
        _, out = self.of([document([row()])] + [document([row(count=n)], commit="def") for n in (2048, 1024)])
        self.assertRegex(out, r"at commit abc:</p>\n<pre><code>dpr bench [^\n]*\n</code>")
        self.assertRegex(out, r"at commit def:</p>\n<pre><code>dpr bench [^\n]*\ndpr bench [^\n]*\n</code>")

    def test_bytes_that_are_no_text(self):
        data = json.dumps(hostile_documents("BYTES")).encode()
        for wrong in (b"\xff", b"\xc3", b"\xe4\xb8", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xc0\xbc"):
            done = subprocess.run([DPR, "report", self.save("result.json", data.replace(b"BYTES", wrong + b"x"))],
                                  capture_output=True, check=True)
            self.assertIn("\ufffdx", done.stdout.decode())

    def test_numbers(self):
        members = ("count", "median_us", "low_us", "gb_per_s", "share", "ratio", "block", "regret_percent", "pending",
                   "seconds", "size", "sm_count", "memory_clock_khz", "accuracy", "read_gb_per_s")
        for number in NUMBERS:
            text = json.dumps(hostile_documents("x"))
            for member in members:
                text = re.sub(rf'"{member}": [^,}}]*', f'"{member}": {number}', text)
            text = text.replace('"kind": "x"', f'"kind": "x", "sm_count": {number}, "memory_clock_khz": {number}, '
                                f'"memory_bus_bits": {number}, "cuda_driver_version": {number}')
            text = text.replace('"version"', f'"read_gb_per_s": {number}, "size": {number}, "settings": {{"accuracy": '
                                f'{number}, "budget_seconds": {number}}}, "version"')
            page, _ = self.of(text.encode())
            for word in ("nan", "inf"):
                self.assertFalse([c for t in page.tables for line in t for c in line if word in c.lower().split()])
        for number in ("NaN", "Infinity", "-Infinity", "1e", "0x10"):
            data = json.dumps(document([row()])).replace("1024", number).encode()
            self.bad("is no JSON", "report", self.save("result.json", data))

    def test_huge(self):
        rows = [row(f"s{i % 7}", 1 << i // 7 % 12, 1 + i % 7, op=f"op{i // 84}") for i in range(20000)]
        page, out = self.of(document(rows))
        self.assertIn("plots are left out", out)
        self.assertLess(len(out), 12e6)
        _, out = self.of(document([row(f"s{i}", i, 1.0 + i) for i in range(20000)]))
        self.assertIn("more values are left out", out)
        self.assertLess(len(out), 4e6)
        _, out = self.of({**document([row(f"s{i}", i) for i in range(20000)]), "benchmark": "dpr bench --ladder"})
        self.assertIn("The table is cut: 18000 more rows are in the file.", out)
        self.of([document([row(count=i + 1), row(count=i + 2)], device={"name": f"d{i}"}) for i in range(300)])

    def test_huge_number_of_documents(self):
        """The time is about linear: these take seconds, and would take minutes if each document looked at all others."""
        short = [{"op": "sum", "count": n, "median_us": 1, "gb_per_s": 1, "ok": True, "chosen": True} for n in (1, 2)]
        for documents in ([{"benchmark": "cpu", "device": f"d{i}"} for i in range(100000)],
                          [{"benchmark": "cpu", "device": {"name": "d", "sm_count": i % 30}} for i in range(50000)],
                          [{"benchmark": "dpr bench", "rows": short}] * 16000,
                          [{"benchmark": "dpr bench", "rows": [{**short[0], "segments": "ones"}]}] * 16000):
            path = self.save("result.json", documents)
            begin = time.monotonic()
            self.assertEqual(run("report", path, "-O", f"{self.folder}/page.html")[0], 0)
            self.assertLess(time.monotonic() - begin, 60)

    def test_more_devices_of_a_name_than_are_told_apart(self):
        documents = [{"benchmark": "cpu", "device": {"name": "d", "sm_count": i}} for i in range(33)]
        self.of(documents[:32] * 2)
        self.bad("result.json: has a device 'd' with other facts than the 32 of that name before it", "report",
                 self.save("result.json", documents))


if __name__ == "__main__":
    unittest.main()
