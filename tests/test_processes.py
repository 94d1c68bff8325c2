"""Runs the stress test of streams in two processes at once, between which the GPU changes. Each has to end.

usage: test_processes.py PROGRAM
"""
import os
import subprocess
import sys
import time

TEST = "GpuStreams.threads_and_streams_at_once"
SECONDS = 10  # of stress
LIMIT = 60  # seconds for both


def main(program):
    environment = dict(os.environ, DPR_TEST_SECONDS=str(SECONDS))
    processes = [subprocess.Popen([program, f"--gtest_filter={TEST}"], env=environment) for _ in range(2)]
    end = time.monotonic() + LIMIT
    try:
        codes = [process.wait(end - time.monotonic()) for process in processes]
    except subprocess.TimeoutExpired:
        sys.exit(f"{TEST} of {SECONDS} s, in two processes at once, has not ended within {LIMIT} s")
    finally:
        for process in processes:
            process.kill()
    if any(codes):
        sys.exit(f"{TEST} failed in one of two processes: exit codes {codes}")


if __name__ == "__main__":
    main(sys.argv[1])
