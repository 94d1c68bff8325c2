"""Links in the documents lead to files and headings that are there.

usage: test_documents.py SOURCE_FOLDER
"""
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
    print(f"{links} links in {len(documents)} documents")
    print("\n".join(bad))
    return 1 if bad or links < 20 else 0


sys.exit(main())
