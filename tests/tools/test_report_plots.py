"""dpr report: its plots, in the page and alone."""
import json
import os
import re
import signal
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

from report_support import HAS_GNUPLOT, RESULTS, TEXTS, Page, Report, document, hostile_documents, row
from support import DPR, SOURCE, run


def points_of(data):
    """The points of a path."""
    x, y, points = 0.0, 0.0, []
    for command, text in re.findall(r"([MlhvZz])([^A-Za-z]*)", data):
        numbers = [float(n) for n in re.findall(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)", text)]
        while numbers:
            across = 0 if command == "v" else numbers.pop(0)
            down = 0 if command == "h" else numbers.pop(0)
            x, y = (across, down) if command == "M" else (x + across, y + down)
            points.append((round(x, 1), round(y, 1)))
    return points


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
            path = self.save("result.json", hostile_documents(text))
            for name in self.good("report", path, "--list").split()[::5]:
                svg = ElementTree.fromstring(self.good("report", path, "--svg", name, cwd=self.folder))
                self.assertFalse({e.tag for e in svg.iter() if "script" in e.tag or "img" in e.tag})
        self.assertEqual(os.listdir(self.folder), ["result.json"])

    @unittest.skipUnless(HAS_GNUPLOT, "gnuplot is not installed")
    def test_one_plot(self):
        svg = self.good("report", self.FILE, "--svg", self.NAME)
        names = {e.tag.partition("}")[2] for e in ElementTree.fromstring(svg).iter()}
        self.assertTrue({"title", "desc", "path", "marker", "text"} <= names, names)
        self.assertIn("coop.cluster", svg)
        path = f"{self.folder}/plot.png"
        self.good("report", self.FILE, "--png", self.NAME, "-O", path)
        with open(path, "rb") as f:
            self.assertEqual(f.read(8), b"\x89PNG\r\n\x1a\n")
        self.assertEqual(os.listdir(self.folder), ["plot.png"])

    def plot(self, path, name, *more, **kwargs):
        """The texts of a plot, and how many symbols its series have: points of lines that have markers."""
        svg = ElementTree.fromstring(self.good("report", path, "--svg", name, *more, **kwargs))
        tag = "{http://www.w3.org/2000/svg}"
        return ([e.text for e in svg.iter(f"{tag}text")],
                {g.get("class"): sum(len(points_of(path.get("d"))) for path in g.findall(f"{tag}path")
                                     if "p" in path.get("class").split()) for g in svg.iter(f"{tag}g")})

    @unittest.skipUnless(HAS_GNUPLOT, "gnuplot is not installed")
    def test_plots_side_by_side_have_the_same_axes(self):
        path = self.save("result.json", [
            document([row("a", n) for n in (1024, 2048)], device={"name": f"d{rate}"}, read_gb_per_s=rate)
            for rate in (3, 3000)])
        one, two = (self.plot(path, f"bandwidth-sum-of-f32-blocking-cold-cache{n}")[0] for n in ("", "-2"))
        self.assertEqual(one, two)
        self.assertIn("3000", one)

    def test_paths(self):
        """gnuplot's coordinates, in tenths, whichever way the path goes; and a line through its points has them."""
        line = "M9,9 M78.69,263.25 L512.7,263.2 L512.7,19.5 L-0.04,-19.96 L-0.5,0.06 M1,2 L1,2 M3,4 "
        symbols = "".join(f"<use xlink:href='#p' transform='translate({at}) scale(4.88)'/>"
                          for at in ("1.5,2", "1.5,3", "4,3"))
        marked = "<path d='M1.5,2 L1.5,3L4,3 '/>"
        env = self.without_gnuplot("[ \"$1\" = --version ] && exit 0\nwhile read -r x; do :; done\n"
                                   f"cat <<'E'\n<svg><path d='{line}'/><g id='gnuplot_plot_3'>{marked}{symbols}</g>"
                                   f"<g id='gnuplot_plot_4'><use transform='translate(5,6)'/><polygon points = '1,2 3,2 3,4 1,4 '/></g></svg>\nE")
        env["PATH"] += ":/bin:/usr/bin"
        svg = self.good("report", self.FILE, "--svg", self.NAME, env=env)
        found = re.findall(r'<path class="([^"]*)" d="([^"]*)"/>', svg[svg.index("</defs>"):])
        self.assertEqual([name for name, _ in found], ["a", "l p", "f", "p"])
        self.assertEqual(points_of(found[0][1]), [(78.7, 263.3), (512.7, 263.2), (512.7, 19.5), (0.0, -20.0),
                                                  (-0.5, 0.1), (1.0, 2.0), (1.0, 2.0)])
        self.assertEqual(found[1][1], "M1.5 2v1h2.5")
        self.assertEqual([data for _, data in found[2:]], ["M1 2h2v2h-2z", "M5 6h0"])

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

    def test_no_input_is_overwritten(self):
        """By its name, another path, or a link of either kind."""
        data = json.dumps(document([row()])).encode()
        path, other = self.save("result.json", data), self.save("other.json", document([row()]))
        os.symlink(path, f"{self.folder}/symbolic")
        os.link(path, f"{self.folder}/hard")
        os.mkdir(f"{self.folder}/more")
        for output in (path, f"{self.folder}/more/../result.json", f"{self.folder}/symbolic", f"{self.folder}/hard"):
            for more in ((), ("--svg", "x")):
                self.bad(f"--output: '{output}' would be overwritten: it is the same file as the input '{path}'",
                         "report", other, path, "-O", output, *more, expect=2)
        with open(path, "rb") as f:
            self.bad("it is the same file as the input '-'", "report", "-", "-O", path, expect=2, stdin_file=f)
        with open(path, "rb") as f:
            self.assertEqual(f.read(), data)
        self.assertTrue(os.path.islink(f"{self.folder}/symbolic"))

    def test_output_is_replaced(self):
        path = self.save("page.html", b"old")
        run("report", self.FILE, "-O", path)
        with open(path, encoding="utf-8") as f:
            self.assertTrue(f.read().startswith("<!DOCTYPE html>"))
        self.assertEqual(os.listdir(self.folder), ["page.html"])


if __name__ == "__main__":
    unittest.main()
