"""Which types a C++ source defines, and in which namespace: as much of the grammar as that takes.

The text is cut into tokens without comments, literals and preprocessor lines; every brace is known by what opened it. A
type counts as the namespace's own where only named namespaces are around it: what stands in an unnamed namespace, in a
class or in a function cannot clash with another file's.
"""
import re
from dataclasses import dataclass

_SKIPPED = re.compile(
    r"""
      (?P<raw>R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")
    | (?P<comment>//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/)
    | (?P<string>"(?:[^"\\\n]|\\.)*")
    | (?P<digits>(?<![A-Za-z0-9_])[0-9](?:'?[0-9A-Za-z_.])*)
    | (?P<char>'(?:[^'\\\n]|\\.)+')
    | (?P<directive>^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_TOKEN = re.compile(r"[A-Za-z_]\w*|::|\[\[|\]\]|[^\s\w]")
_TYPE_WORDS = ("struct", "class", "union", "enum")


@dataclass(frozen=True)
class Definition:
    name: str  # qualified: atl::HubView
    line: int


def plain_code(text, keep_literals=False, keep_directives=False):
    """The same lines without comments and, unless kept, preprocessor lines and literals; blanks in their places."""

    def blank(match):
        if keep_literals and match.lastgroup in ("string", "raw", "mark", "char", "digits"):
            return match.group()
        if keep_directives and match.lastgroup == "directive":
            return match.group()
        if match.lastgroup == "digits":
            return re.sub(r"[^\n]", "0", match.group())
        return re.sub(r"[^\n]", " ", match.group())

    return _SKIPPED.sub(blank, text)


def _tokens(text):
    code = plain_code(text)
    line, at = 1, 0
    for match in _TOKEN.finditer(code):
        line += code.count("\n", at, match.start())
        at = match.start()
        yield match.group(), line


def _without_attributes(statement):
    kept, depth = [], 0
    for word, line in statement:
        depth += word == "[["
        if depth == 0:
            kept.append((word, line))
        depth -= word == "]]"
    return kept


def _without_template_head(statement):
    """`template <...>`, of which there may be several, says nothing of what is defined."""
    while statement and statement[0][0] == "template":
        depth, end = 0, 1
        for end, (word, _) in enumerate(statement[1:], 1):
            depth += (word == "<") - (word == ">")
            if depth == 0:
                break
        statement = statement[end + 1 :]
    return statement


def _opened_by(statement):
    """What a brace behind these tokens opens: ('namespace', names), ('type', name, line) or ('other',)."""
    words = [word for word, _ in statement]
    if "namespace" in words and "(" not in words and "=" not in words:
        after = words[words.index("namespace") + 1 :]
        return ("namespace", [word for word in after if word not in ("::", "inline")])
    statement = _without_template_head(_without_attributes(statement))
    words = [word for word, _ in statement]
    while words and words[0] in ("inline", "static", "constexpr", "const", "typedef", "extern"):
        statement, words = statement[1:], words[1:]
    if not words or words[0] not in _TYPE_WORDS:
        return ("other",)
    begin = 2 if words[0] == "enum" and len(words) > 1 and words[1] in ("class", "struct") else 1
    name, depth = [], 0
    for word in words[begin:]:
        if depth == 0 and word in (":", "final"):
            break
        if depth == 0 and word in ("(", "="):  # a function or a variable of that type
            return ("other",)
        depth += (word == "<") - (word == ">")
        if word == "alignas":
            continue
        name.append(word)
    if not name:
        return ("type", None, 0)
    return ("type", "".join(name), statement[0][1])


def definitions(text):
    """The types that namespaces of this text define, but for unnamed namespaces."""
    found, around, statement, parentheses = [], [], [], 0
    for word, line in _tokens(text):
        if word == "{" and parentheses == 0:
            opened = _opened_by(statement)
            if opened[0] == "type" and opened[1] and all(kind == "namespace" and names for kind, names in around):
                spaces = [name for _, names in around for name in names]
                found.append(Definition("::".join([*spaces, opened[1]]), opened[2]))
            around.append((opened[0], opened[1] if len(opened) > 1 else None))
            statement = []
        elif word == "{":
            around.append(("braces in parentheses", parentheses))
            parentheses = 0
            statement = []
        elif word == "}":
            if not around:
                raise ValueError(f"line {line}: a brace closes nothing")
            kind, kept = around.pop()
            parentheses = kept if kind == "braces in parentheses" else 0
            statement = []
        elif word == ";" and parentheses == 0:
            statement = []
        else:
            parentheses += (word == "(") - (word == ")")
            # `public:` and the like are no part of what follows.
            if word == ":" and len(statement) == 1 and statement[0][0] in ("public", "protected", "private"):
                statement = []
                continue
            statement.append((word, line))
    if around:
        raise ValueError(f"{len(around)} braces are not closed")
    return found
