"""dpr report: the page in a browser, with its script."""
import base64
import hashlib
import html
import json
import re
import shutil
import subprocess
import unittest

from report_support import RESULTS, TEXTS, Report, document, hostile_documents, row

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

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
        _, out = self.of(hostile_documents(TEXTS[0] + TEXTS[1]))
        _, messages = self.browse(out)
        self.assertNotIn("CONSOLE", messages)
        broken = out.replace("</body>", "<script>document.title = 'x'</script></body>")
        self.assertIn("CONSOLE", self.browse(broken)[1])  # the policy, and that messages are seen


if __name__ == "__main__":
    unittest.main()
