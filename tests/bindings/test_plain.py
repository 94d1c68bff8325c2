"""The plain header: no preprocessor in it, and the same declarations as in dpr.h."""

import os
import re
import subprocess
import tempfile
import unittest

from declarations import Declarations

HEADER = os.path.join(os.environ["DPR_SOURCE"], "core", "include", "dpr.h")
PLAIN = os.environ["DPR_PLAIN"]
WARNINGS = ["-pedantic", "-Wall", "-Wextra", "-Werror"]


class PlainHeader(unittest.TestCase):
    def setUp(self):
        self.plain = Declarations(PLAIN)

    def compile(self, name, lines, *options):
        """What the compiler says about a source file of these lines; "" where it accepts them."""
        compiler = [os.environ["DPR_CC"], "-std=c11"] if name.endswith(".c") else [os.environ["DPR_CXX"], "-std=c++17"]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
            done = subprocess.run([*compiler, *WARNINGS, *options, "-I" + os.path.dirname(HEADER),
                                   "-I" + os.path.dirname(os.path.dirname(PLAIN)), "-fsyntax-only", path],
                                  capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode != 0, done.stderr != "", done.stderr)
        return done.stderr

    def test_it_has_declarations(self):
        self.assertGreater(len(self.plain.enums), 6)
        self.assertGreater(len(self.plain.structs), 6)
        self.assertGreater(len(self.plain.functions), 40)
        self.assertIn("dpr_reduce", self.plain.functions)

    def test_it_has_nothing_for_a_preprocessor(self):
        words = set(re.findall(r"\w+|[^\w\s]", self.plain.text))
        self.assertEqual(words & {"#", "\\", "__attribute__", "extern", "sizeof", "NULL", "DPR_API"}, set())
        self.assertEqual([w for w in words if w.startswith("_") or w.endswith(("_", "_LIST", "_INIT"))], [])

    def test_every_enumerator_has_a_number(self):
        for name, number in self.plain.enumerators().items():
            self.assertIsNotNone(number, name)

    def test_numbers_sizes_and_offsets_are_those_of_dpr_h(self):
        names, structs = self.plain.enumerators(), self.plain.structs
        lines = ["#include <dpr.h>", *(f"constexpr long long here_{n} = {n};" for n in names),
                 *(f"#undef {n}" for n in names), "namespace plain {", "#include <dpr/plain.h>", "}"]
        lines += [f'static_assert(plain::{n} == here_{n}, "{n}");' for n in names]
        for enum in filter(None, self.plain.enums):
            lines.append(f'static_assert(sizeof(plain::{enum}) == 4 && sizeof(::{enum}) == 4, "{enum}");')
        for struct, members in structs.items():
            lines.append(f'static_assert(sizeof(plain::{struct}) == sizeof(::{struct}), "{struct}");')
            for member in members:
                for what in ("offsetof({}::{}, {})", "sizeof({}::{}::{})"):
                    sides = [what.format(side, struct, member) for side in ("plain", "")]
                    lines.append(f'static_assert({sides[0]} == {sides[1]}, "{struct}.{member}");')
        self.assertEqual(self.compile("same.cc", lines), "")
        self.assertIn("static", self.compile("other.cc", [*lines, 'static_assert(sizeof(plain::dpr_c64) == 4, "");']))

    def test_functions_are_those_of_dpr_h(self):
        """C takes a second declaration of a function only if it has the same type."""
        lines = ["#include <dpr.h>", *self.plain.functions.values()]
        self.assertEqual(self.compile("functions.c", lines), "")
        self.assertIn("dpr_reduce", self.compile("other.c", [*lines, "int dpr_reduce(void);"]))

    def test_dpr_h_asserts_the_width_of_every_enum(self):
        for name in ("short.c", "short.cc"):
            self.assertEqual(self.compile(name, ["#include <dpr.h>"]), "")
            self.assertIn("enums of 32 bits", self.compile(name, ["#include <dpr.h>"], "-fshort-enums"))
        with open(HEADER, encoding="utf-8") as file:
            asserted = re.findall(r"sizeof\((\w+)\) == 4", file.read())
        self.assertEqual(sorted(asserted), sorted(filter(None, self.plain.enums)))


if __name__ == "__main__":
    unittest.main()
