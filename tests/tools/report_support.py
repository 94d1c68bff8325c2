"""What the tests of dpr report share: documents to make pages of, and what a page has."""
import glob
import html.parser
import json
import re
import shutil

from support import SOURCE, ToolTest, run

RESULTS = sorted(glob.glob(f"{SOURCE}/tests/results/*.json"))
HAS_GNUPLOT = shutil.which("gnuplot") is not None
VOID = {"meta", "link", "br"}
OPTIONAL_END = {"tr", "td", "th", "thead", "tbody", "li"}
TEXTS = ("<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "</script></style></table>", "]]>", "<!--",
         "&amp;&lt;", "`touch hacked`", "'; system('touch hacked'); '", "$(touch hacked)", "\\\\\" . system(\"x\")",
         "a\nset output 'hacked'\n", "@x {/Symbol a} ~b{c} _^", "\u202e\u2028\x1b[31m\x07\x7f\uffff", "x" * 20000, "",
         "%s%n%d",
         "\u00fc\u4e2d\U0001f600", "--output=hacked", "E\nE\nplot sin(x)\n")


def row(strategy="cpu.simd", count=1024, us=1.5, **more):
    return {"strategy": strategy, "op": "sum", "dtype": "f32", "count": count, "mode": "blocking", "cache": "cold",
            "samples": 7, "calls": 5, "median_us": us, "low_us": us, "high_us": us, "spread": 0.01, "gb_per_s": 2.0,
            "chosen": False, "ok": True, "settled": True, "doubtful": False, **more}


def document(rows, **more):
    return {"benchmark": "dpr bench", "version": "0.2.0", "commit": "abc", "device": {"name": "a CPU", "kind": "cpu"},
            "settings": {"accuracy": 0.01, "budget_seconds": 60}, "rows": rows, "regret": [], "left_out": [], **more}


def hostile_documents(text):
    """Documents of each kind with the text wherever there can be text."""
    rows = [{**row(text, n), "op": text, "dtype": text, "mode": text, "cache": text, "memory": text, "subject": text, "text": text,
             "limited_by": text, "chosen": True, "share": 0.5, "ratio": 2} for n in (1, 1024, 4096)]
    shaped = [{**r, "segments": text} for r in rows]
    regret = [{**rows[0], "winner": text, "chosen": text, "winner_us": 1, "chosen_us": 2, "regret_percent": 7},
              {**rows[1], "winner": text, "chosen": text, "winner_us": 1, "chosen_us": 2, "regret_percent": 70}]
    common = {"settings": {"wisdom": text, "offsets": text}, "version": text, "commit": text, "device": {"name": text, "kind": text, "cpu": text},
              "ended_early": text, "definitions": {text: text}, "left_out": [{"why": text}], "regret": regret,
              "launches": [{"launch": text, "median_us": 1, "text": text}] * 2, "recursion": text, "input": text,
              "pools": [{"asked": 1, "pending": 64, "median_us": 1, "error": text},
                        {"asked": 1, "pending": 128, "median_us": 2}],
              "engines": [{"engine": text, "ran": text, "seconds": 1, "right": True, "reason": text},
                          {"engine": "auto", "ran": text, "seconds": 2, "right": True, "error": text}]}
    return [{"benchmark": b, "rows": r, **common}
            for b in ("dpr bench", "dpr peers", "dpr bench --ladder", "dpr bench --nested", "dpr recurse", "cpu")
            for r in (rows, shaped)]


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


if __name__ == "__main__":
    raise SystemExit("this file has no tests")
