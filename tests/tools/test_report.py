"""dpr report: the page from all kinds of results, whole, partial, huge and hostile; its tables, plots and script."""
import base64
import glob
import hashlib
import html
import html.parser
import json
import os
import re
import shutil
import signal
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

from support import DPR, SOURCE, ToolTest, run

RESULTS = sorted(glob.glob(f"{SOURCE}/tests/results/*.json"))
HAS_GNUPLOT = shutil.which("gnuplot") is not None
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
SECTIONS = ("machines", "sizes", "regret", "peers", "ladder", "nested", "shapes", "recursions", "cpu", "reproduce")
VOID = {"meta", "link", "br"}
OPTIONAL_END = {"tr", "td", "th", "thead", "tbody", "li"}


def row(strategy="cpu.simd", count=1024, us=1.5, **more):
    return {"strategy": strategy, "op": "sum", "dtype": "f32", "count": count, "mode": "blocking", "cache": "cold",
            "samples": 7, "calls": 5, "median_us": us, "low_us": us, "high_us": us, "spread": 0.01, "gb_per_s": 2.0,
            "chosen": False, "ok": True, "settled": True, "doubtful": False, **more}


def document(rows, **more):
    return {"benchmark": "dpr bench", "version": "0.2.0", "commit": "abc", "device": {"name": "a CPU", "kind": "cpu"},
            "settings": {"accuracy": 0.01, "budget_seconds": 60}, "rows": rows, "regret": [], "left_out": [], **more}


class Page(html.parser.HTMLParser):
    """What a page has; an error for elements that are not closed, ids that are there twice, and references outside."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.tags, self.tables, self.problems = [], set(), [], [], [], []
        self.text = ""
        self.feed(text)
        self.close()
        self.problems += [f"<{tag}> is not closed" for tag in self.open]

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if "id" in attributes:
            if attributes["id"] in self.ids:
                self.problems.append(f"id {attributes['id']} is there twice")
            self.ids.add(attributes["id"])
        for name, value in attributes.items():
            if name.startswith("on") or (name in ("src", "href", "xlink:href") and not re.match("#|data:,$", value)):
                self.problems.append(f"<{tag} {name}={value}>")
            if name == "href":
                self.links.append(value)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag not in VOID | OPTIONAL_END and not self.get_starttag_text().endswith("/>"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        if tag in OPTIONAL_END:
            return
        if not self.open or self.open[-1] != tag:
            self.problems.append(f"</{tag}> closes {self.open[-1:]}")
        else:
            self.open.pop()

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1] == "table" and self.tables[-1] and self.tables[-1][-1]:
            self.tables[-1][-1][-1] += data.strip()


class Report(ToolTest):
    def save(self, name, value):
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        return self.file(name, data)

    def page(self, *files, **kwargs):
        """The page of files, which must be well-formed. Without gnuplot there is a note."""
        code, out, err = run("report", *files, **kwargs)
        self.assertEqual(code, 0, err)
        self.assertEqual(err, "" if HAS_GNUPLOT else "dpr: report: note: the page has no plots: gnuplot is not "
                         "installed (package gnuplot-nox)\n")
        page = Page(out)
        self.assertEqual(page.problems, [])
        self.assertNotRegex(page.text, r"(?i)\b(nan|inf)\b")
        for link in page.links:
            self.assertTrue(link == "data:," or link[1:] in page.ids, link)
        return page, out

    def of(self, value, **kwargs):
        return self.page(self.save("result.json", value), **kwargs)


class Results(Report):
    def test_all_of_the_project(self):
        page, out = self.page(*RESULTS)
        self.assertLess(len(out), 4e6)
        self.assertTrue(set(SECTIONS) <= page.ids, page.ids)
        for file in RESULTS:
            self.assertIn(os.path.basename(file), out)
        policy = re.search(r"script-src 'sha256-([^']*)'", out).group(1)
        script = re.search(r"<script>(.*)</script>", out, re.S).group(1)
        self.assertEqual(policy, base64.b64encode(hashlib.sha256(script.encode()).digest()).decode())
        self.assertIn("default-src 'none'", out)
        self.assertNotRegex(out, r"https?://")

    def test_tables_have_names_and_headings(self):
        page, out = self.page(*RESULTS)
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
            self.assertIn(f"<th scope=\"row\" data-v=\"{files.index(file)}\">{file}", out)

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
            self.assertIn(f'<td data-v="{us:.15g}">', out)
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

    def test_every_program(self):
        """What the commands of this build write."""
        self.good("bench", "-q", "-d", "cpu", "-n", "1024,4096", "-b", "2s", "-O", f"{self.folder}/bench.json")
        self.good("bench", "-q", "-d", "cpu", "--segments", "ones", "-n", "4096", "-b", "2s", "-O",
                  f"{self.folder}/many.json")
        recursion = self.save("recursion.json", self.good("recurse", "fib", "--size", "9", "--device", "cpu",
                                                          "--engine", "all", "--json").encode())
        page, _ = self.page(f"{self.folder}/bench.json", f"{self.folder}/many.json", recursion)
        self.assertTrue({"sizes", "shapes", "recursions"} <= page.ids)


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

    def test_state_of_a_group_is_the_worst(self):
        page, _ = self.of([document([row()]), document([row()], ended_early="the device is gone"), document([row()])])
        self.assertEqual([line[-1] for line in page.tables[0]], ["state", "the device is gone"])

    def test_regret_without_a_count(self):
        regret = [{"op": "sum", "dtype": "f32", "winner": "a", "chosen": "b", "regret_percent": 7}]
        _, out = self.of(document([row()], regret=regret))
        self.assertIn(": 1 choice, which takes 7.00 %", out)
        self.assertIn("The worst is 7 %: sum of f32.</p>", out)

    def test_failed_rows(self):
        page, _ = self.of(document([row("a", ok=False), row("b", doubtful=True, settled=False)]))
        self.assertIn(["2^10", "failed", "1.500~?"], page.tables[2])


NUMBERS = ("null", "true", '"1"', "[]", "-1", "0", "-0.0", "1e999", "-1e999", "1e-320", "1e308", "18446744073709551616")
TEXTS = ("<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "</script></style></table>", "]]>", "<!--",
         "&amp;&lt;", "`touch hacked`", "'; system('touch hacked'); '", "$(touch hacked)", "\\\\\" . system(\"x\")",
         "a\nset output 'hacked'\n", "@x {/Symbol a} ~b{c} _^", "\u202e\u2028\x1b[31m\x07\x7f\uffff", "x" * 20000, "",
         "%s%n%d",
         "\u00fc\u4e2d\U0001f600", "--output=hacked", "E\nE\nplot sin(x)\n")


class Hostile(Report):
    def documents(self, text):
        """Documents of each kind with the text wherever there can be text."""
        rows = [{**row(text, n), "op": text, "dtype": text, "mode": text, "cache": text, "subject": text, "text": text,
                 "limited_by": text, "chosen": True, "share": 0.5, "ratio": 2} for n in (1, 1024, 4096)]
        shaped = [{**r, "segments": text} for r in rows]
        regret = [{**rows[0], "winner": text, "chosen": text, "winner_us": 1, "chosen_us": 2, "regret_percent": 7},
                  {**rows[1], "winner": text, "chosen": text, "winner_us": 1, "chosen_us": 2, "regret_percent": 70}]
        common = {"version": text, "commit": text, "device": {"name": text, "kind": text, "cpu": text},
                  "ended_early": text, "definitions": {text: text}, "left_out": [{"why": text}], "regret": regret,
                  "launches": [{"launch": text, "median_us": 1, "text": text}] * 2, "recursion": text, "input": text,
                  "pools": [{"asked": 1, "pending": 64, "median_us": 1, "error": text},
                            {"asked": 1, "pending": 128, "median_us": 2}],
                  "engines": [{"engine": text, "ran": text, "seconds": 1, "right": True, "reason": text},
                              {"engine": "auto", "ran": text, "seconds": 2, "right": True, "error": text}]}
        return [{"benchmark": b, "rows": r, **common}
                for b in ("dpr bench", "dpr peers", "dpr bench --ladder", "dpr bench --nested", "dpr recurse", "cpu")
                for r in (rows, shaped)]

    def test_texts(self):
        for text in TEXTS:
            page, out = self.of(self.documents(text), cwd=self.folder)
            self.assertEqual([tag for tag, _ in page.tags].count("script"), 1, text)
            self.assertEqual([tag for tag, _ in page.tags].count("img"), 0, text)
            for character in "\u202e\u2028\x1b\x07\x7f\uffff":
                self.assertNotIn(character, out)
            self.assertEqual(os.listdir(self.folder), ["result.json"], text)
            if len(text) > 1000:
                self.assertLess(len(out), 3e6)

    def test_commands_to_reproduce_have_plain_words(self):
        for text in TEXTS:
            page, out = self.of(self.documents(text))
            commands = re.findall(r"<pre><code>(.*?)</code></pre>", out, re.S)
            self.assertTrue(commands)
            for command in commands:
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

    def test_commands_that_lack_something_say_so(self):
        for rows in ([row(op="rm -rf $HOME"), row()], [row(block=256), row(block=512)]):
            self.assertRegex(self.commands(document(rows))[0], r"\Adpr bench .* # \(incomplete\)\Z")
        _, out = self.of(document([row(op="a b")]))
        self.assertIn("A command with <code>(incomplete)</code> lacks words of its file", out)

    def test_commands_are_grouped_by_commit(self):
        _, out = self.of([document([row()])] + [document([row(count=n)], commit="def") for n in (2048, 1024)])
        self.assertRegex(out, r"at commit abc:</p>\n<pre><code>dpr bench [^\n]*\n</code>")
        self.assertRegex(out, r"at commit def:</p>\n<pre><code>dpr bench [^\n]*\ndpr bench [^\n]*\n</code>")

    def test_bytes_that_are_no_text(self):
        data = json.dumps(self.documents("BYTES")).encode()
        for wrong in (b"\xff", b"\xc3", b"\xe4\xb8", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xc0\xbc"):
            done = subprocess.run([DPR, "report", self.save("result.json", data.replace(b"BYTES", wrong + b"x"))],
                                  capture_output=True, check=True)
            self.assertIn("\ufffdx", done.stdout.decode())

    def test_numbers(self):
        members = ("count", "median_us", "low_us", "gb_per_s", "share", "ratio", "block", "regret_percent", "pending",
                   "seconds", "size", "sm_count", "memory_clock_khz", "accuracy", "read_gb_per_s")
        for number in NUMBERS:
            text = json.dumps(self.documents("x"))
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
        self.of([{"benchmark": "cpu", "device": f"d{i}"} for i in range(5000)])
        self.of([document([row(count=i + 1), row(count=i + 2)], device={"name": f"d{i}"}) for i in range(300)])


class Plots(Report):
    FILE = f"{SOURCE}/tests/results/h200-gpu.json"
    NAME = "time-sum-of-f32-graph-cold-cache"

    @unittest.skipUnless(HAS_GNUPLOT, "gnuplot is not installed")
    def test_every_plot_has_a_name_and_a_table(self):
        page, out = self.page(*RESULTS)
        names = self.good("report", *RESULTS, "--list").split()
        plots = [a for tag, a in page.tags if tag == "svg" and a.get("class") == "plot"]
        self.assertEqual(len(plots), len(names))
        self.assertEqual(len(set(names)), len(names))
        for name, plot in zip(names, plots):
            self.assertEqual(plot["role"], "img")
            self.assertEqual(plot["aria-labelledby"], f"t-{name} d-{name}")
            self.assertTrue({f"t-{name}", f"d-{name}"} <= page.ids)
        for figure in re.findall(r"<figure>.*?</figure>", out, re.S):
            self.assertIn("<table>", figure)

    @unittest.skipUnless(HAS_GNUPLOT, "gnuplot is not installed")
    def test_one_plot_of_hostile_texts(self):
        for text in TEXTS:
            path = self.save("result.json", Hostile.documents(self, text))
            for name in self.good("report", path, "--list").split()[::5]:
                svg = ElementTree.fromstring(self.good("report", path, "--svg", name, cwd=self.folder))
                self.assertFalse({e.tag for e in svg.iter() if "script" in e.tag or "img" in e.tag})
        self.assertEqual(os.listdir(self.folder), ["result.json"])

    @unittest.skipUnless(HAS_GNUPLOT, "gnuplot is not installed")
    def test_one_plot(self):
        svg = self.good("report", self.FILE, "--svg", self.NAME)
        names = {e.tag.partition("}")[2] for e in ElementTree.fromstring(svg).iter()}
        self.assertTrue({"title", "desc", "path", "use", "text"} <= names, names)
        self.assertIn("coop.cluster", svg)
        path = f"{self.folder}/plot.png"
        self.good("report", self.FILE, "--png", self.NAME, "-O", path)
        with open(path, "rb") as f:
            self.assertEqual(f.read(8), b"\x89PNG\r\n\x1a\n")
        self.assertEqual(os.listdir(self.folder), ["plot.png"])

    def plot(self, path, name, *more, **kwargs):
        """The texts of a plot, and how many symbols its series have."""
        svg = ElementTree.fromstring(self.good("report", path, "--svg", name, *more, **kwargs))
        tag = "{http://www.w3.org/2000/svg}"
        return ([e.text for e in svg.iter(f"{tag}text")],
                {g.get("class"): len(g.findall(f"{tag}use")) for g in svg.iter(f"{tag}g")})

    @unittest.skipUnless(HAS_GNUPLOT, "gnuplot is not installed")
    def test_plots_side_by_side_have_the_same_axes(self):
        path = self.save("result.json", [
            document([row("a", n) for n in (1024, 2048)], device={"name": f"d{rate}"}, read_gb_per_s=rate)
            for rate in (3, 3000)])
        one, two = (self.plot(path, f"bandwidth-sum-of-f32-blocking-cold-cache{n}")[0] for n in ("", "-2"))
        self.assertEqual(one, two)
        self.assertIn("3000", one)

    @unittest.skipUnless(HAS_GNUPLOT, "gnuplot is not installed")
    def test_rows_without_a_count_are_not_drawn(self):
        path = self.save("result.json", document([row("a", n, chosen=True) for n in (None, -5, 1024, 2048)]))
        texts, symbols = self.plot(path, "time-sum-of-f32-blocking-cold-cache")
        self.assertEqual([t for t in texts if "^" in t], ["2^10", "2^11"])
        self.assertEqual(symbols["s0"], 3)  # with the key

    def test_texts_of_any_length_and_with_attributes(self):
        env = self.without_gnuplot("[ \"$1\" = --version ] && exit 0\nwhile read -r x; do :; done\n"
                                   f"echo '<svg><text x=\"1\">{'&gt;' * 90}</text><text>b</text></svg>'")
        self.assertEqual(self.plot(self.FILE, self.NAME, env=env)[0], [">" * 90, "b"])

    def test_levels_read_without_colours(self):
        """Each level is darker than the one before, or lighter in dark mode; and the squares have edges."""
        _, out = self.of(document([row()]))
        levels = re.findall(r"--h0: (#\w+); --h1: (#\w+); --h2: (#\w+); --h3: (#\w+); --h4: (#\w+);", out)
        self.assertEqual(len(levels), 3)
        for colours in levels:
            light = []
            for colour in colours:
                parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
                linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
                light.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)
            steps = [a / b for a, b in zip(light, light[1:])]
            self.assertTrue(min(steps) > 1.25 or max(steps) < 1 / 1.25, steps)
        self.assertIn(".h0, .h1, .h2, .h3, .h4 { stroke:", out)

    def test_print(self):
        _, out = self.of(document([row()]))
        printed = out[out.rindex("@media print"):out.index("</style>")]
        self.assertIn(".side { display: block; }", printed)
        self.assertIn("closed parts are not printed", printed)
        self.assertNotIn("details:not([open]) {", printed)

    def test_mistakes(self):
        for wanted, *args in (("no file of results is named", ), ("there is no plot 'x'", self.FILE, "--svg", "x"),
                              ("there is no plot 'x'", self.FILE, "--png", "x", "-O", "x"),
                              ("exclude each other", self.FILE, "--svg", "x", "--png", "x"),
                              ("exclude each other", self.FILE, "--svg", "x", "--list"),
                              ("is named twice", "-", "-"), ("unknown", self.FILE, "--pdf")):
            self.bad(wanted, "report", *args, expect=2, cwd=self.folder)
        self.assertEqual(os.listdir(self.folder), [])

    def without_gnuplot(self, script=None):
        """An environment in which gnuplot is not there, or is the script."""
        folder = f"{self.folder}/bin"
        os.makedirs(folder, exist_ok=True)
        if script:
            with open(f"{folder}/gnuplot", "w", encoding="utf-8") as f:
                f.write(f"#!/bin/sh\n{script}\n")
            os.chmod(f"{folder}/gnuplot", 0o755)
        return {"PATH": folder}

    def test_without_gnuplot(self):
        env = self.without_gnuplot()
        code, out, err = run("report", *RESULTS, env=env)
        self.assertEqual((code, err), (0, "dpr: report: note: the page has no plots: gnuplot is not installed (package "
                                          "gnuplot-nox)\n"))
        page = Page(out)
        self.assertEqual(page.problems, [])
        self.assertIn("plots need gnuplot", out)
        self.assertNotIn("class=\"plot\"", out)
        self.assertGreater(len(page.tables), 100)
        for kind in ("svg", "png"):
            self.bad("plots need gnuplot: gnuplot is not installed", "report", self.FILE, f"--{kind}", self.NAME,
                     "-O", f"{self.folder}/x", env=env)
        self.assertFalse(os.path.exists(f"{self.folder}/x"))

    def test_gnuplot_that_fails(self):
        version = '[ "$1" = --version ] && exit 0'
        complaint = "line 3: no terminal"
        for script, wanted in ((f"{version}\necho '{complaint}' >&2; exit 1", f"gnuplot failed: {complaint}"),
                               (f"{version}\nkill -9 $$", "gnuplot failed"), ("exit 1", "gnuplot failed")):
            code, out, err = run("report", self.FILE, env=self.without_gnuplot(script))
            self.assertEqual(code, 0)
            self.assertIn(f"note: the page has no plots: {wanted}", err)
            self.assertEqual(Page(out).problems, [])
            self.bad(wanted, "report", self.FILE, "--svg", self.NAME, env=self.without_gnuplot(script))

    def test_gnuplot_that_draws_too_little(self):
        """Exit status 0 with no picture, or with fewer than are asked for, is a failure."""
        count = len(self.good("report", self.FILE, "--list").split())
        for script, drawn in ((":", 0), ("echo '<svg></svg>'", 1)):
            env = self.without_gnuplot(f'[ "$1" = --version ] && exit 0\n{script}')
            code, out, err = run("report", self.FILE, env=env)
            self.assertEqual((code, err),
                             (0, f"dpr: report: note: the page has no plots: gnuplot drew {drawn} of {count} plots\n"))
            page = Page(out)
            self.assertEqual(page.problems, [])
            self.assertIn(f"plots need gnuplot: gnuplot drew {drawn} of", out)
            self.assertNotIn("class=\"plot\"", out)
            self.assertNotIn("class=\"legend\"", out)
            self.assertIn("<details open><summary>Table", out)
        for kind in ("svg", "png"):
            self.bad("the plot cannot be drawn: gnuplot drew 0 of 1 plot", "report", self.FILE, f"--{kind}", self.NAME,
                     "-O", f"{self.folder}/x", env=self.without_gnuplot(":"))
        self.assertFalse(os.path.exists(f"{self.folder}/x"))

    def test_gnuplot_that_nobody_can_wait_for(self):
        done = subprocess.run([DPR, "report", self.FILE], capture_output=True, check=True,
                              env={**os.environ, **self.without_gnuplot(":")},
                              preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertIn("gnuplot's exit status is unknown: No child processes", done.stderr.decode())

    def test_gnuplot_complains_behind_a_line_of_the_script(self):
        env = self.without_gnuplot('[ "$1" = --version ] && exit 0\n'
                                   'printf "\\nset terminal svg\\n     ^\\nline 3: no terminal\\n\\n" >&2; exit 1')
        self.bad("gnuplot failed: line 3: no terminal", "report", self.FILE, "--svg", self.NAME, env=env)

    def test_gnuplot_that_writes_something_else(self):
        """Nothing of it but shapes and texts comes into the page."""
        picture = ("<svg><script>alert(1)</script><g onload='x'><path d='M1,2\"/><script>' stroke='x'/>"
                   "<text>a<script>alert(1)</script></text><use xlink:href='http://x/' transform='translate(1,2)'/>"
                   "<g id='gnuplot_plot_99'></svg>")
        for output in ("", "<svg", picture, picture * 100, "\\0<svg></svg>"):
            script = f"[ \"$1\" = --version ] && exit 0\nprintf '%b' \"$(cat <<'E'\n{output}\nE\n)\""
            env = {"PATH": self.without_gnuplot(script)["PATH"] + ":/bin:/usr/bin"}
            code, out, _ = run("report", self.FILE, env=env)
            self.assertEqual(code, 0)
            page = Page(out)
            self.assertEqual(page.problems, [])
            self.assertEqual([tag for tag, _ in page.tags].count("script"), 1)

    def test_full_disk(self):
        code, _, err = run("report", self.FILE, "-O", "/dev/full")
        self.assertEqual(code, 1)
        self.assertIn("/dev/full: cannot be written: No space left on device", err)
        with open("/dev/full", "wb") as full:
            code, _, err = run("report", self.FILE, stdout=full)
        self.assertEqual(code, 1)
        self.assertIn("standard output cannot be written", err)
        self.bad("cannot be written", "report", self.FILE, "-O", f"{self.folder}/none/page.html")

    def test_output_is_replaced(self):
        path = self.save("page.html", b"old")
        run("report", self.FILE, "-O", path)
        with open(path, encoding="utf-8") as f:
            self.assertTrue(f.read().startswith("<!DOCTYPE html>"))
        self.assertEqual(os.listdir(self.folder), ["page.html"])


# Clicks through the page, and leaves what came out in an element. It needs what the page's own script made.
CLICKS = """
addEventListener("load", () => {
  const out = document.createElement("output");
  const column = (table, i) => Array.from(table.tBodies[0].rows, (row) => row.cells[i].textContent);
  const say = (name, value) => { out.textContent += name + "=" + JSON.stringify(value) + "\\n"; };
  const table = Array.from(document.querySelectorAll("table"))
    .find((t) => /Time in us: sum/.test(t.caption.textContent));
  const headings = table.tHead.rows[0].cells;
  const press = (i) => { headings[i].querySelector("button").click(); };
  say("before", column(table, 0));
  press(1); say("up", column(table, 1)); say("sort", headings[1].getAttribute("aria-sort"));
  press(1); say("down", column(table, 1)); say("sort2", headings[1].getAttribute("aria-sort"));
  press(0); say("sizes", column(table, 0)); say("sort3", headings[1].getAttribute("aria-sort"));
  const tables = Array.from(document.querySelectorAll("table"));
  say("buttons", tables.every((t) => Array.from(t.tHead.rows[0].cells).every((c) => c.querySelector("button"))));
  const all = document.querySelector("button.open");
  all.click();
  say("opened", Array.from(document.querySelectorAll("#sizes details.case")).every((d) => d.open));
  say("width", document.documentElement.scrollWidth <= innerWidth);
  document.body.style.width = "360px"; // a phone: no window is as narrow
  say("phone", document.body.scrollWidth <= 360);
  const light = (colour) => colour.match(/[0-9.]+/g).slice(0, 3).map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + [0.2126, 0.7152, 0.0722][i] * c, 0.05);
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const contrast = (e) => { const ink = light(getComputedStyle(e).color); return Math.max(ink / paper, paper / ink); };
  say("contrast", Math.min(...["p", "td", "th button", "summary", ".note", "a", "caption"]
    .flatMap((name) => Array.from(document.querySelectorAll(name)).slice(0, 50)).map(contrast)));
  say("dark", paper < 0.2);
  out.id = "outcome";
  document.body.append(out);
});
"""


@unittest.skipUnless(CHROMIUM, "chromium is not installed")
class Browser(Report):
    def browse(self, out, script="", *flags):
        """The page's document as the browser has it, and its messages."""
        # The policy allows no other script, so the page for this test names this one, too.
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        text = out.replace("script-src '", f"script-src 'sha256-{digest}' '")
        path = self.save("page.html", text.replace("</body>", f"<script>{script}</script></body>").encode())
        done = subprocess.run([CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom",
                               "--disable-dev-shm-usage",
                               f"--user-data-dir={self.folder}/profile", "--enable-logging=stderr", "--v=0",
                               "--virtual-time-budget=5000", "--window-size=600,900", *flags, f"file://{path}"],
                              capture_output=True, timeout=120, check=False)
        return done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")

    def outcome(self, out, *flags):
        dom, messages = self.browse(out, CLICKS, *flags)
        self.assertNotIn("CONSOLE", messages)
        found = re.search(r'<output id="outcome">(.*?)</output>', dom, re.S)
        self.assertTrue(found, messages[-2000:])
        return {k: json.loads(v) for k, v in (line.split("=", 1) for line in
                                              html.unescape(found.group(1)).strip().split("\n"))}

    def test_sorting(self):
        times = {1024: 9.5, 2048: 100.25, 4096: 0.75, 8192: 20.0}
        rows = [row("a", n, us, chosen=True) for n, us in times.items()] + [row("b", 16384, 7.0)]
        _, out = self.of(document(rows + [row("b", 1024, 1.0, op="max"), row("b", 2048, 1.0, op="max")]))
        got = self.outcome(out)
        self.assertEqual(got["before"], ["2^10", "2^11", "2^12", "2^13", "2^14"])
        self.assertEqual(got["up"], ["0.750 *", "9.500 *", "20 *", "100.2 *", "-"])
        self.assertEqual(got["down"], ["100.2 *", "20 *", "9.500 *", "0.750 *", "-"])
        self.assertEqual((got["sort"], got["sort2"], got["sort3"]), ("ascending", "descending", None))
        self.assertEqual(got["sizes"], got["before"])
        self.assertTrue(got["buttons"] and got["opened"] and got["width"], got)

    def test_all_of_the_project(self):
        _, out = self.page(*RESULTS)
        for flags, dark in (((), False), (("--window-size=1400,900",), False),
                            (("--blink-settings=preferredColorScheme=0",), True)):
            with self.subTest(flags):
                got = self.outcome(out, *flags)
                self.assertTrue(got["buttons"] and got["opened"] and got["width"] and got["phone"], got)
                self.assertGreaterEqual(got["contrast"], 4.5, got)  # WCAG 2.2, level AA
                self.assertEqual(got["dark"], dark, got)

    def test_hostile_texts_run_nothing(self):
        _, out = self.of(Hostile.documents(self, TEXTS[0] + TEXTS[1]))
        _, messages = self.browse(out)
        self.assertNotIn("CONSOLE", messages)
        broken = out.replace("</body>", "<script>document.title = 'x'</script></body>")
        self.assertIn("CONSOLE", self.browse(broken)[1])  # the policy, and that messages are seen


if __name__ == "__main__":
    unittest.main()
