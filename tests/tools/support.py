"""What the tests of the command share: running it, and writing arrays without NumPy."""

import json
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import unittest
import unittest.mock

for number, handler in ((signal.SIGHUP, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
    if signal.getsignal(number) == signal.SIG_IGN:  # as nohup and a shell's & have it; children would ignore them, too
        signal.signal(number, handler)

DPR = os.environ["DPR_COMMAND"]
SOURCE = os.environ["DPR_SOURCE"]

# name: (struct code of one part, parts of an element, NumPy's type code)
DTYPES = {
    "bool": ("B", 1, "b1"), "i8": ("b", 1, "i1"), "u8": ("B", 1, "u1"), "i16": ("h", 1, "i2"), "u16": ("H", 1, "u2"),
    "i32": ("i", 1, "i4"), "u32": ("I", 1, "u4"), "i64": ("q", 1, "i8"), "u64": ("Q", 1, "u8"), "f16": ("e", 1, "f2"),
    "f32": ("f", 1, "f4"), "f64": ("d", 1, "f8"), "c64": ("f", 2, "c8"), "c128": ("d", 2, "c16"),
}


# A measurement on the CPU that is soon over.
QUICK = ("bench", "--device", "cpu", "--accuracy", "50%")

# With these, hwloc, and so the command, sees a cache of 16 MiB, and of the 1024 cores behind it those that the process may
# use. A measurement reads memory of twice the last-level caches again and again, which takes minutes where they have
# hundreds of MiB.
SMALL_CACHE = {"HWLOC_SYNTHETIC": "pack:1 l3:1(size=16777216) core:1024 pu:1", "HWLOC_THISSYSTEM": "1"}


# The recursions of the command, each with a size that is soon solved.
RECURSIONS = {"sum_tree": 100000, "fib": 20, "nqueens": 8, "quadrature": 50, "mandelbrot": 130, "mergesort": 50000,
              "select": 100001, "uts": 6, "uts_t3": 30, "quadtree": 20000, "expression": 30000}

# Sizes at which a recursion begins to divide, and odd ones.
EDGES = {
    "mandelbrot": (1, 2, 33, 67, 128, 129), "mergesort": (1, 2, 3, 15, 16, 31, 3840, 3841, 7681, 61441, 200000),
    "select": (1, 2, 3, 5, 64, 2049, 8192, 8193, 524289, 4194304, 5000001), "uts": (1, 2, 10), "uts_t3": (1, 2, 2000),
    "quadtree": (1, 2, 8, 9, 10, 100), "expression": (1, 2, 7, 8, 9, 500),
}


def has_gpu():
    if not shutil.which("nvidia-smi"):
        return False
    done = subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.PIPE, check=False)
    return done.returncode == 0 and done.stdout.startswith(b"GPU ")


def small_cache():
    """A decorator for a test that measures."""
    return unittest.mock.patch.dict(os.environ, SMALL_CACHE)


def use_small_cache():
    """For the setUpModule() of modules that measure."""
    patch = small_cache()
    patch.start()
    unittest.addModuleCleanup(patch.stop)


def pack(dtype, values, order="<"):
    """Elements as bytes; complex numbers as Python has them."""
    if dtype == "bf16":
        return b"".join(struct.pack(order + "f", v)[2:] for v in values)  # exact for the values of these tests
    code, parts, _ = DTYPES[dtype]
    flat = [p for v in values for p in (v.real, v.imag)] if parts == 2 else list(values)
    return struct.pack(f"{order}{len(flat)}{code}", *flat)


def header(text, version=1, pad=True, length=None):
    """A .npy header of any text. `length` is what it claims to be long."""
    body = text.encode("latin-1") if isinstance(text, str) else text
    prefix = 10 if version == 1 else 12
    if pad:
        body += b" " * (-(prefix + len(body) + 1) % 64) + b"\n"
    claimed = len(body) if length is None else length
    size = struct.pack("<H" if version == 1 else "<I", claimed)
    return b"\x93NUMPY" + bytes([version, 0]) + size + body


def npy(dtype, values, shape=None, fortran=False, version=1, order="<", **kwargs):
    """A .npy file."""
    shape = (len(values),) if shape is None else shape
    code = "|b1" if dtype == "bool" else order + DTYPES[dtype][2]
    text = f"{{'descr': '{code}', 'fortran_order': {fortran}, 'shape': {shape!r}, }}"
    return header(text, version, **kwargs) + pack(dtype, values, order)


def run(*args, stdin=b"", env=None, **kwargs):
    """Runs dpr and returns (exit code, stdout, stderr)."""
    done = subprocess.run([DPR, *map(os.fspath, map(str, args))], input=None if "stdin_file" in kwargs else stdin,
                          stdin=kwargs.get("stdin_file"), stdout=kwargs.get("stdout", subprocess.PIPE),
                          stderr=subprocess.PIPE, timeout=120, env={**os.environ, **(env or {})},
                          cwd=kwargs.get("cwd"), check=False)
    return done.returncode, (done.stdout or b"").decode(), done.stderr.decode("utf-8", "replace")


def memory(name):
    """Bytes of the machine's memory, as /proc/meminfo names them."""
    with open("/proc/meminfo", encoding="ascii") as f:
        return [int(line.split()[1]) * 1024 for line in f if line.startswith(name + ":")][0]


def available():
    """Bytes of memory that can be taken."""
    return memory("MemAvailable")


class ToolTest(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="dpr-test-")
        self.addCleanup(self.remove_folder)

    def remove_folder(self):
        shutil.rmtree(self.folder)

    def file(self, name, data):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def good(self, *args, **kwargs):
        """stdout of a run that must go well and say nothing on stderr."""
        code, out, err = run(*args, **kwargs)
        self.assertEqual((code, err), (0, ""), (args, out))
        return out

    def bad(self, wanted, *args, expect=1, **kwargs):
        """stderr of a run that must fail, with one sentence that has `wanted` in it, and no result."""
        code, out, err = run(*args, **kwargs)
        self.assertEqual((code, out), (expect, ""), (args, err))
        self.assertIn(wanted, err)
        lines = err.splitlines()
        self.assertTrue(lines[0].startswith("dpr: "), err)
        self.assertEqual(len(lines), 2 if expect == 2 else 1, err)
        return err

    def values(self, *args, **kwargs):
        """The values alone, one a line."""
        return self.good("reduce", "-q", *args, **kwargs).split("\n")[:-1]

    def document(self, *args, **kwargs):
        """What --json prints. Numbers stay text, so that no digit is lost."""
        return json.loads(self.good(*args, "--json", **kwargs), parse_int=str, parse_float=str)


class BenchTest(ToolTest):
    def measured(self, *args, expect=0, quiet=True):
        """The JSON document of a measurement."""
        code, out, err = run(*QUICK, "--format", "json", *(["-q"] if quiet else []), *args)
        self.assertEqual(code, expect, err)
        return json.loads(out)


if __name__ == "__main__":
    raise SystemExit("this file has no tests")
