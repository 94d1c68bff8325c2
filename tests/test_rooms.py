"""The rooms of the library and the arrows between them: includes, and what object files need of each other.

usage: test_rooms.py SOURCE_FOLDER OBJECT_FOLDER

ARCHITECTURE.md, "Rooms", says the same in words.
"""
import collections
import pathlib
import re
import subprocess
import sys

# What files of a room may include, and whose functions they may call. Every room may do so with its own.
MAY_USE = {
    "core": set(),
    "coop": {"core"},
    "dp": {"core", "host/cuda", "host/api"},
    "host/cpu": {"core"},
    "host/cuda": {"core"},
    "host/plan": {"core", "host/cuda", "host/cpu"},
    "host/api": {"core", "host/plan", "host/cuda", "host/cpu"},
}
# Beside that the registry has the addresses of all strategies.
REGISTRY, STRATEGIES = "host/plan/registry.c", {"core", "coop", "dp", "host/cpu"}


def room_of(path):
    """The room of a file, given relative to the source folder."""
    parts = pathlib.PurePath(path).parts
    return "/".join(parts[:2]) if parts[0] == "host" else parts[0]


def may_use(user, used):
    room, other = room_of(user), room_of(used)
    return room == other or other in MAY_USE[room] or (user == REGISTRY and other in STRATEGIES)


def includes(source):
    """Pairs of files, the first of which includes the second."""
    files = [f for room in MAY_USE for f in (source / room).rglob("*") if f.suffix in (".c", ".h", ".cu", ".cuh")]
    for file in files:
        for name in re.findall(r'^#include "([^"]+)"', file.read_text(), re.M):
            for folder in (file.parent, source / "core", source / "core/include", source / "dp", source / "host"):
                if (folder / name).exists():
                    yield str(file.relative_to(source)), str((folder / name).resolve().relative_to(source))
                    break


def calls(source, objects):
    """Pairs of source files, the first of which needs a symbol that the second defines."""
    defined, needed = {}, []
    for file in sorted(objects.rglob("*.o")):
        user = str(file.relative_to(objects))[: -len(".o")]
        if not (source / user).exists():  # left over from an earlier build
            continue
        for line in subprocess.run(["nm", file], capture_output=True, text=True, check=True).stdout.splitlines():
            kind, symbol = line.split()[-2:]
            if kind == "U":
                needed.append((user, symbol))
            elif kind.isupper():
                defined[symbol] = user
    return {(user, defined[symbol]) for user, symbol in needed if symbol in defined and defined[symbol] != user}


def find_cycle(arrows):
    """A list of files that come back to the first one, or None."""
    after = collections.defaultdict(set)
    for user, used in arrows:
        after[user].add(used)
    done, path = set(), []

    def walk(file):
        if file in path:
            return path[path.index(file):] + [file]
        if file in done:
            return None
        path.append(file)
        for used in sorted(after[file]):
            found = walk(used)
            if found:
                return found
        done.add(path.pop())
        return None

    return next(filter(None, map(walk, sorted(after))), None)


def main():
    source, objects = (pathlib.Path(folder).resolve() for folder in sys.argv[1:3])
    problems = []
    for what, arrows in (("includes", set(includes(source))), ("needs", calls(source, objects))):
        print(f"{len(arrows)} times a file {what} another one")
        if len(arrows) < 50:
            problems.append(f"only {len(arrows)} are found where a file {what} another one")
        problems += [f"{user} {what} {used}" for user, used in sorted(arrows) if not may_use(user, used)]
        cycle = find_cycle(arrows)
        if cycle:
            problems.append(f"a cycle, where each {what} the next: " + ", ".join(cycle))
    print("\n".join(problems))
    return 1 if problems else 0


sys.exit(main())
