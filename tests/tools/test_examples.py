"""The examples of the help texts. Some have all cores busy for seconds."""

import re
import unittest

from support import ToolTest, small_cache


class Examples(ToolTest):
    @small_cache()
    def test_examples_are_commands(self):
        """Every example of the help texts that needs no file runs."""
        ran = 0
        for args in (["--help"], ["help", "reduce"], ["help", "plan"], ["help", "tune"], ["help", "recurse"],
                     ["help", "info"], ["help", "env"]):
            for line in self.good(*args).splitlines():
                words = line.strip().split("  ")[0].split()
                if line.startswith("  dpr ") and not re.search(r"[|>&]|\.npy|\.bin|\.caps|\.json", line):
                    quickly = ["-q", "-b", "1s", "-O", "wisdom"] if words[1] == "tune" else []
                    self.good(*words[1:], *quickly, cwd=self.folder)
                    ran += 1
        self.assertGreaterEqual(ran, 6)


if __name__ == "__main__":
    unittest.main()
