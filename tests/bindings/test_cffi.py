"""libdpr.so from Python: cffi in ABI mode reads the plain header as it is, and calls every function of it.

Exit code 77, after a line that begins with "skipped: ", if Python has no cffi or no NumPy.
"""

import contextlib
import io
import math
import os
import re
import sys
import unittest

from declarations import Declarations

try:
    import cffi
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing} in {sys.executable}", flush=True)
    sys.exit(77)

PLAIN = os.environ["DPR_PLAIN"]
NOT_THERE = 1 << 30  # no number of an enumerator, and no index


class Library:
    """The shared library. `called` is the set of the functions that were called."""

    def __init__(self, ffi, path):
        self._ffi, self._library, self.called = ffi, ffi.dlopen(path), set()

    def __getattr__(self, name):
        found = getattr(self._library, name)
        if not isinstance(found, self._ffi.CData):
            return found  # an enumerator

        def function(*arguments):
            self.called.add(name)
            return found(*arguments)
        return function


class Dpr:
    """The library, one object of each kind, and short ways to pass arrays and structs."""

    def __init__(self):
        self.ffi = cffi.FFI()
        with open(PLAIN, encoding="utf-8") as file:
            self.ffi.cdef(file.read())
        self.lib = Library(self.ffi, os.environ["DPR_LIBRARY"])
        self.null = self.ffi.NULL
        self.x = np.arange(1, 11, dtype="f8")
        self.context = self.make_context()
        self.problem = self.sized("dpr_problem *", op=self.lib.DPR_SUM, dtype=self.lib.DPR_F64, count=self.x.size)
        self.plan = self.make("dpr_plan **", self.lib.dpr_plan_create, self.context, self.problem)
        self.machine = self.make_machine()
        self.decision = self.make_decision()

    def make_context(self):
        return self.make("dpr_ctx **", self.lib.dpr_ctx_create, self.lib.DPR_DEVICE_CPU)

    def make_machine(self):
        return self.make("dpr_machine **", self.lib.dpr_machine_read, self.lib.DPR_DEVICE_CPU, 0)

    def make_decision(self):
        return self.make("dpr_decision **", self.lib.dpr_decision_create, self.machine, self.problem)

    def close(self):
        self.lib.dpr_decision_destroy(self.decision)
        self.lib.dpr_machine_destroy(self.machine)
        self.lib.dpr_plan_destroy(self.plan)
        self.lib.dpr_ctx_destroy(self.context)
        self.lib.dpr_shutdown()

    def started(self, function, struct):
        """A struct with garbage in it that its ..._init() function then starts."""
        out = self.ffi.new(f"{struct} *")
        self.ffi.memmove(out, b"\xa5" * self.ffi.sizeof(struct), self.ffi.sizeof(struct))
        function(out, self.ffi.sizeof(struct))
        return out

    def sized(self, pointer, **members):
        """A struct of zeros, but for its size, if it has one, and the members given."""
        struct = self.ffi.new(pointer)
        if "size" in dict(self.ffi.typeof(struct).item.fields):
            struct.size = self.ffi.sizeof(struct[0])
        for name, value in members.items():
            setattr(struct, name, value)
        return struct

    def make(self, pointer, function, *arguments):
        """What the function, which must succeed, writes to its last argument, a pointer of this type."""
        is_struct = self.ffi.typeof(pointer).item.kind == "struct"
        out = self.sized(pointer) if is_struct else self.ffi.new(pointer)
        self.check(function(*arguments, out))
        return out[0]

    def check(self, status):
        if status != self.lib.DPR_OK:
            raise AssertionError(f"{self.name(status)}: {self.error()}")

    def name(self, status):
        return self.text(self.lib.dpr_status_name(status))

    def error(self):
        return self.text(self.lib.dpr_last_error())

    def text(self, string):
        return None if string == self.null else self.ffi.string(string).decode()

    def explained(self, function, *arguments):
        """The text that a function writes by the protocol of dpr_plan_explain()."""
        size = self.ffi.new("size_t *")
        self.check(function(*arguments, self.null, size))
        text = self.ffi.new("char[]", size[0])
        self.check(function(*arguments, text, size))
        return self.text(text)

    def bytes(self, array):
        """The memory of a NumPy array, for an argument of type void *."""
        return self.ffi.from_buffer(array)

    def number(self, name):
        """The operation or the element type with this name."""
        function, out = ((self.lib.dpr_op_parse, "dpr_op *") if name in NUMPY else
                         (self.lib.dpr_dtype_parse, "dpr_dtype *"))
        return self.make(out, function, name.encode())

    def dtypes(self):
        """NumPy's types, and the elements' types that they are. NumPy has no bf16."""
        known = {}
        for i in range(self.lib.dpr_dtype_count()):
            dtype = self.lib.dpr_dtype_at(i)
            code = self.text(self.make("dpr_dtype_info *", self.lib.dpr_dtype_describe, dtype).npy)
            if code:
                known[np.dtype(code)] = dtype
        return known

    def result_type(self, op, dtype):
        result = self.lib.dpr_result_dtype(op, dtype)
        return next(known for known, number in self.dtypes().items() if number == result)

    def reduced(self, function, *arguments, result="f8", values=1):
        """Calls the function, which must succeed, with room for a result as its second argument. Several values of a
        result become a list."""
        out = np.zeros(values, result)
        self.check(function(arguments[0], self.bytes(out), *arguments[1:]))
        return out[0] if values == 1 else list(out)

    def sum_and_extremes(self, function):
        """Calls the function, which must succeed, with room for a sum and for two extremes as its second argument."""
        total, extremes = np.zeros(1), np.zeros(2)
        outs = [self.bytes(total), self.bytes(extremes)]
        self.check(function(self.bytes(self.x), self.ffi.new("void *[]", [self.ffi.cast("void *", out) for out in outs])))
        return [*total, *extremes]

    def segments(self, offsets):
        """Segments of x with these offsets, an array that the caller keeps."""
        return self.sized("dpr_segments *", count=offsets.size - 1, begins=self.bytes(offsets), dtype=self.lib.DPR_I64)

    def sums_of_segments(self, function):
        """What the function, which must succeed, gives for the first four elements of x, and for the others."""
        offsets, sums = np.array([0, 4, 10]), np.zeros(2)
        self.check(function(self.bytes(self.x), self.bytes(sums), self.x.size, self.lib.DPR_F64, self.lib.DPR_SUM,
                            self.segments(offsets)))
        return [*sums]

    def sum_of_one_segment(self, function):
        """The sum that the function's partial result of the segment from the fifth element of x on gives."""
        offsets = np.array([4, 10])
        return self.finished(lambda x, n, partial: function(
            self.context, x, partial, n, self.lib.DPR_F64, self.lib.DPR_SUM, self.segments(offsets), 0, self.null))

    def sums_of_runs(self, function):
        """What the function, which must succeed, gives for two runs of keys of x: how many there are, and their sums."""
        keys, sums, runs = np.array([7] * 4 + [5] * 6), np.zeros(2), self.ffi.new("uint64_t *", 2)
        self.check(function(self.bytes(keys), self.lib.DPR_I64, self.bytes(self.x), self.null, self.bytes(sums), runs,
                            self.x.size, self.lib.DPR_F64, self.lib.DPR_SUM))
        return [runs[0], *sums]

    def run_by_key(self, function):
        """The same for the function that runs a plan of keys."""
        problem = self.sized("dpr_problem *", op=self.lib.DPR_SUM, dtype=self.lib.DPR_F64, count=self.x.size,
                             key_dtype=self.lib.DPR_I64, room=2)
        plan = self.make("dpr_plan **", self.lib.dpr_plan_create, self.context, problem)
        try:
            return self.sums_of_runs(lambda keys, _, x, unique, out, runs, *rest: function(
                plan, keys, x, unique, out, runs, self.null))
        finally:
            self.lib.dpr_plan_destroy(plan)

    def sums_of_columns(self, function):
        """What the function, which must succeed, gives for the columns of x as an array of five rows."""
        extents, sums = self.ffi.new("uint64_t[]", [5, 2]), np.zeros(2)
        axes = self.sized("dpr_axes *", dimensions=2, reduced=1, extents=extents)
        self.check(function(self.bytes(self.x), self.bytes(sums), self.lib.DPR_F64, self.lib.DPR_SUM, axes))
        return [*sums]

    def fused_problem(self):
        """The problem of a sum and of both extremes of x. The array of operations is the second value."""
        ops = self.ffi.new("dpr_op[]", [self.lib.DPR_SUM, self.lib.DPR_MINMAX])
        return self.sized("dpr_problem *", ops=ops, op_count=2, dtype=self.lib.DPR_F64, count=self.x.size), ops

    def run_fused(self, function):
        problem, _ = self.fused_problem()
        plan = self.make("dpr_plan **", self.lib.dpr_plan_create, self.context, problem)
        try:
            return self.sum_and_extremes(lambda x, outs: function(plan, x, outs, self.null))
        finally:
            self.lib.dpr_plan_destroy(plan)

    def partial(self, function=None):
        """A partial result of x: the function, which must succeed, gets x, its size and the room for it."""
        room = self.ffi.new("uint64_t[]", self.lib.dpr_partial_size(self.lib.DPR_SUM, self.lib.DPR_F64) // 8)
        function = function or (lambda x, n, partial: self.lib.dpr_reduce_partial(
            self.context, x, partial, n, self.lib.DPR_F64, self.lib.DPR_SUM, 0, self.null))
        self.check(function(self.bytes(self.x), self.x.size, room))
        return room

    def finished(self, function):
        """The sum that a partial result from the function gives."""
        return self.reduced(lambda partial, out: self.lib.dpr_partial_finish(
            partial, 1, self.lib.DPR_F64, self.lib.DPR_SUM, self.null, out), self.partial(function))

    def reduce(self, array, op):
        """dpr_reduce() of a NumPy array by the operation with this name."""
        dtype, op = self.dtypes()[array.dtype], self.number(op)
        return self.reduced(self.lib.dpr_reduce, self.bytes(array), array.size, dtype, op,
                            result=self.result_type(op, dtype), values=self.lib.dpr_result_values(op))

    def sum_of_x(self):
        return self.bytes(self.x), self.x.size, self.lib.DPR_F64, self.lib.DPR_SUM


def parts(x):
    """The numbers of an array, or of complex numbers the real and the imaginary ones, in the widest type of the kind."""
    if x.dtype.kind == "c":
        return np.concatenate([x.real, x.imag]).astype("f8")
    return x.astype("f8" if x.dtype.kind == "f" else "i8")


# What NumPy has for each operation. `wide` is the type of the library's result.
NUMPY = {
    "sum": lambda x, wide: np.sum(x, dtype=wide),
    "prod": lambda x, wide: np.prod(x, dtype=wide),
    "min": lambda x, wide: np.min(x),
    "max": lambda x, wide: np.max(x),
    "argmin": lambda x, wide: np.argmin(x),
    "argmax": lambda x, wide: np.argmax(x),
    "all": lambda x, wide: np.all(x),
    "any": lambda x, wide: np.any(x),
    "band": lambda x, wide: np.bitwise_and.reduce(x),
    "bor": lambda x, wide: np.bitwise_or.reduce(x),
    "bxor": lambda x, wide: np.bitwise_xor.reduce(x),
    "count": lambda x, wide: np.count_nonzero(x),
    "sumsq": lambda x, wide: np.sum(parts(x)**2).astype(wide),
    "norm1": lambda x, wide: np.sum(np.abs(x), dtype=wide),
    "norm2": lambda x, wide: np.linalg.norm(x.astype("c16" if x.dtype.kind == "c" else "f8")),
    "mean": lambda x, wide: np.mean(x, dtype=wide),
    "var": lambda x, wide: np.var(x.astype("c16" if x.dtype.kind == "c" else "f8")),
    "minmax": lambda x, wide: [np.min(x), np.max(x)],
}

# Operations whose results NumPy and the library round differently, although the elements are whole numbers.
ROUNDED = {"norm1", "norm2", "mean", "var"}

# For each function: a call of it, and what that should give. `d` is a Dpr, and `f` the function.
CALLS = {
    "dpr_status_name": lambda d, f: (d.text(f(d.lib.DPR_ERR_EMPTY)), "DPR_ERR_EMPTY"),
    "dpr_status_text": lambda d, f: (d.text(f(d.lib.DPR_OK)), "success"),
    "dpr_last_error": lambda d, f: ((d.name(d.lib.dpr_op_parse(b"mode", d.ffi.new("dpr_op *"))), "mode" in d.text(f())),
                                    ("DPR_ERR_INVALID_OP", True)),
    "dpr_last_cuda_error": lambda d, f: ((d.lib.dpr_reduce(d.null, d.null, 1, d.lib.DPR_F64, d.lib.DPR_SUM) == 0, f()),
                                         (False, 0)),
    "dpr_version": lambda d, f: (d.text(f()), f"{d.lib.DPR_VERSION_MAJOR}.{d.lib.DPR_VERSION_MINOR}."
                                              f"{d.lib.DPR_VERSION_PATCH}"),
    "dpr_version_number": lambda d, f: (f(), d.lib.DPR_VERSION_NUMBER),
    "dpr_op_count": lambda d, f: (f(), len(d.ffi.typeof("dpr_op").elements) - 1),
    "dpr_dtype_count": lambda d, f: (f(), len(d.ffi.typeof("dpr_dtype").elements) - 1),
    "dpr_op_at": lambda d, f: ((f(0), f(NOT_THERE)), (d.lib.DPR_SUM, d.lib.DPR_OP_NONE)),
    "dpr_dtype_at": lambda d, f: ((f(0), f(NOT_THERE)), (d.lib.DPR_BOOL, d.lib.DPR_DTYPE_NONE)),
    "dpr_op_name": lambda d, f: ((d.text(f(d.lib.DPR_ARGMAX)), d.text(f(d.lib.DPR_F32))), ("argmax", None)),
    "dpr_dtype_name": lambda d, f: ((d.text(f(d.lib.DPR_BF16)), d.text(f(d.lib.DPR_SUM))), ("bf16", None)),
    "dpr_op_parse": lambda d, f: (d.make("dpr_op *", f, b"bxor"), d.lib.DPR_BXOR),
    "dpr_dtype_parse": lambda d, f: (d.make("dpr_dtype *", f, b"c128"), d.lib.DPR_C128),
    "dpr_dtype_size": lambda d, f: ((f(d.lib.DPR_C128), f(d.lib.DPR_DTYPE_NONE)), (16, 0)),
    "dpr_dtype_alignment": lambda d, f: ((f(d.lib.DPR_C128), f(d.lib.DPR_DTYPE_NONE)), (8, 0)),
    "dpr_supported": lambda d, f: ((f(d.lib.DPR_SUM, d.lib.DPR_C64), f(d.lib.DPR_MAX, d.lib.DPR_C64)), (1, 0)),
    "dpr_result_dtype": lambda d, f: ((f(d.lib.DPR_SUM, d.lib.DPR_I8), f(d.lib.DPR_BOR, d.lib.DPR_F32)),
                                      (d.lib.DPR_I64, d.lib.DPR_DTYPE_NONE)),
    "dpr_result_values": lambda d, f: ((f(d.lib.DPR_MINMAX), f(d.lib.DPR_SUM), f(d.lib.DPR_OP_NONE)), (2, 1, 0)),
    "dpr_op_describe": lambda d, f: (d.text(d.make("dpr_op_info *", f, d.lib.DPR_SUM).id), "DPR_SUM"),
    "dpr_dtype_describe": lambda d, f: (d.make("dpr_dtype_info *", f, d.lib.DPR_F16).kind, d.lib.DPR_KIND_FLOAT),
    "dpr_reduce": lambda d, f: (d.reduced(f, *d.sum_of_x()), 55),
    "dpr_reduce_ex": lambda d, f: (d.reduced(lambda *rest: f(d.context, *rest, d.null), *d.sum_of_x()), 55),
    "dpr_reduce_async": lambda d, f: (d.reduced(lambda *rest: f(d.context, *rest, d.sized("dpr_options *"), d.null),
                                                *d.sum_of_x()), 55),
    "dpr_reduce_fused": lambda d, f: (d.sum_and_extremes(lambda x, outs: f(
        d.context, x, outs, d.x.size, d.lib.DPR_F64, d.fused_problem()[1], 2, d.null)), [55, 1, 10]),
    "dpr_reduce_fused_async": lambda d, f: (d.sum_and_extremes(lambda x, outs: f(
        d.context, x, outs, d.x.size, d.lib.DPR_F64, d.fused_problem()[1], 2, d.null, d.null)), [55, 1, 10]),
    "dpr_reduce_segments": lambda d, f: (d.sums_of_segments(lambda *rest: f(d.context, *rest, d.null)), [10, 45]),
    "dpr_reduce_segments_async": lambda d, f: (
        d.sums_of_segments(lambda *rest: f(d.context, *rest, d.null, d.null)), [10, 45]),
    "dpr_reduce_segments_partial": lambda d, f: (d.sum_of_one_segment(f), 45),
    "dpr_reduce_segments_partial_async": lambda d, f: (d.sum_of_one_segment(lambda *rest: f(*rest, d.null)), 45),
    "dpr_reduce_by_key": lambda d, f: (d.sums_of_runs(lambda *rest: f(d.context, *rest, d.null)), [2, 10, 45]),
    "dpr_reduce_by_key_async": lambda d, f: (d.sums_of_runs(
        lambda keys, dtype, x, unique, out, runs, count, *rest: f(d.context, keys, dtype, x, unique, out, runs, 2,
                                                                  count, d.null, *rest, d.null, d.null)), [2, 10, 45]),
    "dpr_reduce_axes": lambda d, f: (d.sums_of_columns(lambda *rest: f(d.context, *rest, d.null)), [25, 30]),
    "dpr_reduce_axes_async": lambda d, f: (
        d.sums_of_columns(lambda *rest: f(d.context, *rest, d.null, d.null)), [25, 30]),
    "dpr_shutdown": lambda d, f: ((f(), d.reduce(d.x, "sum")), (None, 55)),
    "dpr_ctx_create": lambda d, f: (d.name(f(d.lib.DPR_DEVICE_CPU, d.null)), "DPR_ERR_NULL_POINTER"),
    "dpr_ctx_create_ex": lambda d, f: (d.name(f(d.lib.DPR_DEVICE_CPU, d.sized("dpr_ctx_options *", pending_launches=1),
                                                d.ffi.new("dpr_ctx **"))), "DPR_ERR_INVALID_OPTION"),
    "dpr_ctx_destroy": lambda d, f: (f(d.make_context()), None),
    "dpr_ctx_device": lambda d, f: (f(d.context), d.lib.DPR_DEVICE_CPU),
    "dpr_ctx_machine": lambda d, f: (d.explained(d.lib.dpr_machine_format, f(d.context)).startswith("cpu_name"),
                                     True),
    "dpr_launch_report_explain": lambda d, f: ("made 0 launches" in d.explained(
        f, d.sized("dpr_launch_report *"), d.ffi.sizeof("dpr_launch_report")), True),
    "dpr_plan_create": lambda d, f: (d.name(f(d.context, d.null, d.ffi.new("dpr_plan **"))), "DPR_ERR_NULL_POINTER"),
    "dpr_plan_run": lambda d, f: (d.reduced(lambda x, out: f(d.plan, x, out, d.null), d.bytes(d.x)), 55),
    "dpr_plan_run_fused": lambda d, f: (d.run_fused(f), [55, 1, 10]),
    "dpr_plan_run_by_key": lambda d, f: (d.run_by_key(f), [2, 10, 45]),
    "dpr_plan_explain": lambda d, f: ("cpu.serial" in d.explained(f, d.plan), True),
    "dpr_plan_strategy": lambda d, f: (d.text(f(d.plan)).startswith("cpu."), True),
    "dpr_plan_destroy": lambda d, f: (f(d.make("dpr_plan **", d.lib.dpr_plan_create, d.context, d.problem)), None),
    "dpr_partial_size": lambda d, f: ((f(d.lib.DPR_SUM, d.lib.DPR_F64), f(d.lib.DPR_MAX, d.lib.DPR_C64)), (32, 0)),
    "dpr_reduce_partial": lambda d, f: (d.finished(lambda x, n, partial: f(
        d.context, x, partial, n, d.lib.DPR_F64, d.lib.DPR_SUM, 0, d.null)), 55),
    "dpr_reduce_partial_async": lambda d, f: (d.finished(lambda x, n, partial: f(
        d.context, x, partial, n, d.lib.DPR_F64, d.lib.DPR_SUM, 0, d.null, d.null)), 55),
    "dpr_plan_run_partial": lambda d, f: (d.finished(lambda x, n, partial: f(d.plan, x, partial, 0, d.null)), 55),
    "dpr_partial_describe": lambda d, f: (d.make("dpr_partial_info *", f, d.partial()).count, 10),
    "dpr_partial_merge": lambda d, f: (d.finished(lambda x, n, partial: f(
        d.partial(), 1, d.lib.DPR_F64, d.lib.DPR_SUM, d.null, partial)), 55),
    "dpr_partial_merge_async": lambda d, f: (d.finished(lambda x, n, partial: f(
        d.context, d.partial(), 1, d.lib.DPR_F64, d.lib.DPR_SUM, d.null, partial, d.null)), 55),
    "dpr_partial_finish": lambda d, f: (d.reduced(lambda partial, out: f(
        partial, 1, d.lib.DPR_F64, d.lib.DPR_SUM, d.null, out), d.partial()), 55),
    "dpr_partial_finish_async": lambda d, f: (d.reduced(lambda partial, out: f(
        d.context, partial, 1, d.lib.DPR_F64, d.lib.DPR_SUM, d.null, out, d.null), d.partial()), 55),
    "dpr_recursion_run": lambda d, f: (d.name(f(d.context, d.null, d.null, 0, d.null, d.null, d.null, d.null, d.null)),
                                       "DPR_ERR_NULL_POINTER"),
    "dpr_recursion_enqueue": lambda d, f: (d.name(f(d.context, d.null, d.null, 0, d.null, d.null, d.null, d.null,
                                                    d.null)), "DPR_ERR_NULL_POINTER"),
    "dpr_recursion_check": lambda d, f: (d.name(f(d.null, d.null)), "DPR_ERR_NULL_POINTER"),
    "dpr_engine_count": lambda d, f: (f() >= 2, True),
    "dpr_engine_name": lambda d, f: (d.text(f(0)) in ("persistent", "cpu"), True),
    "dpr_engine_text": lambda d, f: (f(NOT_THERE), d.null),
    "dpr_launcher_create": lambda d, f: (d.name(f(d.context, 0, d.sized("dpr_launcher *"))), "DPR_ERR_STRATEGY_UNABLE"),
    "dpr_launcher_report": lambda d, f: (d.name(f(d.null, d.sized("dpr_launch_report *"), 0)), "DPR_ERR_NULL_POINTER"),
    "dpr_launcher_destroy": lambda d, f: (f(d.null), None),
    "dpr_strategy_count": lambda d, f: (f() >= 3, True),
    "dpr_strategy_name": lambda d, f: ((d.text(f(0)), d.text(f(NOT_THERE))), ("cpu.serial", None)),
    "dpr_strategy_text": lambda d, f: (d.text(f(NOT_THERE)), None),
    "dpr_strategy_parse": lambda d, f: (d.make("size_t *", f, b"cpu.serial"), 0),
    "dpr_strategy_describe": lambda d, f: (d.make("dpr_strategy_info *", f, 0).role, d.lib.DPR_ROLE_CANDIDATE),
    "dpr_env_count": lambda d, f: (f() >= 4, True),
    "dpr_env_describe": lambda d, f: (d.text(d.make("dpr_env_info *", f, 0).name), "DPR_NUM_THREADS"),
    "dpr_device_count": lambda d, f: (f() == 0, d.lib.dpr_device_absent() != d.null),
    "dpr_device_absent": lambda d, f: (f() == d.null, d.lib.dpr_device_count() > 0),
    "dpr_node_describe": lambda d, f: (d.make("dpr_node_info *", f, 0).threads >= 1, True),
    "dpr_machine_read": lambda d, f: (d.name(f(d.lib.DPR_DEVICE_CPU, 0, d.null)), "DPR_ERR_NULL_POINTER"),
    "dpr_machine_parse": lambda d, f: (d.name(f(b"cpu.cores = many", d.ffi.new("dpr_machine **"))),
                                       "DPR_ERR_INVALID_OPTION"),
    "dpr_machine_format": lambda d, f: ("\ncpu.cores = " in d.explained(f, d.machine), True),
    "dpr_machine_destroy": lambda d, f: (f(d.make_machine()), None),
    "dpr_machine_describe": lambda d, f: (d.text(d.make("dpr_machine_info *", f, d.machine).gpu_name), None),
    "dpr_machine_capability": lambda d, f: (d.text(d.make("dpr_capability *", f, d.machine, 0).key)[:4], "cpu."),
    "dpr_kernel_describe": lambda d, f: (d.name(f(d.machine, d.problem, d.sized("dpr_kernel_info *"))),
                                         "DPR_ERR_INVALID_OPTION"),
    "dpr_decision_create": lambda d, f: (d.name(f(d.machine, d.null, d.ffi.new("dpr_decision **"))),
                                         "DPR_ERR_NULL_POINTER"),
    "dpr_decision_destroy": lambda d, f: (f(d.make_decision()), None),
    "dpr_decision_step": lambda d, f: (getattr(d.make("dpr_step *", f, d.decision, 0), "from"), 0),
    "dpr_decision_predict": lambda d, f: (d.make("dpr_prediction *", f, d.decision, 0, 1000).seconds > 0, True),
    "dpr_decision_one_pass": lambda d, f: (d.name(f(d.decision, 10, d.ffi.new("char const **"))),
                                           "DPR_ERR_INVALID_OPTION"),
    "dpr_decision_explain": lambda d, f: ("cpu.serial" in d.explained(f, d.decision, 1000), True),
    "dpr_wisdom_import": lambda d, f: (d.name(f(b"/nowhere/wisdom")), "DPR_ERR_FILE"),
    "dpr_wisdom_export": lambda d, f: (d.name(f(b"/nowhere/wisdom")), "DPR_ERR_FILE"),
    "dpr_wisdom_forget": lambda d, f: (f(), None),
    "dpr_wisdom_add": lambda d, f: (d.name(f(d.machine, d.problem, 0, 1e-6)), "DPR_ERR_INVALID_OPTION"),
    "dpr_wisdom_find": lambda d, f: (d.name(f(d.machine, d.problem, 0, d.null)), "DPR_ERR_NULL_POINTER"),
    "dpr_wisdom_path": lambda d, f: (d.name(f(d.null, d.ffi.new("size_t *"))), "DPR_ERR_FILE"),
    "dpr_wisdom_status": lambda d, f: (d.explained(f).startswith("0 times of 0 processors\n"), True),
    # Every struct that begins with its size has a function that starts it.
    **{f"{struct}_init": lambda d, f, struct=struct: (d.started(f, struct).size, d.ffi.sizeof(struct))
       for struct, members in Declarations(PLAIN).structs.items() if members[0] == "size"},
}


class CffiTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dpr = Dpr()
        cls.addClassCleanup(cls.dpr.close)


class Functions(CffiTest):
    def test_every_function(self):
        declared = Declarations(PLAIN).functions
        self.assertEqual(sorted(declared), sorted(CALLS), "CALLS has a line for each function of the header")
        for name, call in CALLS.items():
            self.dpr.lib.called.discard(name)
            with self.subTest(name):
                got, wanted = call(self.dpr, getattr(self.dpr.lib, name))
                self.assertEqual(got, wanted)
        self.assertEqual(set(declared) - self.dpr.lib.called, set(), "not called")

    def test_the_example_of_the_reference(self):
        with open(os.path.join(os.environ["DPR_SOURCE"], "core", "reference.md"), encoding="utf-8") as file:
            code = re.search(r"^```python\n(.*?)^```", file.read(), re.S | re.M)[1]
        code, paths = re.subn(r'"[^"]*plain\.h"', repr(PLAIN), code)
        code, names = re.subn(r'"libdpr\.so"', repr(os.environ["DPR_LIBRARY"]), code)
        self.assertEqual((paths, names), (1, 1))
        ran = {}
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(code, ran)
        self.assertEqual((ran["total"][0], out.getvalue()), (45, "45.0\n"))

    def test_a_machine_is_read_back(self):
        text = self.dpr.explained(self.dpr.lib.dpr_machine_format, self.dpr.machine)
        copy = self.dpr.make("dpr_machine **", self.dpr.lib.dpr_machine_parse, text.encode())
        self.assertEqual(self.dpr.explained(self.dpr.lib.dpr_machine_format, copy), text)
        self.dpr.lib.dpr_machine_destroy(copy)


class Enums(CffiTest):
    def test_every_enum_has_32_bits(self):
        enums = list(filter(None, Declarations(PLAIN).enums))
        self.assertIn("dpr_status", enums)
        for enum in enums:
            self.assertEqual(self.dpr.ffi.sizeof(enum), 4, enum)

    def test_statuses_have_names_and_texts(self):
        for number, name in self.dpr.ffi.typeof("dpr_status").elements.items():
            self.assertEqual(self.dpr.name(number), name)
            self.assertTrue(self.dpr.text(self.dpr.lib.dpr_status_text(number)))
        self.assertEqual(self.dpr.name(NOT_THERE), "DPR_ERR_?")

    def test_only_numbers_with_a_name_are_returned(self):
        lib, typeof = self.dpr.lib, self.dpr.ffi.typeof
        ops, dtypes = typeof("dpr_op").elements, typeof("dpr_dtype").elements
        for i in range(64):
            self.assertIn(lib.dpr_op_at(i), ops)
            self.assertIn(lib.dpr_dtype_at(i), dtypes)
        for op in (*ops, *dtypes, NOT_THERE):
            for dtype in (*ops, *dtypes, NOT_THERE):
                result = lib.dpr_result_dtype(op, dtype)
                self.assertIn(result, dtypes)
                self.assertEqual(result == lib.DPR_DTYPE_NONE, lib.dpr_supported(op, dtype) == 0, (op, dtype))
        self.assertEqual(lib.dpr_result_dtype(lib.DPR_MIN, lib.DPR_C64), lib.DPR_DTYPE_NONE)
        self.assertEqual(lib.dpr_result_dtype(lib.DPR_F64, lib.DPR_SUM), lib.DPR_DTYPE_NONE)


class Results(CffiTest):
    def elements(self, dtype, op, count):
        """Elements whose result is exact in any order: small whole numbers, and factors of a small product."""
        random = np.random.default_rng(count)
        if op == "prod":
            x = np.ones(count, dtype)
            x[1:12] = 2
            x[:1] = 1j if dtype.kind == "c" else 1 if dtype.kind in "ub" else -1
            return x
        x = random.integers(0 if dtype.kind in "ub" else -5, 6, count)
        return (x + 1j * random.integers(-5, 6, count) if dtype.kind == "c" else x).astype(dtype)

    def test_results_are_those_of_numpy(self):
        lib, tested = self.dpr.lib, 0
        ops = {self.dpr.text(lib.dpr_op_name(lib.dpr_op_at(i))) for i in range(lib.dpr_op_count())}
        self.assertEqual(ops, set(NUMPY))
        for dtype, number in self.dpr.dtypes().items():
            for op in filter(lambda op: lib.dpr_supported(self.dpr.number(op), number), ops):
                wide = self.dpr.result_type(self.dpr.number(op), number)
                for count in (1, 2, 1000, 100003):
                    with self.subTest(op=op, dtype=dtype, count=count):
                        x, tested = self.elements(dtype, op, count), tested + 1
                        self.check_result(op, self.dpr.reduce(x, op), NUMPY[op](x, wide))
        self.assertGreater(tested, 400)

    def check_result(self, op, got, wanted):
        if op in ROUNDED:
            self.assertTrue(np.isclose(got, wanted, rtol=1e-6 if got.dtype in ("f4", "c8") else 1e-15, atol=0))
        else:
            self.assertEqual(got, wanted)

    def test_variance_of_a_sample(self):
        options = self.dpr.sized("dpr_options *", divisor=self.dpr.lib.DPR_DIVISOR_SAMPLE)
        got = self.dpr.reduced(lambda *rest: self.dpr.lib.dpr_reduce_ex(self.dpr.context, *rest, options),
                               self.dpr.bytes(self.dpr.x), self.dpr.x.size, self.dpr.lib.DPR_F64, self.dpr.lib.DPR_VAR)
        self.assertTrue(math.isclose(got, np.var(self.dpr.x, ddof=1), rel_tol=1e-15))

    def test_sums_of_fractions(self):
        x = np.random.default_rng(1).normal(size=100000)
        for dtype in ("f2", "f4", "f8"):
            y = x.astype(dtype)
            self.assertTrue(math.isclose(self.dpr.reduce(y, "sum"), math.fsum(y), abs_tol=1e-6 * np.sum(np.abs(x))))

    def test_integers_wrap_as_in_numpy(self):
        for dtype in ("i8", "u8", "i4"):
            x = np.full(1000, np.iinfo(dtype).max, dtype)
            for op in ("sum", "prod"):
                self.assertEqual(self.dpr.reduce(x, op), NUMPY[op](x, dtype[0] + "8"), (op, dtype))

    def test_bf16_which_numpy_lacks(self):
        x = np.array([1.5, 2, -8], "f4")
        halves = (x.view("u4") >> 16).astype("u2")
        got = self.dpr.reduced(self.dpr.lib.dpr_reduce, self.dpr.bytes(halves), 3, self.dpr.lib.DPR_BF16,
                               self.dpr.lib.DPR_SUM, result="f4")
        self.assertEqual(got, -4.5)

    def test_nan(self):
        x = np.array([3, math.nan, 7, math.nan, 7], "f4")
        self.assertTrue(np.isnan(self.dpr.reduce(x, "max")))
        self.assertEqual(self.dpr.reduce(x, "argmax"), np.argmax(x))
        options = self.dpr.sized("dpr_options *", nan=self.dpr.lib.DPR_NAN_IGNORE)
        for op, result, wanted in ((self.dpr.lib.DPR_SUM, "f4", np.nansum(x)),
                                   (self.dpr.lib.DPR_ARGMAX, "i8", np.nanargmax(x))):
            got = self.dpr.reduced(lambda *rest: self.dpr.lib.dpr_reduce_ex(self.dpr.context, *rest, options),
                                   self.dpr.bytes(x), x.size, self.dpr.lib.DPR_F32, op, result=result)
            self.assertEqual(got, wanted)

    def test_arrays_without_elements(self):
        self.assertEqual(self.dpr.reduce(np.zeros(0, "f8"), "sum"), 0)
        self.assertEqual(self.dpr.reduce(np.zeros(0, "f8"), "min"), math.inf)

    def test_arrays_with_two_dimensions(self):
        x = np.arange(12, dtype="i4").reshape(3, 4)
        self.assertEqual(self.dpr.reduce(x, "sum"), 66)


class Errors(CffiTest):
    def refused(self, status, sentence, *arguments):
        """dpr_reduce() gives this status, a sentence that has this in it, and no result."""
        out = np.full(1, 42.0)
        got = self.dpr.lib.dpr_reduce(arguments[0], self.dpr.bytes(out), *arguments[1:])
        self.assertEqual((self.dpr.name(got), out[0]), (status, 42))
        self.assertIn(sentence, self.dpr.error())

    def test_a_type_and_an_operation_that_are_swapped(self):
        x, lib = self.dpr.bytes(self.dpr.x), self.dpr.lib
        self.refused("DPR_ERR_INVALID_DTYPE", "dtype is the operation sum", x, 10, lib.DPR_SUM, lib.DPR_F64)
        self.refused("DPR_ERR_INVALID_DTYPE", "dtype is the operation max", x, 10, lib.DPR_MAX, lib.DPR_SUM)
        self.refused("DPR_ERR_INVALID_OP", "op is the type f32", x, 10, lib.DPR_F64, lib.DPR_F32)

    def test_arguments(self):
        x, lib = self.dpr.bytes(self.dpr.x), self.dpr.lib
        self.refused("DPR_ERR_INVALID_OP", "op is 0", x, 10, lib.DPR_F64, lib.DPR_OP_NONE)
        self.refused("DPR_ERR_INVALID_DTYPE", "dtype is 0", x, 10, lib.DPR_DTYPE_NONE, lib.DPR_SUM)
        self.refused("DPR_ERR_NULL_POINTER", "in is NULL", self.dpr.null, 10, lib.DPR_F64, lib.DPR_SUM)
        self.refused("DPR_ERR_UNSUPPORTED_PAIR", "min has no meaning", x, 5, lib.DPR_C128, lib.DPR_MIN)
        self.refused("DPR_ERR_EMPTY", "argmax", x, 0, lib.DPR_F64, lib.DPR_ARGMAX)

    def test_a_buffer_that_is_too_small(self):
        size, text = self.dpr.ffi.new("size_t *", 3), self.dpr.ffi.new("char[]", b"??")
        status = self.dpr.lib.dpr_plan_explain(self.dpr.plan, text, size)
        self.assertEqual((self.dpr.name(status), self.dpr.text(text)), ("DPR_ERR_BUFFER_TOO_SMALL", "??"))
        self.assertEqual(size[0], len(self.dpr.explained(self.dpr.lib.dpr_plan_explain, self.dpr.plan)) + 1)


if __name__ == "__main__":
    unittest.main()
