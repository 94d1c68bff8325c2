"""Links in the documents lead to files and headings that are there, and each room's README names the room's sources.

usage: test_documents.py SOURCE_FOLDER
"""
import fnmatch
import pathlib
import re
import sys


def text_of(document):
    """The document without code, where brackets mean other things."""
    text = re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.S | re.M)
    return re.sub(r"`[^`\n]*`", lambda code: code.group(0).replace("[", "").replace("]", ""), text)


def anchors_of(document):
    """The headings as GitHub names them."""
    headings = re.findall(r"^#+ +(.+?) *$", text_of(document), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def problem_of(document, link):
    """What is wrong with a link of a document, or None. Links to other sites are not followed."""
    if re.match(r"[a-z]+:", link):
        return None
    name, _, anchor = link.partition("#")
    target = document.parent / name if name else document
    if not target.exists():
        return "there is no such file"
    if anchor and anchor not in anchors_of(target):
        return "there is no such heading"
    return None


def unnamed(source, room):
    """What is wrong with a room's README: files that it names and that are not there, and C files that it leaves out."""
    document = source / room / "README.md"
    names = set(re.findall(r"`([\w/*]+\.(?:c|h|cu|cuh|def))`", document.read_text(encoding="utf-8")))
    files = {str(f.relative_to(document.parent)) for f in document.parent.rglob("*") if f.is_file()}
    for name in sorted(names):
        elsewhere = [*source.glob(name), *(source / "core/include").glob(name), *(source / "dp/include").glob(name)]
        if not any(fnmatch.fnmatch(file, name) for file in files) and not elsewhere:
            yield f"{room}/README.md: {name}: there is no such file"
    for file in sorted(files):
        if file.endswith((".c", ".cu")) and not any(fnmatch.fnmatch(file, name) for name in names):
            yield f"{room}/README.md does not name {file}"


def main():
    source = pathlib.Path(sys.argv[1]).resolve()
    folders = [source, *(source / room for room in ("core", "coop", "dp", "host", "tests", "tools", "examples"))]
    documents = [d for f in folders for d in (f.glob("*.md") if f == source else f.rglob("*.md"))]
    links, bad = 0, []
    for document in documents:
        for link in re.findall(r"\]\(([^)\s]+)\)", text_of(document)):
            links += 1
            problem = problem_of(document, link)
            if problem:
                bad.append(f"{document.relative_to(source)}: {link}: {problem}")
    for room in ("core", "coop", "dp", "host/api", "host/plan", "host/cuda", "host/cpu", "tools/report"):
        bad += unnamed(source, room)
    print(f"{links} links in {len(documents)} documents")
    if links < 20:
        bad.append("there are hardly any links: are they found?")
    print("\n".join(bad))
    return 1 if bad else 0


sys.exit(main())
