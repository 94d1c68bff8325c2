"""dpr tune: what it measures, the file that it writes, and what the planner makes of it."""
import json
import os
import re
import resource
import signal
import subprocess
import time
import unittest

from support import DPR, ToolTest, run, use_small_cache

SMALL = ("tune", "-q", "-d", "cpu", "-o", "sum", "-t", "f32", "-n", "1024,4096", "-b", "5s")


def setUpModule():
    use_small_cache()


class Tune(ToolTest):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.folder, "wisdom")
        self.env = {"DPR_WISDOM": self.path}

    def text(self):
        with open(self.path, encoding="utf-8") as f:
            return f.read()

    def measured(self, *args):
        """The strategies whose times the planner knows, by its explanation."""
        out = self.good("plan", "-d", "cpu", *args, env=self.env)
        return set(re.findall(r"^[ *] (\S+) +\S+ us, measured$", out, re.M))

    def test_times_are_kept_and_used(self):
        for _ in range(10):  # times of a busy machine are left out
            out = self.good(*SMALL, "--again", env=self.env)
            if out.startswith("10 "):  # 6 of these cases, and 4 of the CPU's figures
                break
        self.assertRegex(out, rf"\A\d+ times were measured, and are in {re.escape(self.path)}\n"
                              r"The planner's choices before took \S+ % longer than the best strategy, as a geometric mean of \d+, and at worst .*\n"
                              r"Its choices by these times take \S+ % longer, as a geometric mean of \d+, and at worst \S+ % \(.*\)\.\n\Z")
        before, after = (float(share) for share in re.findall(r"(\S+) % longer", out))
        if out.startswith("10 "):
            self.assertLessEqual(after, before)
        self.assertRegex(self.text(), r"\Adpr wisdom 1\nlibrary \S+ \w{16}\ncpu \w{16} .*\n(time .*\n)+end \d+ \w{16}\n\Z")
        self.assertTrue(self.measured("-n", "2000"))
        bench = ("bench", "-q", "-d", "cpu", "-n", "1024", "-a", "50%", "-f", "json")
        for wanted in (self.path, "none"):
            results = json.loads(self.good(*bench, env={"DPR_WISDOM": wanted}))
            self.assertEqual(results["settings"]["wisdom"], wanted)
        self.assertEqual(self.measured("-n", "2000", "-t", "u8"), set())
        self.assertEqual(self.measured("-n", "2000", "--nan", "ignore"), self.measured("-n", "2000"))

    def test_what_is_known_is_not_measured_again(self):
        for _ in range(10):
            code, out, err = run(*SMALL[:1], *SMALL[2:], env=self.env)
            self.assertEqual(code, 0, err)
            if err.count("all of this is known") == 2:
                break
        self.assertIn("dpr: tune: note: CPU: all of this is known; --again measures it anew\n", err)
        before = self.text()
        self.good(*SMALL, env=self.env)
        self.assertEqual(self.text(), before)

    def test_memory_of_a_gpu(self):
        if not self.document("info")["gpus"]:
            self.skipTest("there is no GPU")
        args = ("tune", "-q", "-d", "0", "-o", "sum", "-t", "f32", "-n", "1024", "-b", "12s")
        by_cpu = "\ntime cpu.simd sum f32 pinned call array 1024:"
        for _ in range(10):  # times of a busy machine are left out
            self.good(*args, env=self.env)
            times = re.findall(r"^time flat\.block sum f32 (\S+ \S+) array 1024:", self.text(), re.M)
            if len(times) == 6 and by_cpu in self.text():
                break
        self.assertEqual(sorted(times), ["device call", "device stream", "managed call", "managed stream", "pinned call",
                                         "pinned stream"])
        self.assertIn(by_cpu, self.text())
        os.remove(self.path)
        self.good(*args, "--memory", "device", env=self.env)
        self.assertNotIn(" pinned ", self.text())

    def test_a_kind_of_memory(self):
        """Without a GPU, or with a device that has none of it."""
        for _ in range(10):  # times of a busy machine are left out
            self.good(*SMALL, "--memory", "host", env=self.env)
            if " host call array " in self.text():
                break
        self.assertIn(" f32 host call array ", self.text())
        self.assertNotIn(" f64 ", self.text())  # of the CPU's figures
        for args, message in ((("-d", "cpu", "--memory", "pinned"), "--memory: pinned memory is a GPU's, and --device is cpu"),
                              (("-d", "cpu", "--memory", "device"), "--memory: device memory is a GPU's, and --device is cpu"),
                              (("-d", "0", "--memory", "host"), "--memory: host memory is the CPU's, and --device is a GPU"),
                              (("--memory", "managed"), "--memory: managed memory is not measured, because the planner uses the times of device memory for it")):
            code, out, err = run("tune", *args, env=self.env)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(message, err)

    def interrupted(self, number=signal.SIGINT, code=128 + signal.SIGINT, budget="60s", **kwargs):
        """stdout of a tuning that is interrupted after two seconds."""
        with subprocess.Popen([DPR, "tune", "-d", "cpu", "-n", "2^8:2^20:x2", "-b", budget], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env={**os.environ, **self.env}, text=True, **kwargs) as tuning:
            time.sleep(2)
            tuning.send_signal(number)
            out, err = tuning.communicate(timeout=30)
        self.assertEqual(tuning.returncode, code, err)
        return out

    def times(self):
        """The times of strategies and problems, with the numbers of elements."""
        return {(what, count): time for what, pairs in re.findall(r"^time (.*) array (.*)$", self.text(), re.M)
                for count, time in (pair.split(":") for pair in pairs.split())}

    def test_an_interrupted_tuning_keeps_what_it_has(self):
        for number in (signal.SIGINT, signal.SIGHUP):
            for _ in range(10):  # times of a busy machine are left out
                self.assertRegex(self.interrupted(number, 128 + number), r"\A\d+ times were measured")
                if os.path.exists(self.path) and "\ntime cpu.simd " in self.text():
                    break
            self.assertIn("\ntime cpu.simd sum ", self.text())
            os.remove(self.path)

    def test_a_tuning_that_ignores_signals(self):
        """Those that nohup or a shell's & ignores stay ignored."""
        for number in (signal.SIGHUP, signal.SIGINT):
            self.interrupted(number, 0, "4s", preexec_fn=lambda: signal.signal(number, signal.SIG_IGN))

    def test_the_next_tuning_measures_the_rest(self):
        """What the first has of all strategies that can run it stays as it is."""
        def whole(times):
            cases = {(what.partition(" ")[2], count) for what, count in times}
            return {case for case in cases if all((f"{s} {case[0]}", case[1]) in times for s in ("cpu.serial", "cpu.simd", "cpu.threads"))}
        for _ in range(10):  # times of a busy machine are left out
            self.interrupted()
            before = self.times()
            if whole(before):
                break
        self.assertTrue(whole(before))
        self.good("tune", "-q", "-d", "cpu", "-n", "2^8:2^20:x2", "-b", "6s", env=self.env)
        after = self.times()
        self.assertGreater(len(after), len(before))
        for what, count in before:
            if (what.partition(" ")[2], count) in whole(before):
                self.assertEqual(before[what, count], after[what, count])

    def test_every_fourth_size_comes_first(self):
        """All operations and types take longer than the budget."""
        for _ in range(10):  # times of a busy machine are left out
            self.good("tune", "-q", "-d", "cpu", "-o", "all", "-t", "all", "-n", "2^4:2^12:x2", "--memory", "host", "-b", "2s",
                      env=self.env)
            counts = {int(count) for _, count in self.times()} if os.path.exists(self.path) else set()
            if counts:
                break
        self.assertTrue(counts)
        self.assertLessEqual(counts, {2**4, 2**8, 2**12})

    def test_figures_of_the_cpu_are_always_measured(self):
        """Whatever is asked for."""
        self.good("tune", "-q", "-d", "cpu", "-o", "max", "-t", "u8", "-n", "1024", "-b", "10s", env=self.env)
        plan = self.good("plan", "-d", "cpu", "-n", "2^20", env=self.env)
        self.assertRegex(plan, r"\n +measured: one core reads \S+ GB/s, and cpu\.threads \S+ with")

    def test_a_share_of_the_budget_that_is_not_needed_is_handed_on(self):
        known = "CPU, rates of memory and the time that threads take to begin: all of this is known"
        for _ in range(10):
            code, _, err = run(*SMALL[:1], *SMALL[2:], env=self.env)
            if known in err:
                break
        self.assertEqual(code, 0, err)
        self.assertIn(known, err)
        began = time.monotonic()
        self.good("tune", "-q", "-d", "cpu", "-n", "2^6:2^22:x1.2", "-b", "4s", env=self.env)
        self.assertGreater(time.monotonic() - began, 3.9)

    def test_a_budget_that_is_spent_before_the_last_part(self):
        code, _, err = run(*SMALL[:1], *SMALL[2:], "-b", "1ms", env=self.env)
        self.assertEqual(code, 0, err)
        self.assertRegex(err, r"\d+ combinations were left out, the first because the budget was spent(| when .*); run it again to go on\n")

    def test_help(self):
        text = self.good("tune", "--help")
        for part in ("\nExit status: 0 ", "; 130 after an interrupt", "Segments, axes, runs of equal keys and several operations"):
            self.assertIn(part, text)

    def test_a_tuning_that_is_killed_loses_some_seconds(self):
        with subprocess.Popen([DPR, "tune", "-q", "-d", "cpu", "-n", "2^8:2^20:x2", "-b", "60s"], env={**os.environ, **self.env},
                              stdout=subprocess.PIPE) as tuning:
            for _ in range(400):
                if os.path.exists(self.path) and "\ntime " in self.text():
                    break
                time.sleep(0.1)
            tuning.kill()
        self.assertIn("\ntime cpu.", self.text())
        self.good("plan", "-d", "cpu", "-n", "2000", env=self.env)

    def test_a_file_that_is_not_understood_stays(self):
        path = self.file("poem", b"a poem\n")
        self.bad(f'tune: {path}: line 1: it should be "dpr wisdom 1"; delete or rename the file to begin a new one\n', *SMALL,
                 "-O", path)
        with open(path, "rb") as f:
            self.assertEqual(f.read(), b"a poem\n")
        self.bad("wisdom.lock cannot be opened: No such file or directory", *SMALL, "-O", "/nowhere/wisdom")
        self.bad("there is no file of the user's: DPR_WISDOM is none", *SMALL, env={"DPR_WISDOM": "none"})

    def test_times_of_other_files_do_not_count(self):
        other = os.path.join(self.folder, "other")
        self.good(*SMALL, env=self.env)
        code, out, err = run(*SMALL[:1], *SMALL[2:], "-O", other, env=self.env)
        self.assertEqual(code, 0, err)
        self.assertNotIn("is known", err)
        self.assertFalse(out.startswith("0 times"), out)

    def test_an_end_as_soon_as_the_file_cannot_be_written(self):
        def without_large_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
        began = time.monotonic()
        done = subprocess.run([DPR, "tune", "-q", "-d", "cpu", "-b", "60s"], capture_output=True, text=True, timeout=90,
                              env={**os.environ, **self.env}, preexec_fn=without_large_files, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, f"dpr: tune: {self.path} cannot be written: File too large\n")
        self.assertLess(time.monotonic() - began, 40)

    def test_the_users_file(self):
        env = {k: v for k, v in os.environ.items() if k != "DPR_WISDOM"}
        env["XDG_STATE_HOME"] = self.folder + "/state"
        one_size = (*SMALL, "-n", "1024")
        done = subprocess.run([DPR, *one_size], capture_output=True, env=env, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f"{self.folder}/state/dpr/wisdom\n", done.stdout)
        env["XDG_STATE_HOME"] = "not/absolute"
        env["HOME"] = self.folder + "/home"
        done = subprocess.run([DPR, *one_size], capture_output=True, env=env, text=True, timeout=60, check=False)
        self.assertIn(f"{self.folder}/home/.local/state/dpr/wisdom\n", done.stdout)

    def test_words_that_make_no_sense(self):
        for wanted, *args in (("--budget: ", "-b", "0"), ("--op: 'summ' is none of ", "-o", "summ"),
                              ("--device: ", "-d", "gpu"), ("--count: 0 elements take no time", "-n", "1024,0"),
                              ("--op: 'sum+var' has several operations", "-o", "max,sum+var"), ("none of these operations exists", "-o", "min", "-t", "c64"), ("the operand 'x' makes no sense", "x")):
            self.bad(wanted, "tune", *args, expect=2, env=self.env)


if __name__ == "__main__":
    unittest.main()
