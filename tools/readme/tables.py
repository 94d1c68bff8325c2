#!/usr/bin/env python3
"""Puts the generated tables into the documents: between "<!-- table: NAME -->" or "<!-- table: NAME FILE -->" and
"<!-- end -->". FILE, relative to the project, is what dpr bench, dpr_peers or dpr_bench_cpu wrote.
"""
import argparse
import difflib
import json
import math
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/bench/peers"))
import floors  # noqa: E402  (from the folder of dpr_peers)
from floors import elements  # noqa: E402

SIZES = (0, 4, 8, 12, 16, 20, 24, 28, 30)  # exponents of the numbers of elements that tables of sizes show

# ---- Cells ----


def table(headings, rows):
    return ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings),
            *("| " + " | ".join(row) + " |" for row in rows)]


def number(value, form):
    return "-" if value is None else format(value, form)


def percent(value, decimals):
    if value is None:
        return "-"
    return f"{100 * value:.{1 if value < 0.0995 and decimals < 1 else decimals}f} %"


def digits(value):
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def size(count):
    units = ["bytes", "KiB", "MiB", "GiB", "TiB"]
    unit = 0
    while count >= 1024 and unit + 1 < len(units):
        count, unit = count / 1024, unit + 1
    return f"{digits(count)} {units[unit]}"


def doubt(row):
    return " (doubtful)" if row["doubtful"] else ""


def time(row, unit=""):
    """The time of a row, and whether it is to be believed."""
    if not row:
        return "-"
    return f"{row['median_us']:.4g}{unit}{doubt(row)}" if row["ok"] else "failed"


def rate(row):
    return f"{row['gb_per_s']:.4g}" if row and row["ok"] else "-"


def strategy(row):
    return f"`{row['strategy']}`" if row else "-"


def code(text):
    return f"`{text}`"


def heading(results, rest):
    return [f"{results['device']['name']}, commit {results['commit']}; {rest}:", ""]


# ---- Lists ----


def list_table(info, name):
    if name == "ops":
        return table(["operation", "`enum dpr_op`", "result", "element types"],
                     [[code(o["name"]), code(o["id"]), o["text"], o["types"]] for o in info["ops"]])
    if name == "dtypes":
        return table(["type", "`enum dpr_dtype`", "element", "bytes", "type of a sum"],
                     [[code(d["name"]), code(d["id"]), d["text"], str(d["bytes"]), code(d["sum"])]
                      for d in info["dtypes"]])
    if name == "strategies":
        return table(["strategy", "runs on", "how"],
                     [[code(s["name"]), s["side"].upper(), s["text"]] for s in info["strategies"]])
    if name == "statuses":
        return table(["status", "meaning"], [[code(s["id"]), s["text"]] for s in info["statuses"]])
    if name == "env":
        return table(["variable", "what it sets", "values", "default"],
                     [[code(v["name"]), v["text"], v["values"], v["default"]] for v in info["variables"]])
    raise SystemExit(f"there is no table '{name}' that needs no file")


# ---- dpr bench ----


def find(rows, exponent, op="sum", dtype="f32", mode="graph", **more):
    """Rows of a problem with 2^exponent elements and a cold cache, without segments unless they are asked for."""
    wanted = {"segments": None, "op": op, "dtype": dtype, "mode": mode, "cache": "cold", "count": 1 << exponent, **more}
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]


def first(rows):
    return rows[0] if rows else None


def gpu(results, info):
    rows = results["rows"]
    lines = heading(results, "sum of f32" + (", interrupted" if results.get("interrupted") else ""))
    cells = []
    for e in SIZES:
        chosen = first(find(rows, e, chosen=True))
        quickest = min((r for r in find(rows, e) if r["ok"]), key=lambda r: r["median_us"], default=None)
        cells.append([f"2^{e}", strategy(chosen), time(chosen, " us"), rate(chosen), strategy(quickest),
                      time(quickest, " us")])
    lines += table(["elements", "planner's choice", "time", "GB/s", "quickest", "its time"], cells)
    lines += ["", "The planner's choice for others, at 2^20 and at 2^28 elements:", ""]
    cells = []
    for op in (o["name"] for o in info["ops"]):
        for dtype in (d["name"] for d in info["dtypes"]):
            both = [first(find(rows, e, op, dtype, chosen=True)) for e in (20, 28)]
            if any(both) and (op, dtype) != ("sum", "f32"):
                cells.append([f"{op} of {dtype}", *(cell for row in both
                                                    for cell in (strategy(row), time(row, " us"), rate(row)))])
    return lines + table(["problem", "2^20", "time", "GB/s", "2^28", "time", "GB/s"], cells)


def relative(row, base):
    """The rate of a row compared with that of another row of as many bytes."""
    if not row or not base or not row["ok"] or not base["ok"]:
        return "-"
    return f"{base['median_us'] / row['median_us']:.2f}{doubt(row) or doubt(base)}"


def fused(results, _):
    """The planner's choice for each operation or set ("sum+var"), compared with that for a sum."""
    rows = {(r["op"], r["dtype"], r["count"]): r for r in results["rows"]
            if r["chosen"] and (r["mode"], r["cache"]) == ("graph", "cold")}
    places = list(dict.fromkeys(key[1:] for key in rows))
    cells = [[", ".join(map(code, op.split("+"))),
              *(relative(rows.get((op, *place)), rows.get(("sum", *place))) for place in places)]
             for op in dict.fromkeys(key[0] for key in rows)]
    lines = heading(results, "the time of a sum / the time of the call"
                    + ("; interrupted" if results.get("interrupted") else ""))
    return lines + table(["operations", *(f"{elements(count)} {dtype}" for dtype, count in places)], cells)


def ladder(results, _):
    rows = results["rows"]
    start = rows[0]
    about = f"{start['op']} of {elements(start['count'])} {start['dtype']}"
    if start.get("threads") is not None:
        about += f" in blocks of {start['threads']}"
    if results.get("read_gb_per_s") is not None:
        about += f"; this GPU reads {results['read_gb_per_s']:.0f} GB/s at best"
    lines = heading(results, about + ("; interrupted" if results.get("interrupted") else ""))
    lines += table(["strategy", "us", "GB/s", "of bandwidth", "speed-up", "registers", "shared bytes", "occupancy",
                    "what it changes"],
                   [[strategy(r), time(r), rate(r), percent(r.get("share"), 1), number(r.get("speedup"), ".2f"),
                     number(r.get("registers"), "d"), number(r.get("shared_bytes"), "d"), percent(r.get("occupancy"), 0),
                     r["text"]] for r in rows])
    fewer = [f"`{r['strategy']}` ({r['blocks']})" for r in rows if r.get("limited_by") == "grid"]
    if fewer:
        lines += ["", f"Fewer blocks than the SMs hold are launched by {', '.join(fewer)}, at most."]
    return lines


def cost(row):
    """A median in microseconds and its spread; or why there is none."""
    if row.get("median_us") is None:
        return ["-", row.get("why", "?")]
    return [digits(row["median_us"]), percent(row.get("spread"), 1)]


def nested(results, _):
    rows = results["rows"]
    lines = heading(results, f"{results['pending']} launches may be pending"
                    + ("; interrupted" if results.get("interrupted") else ""))
    lines += table(["launch", "us", "spread", "what it is"],
                   [[code(r["launch"]), *cost(r), r["text"]] for r in results["launches"]])
    pools = []
    for pool in results["pools"]:
        taken = (pool.get("loaded_bytes") or 0) + (pool.get("reserved_bytes") or 0)
        pools.append([str(pool.get("pending") or pool["asked"]), size(taken) if taken > 0 else "-", *cost(pool)])
    lines += ["", *table(["pending launches, at most", "device memory", "tail launch, us", "spread"], pools)]
    lines += ["", f"{rows[0]['op']} of {rows[0]['dtype']}, with counters of the nested launches of one call:", ""]
    cells = []
    for r in rows:
        came_to = r.get("nested") or {}
        cells.append([elements(r["count"]), strategy(r), (digits(r["median_us"]) if r["ok"] else "failed") + doubt(r),
                      number(r.get("ratio"), ".1f"),
                      *(number(came_to.get(key), "d") for key in ("launched", "refused", "in_line", "deepest")),
                      r["text"]])
    return lines + table(["elements", "strategy", "us", "ratio", "launched", "refused", "in line", "deepest", "how"],
                         cells)


# ---- dpr recurse ----


def milliseconds(row):
    return "-" if "seconds" not in row else f"{1e3 * row['seconds']:.3g}" if row["right"] else "wrong"


def recursion(results, _):
    """Documents of `dpr recurse NAME --engine all --json`, one for each recursion."""
    engines = [row["engine"] for row in results[0]["engines"]]
    cells = []
    for r in results:
        rows = {row["engine"]: row for row in r["engines"]}
        tasks = max(row.get("tasks", 0) for row in r["engines"])
        ran = rows["auto"].get("ran")
        cells.append([f"{r['recursion']} {r['size']}", f"{tasks:.3g}", *(milliseconds(rows[e]) for e in engines[:-1]),
                      f"{milliseconds(rows['auto'])} ({ran})" if ran else "-"])
    commits = " or ".join(dict.fromkeys(r["commit"] for r in results))
    return heading({**results[0], "commit": commits}, "medians from call to result in milliseconds") + table(
        ["recursion", "tasks", *map(code, engines)], cells)


# ---- dpr_peers ----


def worst(verdict):
    """The worst of one pair, in bold where the floor is missed."""
    text = f"{verdict['segments'] or verdict['op'] + ' of ' + verdict['dtype']} "
    if verdict["counts"] == 0:
        text += "not measured"
    elif verdict["worst"] is None:
        text += "failed"
    else:
        text += f"{verdict['worst']:.4g} at {elements(verdict['worst_count'])}"
    return f"**{text}**" if verdict["missed"] > 0 else text


def floors_of(results):
    has_segments = any("segments" in row for row in results["rows"])
    verdicts = [v for v in floors.judge(results) if has_segments or not v["segments"]]
    held, missed = floors.tally(verdicts)
    if held + missed == 0:
        return []
    groups = {}
    for v in verdicts:
        calls = f"{v['mode']}, {v['cache']}" + (", segments" if v["segments"] else "")
        groups.setdefault((calls, floors.sizes(v), floors.bound(v)), []).append(v)
    cells = [[*key, ", ".join(map(worst, group))] for key, group in groups.items()]
    return ["", f"Floors: {held} held, {missed} missed, {len(verdicts) - held - missed} not measured. "
            "The worst of each, missed ones in bold:", "", *table(["calls", "elements", "floor", "worst"], cells)]


def peers(results, _):
    rows, modes = results["rows"], ("graph", "stream", "blocking")
    ended = results.get("ended_early")
    lines = heading(results, f"sum of f32 compared with CUB {results['libraries']['cub']}, in microseconds"
                    + (f"; ended early: {ended}" if ended else ""))
    cells = []
    for e in SIZES:
        line = [f"2^{e}"]
        for mode in modes:
            of = {s: first(find(rows, e, mode=mode, subject=s)) for s in ("dpr", "cub", "launch")}
            line += [time(of["dpr"]), time(of["cub"]), number((of["cub"] or {}).get("ratio"), ".3g"), time(of["launch"])]
        cells.append(line)
    lines += table(["elements", *(h for mode in modes for h in (f"{mode}: dpr", "CUB", "ratio", "launch"))], cells)
    return lines + floors_of(results)


# ---- Segments and axes ----


def over_floor(row):
    """A time in microseconds, and how many times as long it is as that of reading as many bytes."""
    return f"{time(row)} ({row['over_floor']:.2f})" if row and row["ok"] else time(row)


def times_heading(results, rate):
    """The heading of a table of over_floor()."""
    return heading(results, f"{elements(results['rows'][0]['count'])} elements, in microseconds (and over the time of "
                   f"reading as many bytes at {rate} GB/s)")


def axes(results, _):
    """A line for each array, and a column for each of dpr_peers' subjects for axes."""
    rows = {(r["axes"], r["subject"]): r for r in results["rows"]}
    subjects = list(dict.fromkeys(key[1] for key in rows))
    cells = [[code(name), *(over_floor(rows.get((name, subject))) for subject in subjects)]
             for name in dict.fromkeys(key[0] for key in rows)]
    return times_heading(results, round(results["read_gb_per_s"])) + table(["array", *subjects], cells)


def segments(results, _):
    """A line for each operation and type of the planner's choice, or of dpr_peers' subjects for segments, and a column
    for each distribution of lengths. The file is a document, or a list of some that one GPU made."""
    documents = results if isinstance(results, list) else [results]
    results = documents[0]
    rows = {(r["op"], r["dtype"], r.get("subject") or r["strategy"], r["segments"]): r
            for document in documents for r in document["rows"]}
    names = list(dict.fromkeys(key[3] for key in rows))
    lines = [key for key in dict.fromkeys(key[:3] for key in rows) if key[2] in ("planner", "dpr", "cub")]
    cells = [[f"{op} of {dtype}" + (f", {subject}" if subject != "planner" else ""),
              *(over_floor(rows.get((op, dtype, subject, name))) for name in names)] for op, dtype, subject in lines]
    rates = sorted({round(document["read_gb_per_s"]) for document in documents})
    rate = f"{rates[0]} to {rates[-1]}" if rates[1:] else rates[0]
    return times_heading(results, rate) + table(["problem", *names], cells)


# ---- dpr_bench_cpu ----


def cpu(results, _):
    gpus = results["gpus"]
    return [f"Commit {results['commit']}: an {results['device']} with {results['threads']} threads sums {results['bytes'] >> 20} MiB of F32. The "
            "ratio compares dpr with OpenMP loops (`simd reduction`) that are compiled with the same flags and take "
            "turns with it:", "",
            *table(["strategy", "GB/s", "ratio to OpenMP"],
                   [["`cpu.threads`", f"{results['cpu.threads_gb_per_s']:.1f}", f"{results['threads_ratio']:.2f}"],
                    ["`cpu.simd`", f"{results['cpu.simd_gb_per_s']:.1f}", f"{results['simd_ratio']:.2f}"]]), "",
            f"`dpr_reduce()` takes {results['small_call_ns']:.0f} ns to sum 16 doubles that are in the L1 cache on this "
            f"machine, which has {gpus} GPU{'' if gpus == 1 else 's'}; a bare loop takes "
            f"{results['small_loop_ns']:.0f} ns (medians of calls one after another)."]


# ---- Regret ----


def regret(results, _):
    """How much longer the planner's choices take than the quickest strategy, by where the array lies and how it is
    called. The file is a list of documents."""
    cells = []
    for document in results:
        usual = "host" if document["device"]["kind"] == "cpu" else "device"
        kinds = {}
        for row in document["regret"]:
            kinds.setdefault((row.get("memory", usual), row["mode"]), []).append(row)
        for (memory, mode), rows in kinds.items():
            mean = math.expm1(sum(math.log1p(r["regret_percent"] / 100) for r in rows) / len(rows))
            most = max(rows, key=lambda r: r["regret_percent"])
            other = "" if document["commit"] == results[0]["commit"] else f", commit {document['commit']}"
            cells.append([memory, mode + other, str(len(rows)), percent(mean, 2),
                          str(sum(r["regret_percent"] > 10 for r in rows)),
                          f"{most['regret_percent']:.0f} %, {most['regret_us']:.2f} us: {most['op']} of "
                          f"{elements(most['count'])} {most['dtype']}"])
    lines = heading(results[0], "how much longer the planner's choice takes than the quickest strategy")
    return lines + table(["memory", "calls", "cases", "geometric mean", "more than 10 %", "worst"], cells)


# ---- Documents ----

MEASURED = {"gpu": gpu, "fused": fused, "ladder": ladder, "nested": nested, "peers": peers, "cpu": cpu, "recursion": recursion,
            "regret": regret, "segments": segments, "axes": axes}


def fill(text, info):
    """The document with its tables made anew."""
    def table_of(match):
        name, file = match.group(2), match.group(3)
        lines = MEASURED[name](json.loads((ROOT / file).read_text()), info) if file else list_table(info, name)
        return match.group(1) + "\n".join(lines) + "\n" + match.group(4)
    return re.sub(r"(<!-- table: (\w+)(?: (\S+))? -->\n).*?(<!-- end -->\n)", table_of, text, flags=re.S)


def documents():
    folders = ("core", "coop", "dp", "host", "tests", "tools", "examples")
    return [*ROOT.glob("*.md"), *(d for folder in folders for d in (ROOT / folder).rglob("*.md"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dpr", help="the command, of a build with CUDA")
    parser.add_argument("--check", action="store_true", help="leave the documents alone; exit with 1 if one is out of date")
    asked = parser.parse_args()
    info = {}
    for command in ("info", "env"):
        info.update(json.loads(subprocess.run([asked.dpr, command, "--json"], check=True, capture_output=True).stdout))
    if all(s["side"] == "cpu" for s in info["strategies"]):
        raise SystemExit(f"{asked.dpr} has no strategies for GPUs: a build with CUDA is needed")
    exit_code = 0
    for document in documents():
        old = document.read_text(encoding="utf-8")
        new = fill(old, info)
        name = str(document.relative_to(ROOT))
        if new == old:
            continue
        if asked.check:
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), name, "new"))
            print(f"{name} is out of date: run tools/readme/tables.py {asked.dpr}")
            exit_code = 1
        else:
            document.write_text(new, encoding="utf-8")
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
