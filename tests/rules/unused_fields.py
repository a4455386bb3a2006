#!/usr/bin/env python3
"""Fields of options, configurations and messages that no production code sets, none reads, or that do not travel.

    unused_fields.py [--list]     in the source tree; exit 1 when there is one that tests/rules/unused_fields.allow lacks
    unused_fields.py --self-test  on planted examples

Looked at: every struct of net/wire and net/control, and every struct of a header of app, net and trainer whose name says
that somebody sets it (OptionsNames below). What an archive (`fields`), to_json, from_json, encode, decode or validate
does with a field is no use of it: a field that is only written to JSON, checked and read from it does nothing. And a
field of a struct with an archive that the archive does not name would stay behind: its default is what others see.

Uses are found by name: `x.field`, `x->field`, `.field = value`, a lone `field` in a member function of the struct, in
files that include the struct's header, directly or not. So a use of another struct's field of the same name in such a
file counts, too: what is reported is unused, but not everything unused is reported. Structs filled by position
(`Struct{a, b}`) set as many fields as they name. A run's fields are set by the presets (resources/presets), and by
`"field"` where JSON is put together.
"""
import argparse
import pathlib
import re
import sys
import tempfile

ROOMS = ("app", "net", "trainer", "kernels")
MESSAGE_ROOMS = ("net/wire/", "net/control/")
OPTION_NAMES = re.compile(r"(Options|Config|Command|Request|Limits|Hyper|Start|Spec|Overrides|JoinFile|NewRun)$")
# Functions whose business is the form of a value, not its meaning.
FORM_ONLY = ("fields", "safety_fields", "to_json", "from_json", "validate", "check_inner", "encode", "decode",
             "encode_frame", "decode_frame")
ALLOWED = pathlib.Path(__file__).with_suffix(".allow")

_SKIPPED = re.compile(
    r"""R"([^()\\\s]{0,16})\(.*?\)\1" | //[^\n]* | /\*.*?\*/ | "(?:[^"\\\n]|\\.)*" | (?<![A-Za-z0-9_])'(?:[^'\\\n]|\\.)+'
        | ^[ \t]*\#[^\n]*""",
    re.VERBOSE | re.DOTALL | re.MULTILINE)


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def without_comments(text, keep_strings=False):
    def replace(match):
        found = match.group()
        return found if keep_strings and found.startswith(('"', "R")) else blank(found)
    return _SKIPPED.sub(replace, text)


def end_of_braces(text, begin):
    """Index behind the brace that closes the one at `begin`."""
    depth = 0
    for at in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    return len(text)


def without_form_only(code):
    """The code without the bodies of functions that only give values a form."""
    pattern = re.compile(r"\b(?:%s)\s*\(" % "|".join(FORM_ONLY))
    for match in pattern.finditer(code):
        depth, at = 0, match.end() - 1
        while at < len(code):
            depth += {"(": 1, ")": -1}.get(code[at], 0)
            at += 1
            if depth == 0:
                break
        body = re.match(r"\s*(?:const\s*)?(?:noexcept\s*)?(?:override\s*)?\{", code[at:])
        if not body:
            continue
        begin = at + body.end() - 1
        end = end_of_braces(code, begin)
        code = code[:begin] + blank(code[begin:end]) + code[end:]
    return code


def without_brackets(text, pairs=(("<", ">"), ("(", ")"), ("{", "}"), ("[", "]"))):
    """`text` without what is within brackets: what is left of a declaration is type and name."""
    for opening, closing in pairs:
        kept, depth = [], 0
        for char in text:
            if char == opening:
                depth += 1
            elif char == closing:
                depth = max(0, depth - 1)
            elif depth == 0:
                kept.append(char)
        text = "".join(kept)
    return text


def statements(body):
    """Top-level statements of a struct's body; those of functions and nested types end with their brace."""
    begin, at = 0, 0
    while at < len(body):
        if body[at] == "{":
            end = end_of_braces(body, at)
            rest = body[end:].lstrip()
            statement = body[begin:end]
            if rest[:1] in (";", ",") or "=" in without_brackets(body[begin:at]):
                at = end  # an initialiser
                continue
            yield statement
            begin = at = end
        elif body[at] == ";":
            yield body[begin:at]
            at += 1
            begin = at
        else:
            at += 1


def fields_of(body):
    """The names of a struct's data members, in their order."""
    names = []
    for statement in statements(body):
        text = re.sub(r"^\s*(?:public|private|protected)\s*:", "", statement).strip()
        if not text or re.match(r"(using|static|friend|template|enum|struct|class|union|explicit|constexpr|~)\b", text):
            continue
        # std::function<...(...)> is a type; a bracket after a name is a function.
        outer = without_brackets(text, (("<", ">"),))
        declared = re.split(r"=", outer, maxsplit=1)[0]
        if "(" in declared or "operator" in declared:
            continue
        for number, part in enumerate(split_top(outer)):
            part = re.split(r"[={]", part, maxsplit=1)[0].strip()
            match = re.search(r"([A-Za-z_]\w*)$", part)
            if match and (number > 0 or re.search(r"[\s*&]", part)):
                names.append(match.group(1))
    return names


def functions_of(code, struct):
    """The bodies of the struct's member functions that stand in it."""
    for name, body in structs_of(code):
        if name == struct:
            return "\n".join(re.sub(r"^[^{]*", "", statement) for statement in statements(body)
                             if re.match(r"[^{=]*\(", statement) and "{" in statement)
    return ""


def split_top(text):
    """At commas outside of all brackets."""
    parts, depth, begin = [], 0, 0
    for at, char in enumerate(text):
        depth += 1 if char in "({[" else -1 if char in ")}]" else 0
        if char == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    return [part for part in parts + [text[begin:]] if part.strip()]


def structs_of(code):
    for match in re.finditer(r"\bstruct\s+([A-Z]\w*)\s*(?:final\s*)?(?::[^{;]*)?\{", code):
        end = end_of_braces(code, match.end() - 1)
        yield match.group(1), code[match.end():end - 1]


class Tree:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        files = sorted(path for room in ROOMS for ext in ("h", "cpp", "cu")
                       for path in (self.root / room).rglob("*." + ext))
        self.text = {str(path.relative_to(self.root)): path.read_text(encoding="utf-8") for path in files}
        self.code = {name: without_form_only(without_comments(text)) for name, text in self.text.items()}
        self.strings = {name: set(re.findall(r'"(\w+)"', without_form_only(without_comments(text, True))))
                        for name, text in self.text.items()}
        self.includes = {name: re.findall(r'^\s*#include "([^"]+)"', text, re.MULTILINE)
                         for name, text in self.text.items()}
        self.presets = "\n".join(path.read_text() for path in (self.root / "resources/presets").glob("*.json"))
        self.uses = {name: uses(code) for name, code in self.code.items()}
        self._closures = {}

    def closure(self, name):
        """All that a file includes, directly or not, and itself."""
        if name not in self._closures:
            seen, todo = set(), [name]
            while todo:
                at = todo.pop()
                if at not in seen and at in self.text:
                    seen.add(at)
                    todo += self.includes[at]
            self._closures[name] = seen
        return self._closures[name]

    def structs(self):
        """(header, struct, fields) of what is looked at."""
        for name, text in self.text.items():
            if not name.endswith(".h"):
                continue
            for struct, body in structs_of(without_comments(text)):
                if name.startswith(MESSAGE_ROOMS) or OPTION_NAMES.search(struct):
                    yield name, struct, fields_of(body)

    def users(self, header):
        return [name for name in self.text if header in self.closure(name)]


_MEMBER = re.compile(r"(?:\.|->)\s*(?P<field>[a-z]\w*)(?=(?P<after>[^;]{0,40}))")
# What is handed over to these may be set by them.
_FILLED_BY = re.compile(r"(ATOLL_ASSIGN_OR_RETURN|add_option|add_flag|\bread|\bnumber|\btext|\blimit|\bwhole|\bfield)"
                        r"\([^;{}]*$")
_GROWS = re.compile(r"\s*\.(emplace|emplace_back|push_back|insert|assign|resize|append)\b")
_REFERRED = re.compile(r"\bauto&\s+\w*\s*[=:]\s*[\w.>\[\]-]*$|[(,=]\s*&\s*[\w.>\[\]-]*$")


def uses(code):
    """({field: set}, {field: read}) by the members that the code names."""
    is_set, is_read = set(), set()
    for match in _MEMBER.finditer(code):
        field, after = match["field"], match["after"]
        before = code[max(0, match.start() - 80):match.start()].rstrip()[-1:]
        if not before or before in "{,(":
            (is_set if re.match(r"\s*[={]", after) else is_read).add(field)  # a designated initialiser
        elif re.match(r"(\s*\[[^\]]*\])?\s*=(?!=)", after):
            is_set.add(field)
        elif re.match(r"\s*(\+=|-=|\|=|\*=|\+\+|--)", after):
            is_set.add(field)
            is_read.add(field)
        elif re.match(r"(\.\w+)+\s*=(?!=)", after):
            is_set.add(field)  # a part of it
        else:
            is_read.add(field)
            head = code[max(0, match.start() - 200):match.start()]
            if re.search(r"(\+\+|--)[\w.>\[\]-]*$", head):
                is_set.add(field)
            if _FILLED_BY.search(head) or _GROWS.match(after) or _REFERRED.search(head):
                is_set.add(field)
    return is_set, is_read


def positional(code, struct):
    """How many fields `Struct{a, b}` sets at most, or a brace that is returned where a Struct is expected."""
    most = 0
    for match in re.finditer(r"\b%s\s*(?:\w+\s*)?\{" % struct, code):
        if re.search(r"\bstruct\s*$", code[:match.start()]):
            continue
        inside = code[match.end():end_of_braces(code, match.end() - 1) - 1]
        if not inside.lstrip().startswith("."):
            most = max(most, len(split_top(inside)))
    return most


def unused(tree):
    """[(struct, field, 'set' or 'read')] of what nobody does."""
    found = []
    for header, struct, names in tree.structs():
        users = tree.users(header)
        lone = [set(re.findall(r"\w+", functions_of(tree.code[header], struct))),
                set(re.findall(r"(?<![\w.>])\w+", tree.code.get(re.sub(r"\.h$", ".cpp", header), "")))]
        filled = max((positional(tree.code[name], struct) for name in users), default=0)
        for number, field in enumerate(names):
            is_set = number < filled or any(field in tree.uses[name][0] for name in users)
            is_read = any(field in tree.uses[name][1] for name in users)
            # As a projection: &Struct::field.
            is_read = is_read or any(f"&{struct}::{field}" in tree.code[name] for name in users)
            # In its own member functions, by its name alone.
            is_read = is_read or any(field in words for words in lone)
            key = '"%s"' % field
            if struct in ("RunConfig", "InnerOptimizerConfig"):
                is_set = is_set or key in tree.presets or any(field in tree.strings[name] for name in users)
            if not is_set:
                found.append((struct, field, "set"))
            if not is_read:
                found.append((struct, field, "read"))
    return found + not_archived(tree)


_ARCHIVE = re.compile(r"\bvoid\s+\w*fields\s*\(\s*Archive&(?:\s+\w+)?,\s*(?:\w+::)*([A-Z]\w*)&(?:\s+(\w+))?\)\s*\{")


def not_archived(tree):
    """[(struct, field, 'archive')] of what a struct's archive does not name."""
    said = {}
    for name, text in tree.text.items():
        code = without_comments(text)
        for match in _ARCHIVE.finditer(code):
            body = code[match.end():end_of_braces(code, match.end() - 1)]
            said.setdefault((name, match[1]), set()).update(re.findall(r"\b%s\s*\.\s*(\w+)" % match[2], body))
    found = []
    for (name, struct), fields in said.items():
        room = name.rpartition("/")[0] + "/"  # the struct that is meant stands beside its archive
        for header in tree.closure(name):
            for other, body in structs_of(without_comments(tree.text[header])) if header.startswith(room) else ():
                if other == struct:
                    found += [(struct, field, "archive") for field in fields_of(body) if field not in fields]
    return found


def allowed(path):
    """{(struct, field, what): reason}"""
    result = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        if not line.strip() or line.startswith("#"):
            continue
        match = re.fullmatch(r"(\w+)\.(\w+|\*) (set|read|archive): (.+)", line)
        if not match:
            sys.exit(f"{path}: this is no 'Struct.field set: reason' or 'Struct.* read: reason': {line}")
        result[match.group(1, 2, 3)] = match.group(4)
    return result


def check(root):
    tree = Tree(root)
    found = set(unused(tree))
    excused = allowed(ALLOWED)
    unexcused = sorted(one for one in found if one not in excused and (one[0], "*", one[2]) not in excused)
    stale = sorted((struct, field, what) for struct, field, what in excused
                   if not any((struct, what) == (one[0], one[2]) and field in ("*", one[1]) for one in found))
    for struct, field, what in unexcused:
        print(f"{struct}.{field}: no production code {what}s it; let it do what it says, remove it, or give the reason in "
              f"{ALLOWED.name}")
    for struct, field, what in stale:
        print(f"{struct}.{field}: {ALLOWED.name} says that nobody {what}s it, which is not so (any more): delete the line")
    looked_at = sum(len(names) for _, _, names in tree.structs())
    print(f"unused_fields: {looked_at} fields")
    return 1 if unexcused or stale else 0


def self_test():
    header = """#pragma once
namespace atl {
struct Inner { int deep = 0; };  // of no interest: its name says nothing
struct PlantedOptions {
  int used = 1;
  int set_by_tests_alone = 0;     // .set_by_tests_alone = 3 in a comment is no use
  std::optional<int> never_read = {}, in_json_alone;
  std::function<void(int a, int b)> on_event = {};
  int lone = 0;
  static constexpr int kNot = 3;
  int twice() const { return 2 * lone; }
  bool operator==(const PlantedOptions&) const = default;
};
struct PairRequest { int first = 0, second = 0, third = 0; };
struct SentRequest { int told = 0, left_behind = 0; };
}
"""
    source = """#include "app/planted.h"
namespace atl {
template <class A> void fields(A& archive, PlantedOptions& o) {
  archive.field("in_json_alone", o.in_json_alone);
  o.in_json_alone = 1; int x = o.in_json_alone;
}
template <class Archive> void fields(Archive& archive, SentRequest& sent) { archive.field("told", sent.told); }
int main() {
  SentRequest sent{.told = 1, .left_behind = 2};
  use(sent.told, sent.left_behind);
  PlantedOptions o{.used = 3, .lone = 4};
  o.never_read = 2;
  o.on_event = [](int, int) {};
  o.on_event(1, 2);
  PairRequest pair{1, 2};
  return o.used + o.set_by_tests_alone + pair.first + pair.second + pair.third;
}
}
"""
    expected = {
        ("PlantedOptions", "set_by_tests_alone", "set"),
        ("PlantedOptions", "never_read", "read"),
        ("PlantedOptions", "in_json_alone", "set"),
        ("PlantedOptions", "in_json_alone", "read"),
        ("PairRequest", "third", "set"),
        ("SentRequest", "left_behind", "archive"),
    }
    with tempfile.TemporaryDirectory() as root:
        place = pathlib.Path(root)
        (place / "app").mkdir()
        (place / "tests").mkdir()
        (place / "app/planted.h").write_text(header)
        (place / "app/planted.cpp").write_text(source)
        # Neither counts: a test, and a file that does not know the struct.
        (place / "tests/t.cpp").write_text('#include "app/planted.h"\nvoid t() { o.set_by_tests_alone = 1; }\n')
        (place / "app/other.cpp").write_text("void u() { other.set_by_tests_alone = 1; use(other.never_read); }\n")
        found = set(unused(Tree(root)))
    if found != expected:
        print("missed:", sorted(expected - found), "\nwrongly found:", sorted(found - expected))
        return 1
    print("unused_fields: the planted examples are found, and nothing else")
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true", help="what is found, excused or not")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).resolve().parents[2])
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    if arguments.list:
        for struct, field, what in unused(Tree(arguments.root)):
            print(f"{struct}.{field} {what}")
        return 0
    return check(arguments.root)


if __name__ == "__main__":
    sys.exit(main())
