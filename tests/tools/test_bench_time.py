"""dpr bench on the CPU: budget, interrupts, and the line that shows how far it is."""

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import time
import unittest

from support import DPR, BenchTest, available, run, use_small_cache


def setUpModule():
    use_small_cache()


class Time(BenchTest):
    def test_budget(self):
        began = time.monotonic()
        code, out, err = run("bench", "-d", "cpu", "-n", "2^10:2^24:x2", "-o", "all", "-t", "all", "-b", "3s", "-f",
                             "json")
        spent = time.monotonic() - began
        document = json.loads(out)
        self.assertEqual(code, 0)
        self.assertLess(spent, 20)
        self.assertTrue(document["rows"])
        self.assertTrue(all(o["why"].startswith("the budget was spent") for o in document["left_out"]))
        self.assertRegex(err, rf"(?m)^dpr: bench: note: {len(document['left_out'])} combinations were left out; the first: "
                              r"the budget was spent( when .*)?$")

    def start(self, path):
        """A measurement that takes minutes."""
        return subprocess.Popen([DPR, "bench", "-d", "cpu", "-n", "1000:1000000:+1000", "-a", "0.001%", "-b", "10m", "-q",
                                 "-O", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def interrupt(self, number, path, p):
        """Exit code and output after a signal, sent when something has been measured."""
        began = time.monotonic()
        while (not os.path.exists(path) or os.path.getsize(path) == 0) and time.monotonic() - began < 60:
            time.sleep(0.1)
        p.send_signal(number)
        out, err = p.communicate(timeout=60)
        return p.returncode, out, err

    def test_signals_keep_what_was_measured(self):
        """All at once, because the file is written after some seconds first. It is whole, too, when the program is
        killed."""
        paths = {number: f"{self.folder}/{number}.json" for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)}
        with contextlib.ExitStack() as stack:
            measuring = {number: stack.enter_context(self.start(path)) for number, path in paths.items()}
            for p in measuring.values():
                stack.callback(p.kill)
            ends = {number: self.interrupt(number, paths[number], p) for number, p in measuring.items()}
        documents = {}
        for number, path in paths.items():
            with open(path, encoding="utf-8") as f:
                documents[number] = json.load(f)
            self.assertTrue(documents[number]["rows"])
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.assertEqual(ends[number], (128 + number, b"", b""))
            self.assertEqual(documents[number]["interrupted"], True)
            self.assertEqual({o["why"] for o in documents[number]["left_out"]}, {"interrupted"})
        self.assertEqual(ends[signal.SIGKILL][0], -signal.SIGKILL)

    def large(self):
        """A measurement of an array whose data takes seconds to make, of which a part will be; and its bytes."""
        if available() < 2**32:
            self.skipTest("there is little memory")
        count = min(available() // 2, 2**33)
        return ["bench", "-d", "cpu", "-t", "u8", "-n", str(count), "-f", "json"], count

    def part(self, p, count):
        """What a program has printed that ended long before `count` bytes were there."""
        out, err = p.stdout.read(), p.stderr.read()
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
        self.assertLess(usage.ru_maxrss * 1024, count * 3 / 4)
        return json.loads(out), err.decode()

    def test_making_data_is_in_the_budget(self):
        """Told by how much data was made, because on a busy machine memory can take seconds to get and to free."""
        command, count = self.large()
        with subprocess.Popen([DPR, *command, "-b", "300ms"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            document, err = self.part(p, count)
        (left_out,) = document["left_out"]
        wanted = "the budget was spent when ([0-9]+) of ([0-9]+) MiB of memory were filled"
        self.assertEqual((p.returncode, left_out["count"]), (0, count))
        self.assertRegex(left_out["why"], f"^{wanted}$")
        filled, asked = map(int, re.match(wanted, left_out["why"]).groups())
        self.assertLess(filled, asked * 3 / 4)
        self.assertRegex(err, f"^dpr: bench: note: 1 combination was left out; the first: {wanted}\n$")

    def test_making_data_can_be_interrupted(self):
        command, count = self.large()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with subprocess.Popen([DPR, *command, "-b", "10m"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
                resident = 0
                while resident < 2**28:
                    with open(f"/proc/{p.pid}/statm", encoding="ascii") as f:
                        resident = int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
                p.send_signal(number)
                document, err = self.part(p, count)
            self.assertEqual(p.returncode, 128 + number, err)
            self.assertEqual((document["interrupted"], document["rows"]), (True, []))
            self.assertEqual([o["why"] for o in document["left_out"]], ["interrupted"])

    def test_second_interrupt_ends_the_program(self):
        with subprocess.Popen([DPR, "bench", "-d", "cpu", "-n", "2^26", "-s", "cpu.serial", "-b", "10m"],
                              stdout=subprocess.PIPE) as p:
            began = time.monotonic()
            while p.poll() is None and time.monotonic() - began < 60:
                p.send_signal(signal.SIGINT)
                time.sleep(0.001)
            p.communicate(timeout=60)
        self.assertEqual(p.returncode, -signal.SIGINT)

    def test_live_line_only_on_a_terminal(self):
        """Of a strategy by name, because a choice may be measured a second time, which counts as another case."""
        for quiet in ([], ["-q"]):
            terminal, other = pty.openpty()
            shown = b""
            with subprocess.Popen([DPR, "bench", "-d", "cpu", "-n", "2^10:2^20:x2", "-s", "cpu.serial", "-a", "0.001%",
                                   "-b", "2s", *quiet],
                                  stderr=other, stdout=subprocess.DEVNULL) as p:
                os.close(other)
                while p.poll() is None:
                    if select.select([terminal], [], [], 0.2)[0]:
                        try:
                            shown += os.read(terminal, 4096)
                        except OSError:  # the other end is closed
                            break
            os.close(terminal)
            if quiet:
                self.assertEqual(shown, b"")
            else:
                self.assertRegex(shown.decode(), r"\d+ of 11  sum of f32, blocking, cold, [\d^]+ elements  \d+ s left")


if __name__ == "__main__":
    unittest.main()
