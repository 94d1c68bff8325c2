"""tools/bench/peers/floors.py: what has to be measured, and verdicts on made rows."""
import itertools
import json
import os
import subprocess
import sys
import unittest

from support import SOURCE, ToolTest

PEERS = os.path.join(SOURCE, "tools", "bench", "peers")
sys.path.insert(0, PEERS)
import floors  # noqa: E402  (from the folder of dpr_peers)

# Takes the options of dpr_peers and writes one row that has them. "-m graph -c hot" gives a wrong result.
PROGRAM = """#!/usr/bin/env python3
import json, sys
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
wrong = options["-c"] == "hot"
with open(options["-O"], "w") as file:
    json.dump({"settings": {"budget_seconds": 5, "pool_bytes": len(options["-n"])}, "rows": [options],
               "ended_early": "it was late" if wrong else None, "left_out": [len(options)]}, file)
sys.exit(wrong)
"""


def row(count, us, subject="dpr", **more):
    return {"subject": subject, "op": "sum", "dtype": "f32", "mode": "graph", "cache": "cold", "count": count,
            "median_us": us, "gb_per_s": count * 4e-3 / us, "ok": True, **more}


def pair(count, ratio, **more):
    return [row(count, 1, **more), row(count, ratio, "cub", ratio=ratio, **more)]


def floor(what, side, limit, **more):
    return {"op": "sum", "dtype": "f32", "mode": "graph", "cache": "cold", "low": 16, "high": 64, "what": what,
            "side": side, side: limit, **more}


def judge(about, *rows):
    """(sizes that count, missed, worst, at)"""
    v = floors.verdict(about, {floors.case(r): r for r in rows})
    return v["counts"], v["missed"], v["worst"], v["worst_count"]


class Verdicts(ToolTest):
    def test_ratio(self):
        about = floor("CUB/dpr", "at least", 1.4)
        held = [*pair(16, 1.4), *pair(32, 1.5), *pair(20, 1.6)]
        self.assertEqual(judge(about, *held), (3, 0, 1.4, 16))
        self.assertEqual(judge(about, *held, *pair(64, 1.399)), (4, 1, 1.399, 64))

    def test_segments(self):
        """Rows of one distribution say nothing of another, nor of one array."""
        zipf = pair(16, 1.5, segments="zipf")
        for segments, counts in (("zipf", 1), ("ones", 0), (None, 0)):
            self.assertEqual(judge(floor("CUB/dpr", "at least", 1.0, segments=segments), *zipf)[0], counts)
        self.assertEqual(judge(floor("CUB/dpr", "at least", 1.0, segments="zipf"), *pair(16, 0.9))[0], 0)

    def test_growth(self):
        about = floor("growth", "at most", 1.02)
        self.assertEqual(judge(about, row(8, 1000), row(16, 2040)), (1, 0, 1.02, 16))
        self.assertEqual(judge(about, row(8, 1000), row(16, 2041)), (1, 1, 1.0205, 16))
        self.assertEqual(judge(about, row(16, 2000)), (0, 0, None, None), "half as many are not measured")

    def test_time(self):
        about = floor("us", "at most", 9)
        self.assertEqual(judge(about, row(16, 9), row(32, 8)), (2, 0, 9, 16))
        self.assertEqual(judge(about, row(16, 9), row(32, 9.01)), (2, 1, 9.01, 32))

    def test_rate(self):
        about = floor("TB/s", "at least", 4.2)
        self.assertEqual(judge(about, row(16, 1, gb_per_s=4200)), (1, 0, 4.2, 16))
        self.assertEqual(judge(about, row(16, 1, gb_per_s=4199.99)), (1, 1, 4.19999, 16))

    def test_rows_of_others_do_not_count(self):
        about = floor("CUB/dpr", "at least", 1.4)
        none = (0, 0, None, None)
        self.assertEqual(judge(about), none)
        self.assertEqual(judge(about, row(16, 1)), none, "without CUB")
        self.assertEqual(judge(about, row(16, 1), row(16, 2, "cub")), none, "not in the same round")
        for other in ({"op": "max"}, {"dtype": "f64"}, {"mode": "stream"}, {"cache": "hot"}):
            self.assertEqual(judge(about, *pair(16, 1, **other)), none, other)
        self.assertEqual(judge(about, *pair(15, 1), *pair(65, 1)), none)
        self.assertEqual(judge(floor("us", "at most", 9), row(16, 10, "dpr.async")), none)

    def test_failures_miss(self):
        about = floor("CUB/dpr", "at least", 1.4)
        failed = row(16, 1, ok=False)
        del failed["median_us"], failed["gb_per_s"]
        for rows in ([failed], [failed, row(16, 9, "cub", ratio=9)], [row(16, 1), {**failed, "subject": "cub"}]):
            self.assertEqual(judge(about, *rows), (1, 1, None, None))
        self.assertEqual(judge(about, failed, *pair(32, 2)), (2, 1, 2, 32))
        about = floor("growth", "at most", 1.02)
        self.assertEqual(judge(about, {**failed, "count": 8}, row(16, 1)), (1, 1, None, None))


class Data(ToolTest):
    def test_ratios_cover_all_sizes(self):
        """Every power of two of a graph with a cold cache has exactly one ratio to reach."""
        ranges = [(f["low"], f["high"]) for f in floors.load() if f["what"] == "CUB/dpr"
                  and (f["op"], f["dtype"], f["mode"], f["cache"], f["segments"]) == ("sum", "f32", "graph", "cold", None)]
        for e in range(34):
            self.assertEqual(sum(low <= 1 << e <= high for low, high in ranges), 1, e)

    def test_every_floor_is_measured(self):
        cases = [case for box in floors.boxes(floors.load()) for case in itertools.product(*box)]
        self.assertEqual(len(cases), len(set(cases)))
        needed = set()
        for f in floors.load():
            low = f["low"] // 2 if f["what"] == "growth" else f["low"]
            needed.update((f["op"], f["dtype"], f["mode"], f["cache"], f["segments"], 1 << e) for e in range(64)
                          if low <= 1 << e <= f["high"])
        self.assertEqual(set(cases), needed)


    def test_calls_have_segments_or_none(self):
        distributions = {f["segments"] for f in floors.load()} - {None}
        self.assertEqual(len(distributions), 9)
        with_segments = [words for words in floors.commands("dpr_peers", floors.load()) if "--segments" in words]
        self.assertTrue(with_segments)
        for words in with_segments:
            self.assertEqual(set(words[words.index("--segments") + 1].split(",")), distributions)


class Command(ToolTest):
    def floors(self, *args, expect=0):
        done = subprocess.run([sys.executable, "-B", os.path.join(PEERS, "floors.py"), *args], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout.splitlines()

    def judged(self, rows, expect, ended_early=None):
        name = self.file("rows.json", json.dumps({"rows": rows, "ended_early": ended_early}).encode())
        return self.floors("judge", name, expect=expect)

    def test_judge(self):
        number = len(floors.load())
        lines = self.judged(pair(1 << 13, 1.4), 0)
        self.assertEqual(len(lines), number + 1)
        self.assertIn("sum of f32, graph, cold, 2^13 to 2^17: CUB/dpr at least 1.4: "
                      "holds, 0 of 1 sizes missed, worst 1.4 at 2^13", lines)
        self.assertEqual(sum(line.endswith(": not measured") for line in lines), number - 1)
        self.assertEqual(lines[-1], "Floors: 1 held, 0 missed")
        lines = self.judged(pair(1 << 13, 1.4) + pair(100, 0.9), 1)
        self.assertIn("MISSES, 1 of 1 sizes missed, worst 0.9 at 100", "\n".join(lines))
        self.assertEqual(lines[-1], "Floors: 1 held, 1 missed")
        self.assertEqual(self.judged([], 1)[-1], "Floors: 0 held, 0 missed")
        self.assertIn("It ended early: it was late.", self.judged(pair(1 << 13, 1.4), 1, "it was late"))

    def test_committed_results(self):
        """They have all that floors of one array take."""
        name = os.path.join(SOURCE, "tests", "results", "h200-peers.json")
        with open(name, encoding="utf-8") as file:
            verdicts = floors.judge(json.load(file))
        self.assertTrue(all(v["counts"] for v in verdicts if not v["segments"]))
        held, missed = floors.tally(verdicts)
        lines = self.floors("judge", name, expect=int(missed > 0))
        self.assertEqual(lines[-1], f"Floors: {held} held, {missed} missed")

    def test_lists_of_documents(self):
        """Committed results may be lists. The rows of all documents count, and so does each that ended early."""
        committed = os.path.join(SOURCE, "tests", "results", "h200-segments-small.json")
        self.assertRegex(self.floors("judge", committed)[-1], r"^Floors: [1-9]\d* held, 0 missed$")
        made = [{"rows": rows, "ended_early": ended, "left_out": [], "settings": {"budget_seconds": 1, "pool_bytes": 1}}
                for rows, ended in ((pair(1 << 13, 1.4), None), (pair(100, 0.9), "it was late"))]
        lines = self.floors("judge", self.file("list.json", json.dumps(made).encode()), expect=1)
        self.assertEqual(lines[-2:], ["It ended early: it was late.", "Floors: 1 held, 1 missed"])

    def test_options_are_understood(self):
        """They are options of dpr bench, too, which every build has. With --help nothing is measured."""
        for _, *options in floors.commands("dpr_peers", floors.load()):
            self.good("bench", *options, "--help")

    def test_measure(self):
        program, out = self.file("peers", PROGRAM.encode()), os.path.join(self.folder, "out.json")
        os.chmod(program, 0o755)
        calls = self.floors("measure", program)
        self.assertFalse(os.path.exists(out))
        self.assertEqual(self.floors("measure", program, out, expect=1), calls)
        with open(out, encoding="utf-8") as file:
            document = json.load(file)
        self.assertEqual(len(document["rows"]), len(calls))
        self.assertEqual(len(document["left_out"]), len(calls))
        self.assertEqual(document["settings"], {"budget_seconds": 5 * len(calls), "pool_bytes": len("2^10,2^16,2^20,2^28")})
        self.assertEqual(document["ended_early"], "it was late")

    def test_measure_that_fails(self):
        out = os.path.join(self.folder, "out.json")
        self.floors("measure", "false", out, expect=1)
        self.assertFalse(os.path.exists(out))
        program = self.file("peers", PROGRAM.replace("sys.exit(wrong)", "sys.exit(130 * wrong)").encode())
        os.chmod(program, 0o755)
        self.floors("measure", program, out, expect=130)
        with open(out, encoding="utf-8") as file:
            document = json.load(file)
        self.assertEqual(document["ended_early"], "a call of dpr_peers ended with exit status 130")
        self.assertEqual(len(document["rows"]), len(document["left_out"]))


if __name__ == "__main__":
    unittest.main()
