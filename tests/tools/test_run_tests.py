"""The exit codes of run_tests.py."""
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run_tests.py")

MODULE = """
import unittest
class One(unittest.TestCase):
    def test_first(self):
        {}
    def test_second(self):
        {}
@unittest.skipIf({}, "why not")
class Other(unittest.TestCase):
    def test_third(self):
        pass
"""


class RunTests(unittest.TestCase):
    def check(self, code, *parts, module=MODULE):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "test_some.py"), "w", encoding="utf-8") as f:
                f.write(module.format(*parts))
            done = subprocess.run([sys.executable, "-B", PROGRAM, "test_some"], cwd=folder, capture_output=True, check=False,
                                  env={**os.environ, "PYTHONPATH": folder})
        self.assertEqual(done.returncode, code, done.stderr)

    def test_exit_codes(self):
        skip, fail = "self.skipTest('why not')", "self.fail()"
        self.check(77, skip, skip, True)
        self.check(0, skip, skip, False)
        self.check(0, "pass", skip, True)
        self.check(0, "pass", "pass", False)
        self.check(1, fail, skip, True)
        self.check(1, "raise ValueError", "pass", False)
        self.check(0, module="")


if __name__ == "__main__":
    unittest.main()
