"""Values: every operation and type against plain Python, whole and in windows."""

import functools
import math
import operator
import struct
import unittest

from support import DTYPES, SOURCE, ToolTest, npy, pack

INTEGERS = {"i8": (-2**7, 2**7 - 1), "u8": (0, 2**8 - 1), "i16": (-2**15, 2**15 - 1), "u16": (0, 2**16 - 1),
            "i32": (-2**31, 2**31 - 1), "u32": (0, 2**32 - 1), "i64": (-2**63, 2**63 - 1), "u64": (0, 2**64 - 1)}
NAN = math.nan
INF = math.inf


def wrap(value, signed):
    value %= 2**64
    return value - 2**64 if signed and value >= 2**63 else value


def integer_reference(values, signed):
    return {
        "sum": str(wrap(sum(values), signed)), "prod": str(wrap(math.prod(values), signed)),
        "min": str(min(values)), "max": str(max(values)),
        "argmin": str(values.index(min(values))), "argmax": str(values.index(max(values))),
        "all": str(all(values)).lower(), "any": str(any(values)).lower(),
        "band": str(functools.reduce(operator.and_, values)), "bor": str(functools.reduce(operator.or_, values)),
        "bxor": str(functools.reduce(operator.xor, values)), "count": str(sum(v != 0 for v in values)),
        "sumsq": str(wrap(sum(v * v for v in values), signed)), "norm1": str(wrap(sum(map(abs, values)), signed)),
        "minmax": f"{min(values)} {max(values)}",
    }


def measures(values):
    """Results in F64, each rounded once."""
    n = len(values)
    return {"mean": sum(values) / n, "norm2": math.sqrt(sum(v * v for v in values)),
            "var": (n * sum(v * v for v in values) - sum(values)**2) / n**2}


class Values(ToolTest):
    def check(self, dtype, values, expected, *options, windows=(1, 2, 3, 7, 1000)):
        """Whole, in windows of some elements, and from a pipe."""
        size = len(pack(dtype, values[:1]))
        raw = pack(dtype, values)
        path = self.file("x.bin", raw)
        args = ["--dtype", dtype, "--op", ",".join(expected), *options]
        wanted = list(expected.values())
        self.assertEqual(self.values(path, *args), wanted, (dtype, options))
        for window in windows:
            self.assertEqual(self.values(path, *args, "--window", window * size), wanted, (dtype, options, window))
        self.assertEqual(self.values("-", *args, "--window", 3 * size, stdin=raw), wanted, (dtype, options, "pipe"))

    def test_integers(self):
        for dtype, (low, high) in INTEGERS.items():
            with self.subTest(dtype=dtype):
                values = [7, high, 3, low, 5, high, low, 0, 1, 1, high, 9, low + 1, 100, 3, 77]
                self.check(dtype, values, integer_reference(values, low < 0))
                odd = [v | 1 for v in values]
                self.check(dtype, odd, integer_reference(odd, low < 0))

    def test_means_norms_and_variances_of_integers(self):
        """In F64, which rounds; the sample's variance has another divisor."""
        for dtype, (low, high) in INTEGERS.items():
            values = [7, high, 3, low, 5, high, 100, 0]
            path = self.file("x.bin", pack(dtype, values))
            for window in (1, 3, 1000):
                args = ("--dtype", dtype, "--window", window * len(pack(dtype, [0])))
                for op, wanted in measures(values).items():
                    got = float(self.values(path, "--op", op, *args)[0])
                    self.assertAlmostEqual(got / wanted, 1, delta=1e-15, msg=(dtype, op, window))
                sample = float(self.values(path, "--op", "var", "--divisor", "sample", *args)[0])
                self.assertAlmostEqual(sample / measures(values)["var"], 8 / 7, delta=2e-15, msg=(dtype, window))

    def test_every_operation_of_a_type(self):
        path = self.file("x.npy", npy("i32", [5, -3, 4]))
        document = self.document("reduce", path, "--op", "every")
        found = {r["op"]: r["value"] for r in document["arrays"][0]["results"]}
        self.assertEqual(found.pop("minmax"), ["-3", "5"])
        wanted = {**integer_reference([5, -3, 4], True), "mean": "2", "norm2": repr(math.sqrt(50)), "var": repr(38 / 3)}
        del wanted["minmax"]
        self.assertEqual({k: str(v).lower() for k, v in found.items()}, wanted)
        path = self.file("c.npy", npy("c64", [1 + 1j]))
        document = self.document("reduce", path, "--op", "every")
        self.assertEqual([r["op"] for r in document["arrays"][0]["results"]], ["sum", "prod", "all", "any", "count", "sumsq", "norm1", "norm2", "mean", "var"])

    def test_bool(self):
        # Any byte but zero is true, and all true values are equal.
        self.check("bool", [0, 2, 255, 0, 1], {
            "sum": "3", "prod": "0", "min": "false", "max": "true", "argmin": "0", "argmax": "1", "all": "false",
            "any": "true", "band": "false", "bor": "true", "bxor": "true", "count": "3", "sumsq": "3", "norm1": "3",
            "mean": "0.6", "minmax": "false true"})
        self.check("bool", [2, 4], {"band": "true", "min": "true", "argmin": "0", "all": "true", "bxor": "false"})

    def test_floats(self):
        values = [1.5, -2.0, 0.25, 8.0, -0.5, 8.0, -2.0, 1.0]
        expected = {"sum": "14.25", "prod": "-48", "min": "-2", "max": "8", "argmin": "1", "argmax": "3",
                    "all": "true", "any": "true", "count": "8", "sumsq": "139.5625", "norm1": "23.25",
                    "mean": "1.78125", "minmax": "-2 8"}
        for dtype in ("f16", "bf16", "f32", "f64"):
            with self.subTest(dtype=dtype):
                self.check(dtype, values, expected)

    def test_complex(self):
        values = [1 + 2j, -3 + 1j, 0.5 - 1j, 2j, 0j]
        product = math.prod(values[:4])
        for dtype in ("c64", "c128"):
            with self.subTest(dtype=dtype):
                self.check(dtype, values, {"sum": "-1.5+4i", "all": "false", "any": "true", "count": "4"})
                sign = "" if product.imag < 0 else "+"
                self.check(dtype, values[:4], {"prod": f"{product.real:g}{sign}{product.imag:g}i"})
                self.check(dtype, [3 + 4j, -5 + 12j], {"sumsq": "194", "norm1": "18", "mean": "-1+8i", "var": "32"})
                self.check(dtype, [complex(NAN, 1), 1 - 1j, complex(2, NAN)], {"sum": "1-1i", "count": "1", "mean": "1-1i"},
                           "--nan", "ignore")

    def test_nan(self):
        for dtype in ("f16", "bf16", "f32", "f64"):
            with self.subTest(dtype=dtype):
                for values, at in (([3, 1, NAN, -5, NAN, 9], 2), ([NAN, 1, 2], 0), ([1, 2, NAN], 2)):
                    self.check(dtype, values, {"sum": "nan", "prod": "nan", "min": "nan", "max": "nan",
                                               "argmin": str(at), "argmax": str(at), "all": "true",
                                               "count": str(len(values))})
                # Windows of 7 hold two numbers each, so that no mean of theirs is rounded.
                self.check(dtype, [NAN, 3, 1, NAN, NAN, NAN, NAN, -5, 9],
                           {"sum": "8", "prod": "-135", "min": "-5", "max": "9", "argmin": "7", "argmax": "8",
                            "count": "4", "sumsq": "116", "mean": "2", "var": "25", "minmax": "-5 9"}, "--nan", "ignore")
                self.check(dtype, [NAN] * 5, {"sum": "0", "prod": "1", "min": "inf", "max": "-inf", "argmin": "-1",
                                              "argmax": "-1", "all": "true", "any": "false", "count": "0"},
                           "--nan", "ignore")

    def test_infinities_and_zeros(self):
        for dtype in ("f16", "bf16", "f32", "f64"):
            with self.subTest(dtype=dtype):
                self.check(dtype, [1, -INF, 2], {"sumsq": "inf", "norm2": "inf", "mean": "-inf", "var": "nan"})
                self.check(dtype, [1], {"var": "nan"}, "--divisor", "sample")
                self.check(dtype, [INF, INF, INF], {"min": "inf", "argmin": "0", "sum": "inf"})
                self.check(dtype, [1, INF, -INF, 2], {"sum": "nan", "min": "-inf", "max": "inf", "argmax": "1"})
                self.check(dtype, [1, INF, -INF, 2], {"sum": "nan"}, "--nan", "ignore")
                self.check(dtype, [0.0, -0.0, 0.0], {"min": "-0", "max": "0", "argmin": "1", "argmax": "0"})

    def test_ties_take_the_lowest_index(self):
        self.check("i32", [5, 1, 9, 1, 9, 1], {"argmin": "1", "argmax": "2"})
        self.check("f64", [2.0] * 20, {"argmin": "0", "argmax": "0"})

    def test_a_window_may_leave_the_range_of_the_type(self):
        # The sums and products of some windows are beyond F32, those of the array are not.
        big = [3e38, 3e38, -3e38, -3e38]
        path = self.file("x.bin", pack("f32", big))
        self.assertEqual(self.values(path, "--dtype", "f32", "--window", 8), ["0"])
        path = self.file("x.bin", pack("f32", [2.0**-100] * 6 + [2.0**100] * 6))
        for window in (4, 8, 12, 24, 48):
            self.assertEqual(self.values(path, "--dtype", "f32", "--op", "prod", "--window", window), ["1"], window)
        path = self.file("x.bin", pack("c64", [complex(2.0**-100, 0)] * 6 + [complex(0, 2.0**100)] * 6))
        self.assertEqual(self.values(path, "--dtype", "c64", "--op", "prod", "--window", 24), ["-1+0i"])

    def test_sums_of_many_windows_keep_their_precision(self):
        # 0.1 in F32 is 13421773 * 2^-27; the exact sum is known.
        count = 100000
        path = self.file("x.bin", struct.pack("<f", 0.1) * count)
        exact = 13421773 * count / 2**27
        value = float(self.values(path, "--dtype", "f32", "--window", 512)[0])
        self.assertEqual(value, struct.unpack("<f", struct.pack("<f", exact))[0])

    def test_more_windows_than_partial_results_fit(self):
        values = list(range(-3000, 3000))
        path = self.file("x.bin", pack("i16", values))
        self.assertEqual(self.values(path, "--dtype", "i16", "--window", 2, "--op", "sum,min,max,argmax,count"),
                         ["-3000", "-3000", "2999", "5999", "5999"])

    def test_initial_value(self):
        for window in (8, 1 << 20):
            def reduce(values, op, init, *more, dtype="f64", window=window):
                path = self.file("x.bin", pack(dtype, values))
                return self.values(path, "--dtype", dtype, "--op", op, "--init", init, "--window", window, *more)[0]
            self.assertEqual(reduce([1, 2, 3], "sum", "10.5"), "16.5")
            self.assertEqual(reduce([1, 2, 3], "prod", "-2"), "-12")
            self.assertEqual(reduce([1, 2, 3], "min", "2"), "1")
            self.assertEqual(reduce([1, 2, 3], "min", "-7e-3"), "-0.007")
            self.assertEqual(reduce([1, 2, 3], "max", "nan"), "nan")
            self.assertEqual(reduce([1, 2, 3], "max", "nan", "--nan", "ignore"), "3")
            self.assertEqual(reduce([1, 2, 3], "all", "false"), "false")
            self.assertEqual(reduce([0, 0], "any", "true"), "true")
            self.assertEqual(reduce([1, 0, 3], "count", "40"), "42")
            self.assertEqual(reduce([6, 7], "band", "12", dtype="u16", window=2), "4")
            self.assertEqual(reduce([1, 2], "sum", "0.5", dtype="f16", window=2), "3.5")
            self.assertEqual(reduce([1 + 1j], "sum", "1-3i", dtype="c64"), "2-2i")
            self.assertEqual(reduce([1, 2], "sumsq", "-3"), "2")
            self.assertEqual(reduce([1, 2], "sum", "1." + 200 * "0"), "4")
            self.assertEqual(reduce([4, -1], "minmax", "-7 3", dtype="i32"), "-7 4")
            self.assertEqual(reduce([1, 2], "sum", "18446744073709551615", dtype="u8", window=1), "2")
        for init, op, dtype in (("x", "sum", "f64"), ("1.5", "sum", "i32"), ("300", "max", "u8"), ("-1", "sum", "u8"),
                                ("", "sum", "f32"), ("1+", "sum", "c64"), ("2", "all", "f32"), ("1", "argmin", "f32"),
                                ("3j", "sum", "f64"), ("1+2j", "sum", "f32"), ("3i", "min", "f16"), ("1e400", "sum", "f64"),
                                ("1e50", "sum", "f32"), ("-1e50", "sum", "f16"), ("70000", "max", "f16"),
                                ("3.4e38", "max", "bf16"), ("1", "mean", "f32"), ("1", "var", "i8"), ("1", "norm2", "c64"),
                                ("1", "minmax", "f32"), ("1 2 3", "minmax", "f32"), ("1 x", "minmax", "i8"), ("1+1e50i", "sum", "c64")):
            path = self.file("x.bin", pack(dtype, [1]))
            self.bad("initial value", "reduce", path, "--dtype", dtype, "--op", op, "--init", init, expect=2)
            path = self.file("x.npy", npy(dtype, [1])) if dtype in DTYPES else path
            err = self.bad("initial value", "reduce", path, "--dtype", dtype, "--op", op, "--init", init, expect=2)
            self.assertEqual("is not two values, with a space between them, of" in err, op == "minmax", err)
            along = self.bad("", "reduce", path, "--dtype", dtype, "--op", op, "--init", init, "--axis", "0", expect=2)
            self.assertEqual(along, err.replace(": " + path, ""))

    def test_initial_value_and_several_operations(self):
        """Nothing is done if one that is named takes none; `every` leaves such operations out, and those of other types."""
        path = self.file("x.npy", npy("f64", [1, 2]))
        for more in ((), ("--axis", "0")):
            err = self.bad("--init: argmax takes no initial value", "reduce", path, "--op", "sum,argmax", "--init", "3", *more, expect=2)
            self.assertNotIn("x.npy", err)
            values = self.values(path, "--op", "every", "--init", "3", *more)
            self.assertEqual(values[:4], ["6", "6", "1", "3"])
            self.assertEqual(self.values(path, "--op", "every", "--init", "2.5", *more)[:4], ["5.5", "5", "1", "2.5"])

    def test_initial_value_in_windows(self):
        # What the initial value brings back into range, or cancels, is the same however the array is cut.
        for values, op, init, wanted in (([1e30, 1e30], "prod", "1e-30", "1e+30"), ([3e38, 3e38], "sum", "-3e38", "3e+38"),
                                         ([2.0**24, 1, 0, 1], "sum", "-16777216", "2"), ([1, 2], "sum", "inf", "inf"),
                                         ([1, 2], "max", "-infinity", "2"), ([1, 2], "sum", "-inf", "-inf"),
                                         ([1, 2], "sum", "5e-324", "3")):
            self.check("f32", values, {op: wanted}, f"--init={init}", windows=(1, 2, 3))

    def test_empty_arrays_give_the_identity(self):
        identities = {"sum": "0", "prod": "1", "min": "inf", "max": "-inf", "all": "true", "any": "false", "count": "0"}
        path = self.file("x.npy", npy("f32", [], (0, 7)))
        self.assertEqual(self.values(path, "--op", ",".join(identities)), list(identities.values()))
        path = self.file("u.npy", npy("u8", []))
        self.assertEqual(self.values(path, "--op", "min,max,band,bor,bxor,minmax"), ["255", "0", "255", "0", "0", "255 0"])
        self.assertEqual(self.values(path, "--op", "sumsq,norm1,norm2,mean,var"), ["0", "0", "0", "nan", "nan"])
        self.assertEqual(self.values(path, "--op", "sum,count", "--init", "5"), ["5", "5"])
        self.bad("x.npy: ", "reduce", self.folder + "/x.npy", "--op", "argmin")
        results = self.document("reduce", path, "--op", "every")["arrays"][0]["results"]
        self.assertEqual({r["op"]: r["value"] for r in results}["argmin"], None)

    def test_digits_give_the_value_back(self):
        for dtype, code in (("f64", "d"), ("f32", "f"), ("f16", "e")):
            least = {"f64": 5e-324, "f32": 2.0**-149, "f16": 2.0**-24}[dtype]
            for value in (0.1, 1 / 3, 1e22 if dtype != "f16" else 65504.0, 123456.0 if dtype != "f16" else 2049.0, least):
                exact = struct.unpack(code, struct.pack(code, value))[0]
                path = self.file("x.bin", struct.pack(code, exact))
                text = self.values(path, "--dtype", dtype, "--op", "max")[0]
                self.assertEqual(struct.unpack(code, struct.pack(code, float(text)))[0], exact, (dtype, text))
        self.assertEqual(self.values("-", "--dtype", "f64", stdin=struct.pack("d", 100000.0)), ["100000"])
        self.assertEqual(self.values("-", "--dtype", "bf16", "--op", "max", stdin=b"\xcd\x3d"), ["0.1"])
        self.assertEqual(self.values("-", "--dtype", "f32", stdin=struct.pack("f", 0.1)), ["0.1"])

    def test_measured_series(self):
        folder = SOURCE + "/examples/data/"
        self.assertEqual(self.values(folder + "sunspots.npy", "--op", "sum,min,argmin,max,argmax,count"),
                         ["15373.4", "0", "11", "190.2", "257", "306"])
        self.assertEqual(self.values(folder + "co2.npy", "--op", "sum,min,argmin,max,argmax,count", "--nan", "ignore"),
                         ["756816.5", "313", "32", "373.9", "2250", "2225"])
        self.assertEqual(self.values(folder + "co2.npy", "--op", "sum,argmax"), ["nan", "6"])


class Generated(ToolTest):
    """Generated data against SplitMix64 written down once more."""

    @staticmethod
    def bits(i):
        mask = 2**64 - 1
        z = (i + 1) * 0x9E3779B97F4A7C15 & mask
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        return z ^ z >> 31

    def generated(self, dtype, count, op):
        size = len(pack(dtype, [0]))
        return self.values("--generate", count * size, "--dtype", dtype, "--op", op)[0]

    def test_known_first_number(self):
        # The first output of SplitMix64 with seed 0, as published with it.
        self.assertEqual(self.generated("u64", 1, "max"), str(0xE220A8397B1DCDAF))

    def test_integers(self):
        n = 1000
        self.assertEqual(self.generated("u64", n, "bxor"),
                         str(functools.reduce(operator.xor, (self.bits(i) for i in range(n)))))
        self.assertEqual(self.generated("u8", n, "sum"), str(sum(self.bits(i) >> 56 for i in range(n))))
        self.assertEqual(self.generated("i16", n, "min"),
                         str(min((self.bits(i) >> 48) - (self.bits(i) >> 63) * 2**16 for i in range(n))))
        self.assertEqual(self.generated("bool", n, "count"), str(sum(self.bits(i) >> 63 for i in range(n))))

    def test_floats(self):
        n = 1000
        for dtype, digits in (("f64", 53), ("f32", 24), ("f16", 11), ("bf16", 8)):
            unit = [(self.bits(i) >> 64 - digits) / 2**digits for i in range(n)]
            self.assertEqual(float(self.generated(dtype, n, "argmax")), unit.index(max(unit)), dtype)
            if dtype != "bf16":
                self.assertEqual(pack(dtype, [float(self.generated(dtype, n, "min"))]), pack(dtype, [min(unit)]), dtype)
        z = complex(*((self.bits(i) >> 11) / 2**53 for i in (0, 1)))
        self.assertEqual(complex(self.generated("c128", 1, "sum").replace("i", "j")), z)

    def test_every_strategy(self):
        out = self.good("reduce", "--generate", "1MiB", "--strategy", "all", "--device", "cpu", "--dtype", "i32")
        names = [s["name"] for s in self.document("info")["strategies"] if s["side"] == "cpu"]
        rows = [line.split() for line in out.splitlines()[2:] if "run on a GPU" not in line]
        self.assertEqual([row[2] for row in rows], names)
        self.assertEqual(len({row[1] for row in rows}), 1)
        for row in rows:
            self.assertGreater(float(row[3]), 0)

    def test_bad_sizes(self):
        self.bad("no whole number of f64 elements", "reduce", "--generate", "7", "--dtype", "f64", expect=2)
        self.bad("no memory", "reduce", "--generate", "2^62")
        self.assertEqual(self.values("--generate", "0"), ["0"])


class Strategies(ToolTest):
    def test_each_by_name(self):
        path = self.file("x.npy", npy("f32", [1, 2, 3]))
        for strategy in self.document("info")["strategies"]:
            if strategy["side"] == "gpu":
                self.bad("needs a GPU", "reduce", path, "--strategy", strategy["name"], "--device", "cpu")
            else:
                document = self.document("reduce", path, "--strategy", strategy["name"], "--device", "cpu")
                result = document["arrays"][0]["results"][0]
                self.assertEqual((result["value"], result["strategy"]), ("6", strategy["name"]))

    def test_every_type_is_tested_here(self):
        with open(SOURCE + "/core/include/dpr/dtypes.def", encoding="utf-8") as f:
            names = [line.split('"')[1] for line in f if line.startswith("    X(A, ")]
        self.assertEqual(set(names), set(DTYPES) | {"bf16"})


if __name__ == "__main__":
    unittest.main()
