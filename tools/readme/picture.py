#!/usr/bin/env python3
"""Draws the picture of README.md: speed against size, dpr beside CUB, from what dpr_peers wrote.

    picture.py PEERS.json PICTURE.svg

Needs matplotlib. The same file gives the same picture.
"""
import json
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "dpr", "svg.fonttype": "none", "font.size": 10})
import matplotlib.pyplot as plt  # noqa: E402  (after the backend is chosen)


def times(rows, subject, mode):
    """Medians in microseconds by number of elements."""
    return {r["count"]: r["median_us"] for r in rows
            if (r["subject"], r["op"], r["dtype"], r["mode"], r["cache"]) == (subject, "sum", "f32", mode, "cold")
            and r["ok"]}


def main():
    results = json.load(open(sys.argv[1], encoding="utf-8"))
    rows = results["rows"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    styles = {"dpr": ("dpr", "tab:blue", "-"), "cub": (f"CUB {results['libraries']['cub']}", "tab:orange", "-"),
              "launch": ("an empty kernel", "gray", ":")}
    for subject, (label, colour, line) in styles.items():
        by_count = times(rows, subject, "graph")
        counts = sorted(by_count)
        left.plot(counts, [by_count[c] for c in counts], line, color=colour, label=label)
        if subject != "launch":
            right.plot(counts, [4e-3 * c / by_count[c] for c in counts], line, color=colour, label=label)
    left.set(title="Time of a call in a CUDA graph", ylabel="microseconds", yscale="log")
    right.set(title="Rate", ylabel="GB/s")
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xlabel("elements")
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    figure.suptitle(f"Sum of F32 on an {results['device']['name']}, cold cache (commit {results['commit']})", fontsize=10)
    figure.savefig(sys.argv[2], metadata={"Date": None})


main()
