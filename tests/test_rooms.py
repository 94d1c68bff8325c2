"""The rooms of the library and of tools/ and the arrows between them: includes, and what object files need of each other;
and which internal headers tools/ includes.

No file but core/environment.c reads environment variables.

usage: test_rooms.py SOURCE_FOLDER BUILD_FOLDER

ARCHITECTURE.md, "Rooms", says the same in words, and "Internal headers in tools" has the list for tools/.
"""
import collections
import fnmatch
import json
import pathlib
import re
import subprocess
import sys

# What files of a room may include, and whose functions they may call. Every room may do so with its own.
MAY_USE = {
    "core": set(),
    "coop": {"core"},
    "dp": {"core", "host/cpu", "host/cuda", "host/api"},
    "host/cpu": {"core"},
    "host/cuda": {"core"},
    "host/plan": {"core", "host/cuda", "host/cpu"},
    "host/api": {"core", "host/plan", "host/cuda", "host/cpu"},
}
TOOLS_MAY_USE = {"common": set(), "bench": {"common"}, "report": {"common"}, "dpr": {"common", "bench", "report"}}
# Beside that the registry has the addresses of what strategies.def names.
REGISTRY = "host/plan/registry.c"
# Included by names that they have in the build tree and where they are installed.
INSTALLED = re.compile(r"^dpr/(device/)?")


def room_of(path):
    """The room of a file, given relative to the source folder."""
    parts = pathlib.PurePath(path).parts
    return "/".join(parts[:2]) if parts[0] == "host" else parts[0]


def may_use(user, used):
    room, other = room_of(user), room_of(used)
    return room == other or other in MAY_USE[room]


def found_includes(source, file):
    """Triples of the mark, the name and the file of what a file includes; None for a file that is not found."""
    folders = (file.parent, *(source / f for f in ("core", "core/include", "core/include/dpr", "dp", "dp/include", "dp/recursion", "host")))
    for mark, name in re.findall(r"^\s*#\s*include\s*([\"<])([^\">]+)", file.read_text(), re.M):
        found = [f / INSTALLED.sub("", name) for f in folders if (f / INSTALLED.sub("", name)).exists()]
        yield mark, name, str(found[0].resolve().relative_to(source)) if found else None


def includes(source):
    """Pairs of files, the first of which includes the second. Quoted names that are not found are an error."""
    kinds = (".c", ".h", ".cu", ".cuh", ".def")
    for file in (f for room in MAY_USE for f in (source / room).rglob("*") if f.suffix in kinds):
        for mark, name, found in found_includes(source, file):
            if found:
                yield str(file.relative_to(source)), found
            elif mark == '"':
                sys.exit(f"{file} includes \"{name}\", which is not found")


def tool_headers(source):
    """Pairs of internal headers and of patterns of the files in tools/ that may include them, from ARCHITECTURE.md."""
    text = (source / "ARCHITECTURE.md").read_text()
    section = text.partition("\n## Internal headers in tools\n")[2].partition("\n## ")[0]
    rows = [row.split("|")[1:3] for row in section.splitlines() if row.startswith("| `")]
    return [[re.findall("`([^`]+)`", cell) for cell in row] for row in rows]


def tool_problems(source):
    """What tools/ includes against the list, and entries of the list that nothing needs."""
    rows, needed = tool_headers(source), set()
    for file in (source / "tools").rglob("*"):
        if file.suffix not in (".c", ".h", ".cu", ".cuh", ".in"):
            continue
        path = str(file.relative_to(source / "tools"))
        room = path.split("/")[0]
        for _, name, found in found_includes(source, file):
            for other in TOOLS_MAY_USE.keys() - TOOLS_MAY_USE.get(room, set()) - {room}:
                if not found and (source / "tools" / other / name).exists():
                    yield f"tools/{path} includes {name} of tools/{other}"
            if not found or found.startswith(("tools/", "core/include/", "dp/include/")):
                continue
            by = {(i, entry) for i, (headers, patterns) in enumerate(rows) for pattern in patterns
                  if name in headers and fnmatch.fnmatch(path, pattern) for entry in (name, pattern)}
            needed |= by
            if not by:
                yield f"tools/{path} includes {name}, which ARCHITECTURE.md does not list for it"
    for i, (headers, patterns) in enumerate(rows):
        yield from (f"ARCHITECTURE.md lists {entry} in row {i + 1} of internal headers, without need"
                    for entry in headers + patterns if (i, entry) not in needed)


def environment_problems(source):
    """Files of the library, of tools/ and of examples/ that read environment variables without core/environment.c. Only
    tools/common/terminal.c may: the variables that describe the terminal are not dpr's."""
    readers = ("core/environment.c", "tools/common/terminal.c")
    for room in (*MAY_USE, "tools", "examples"):
        for file in (source / room).rglob("*"):
            path = str(file.relative_to(source))
            if file.suffix not in (".c", ".h", ".cu", ".cuh", ".def", ".in") or path in readers:
                continue
            code = re.sub(r"/\*.*?\*/", "", file.read_text(), flags=re.S)
            if re.search(r"\b(?:secure_)?getenv\b", code):
                yield f"{path} reads environment variables; core/environment.c alone should"


def objects_of(source, build):
    """Pairs of a source file and its object, of all that the library is made of."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file, target = pathlib.Path(entry["file"]), re.search(r" -o (\S+)", entry["command"]).group(1)
        if "dpr_objects.dir" in target:
            yield str(file.relative_to(source)), build / target
        elif "dpr_dp_module.dir" in target:  # made by tools/cmake/DprModule.cmake
            yield "dp/" + file.name, build / target


def calls(source, build):
    """Triples of a source file, a file that defines a symbol that the first needs, and the symbol."""
    defined, needed = {}, []
    for user, target in objects_of(source, build):
        for line in subprocess.run(["nm", target], capture_output=True, text=True, check=True).stdout.splitlines():
            kind, symbol = line.split()[-2:]
            if kind == "U":
                needed.append((user, symbol))
            elif kind.isupper():
                defined[symbol] = user
    return {(user, defined[s], s) for user, s in needed if s in defined and defined[s] != user}


def registered(source):
    """The symbols that strategies.def names."""
    text = (source / "host/plan/strategies.def").read_text()
    names = re.findall(r"^ +[CG]PU\((\w+)\)", text, re.M)
    return {f"dpr_{name}" for name in names} | set(re.findall(r"^#define DPR_HOOK (\w+)", text, re.M))


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
    source, build = (pathlib.Path(folder).resolve() for folder in sys.argv[1:3])
    included, called, named = set(includes(source)), calls(source, build), registered(source)
    print(f"{len(included)} includes, {len(called)} uses of a symbol of another file")
    problems = [f"{user} includes {used}" for user, used in sorted(included) if not may_use(user, used)]
    problems += [f"{user} uses {symbol} of {used}" for user, used, symbol in sorted(called)
                 if not may_use(user, used) and not (user == REGISTRY and symbol in named)]
    for what, arrows in (("includes", included), ("uses", {call[:2] for call in called})):
        cycle = find_cycle(arrows)
        if cycle:
            problems.append(f"a cycle, where each {what} the next: " + ", ".join(cycle))
    problems += tool_problems(source)
    problems += environment_problems(source)
    if not included or not called:
        problems.append("no includes or no uses are found")
    print("\n".join(problems))
    return 1 if problems else 0


sys.exit(main())
