"""The changes that CONTRIBUTING.md shows fit the sources, each by itself."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = os.environ['DPR_SOURCE']


class Diffs(unittest.TestCase):
    @unittest.skipUnless(shutil.which('git'), 'git is not installed')
    def test_they_apply(self):
        with open(os.path.join(SOURCE, 'CONTRIBUTING.md'), encoding='utf-8') as file:
            diffs = re.findall(r'^```diff\n(.*?)^```', file.read(), re.S | re.M)
        self.assertGreater(len(diffs), 5)
        for diff in diffs:
            with self.subTest(diff.splitlines()[0]), tempfile.TemporaryDirectory() as folder:
                for name in re.findall(r'^--- a/(.+)$', diff, re.M):
                    os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
                    shutil.copy(os.path.join(SOURCE, name), os.path.join(folder, name))
                done = subprocess.run(['git', 'apply', '--check', '-'], input=diff, cwd=folder, text=True,
                                      capture_output=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == '__main__':
    unittest.main()
