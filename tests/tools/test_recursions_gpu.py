"""The recursions of the command on a GPU: every engine gives the answer that is known."""

import json
import unittest

from support import EDGES, RECURSIONS, ToolTest, has_gpu


@unittest.skipUnless(has_gpu(), "there is no GPU")
class RecursionsOnGpu(ToolTest):
    def check(self, name, size):
        rows = json.loads(self.good("recurse", name, "--size", size, "--engine", "all", "--json"))["engines"]
        ran = [row for row in rows if "error" not in row]
        engines = {row["engine"] for row in ran}
        self.assertLessEqual({"persistent", "host", "level", "graph", "cpu", "serial", "auto"}, engines, rows)
        for row in ran:
            self.assertTrue(row["right"], row)

    def test_every_engine_is_right(self):
        for name, size in RECURSIONS.items():
            self.check(name, size)

    def test_edges(self):
        for name, sizes in EDGES.items():
            for size in sizes:
                self.check(name, size)


if __name__ == "__main__":
    unittest.main()
