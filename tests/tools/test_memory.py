"""Memory that runs out: each allocation of the command fails once, and it says so or does without."""

import json
import os
import unittest

from support import SOURCE, ToolTest, npy, run


def timeless(text):
    """The document without its times."""
    return json.loads(text, object_hook=lambda o: {k: v for k, v in o.items() if k not in ("seconds", "bytes_per_second")})


def keys(text):
    """The keys of all objects: where memory is short the library knows less of the machine."""
    found = set()
    json.loads(text, object_hook=lambda o: found.update([tuple(o)]))
    return found


class Memory(ToolTest):
    def check(self, *args, read=timeless, failure=1):
        whole = read(self.good(*args))
        mark = self.folder + "/mark"
        failed = 0
        for number in range(1, 10000):
            code, out, err = run(*args, env={"LD_PRELOAD": os.environ["DPR_FAILING_MALLOC"],
                                             "DPR_FAIL_AT": str(number), "DPR_FAIL_MARK": mark})
            if not os.path.exists(mark):
                break
            os.remove(mark)
            if code == 0:
                self.assertEqual((read(out), err), (whole, ""), (args, number))
            else:
                self.assertEqual(code, failure, (args, number, err))
                self.assertRegex(err, r"^dpr: .*memory", (args, number))
                failed += 1
        self.assertEqual(code, 0, err)
        self.assertGreater(failed, (number - 1) / 2)

    def test_reduce(self):
        path = self.file("x.npy", npy("c64", [1, 2j]))
        self.check("reduce", "--json", path, "--op", "every")
        self.check("reduce", "--json", path, path, "--init", "-0-0j", "--strategy", "all")
        self.check("reduce", "--json", "--generate", "64", "-d", "cpu")

    def test_plan(self):
        for name in ("h200", "one-core"):
            machine = f"{SOURCE}/tests/machines/{name}.caps"
            self.check("plan", "--json", "--machine", machine, "--memory", "host", "-n", "1000")
        self.check("plan", "--machine", machine, "-n", "1000", read=str)

    def test_compare(self):
        row = {"strategy": "a", "count": 8, "chosen": True, "samples": 9, "median_us": 1, "low_us": 1, "high_us": 1, "spread": 0}
        paths = [self.file(f"{side}.json", json.dumps({"rows": [{**row, "commit": side}]}).encode()) for side in ("old", "new")]
        self.check("bench", "--compare", *paths, "-f", "json", failure=2)
        self.check("bench", "--compare", *paths, read=str, failure=2)

    def test_report(self):
        row = {"strategy": "a", "op": "sum", "count": 8, "chosen": True, "median_us": 1, "gb_per_s": 1, "ok": True}
        rows = [row, {**row, "count": 16}]
        path = self.file("x.json", json.dumps({"benchmark": "dpr bench", "rows": rows, "regret": rows}).encode())
        self.check("report", "--list", path, read=str)

    def test_info(self):
        self.check("info", "--json", "-d", "cpu", read=keys)

    def test_env(self):
        self.check("env", "--json", read=lambda text: json.loads(text)["variables"])


if __name__ == "__main__":
    unittest.main()
