"""Runs the tests of one module. The exit code is 77 if they were all skipped, so that ctest counts them as skipped.

usage: run_tests.py MODULE
"""
import sys
import unittest


def main():
    program = unittest.main(module=None, argv=["unittest", "-q", sys.argv[1]], exit=False)
    if not program.result.wasSuccessful():
        return 1
    count = program.test.countTestCases()
    return 77 if count and len(program.result.skipped) == count else 0


if __name__ == "__main__":
    sys.exit(main())
