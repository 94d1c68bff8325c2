#!/usr/bin/env python3
"""The floors: what dpr has to reach next to CUB, as floors.json says.

    floors.py measure DPR_PEERS FILE    measures what they take with several calls of dpr_peers, into one JSON file
    floors.py measure DPR_PEERS         only prints these calls
    floors.py judge FILE                judges what dpr_peers wrote; exit status 1 if a floor is missed, if none
                                        could be judged, or if the measurement ended early
"""
import argparse
import json
import math
import pathlib
import shlex
import subprocess
import sys
import tempfile

SECONDS = 560  # the budgets of all calls, but for:
LEAST_SECONDS = 10  # of one call, which also makes its data within its budget


def elements(count):
    return f"2^{count.bit_length() - 1}" if count & (count - 1) == 0 else str(count)


def load():
    """All floors: the spans of each pair and of each distribution of segments, and the rates. Their `low` and `high`
    are numbers, `side` is a key, and `segments` is None without segments."""
    data = json.loads(pathlib.Path(__file__).with_name("floors.json").read_text(encoding="utf-8"))
    floors = [{**pair, **span} for pair in data["pairs"] for span in data["spans"]] + data["rates"]
    floors += [{**span, "segments": name} for name in data["segments"]["distributions"]
               for span in data["segments"]["spans"]]
    for floor in floors:
        floor.setdefault("segments", None)
        floor["side"] = "at least" if "at least" in floor else "at most"
        floor.update((end, 1 << int(floor[end].removeprefix("2^"))) for end in ("low", "high"))
    return floors


# ---- Measuring ----


def boxes(floors):
    """Sets of operations, types, modes, caches, distributions of segments and counts. Their cross products are the
    cases that floors take, each case once."""
    cases = {}
    for f in floors:
        counts = cases.setdefault((f["op"], f["dtype"], f["mode"], f["cache"], f["segments"]), set())
        low = f["low"] // 2 if f["what"] == "growth" else f["low"]
        counts.update(1 << e for e in range(low.bit_length() - 1, f["high"].bit_length()))
    found = [(*((name,) for name in names), tuple(sorted(counts))) for names, counts in cases.items()]
    for axis in (2, 3, 1, 0, 4):  # boxes that differ along one axis become one, but no segments with none
        merged = {}
        for box in found:
            key = (box[4] == (None,), box[:axis] + box[axis + 1:])
            merged.setdefault(key, []).extend(box[axis])
        found = [rest[:axis] + (tuple(values),) + rest[axis:] for (_, rest), values in merged.items()]
    return found


def commands(program, floors):
    """The calls of dpr_peers, each as a list of words. Budgets go by the number of cases."""
    found = boxes(floors)
    cases = [math.prod(map(len, box)) for box in found]
    for (ops, dtypes, modes, caches, segments, counts), part in zip(found, cases):
        in_row = len(counts) > 1 and counts[-1] == counts[0] << len(counts) - 1
        text = f"{elements(counts[0])}:{elements(counts[-1])}:x2" if in_row else ",".join(map(elements, counts))
        yield [program, "-o", ",".join(ops), "-t", ",".join(dtypes), "-m", ",".join(modes), "-c",
               "both" if len(caches) > 1 else caches[0], *(["--segments", ",".join(segments)] if segments[0] else []),
               "-n", text, "-b", f"{max(LEAST_SECONDS, round(SECONDS * part / sum(cases)))}s"]


def join(parts):
    """One document of what several calls wrote."""
    whole = parts[0]
    for part in parts[1:]:
        whole["rows"] += part["rows"]
        whole["left_out"] += part["left_out"]
        whole["ended_early"] = whole["ended_early"] or part["ended_early"]
        whole["settings"]["budget_seconds"] += part["settings"]["budget_seconds"]
        whole["settings"]["pool_bytes"] = max(whole["settings"]["pool_bytes"], part["settings"]["pool_bytes"])
    return whole


def text_of(document):
    """JSON with a line for each member, and for each row."""
    def member(value):
        if isinstance(value, list) and value:
            return "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
        return json.dumps(value)
    return "{" + ",\n".join(f"{json.dumps(key)}: {member(value)}" for key, value in document.items()) + "}\n"


def call(words):
    """The exit status, as a shell has it: that of a signal is its number and 128."""
    try:
        status = subprocess.run(words, check=False).returncode
    except KeyboardInterrupt:
        status = 130
    return 128 - status if status < 0 else status


def measure(asked):
    parts, failed, ended = [], 0, None
    # Next to the file, so that a folder that takes no files is an error before minutes are spent.
    with tempfile.TemporaryDirectory(dir=pathlib.Path(asked.file).parent if asked.file else None) as folder:
        for i, words in enumerate(commands(asked.program, load())):
            print(shlex.join(words), flush=True)
            if not asked.file:
                continue
            part = pathlib.Path(folder, f"{i}.json")
            status = call([*words, "-O", part])
            if part.exists():
                parts.append(json.loads(part.read_text(encoding="utf-8")))
            if status not in (0, 1) or not part.exists():  # 1 with a file: a subject failed, and its row says so
                failed = status or 1
                ended = f"a call of dpr_peers ended with exit status {status}"
                break
            failed |= status
    if parts:
        parts[-1]["ended_early"] = ended or parts[-1]["ended_early"]
        pathlib.Path(asked.file).write_text(text_of(join(parts)), encoding="utf-8")
    return failed


# ---- Judging ----


def case(row, **other):
    row = {"segments": None, **row, **other}
    return tuple(row[key] for key in ("subject", "op", "dtype", "mode", "cache", "segments", "count"))


def value_at(what, ours, rows):
    """What is bounded, at one row of dpr. NaN if a call failed or was wrong, None if what it takes is not measured."""
    other = ours
    if what == "CUB/dpr":
        other = rows.get(case(ours, subject="cub"))
    elif what == "growth":
        other = rows.get(case(ours, count=ours["count"] // 2))
    if not ours["ok"] or (other and not other["ok"]):
        return math.nan
    if not other:
        return None
    return {"CUB/dpr": lambda: other.get("ratio"), "TB/s": lambda: ours["gb_per_s"] / 1000,
            "us": lambda: ours["median_us"], "growth": lambda: ours["median_us"] / other["median_us"] / 2}[what]()


def verdict(floor, rows):
    """The floor, how many sizes count and miss it, and the worst value of calls that went well, or None."""
    values = []
    for row in rows.values():
        if case(row) == case({**floor, "subject": "dpr", "count": row["count"]}) \
                and floor["low"] <= row["count"] <= floor["high"]:
            values.append((value_at(floor["what"], row, rows), row["count"]))
    values = [(value, count) for value, count in values if value is not None]
    at_least, limit = floor["side"] == "at least", floor[floor["side"]]
    held = sum(value >= limit if at_least else value <= limit for value, _ in values)
    worst = (min if at_least else max)((v for v in values if not math.isnan(v[0])), key=lambda v: v[0],
                                       default=(None, None))
    return {**floor, "counts": len(values), "missed": len(values) - held, "worst": worst[0], "worst_count": worst[1]}


def judge(results):
    """The verdicts on a document of dpr_peers."""
    rows = {case(row): row for row in results["rows"]}
    return [verdict(floor, rows) for floor in load()]


def tally(verdicts):
    """How many floors are held, and how many are missed; the others are not measured."""
    missed = sum(v["missed"] > 0 for v in verdicts)
    return sum(v["counts"] > 0 for v in verdicts) - missed, missed


def sizes(floor):
    return elements(floor["low"]) + (f" to {elements(floor['high'])}" if floor["high"] > floor["low"] else "")


def bound(floor):
    return f"{floor['what']} {floor['side']} {floor[floor['side']]:.4g}"


def report(asked):
    results = json.loads(pathlib.Path(asked.file).read_text(encoding="utf-8"))
    if isinstance(results, list):  # as committed results are
        results = join(results)
    verdicts = judge(results)
    for v in verdicts:
        text = "not measured"
        if v["counts"]:
            text = f"{'MISSES' if v['missed'] else 'holds'}, {v['missed']} of {v['counts']} sizes missed"
        if v["worst"] is not None:
            text += f", worst {v['worst']:.4g} at {elements(v['worst_count'])}"
        segments = f", {v['segments']}" if v["segments"] else ""
        print(f"{v['op']} of {v['dtype']}{segments}, {v['mode']}, {v['cache']}, {sizes(v)}: {bound(v)}: {text}")
    if results["ended_early"]:
        print(f"It ended early: {results['ended_early']}.")
    held, missed = tally(verdicts)
    print(f"Floors: {held} held, {missed} missed")
    return int(missed > 0 or held == 0 or bool(results["ended_early"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(required=True)
    measuring = kinds.add_parser("measure", help="measure what the floors take")
    measuring.add_argument("program", metavar="DPR_PEERS")
    measuring.add_argument("file", metavar="FILE", nargs="?", help="the JSON file to write")
    measuring.set_defaults(run=measure)
    judging = kinds.add_parser("judge", help="judge what dpr_peers measured")
    judging.add_argument("file", metavar="FILE", help="a JSON file that it wrote, or a list of such documents")
    judging.set_defaults(run=report)
    asked = parser.parse_args()
    return asked.run(asked)


if __name__ == "__main__":
    sys.exit(main())
