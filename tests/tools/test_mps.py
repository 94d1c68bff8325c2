"""Under CUDA's Multi-Process Service kernels cannot launch kernels. This test starts a service of its own, which no other
process uses."""

import json
import os
import shutil
import subprocess
import unittest
import unittest.mock

from support import ToolTest, has_gpu, run

CONTROL = "nvidia-cuda-mps-control"


def control(*args, command=""):
    """Runs the control program of the service. The service that it starts keeps none of this process's pipes."""
    subprocess.run([CONTROL, *args], input=command.encode(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   timeout=60, check=True)


@unittest.skipUnless(has_gpu(), "there is no GPU")
@unittest.skipUnless(shutil.which(CONTROL), f"there is no {CONTROL}")
class Mps(ToolTest):
    def setUp(self):
        super().setUp()
        places = {f"CUDA_MPS_{kind}_DIRECTORY": os.path.join(self.folder, kind) for kind in ("PIPE", "LOG")}
        for place in places.values():
            os.mkdir(place)
        patch = unittest.mock.patch.dict(os.environ, places)
        patch.start()
        self.addCleanup(patch.stop)
        control("-d")
        self.addCleanup(control, command="quit\n")

    def test_engines_run_or_say_why_not(self):
        rows = json.loads(self.good("recurse", "fib", "--size", "20", "--engine", "all", "--json"))["engines"]
        found = {row["engine"]: row for row in rows}
        for engine in ("persistent", "host", "cpu", "serial"):
            self.assertIs(found[engine].get("right"), True, found[engine])
        for engine in ("level", "graph", "naive"):
            self.assertIs(found[engine].get("unable"), True, found[engine])
            self.assertIn("MPS does not permit", found[engine]["error"])

    def test_an_engine_that_is_named_is_refused(self):
        code, _, err = run("recurse", "fib", "--size", "20", "--engine", "level")
        self.assertEqual(code, 1)
        self.assertIn("MPS does not permit", err)

    def test_reductions_run(self):
        array = ("reduce", "--generate", "1MiB", "-t", "i32", "-q")
        self.assertEqual(self.good(*array, "-d", "0"), self.good(*array, "-d", "cpu"))
        self.bad("MPS does not permit", *array, "-d", "0", "-s", "dp.tree")


if __name__ == "__main__":
    unittest.main()
