"""tools/readme/tables.py: tables of regrets, and of operations in one pass, from made rows and from a measurement."""
import json
import os
import sys
import unittest

from support import SOURCE, ToolTest, small_cache

sys.path.insert(0, os.path.join(SOURCE, "tools", "readme"))
import tables  # noqa: E402  (from the folder of the documents' tables)


def row(op, us, count=1 << 28, dtype="f32", **more):
    return {"strategy": "flat.fused", "op": op, "dtype": dtype, "count": count, "mode": "graph", "cache": "cold",
            "median_us": us, "chosen": True, "ok": True, "doubtful": False, **more}


def lines_of(*rows, **more):
    results = {"device": {"name": "A GPU"}, "commit": "abc", "rows": rows, **more}
    return tables.fused(results, None)


class Regret(ToolTest):
    def test_kinds_of_memory_and_calls(self):
        def regret(percent, mode="graph", **more):
            return {"op": "sum", "dtype": "f32", "count": 1 << 20, "mode": mode, "regret_percent": percent,
                    "regret_us": percent / 10, **more}
        gpu = {"device": {"name": "A GPU", "kind": "gpu"}, "commit": "abc",
               "regret": [regret(0), regret(21, op="max"), regret(5, "stream"), regret(1, memory="pinned")]}
        cpu = {"device": {"name": "A CPU", "kind": "cpu"}, "commit": "abc", "regret": [regret(2, "blocking")]}
        empty = {"device": {"name": "A CPU", "kind": "cpu"}, "commit": "abc", "regret": []}
        self.assertEqual(tables.regret([gpu, cpu, empty], None), [
            "A GPU, commit abc; how much longer the planner's choice takes than the quickest strategy:",
            "",
            "| memory | calls | cases | geometric mean | more than 10 % | worst |",
            "|---|---|---|---|---|---|",
            "| device | graph | 2 | 10.00 % | 1 | 21 %, 2.10 us: max of 2^20 f32 |",
            "| device | stream | 1 | 5.00 % | 0 | 5 %, 0.50 us: sum of 2^20 f32 |",
            "| pinned | graph | 1 | 1.00 % | 0 | 1 %, 0.10 us: sum of 2^20 f32 |",
            "| host | blocking | 1 | 2.00 % | 0 | 2 %, 0.20 us: sum of 2^20 f32 |"])


class Segments(ToolTest):
    def test_lines_and_columns(self):
        def segments(name, us, subject=None, **more):
            of = {"subject": subject} if subject else {}
            return row("sum", us, strategy=subject or "planner", segments=name, over_floor=us / 100, **of, **more)
        results = {"device": {"name": "A GPU"}, "commit": "abc", "read_gb_per_s": 4000,
                   "rows": [segments("ones", 120), segments("zipf", 150), segments("ones", 130, dtype="u8", ok=False),
                            segments("ones", 1, "dpr.bykey"), segments("zipf", 200, "cub")]}
        self.assertEqual(tables.segments(results, None), [
            "A GPU, commit abc; 2^28 elements, in microseconds (and over the time of reading as many bytes at 4000 GB/s):",
            "",
            "| problem | ones | zipf |",
            "|---|---|---|",
            "| sum of f32 | 120 (1.20) | 150 (1.50) |",
            "| sum of u8 | failed | - |",
            "| sum of f32, cub | - | 200 (2.00) |"])


class Fused(ToolTest):
    def test_rows_and_columns_are_those_of_the_file(self):
        self.assertEqual(lines_of(row("sum", 10, 1 << 20), row("sum", 90), row("var", 20, 1 << 20), row("var", 100),
                                  row("sum+var+minmax", 40, 1 << 20), row("sum+var+minmax", 120)), [
            "A GPU, commit abc; the time of a sum / the time of the call:",
            "",
            "| operations | 2^20 f32 | 2^28 f32 |",
            "|---|---|---|",
            "| `sum` | 1.00 | 1.00 |",
            "| `var` | 0.50 | 0.90 |",
            "| `sum`, `var`, `minmax` | 0.25 | 0.75 |"])

    def test_only_the_choice_in_a_graph_with_a_cold_cache_counts(self):
        others = [row("sum", 1, chosen=False), row("sum", 1, mode="stream"), row("sum", 1, cache="hot"),
                  row("max", 1, chosen=False)]
        self.assertEqual(lines_of(row("sum", 9), *others, row("var", 10))[4:],
                         ["| `sum` | 1.00 |", "| `var` | 0.90 |"])

    def test_rates_that_are_not_known(self):
        self.assertEqual(lines_of(row("var", 10), row("sum", 9, dtype="f64"), row("var", 10, dtype="f64", ok=False),
                                  row("norm2", 10, dtype="f64", doubtful=True))[2:], [
            "| operations | 2^28 f32 | 2^28 f64 |",
            "|---|---|---|",
            "| `var` | - | - |",
            "| `sum` | - | 1.00 |",
            "| `norm2` | - | 0.90 (doubtful) |"])

    def test_an_interrupted_measurement_says_so(self):
        self.assertTrue(lines_of(row("sum", 9), interrupted=True)[0].endswith("; interrupted:"))

    @small_cache()
    def test_a_measurement(self):
        """That of the CPU, as if it were of calls in a graph."""
        results = json.loads(self.good("bench", "-d", "cpu", "-q", "-a", "50%", "-n", "1000,10000", "-o",
                                       "sum,var,sum+var", "-s", "cpu.simd", "-f", "json"))
        for measured in results["rows"]:
            measured.update(mode="graph", doubtful=False)
        lines = tables.fused(results, None)
        self.assertEqual(lines[2:4], ["| operations | 1000 f32 | 10000 f32 |", "|---|---|---|"])
        self.assertEqual(lines[4], "| `sum` | 1.00 | 1.00 |")
        self.assertEqual([line.split(" | ")[0] for line in lines[5:]], ["| `var`", "| `sum`, `var`"])
        for line in lines[5:]:
            self.assertRegex(line, r"(\| [0-9]+\.[0-9][0-9] ){2}\|$")

    def test_documents_name_the_file(self):
        """A document whose table is up to date stays as it is."""
        path = "tests/results/h200-fused.json"
        text = f"a\n<!-- table: fused {path} -->\nold\n<!-- end -->\nb\n"
        made = tables.fill(text, None)
        self.assertTrue(made.startswith(f"a\n<!-- table: fused {path} -->\nNVIDIA H200, commit "), made)
        self.assertTrue(made.endswith("|\n<!-- end -->\nb\n"), made)
        self.assertEqual(tables.fill(made, None), made)


if __name__ == "__main__":
    unittest.main()
