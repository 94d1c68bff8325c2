"""What the compiler says of wrong policies of recursions: a sentence for each mistake.

    test_policies.py COMPILER INCLUDE...
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

RIGHT = {
    "task": "using task = int;",
    "result": "using result = int;",
    "most_children": "static constexpr int most_children = 2;",
    "divide": "DPR_POLICY int divide(const dpr::no_data &, const task &, dpr::children<wrong>) { return 0; }",
    "base": "DPR_POLICY result base(const dpr::no_data &, const task &) { return {}; }",
    "combine": "DPR_POLICY result combine(const dpr::no_data &, const task &, dpr::results<wrong>, int) { return {}; }",
}
COST = "DPR_POLICY uint64_t cost(const dpr::no_data &, const task &) { return 1; }"
SERIAL = "DPR_POLICY result serial(const dpr::no_data &, const task &) { return 1; }"
PART = "DPR_POLICY result part(const dpr::no_data &, const task &) { return 1; }"
CUTOFF = "static constexpr uint64_t cutoff = 1;"
UNASSIGNED = "struct {0} {{ {0} &operator=(const {0} &) = delete; }};"
ALIGNED = "struct alignas(32) {} {{ int n; }};"
FOLD = "static constexpr dpr_op fold = DPR_SUM;"


def compile_policies(policies, standard="c++17", nvcc_stage="-c"):
    """The compiler's messages for policies, each given by the parts in which it differs; None leaves a part out."""
    text = "#include <dpr_recursion.cuh>\n#include <string>\n"
    for i, parts in enumerate(policies):
        policy = "\n".join(part for part in {**RIGHT, **parts}.values() if part)
        text += (f"namespace number_{i} {{\nstruct wrong {{\n{policy}\n}};\n}}\n"
                 f"DPR_RECURSION(wrong_{i}, number_{i}::wrong)\n")
    with tempfile.TemporaryDirectory() as folder:
        is_nvcc = pathlib.Path(COMPILER).name == "nvcc"
        source = pathlib.Path(folder, "wrong.cu" if is_nvcc else "wrong.cc")
        options = [nvcc_stage, "-o", source.with_suffix(".out")] if is_nvcc else ["-fsyntax-only"]
        source.write_text(text, encoding="utf-8")
        done = subprocess.run([COMPILER, f"-std={standard}", *options, *(f"-I{i}" for i in INCLUDES), source],
                              capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    return done.returncode, done.stderr


def failed_assertions(messages):
    """The sentences of static assertions that failed, by the number of the policy. g++ names the policy before the
    sentence; nvcc and Clang, which write more than a colon before it, name the policy after it."""
    found, number, sentences = {}, None, []
    for line in messages.splitlines():
        failed = re.search(r"static[_ ]assert(?:ion)? failed(.*)", line)
        policy = re.search(r"number_(\d+)::wrong", line)
        if failed and failed[1].startswith(": "):
            found.setdefault(number, []).append(failed[1])
        elif failed:
            sentences.append(failed[1])
        elif policy:
            number = int(policy[1])
            found.setdefault(number, []).extend(sentences)
            sentences = []
    return found


class Policies(unittest.TestCase):
    def test_right_ones(self):
        code, messages = compile_policies([
            {}, {"more": COST + SERIAL}, {"combine": None, "more": FOLD + PART}, {"combine": None, "more": FOLD},
            {"combine": None, "more": FOLD.replace("dpr_op", "int")}, {"more": COST + SERIAL + CUTOFF}],
            nvcc_stage="-ptx")  # the rest takes long
        self.assertEqual(code, 0, messages)

    def test_older_standard(self):
        code, messages = compile_policies([{}], "c++14")
        self.assertNotEqual(code, 0)
        self.assertIn("needs C++17", messages)

    def test_mistakes(self):
        mistakes = (
            ("lacks a constant 'most_children'", {"most_children": None}),
            ("'most_children' must be from 1", {"most_children": "static constexpr int most_children = 0;"}),
            ("'most_children' must be from 1 to 2147483647",
             {"most_children": "static constexpr uint64_t most_children = 1ull << 31;"}),
            ("'most_children' must be an integer", {"most_children": "static constexpr double most_children = 2.5;"}),
            ("'cutoff' is a cost", {"more": COST + SERIAL + "static constexpr int cutoff = -1;"}),
            ("may have 1 MiB at most", {"result": "struct result { char x[(1 << 20) + 1]; };"}),
            ("may have 1 MiB at most", {"task": "struct task { char x[(1 << 20) + 1]; };"}),
            ("lacks a type 'task'", {"task": None}),
            ("lacks a type 'result'", {"result": None}),
            ("'task' must be plain data", {"task": "using task = std::string;"}),
            ("'result' must be plain data", {"result": "using result = std::string;"}),
            ("lacks 'DPR_POLICY int divide(", {"divide": None}),
            ("divide() must return 'int'", {"divide": RIGHT["divide"].replace("int divide", "int64_t divide")}),
            ("divide() must return 'int'", {"divide": RIGHT["divide"].replace("int divide", "double divide")}),
            ("divide() must return 'int'",
             {"divide": "DPR_POLICY int64_t divide(const dpr::no_data &, const task &, dpr::children<wrong>, "
                        "const dpr::team &) { return 0; }"}),
            ("lacks 'DPR_POLICY int divide(", {"divide": RIGHT["divide"].replace("const task &,", "")}),
            ("lacks 'DPR_POLICY result base(", {"base": None}),
            ("lacks 'DPR_POLICY result combine(", {"combine": None}),
            ("has combine() and 'fold'", {"more": FOLD}),
            ("has combine() and 'fold'", {"combine": RIGHT["combine"].replace(", int)", ")"), "more": FOLD}),
            ("'fold' must be DPR_SUM, ", {"combine": None, "more": FOLD.replace("SUM", "MEAN")}),
            ("'fold' must be DPR_SUM, ", {"combine": None, "more": FOLD, "result": "using result = double;"}),
            ("serial() must be ", {"more": SERIAL}),
            ("serial() must be ", {"more": COST + SERIAL.replace("const task &", "int *")}),
            ("cost() must be ", {"more": COST.replace("const dpr::no_data &, ", "")}),
            ("cost() must be ", {"more": COST.replace("uint64_t", "double")}),
            ("cost() must be ", {"more": COST.replace("uint64_t", "int")}),
            ("cost() must be ", {"more": COST.replace("uint64_t", "bool")}),
            ("the policy has no serial()", {"more": CUTOFF}),
            ("the policy has no serial()", {"more": COST + CUTOFF}),
            ("'task' and 'result' may be aligned to 16 bytes", {"task": ALIGNED.format("task")}),
            ("'task' and 'result' may be aligned to 16 bytes", {"result": ALIGNED.format("result")}),
            ("'data' may be aligned to 16 bytes", {"task": RIGHT["task"] + ALIGNED.format("data")}),
            ("'data' must be plain data", {"task": RIGHT["task"] + "using data = std::string;"}),
            ("'data' may have 3072 bytes at most", {"task": RIGHT["task"] + "struct data { char bytes[3073]; };"}),
            ("part() must be ", {"more": PART}),
            ("'team_bytes' must be from 0", {"more": "static constexpr size_t team_bytes = 32769;"}),
            ("'team_bytes' must be from 0", {"more": "static constexpr int team_bytes = -1;"}),
            ("'task' must be plain data", {"task": "using task = int[4];"}),
            ("'result' must be plain data", {"result": "using result = int[4];"}),
            ("'task' must be plain data that can be assigned", {"task": UNASSIGNED.format("task")}),
            ("'result' must be plain data that can be assigned", {"result": UNASSIGNED.format("result")}),
            ("'most_children' must be an integer", {"most_children": "static int most_children;"}),
            ("'most_children' must be an integer", {"most_children": "static const int most_children;"}),
            ("'cutoff' must be an integer constant", {"more": COST + SERIAL + "static const uint64_t cutoff;"}),
            ("'fold' must be a constant", {"combine": None, "more": "static dpr_op fold;"}),
            ("'host_data' must be an integer constant", {"more": "static bool host_data;"}),
            ("'team_bytes' must be an integer constant", {"more": "static size_t team_bytes;"}),
            ("cost() must be ", {"more": "static uint64_t cost(); static uint64_t cost(int *);"}),
            ("serial() must be ", {"more": COST + "static result serial(); static result serial(int *);"}),
            ("part() must be ", {"combine": None, "more": FOLD + "static result part(); static result part(int *);"}))
        # More in one file exceed the number of errors that nvcc prints, and Clang.
        each = 10 if COMPILER.endswith("nvcc") else 3
        for begin in range(0, len(mistakes), each):
            some = mistakes[begin:begin + each]
            code, messages = compile_policies([parts for _, parts in some])
            self.assertNotEqual(code, 0)
            found = failed_assertions(messages)
            for i, (wanted, parts) in enumerate(some):
                self.assertIn(wanted, "\n".join(found.get(i, [])), (parts, messages))

    def test_first_error(self):
        """Functions that use a type which is missing are compiled before the policy is checked."""
        for name, function, statement in (("task", "divide", "children[0] = 1"), ("result", "combine", "results[0]")):
            parts = {part: re.sub(rf"\b{name}\b", "int", text) for part, text in RIGHT.items()}
            parts[function] = (parts[function].replace("<wrong>", f"<wrong> {statement.split('[', maxsplit=1)[0]}")
                               .replace("return", statement + "; return"))
            parts[name] = None
            code, messages = compile_policies([parts])
            self.assertNotEqual(code, 0)
            errors = [line for line in messages.splitlines() if "error" in line]
            self.assertIn(f"lacks a type '{name}'", errors[0])


if __name__ == "__main__":
    COMPILER, *INCLUDES = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
