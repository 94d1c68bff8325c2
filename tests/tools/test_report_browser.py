"""dpr report: the page in a browser, with its script."""
import base64
import fcntl
import hashlib
import html
import json
import os
import re
import select
import shutil
import struct
import subprocess
import sys
import time
import unittest
import zlib

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
  press(2); say("last", column(table, 2).map((text) => text.trim()));
  press(0); say("sizes", column(table, 0)); say("sort3", headings[1].getAttribute("aria-sort"));
  const tables = Array.from(document.querySelectorAll("table"));
  say("buttons", tables.every((t) => Array.from(t.tHead.rows[0].cells).every((c) => c.querySelector("button"))));
  const all = document.querySelector("button.open");
  all.click();
  say("opened", Array.from(document.querySelectorAll("#sizes details.case")).every((d) => d.open));
  say("width", document.documentElement.scrollWidth <= innerWidth);
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


OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")

# Whether exactly those tables that scroll, of those that are shown, are tab stops, and have a name there.
STOPS = """
Array.from(document.querySelectorAll(".wide")).filter((box) => box.checkVisibility()).map((box) => {
  const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
  return scrolls ? box.tabIndex === 0 && box.role === "group" && box.ariaLabel.startsWith("Table: ")
                 : box.tabIndex < 0 && !box.role && !box.ariaLabel;
}).every(Boolean)"""


# Gives its two pipes the numbers at which Chromium expects them, and becomes Chromium.
STARTER = "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"


def pipe():
    """A pipe whose ends have other numbers than STARTER gives them."""
    low = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in low]
    for end in low:
        os.close(end)
    return high


class Chromium:
    """A browser that gets what people do: keys, narrow windows, print. It takes commands of the DevTools protocol."""

    def __init__(self, folder, path, width=1000):
        heard, self.commands = pipe()
        self.answers, said = pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-c", STARTER, str(heard), str(said), CHROMIUM, *OPTIONS, "--remote-debugging-pipe",
             f"--user-data-dir={folder}/piped"], pass_fds=(heard, said), stderr=subprocess.DEVNULL)
        os.close(heard)
        os.close(said)
        self.number, self.text, self.session = 0, b"", {}
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = {"sessionId": self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
        self.call("Page.enable")
        self.call("Page.navigate", url=f"file://{path}")
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.commands)
        os.close(self.answers)

    def call(self, method, **parameters):
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters, **self.session}
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                assert "result" in answer, answer
                return answer["result"]

    def message(self):
        while b"\0" not in self.text:
            assert select.select([self.answers], [], [], 60)[0], "Chromium does not answer"
            more = os.read(self.answers, 1 << 20)
            assert more, "Chromium has ended"
            self.text += more
        line, self.text = self.text.split(b"\0", 1)
        return json.loads(line)

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, condition):
        end = time.monotonic() + 60
        while not self.value(condition):
            assert time.monotonic() < end, condition
            time.sleep(0.02)

    def press(self, key, code, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                      **({"text": text} if kind == "keyDown" and text else {}))


def colours(png):
    """How many different bytes the pixels of a picture have: few if it is blank."""
    at, data = 8, b""
    while at < len(png):
        length, = struct.unpack(">I", png[at:at + 4])
        data += png[at + 8:at + 8 + length] if png[at + 4:at + 8] == b"IDAT" else b""
        at += 12 + length
    return len(set(zlib.decompress(data)))


@unittest.skipUnless(CHROMIUM, "chromium is not installed")
class Browser(Report):
    def remove_folder(self):
        """A process of the browser may still write there when the browser has ended."""
        for _ in range(50):
            shutil.rmtree(self.folder, ignore_errors=True)
            if not os.path.exists(self.folder):
                return
            time.sleep(0.1)
        self.fail(f"{self.folder} is still written to")

    def browse(self, out, script="", *flags):
        """The page's document as the browser has it, and its messages."""
        # The policy allows no other script, so the page for this test names this one, too.
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        text = out.replace("script-src '", f"script-src 'sha256-{digest}' '")
        path = self.save("page.html", text.replace("</body>", f"<script>{script}</script></body>").encode())
        done = subprocess.run([CHROMIUM, *OPTIONS, "--dump-dom", f"--user-data-dir={self.folder}/profile", "--enable-logging=stderr", "--v=0",
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
        rows = [row("a", n, us, chosen=True) for n, us in times.items()] + [row("b", 16384, 7.0), row("b", 2048, 8.0)]
        _, out = self.of(document(rows + [row("b", 1024, 1.0, op="max"), row("b", 2048, 1.0, op="max")]))
        got = self.outcome(out)
        self.assertEqual(got["before"], ["2^10", "2^11", "2^12", "2^13", "2^14"])
        self.assertEqual(got["up"], ["0.750 *", "9.500 *", "20 *", "100.2 *", "-"])
        self.assertEqual(got["down"], ["100.2 *", "20 *", "9.500 *", "0.750 *", "-"])
        self.assertEqual((got["sort"], got["sort2"], got["sort3"]), ("ascending", "descending", None))
        self.assertEqual(got["last"], ["7", "8", "-", "-", "-"])
        self.assertEqual(got["sizes"], got["before"])
        self.assertTrue(got["buttons"] and got["opened"] and got["width"], got)

    def test_all_of_the_project(self):
        _, out = self.page(*RESULTS)
        for flags, dark in (((), False), (("--window-size=1400,900",), False),
                            (("--blink-settings=preferredColorScheme=0",), True)):
            with self.subTest(flags):
                got = self.outcome(out, *flags)
                self.assertTrue(got["buttons"] and got["opened"] and got["width"], got)
                self.assertGreaterEqual(got["contrast"], 4.5, got)  # WCAG 2.2, level AA
                self.assertEqual(got["dark"], dark, got)

    def chromium(self, out, **more):
        return Chromium(self.folder, self.save("page.html", out.encode()), **more)

    def test_keyboard(self):
        rows = [row("a", n, us, chosen=True) for n, us in ((1024, 9.5), (2048, 0.75), (4096, 2.25))]
        _, out = self.of(document(rows + [row("b", 1024, op="max")]))
        column = """Array.from(document.activeElement.closest("table").tBodies[0].rows, (r) => r.cells[1].textContent.trim())"""
        sort = """document.activeElement.closest("th").ariaSort"""
        with self.chromium(out) as page:
            page.press("Tab", 9)
            self.assertEqual(page.value("document.activeElement.className"), "skip")
            page.value("""document.querySelector("details.case[open] figure details").open = true""")
            for _ in range(100):
                page.press("Tab", 9)
                self.assertNotIn("wide", page.value("document.activeElement.className"))  # none scrolls
                if page.value("""document.activeElement.matches("figure th:nth-child(2) button")"""):
                    break
            page.press("Enter", 13, "\r")
            self.assertEqual((page.value(column), page.value(sort)), (["0.750 *", "2.250 *", "9.500 *"], "ascending"))
            page.press(" ", 32, " ")
            self.assertEqual((page.value(column), page.value(sort)), (["9.500 *", "2.250 *", "0.750 *"], "descending"))
            self.assertEqual(page.value("""document.querySelectorAll("summary h3").length"""), 2)

    def test_phone(self):
        _, out = self.page(*RESULTS)
        self.assertNotIn("role=region", out.replace('"', ""))
        with self.chromium(out, width=360) as page:
            self.assertEqual(page.value("innerWidth"), 360)
            self.assertEqual(page.value("document.documentElement.scrollWidth"), 360)
            self.assertEqual(page.value("getComputedStyle(document.querySelector('svg.plot')).fontSize"), "16px")
            page.wait(STOPS)
            self.assertGreater(page.value("document.querySelectorAll('.wide[tabindex]').length"), 1)
            page.value("location.hash = 'sizes'")
            page.value("document.querySelector('#sizes details.case[open] figure').scrollIntoView()")
            picture = base64.b64decode(page.call("Page.captureScreenshot", format="png")["data"])
            self.assertGreater(colours(picture), 50)
            page.value("document.body.hidden = true")
            blank = base64.b64decode(page.call("Page.captureScreenshot", format="png")["data"])
            self.assertLess(colours(blank), 10)

    def test_printed_pages_have_all_parts(self):
        """Also where no script runs, if the browser has ::details-content."""
        _, out = self.of(document([row("a", n, op=op) for op in ("sum", "max") for n in (1024, 2048)]))
        closed = "Array.from(document.querySelectorAll('details'), (one) => one.open).filter((open) => !open).length"
        shown = "Array.from(document.querySelectorAll('table')).every((table) => table.checkVisibility())"
        with self.chromium(out) as page:
            before = page.value(closed)
            self.assertGreater(before, 1)
            self.assertFalse(page.value(shown))
            page.value(f"addEventListener('beforeprint', () => {{ document.title = {closed}; }})")
            page.call("Page.printToPDF")
            self.assertEqual((page.value("document.title"), page.value(closed)), ("0", before))
            if page.value("CSS.supports('selector(::details-content)')"):
                page.call("Emulation.setEmulatedMedia", media="print")
                self.assertTrue(page.value(shown))

    def test_hostile_texts_run_nothing(self):
        _, out = self.of(hostile_documents(TEXTS[0] + TEXTS[1]))
        _, messages = self.browse(out)
        self.assertNotIn("CONSOLE", messages)
        broken = out.replace("</body>", "<script>document.title = 'x'</script></body>")
        self.assertIn("CONSOLE", self.browse(broken)[1])  # the policy, and that messages are seen


if __name__ == "__main__":
    unittest.main()
