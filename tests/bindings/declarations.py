"""What a plain header declares, by its text."""

import re


def uncommented(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


class Declarations:
    """`enums`: the enumerators of each enum, and their numbers. Enumerators of enums without a name are those of "".
    `structs`: the members of each struct. `functions`: the declaration of each function."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.text = uncommented(file.read())
        members_of = re.sub(r"\(\*(\w+)\)\([^()]*\)", r"\1", self.text)  # a function pointer is a member, too
        self.enums, self.structs, self.functions = {}, {}, {}
        for name, body in re.findall(r"\benum\s*(\w*)\s*\{([^}]*)\}", self.text):
            for entry in filter(None, map(str.strip, body.split(","))):
                enumerator, _, number = map(str.strip, entry.partition("="))
                self.enums.setdefault(name, {})[enumerator] = int(number, 0) if number else None
        for name, body in re.findall(r"\bstruct\s+(\w+)\s*\{([^}]*)\}", members_of):
            declarators = [d for member in body.split(";") for d in member.split(",")]
            self.structs[name] = [re.search(r"(\w+)\s*(?:\[\w*\])?\s*$", d)[1] for d in declarators if d.strip()]
        for statement in re.sub(r"\{[^}]*\}", "", self.text).split(";"):
            found = re.match(r"\s*(?!typedef\b)[^()]*\b(\w+)\(", statement)
            if found:
                self.functions[found[1]] = " ".join(statement.split()) + ";"

    def enumerators(self):
        return {name: number for enum in self.enums.values() for name, number in enum.items()}
