#!/usr/bin/env python3
"""Rules on the sources that no compiler checks. Usage: source_rules.py ROOT; exit status 1 when one is broken.

One type a name. Two types of one namespace with the same name in one program are undefined behaviour that neither
compiler nor linker sees. So names are unique over all programs, tests included: what is linked together changes.

A test can fail. `|| true`, a value compared with itself, a test function without any check: they pass whatever happens.

TLS is set up in net/tls. Elsewhere nobody makes or changes an SSL context, nor tells libcurl what to trust.

The words of the control protocol stand in net/control. Elsewhere nobody compares with one, and nobody names an event:
words.h and events.h have enums and structs.

Text becomes JSON in net/base/json_text.cpp, within bounds. Elsewhere, but in tests, nobody calls the library's parser.

A control method has a struct, is served, and has a row in docs/control.md; a command that is declared is added.

Processes, mutexes, files that are renamed or written: places.py says who alone has them, and why.
"""
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from cpp_scopes import definitions, plain_code
from places import it_is_done_in_its_place, nobody_is_allowed_what_he_does_not_do

_ROOMS = ("kernels", "net", "trainer", "app", "tests")
_SUFFIXES = (".h", ".cpp", ".cu", ".cuh")


def sources(root):
    """Of all rooms, as {path relative to root: text}: what git tracks, or where git does not know, all there is."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z", "--", *_ROOMS],
                            capture_output=True, text=True)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.split("\0") if name]
    else:
        names = [str(path.relative_to(root)) for room in _ROOMS for path in Path(root, room).rglob("*")]
    paths = [name for name in sorted(set(names)) if name.endswith(_SUFFIXES) and Path(root, name).is_file()]
    return {name: Path(root, name).read_text(encoding="utf-8") for name in paths}


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def one_type_a_name(files):
    places = defaultdict(list)
    for path, text in files.items():
        try:
            for found in definitions(text):
                places[found.name].append(f"{path}:{found.line}")
        except ValueError as failure:
            yield f"{path}: cannot be read: {failure}"
    for name, where in sorted(places.items()):
        if len(where) > 1:
            yield f"{where[0]}: {name} is defined again at {', '.join(where[1:])}"


def arguments(code, opening):
    """Of the call whose parenthesis opens at `opening`: the texts between its commas, and where it ends."""
    depth, begin, found = 0, opening + 1, []
    for at in range(opening, len(code)):
        letter = code[at]
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
            if depth == 0:
                return [*found, code[begin:at].strip()], at
        elif letter == "," and depth == 1:
            found.append(code[begin:at].strip())
            begin = at + 1
    return found, len(code)


_CHECK = re.compile(r"\bQ(?:TRY_)?(?:VERIFY2?|COMPARE)\w*\s*(?=\()")
_ALWAYS = re.compile(r"^!?\(?(?:true|false|[0-9]+)\)?$|\|\|\s*true\b|\btrue\s*\|\||&&\s*false\b|\bfalse\s*&&")
_ANY_CHECK = re.compile(r"\b(?:QVERIFY|QCOMPARE|QTRY_|QFAIL|QTEST_|QSKIP|QBENCHMARK|AWAIT|qFatal)\w*|\b\w*(?:verify|expect|check|require)\w*\s*[(<]",
                        re.IGNORECASE)


def _compared_with_itself(condition):
    sides = re.split(r"(?<![<>=!])(?:==|<=|>=)(?!=)", condition)
    return len(sides) == 2 and sides[0].strip() == sides[1].strip() and "(" not in sides[0]


def _test_functions(code):
    """(name, offset, body) of what Qt Test would run."""
    names = set()
    for section in re.finditer(r"Q_SLOTS\s*:(.*?)(?=\bprivate\s*:|\bpublic\s*:|\bprotected\s*:|^\};)", code,
                               re.DOTALL | re.MULTILINE):
        names.update(re.findall(r"\bvoid\s+(\w+)\s*\(\s*\)", section.group(1)))
    names -= {"init", "cleanup", "initTestCase", "cleanupTestCase"}
    for found in re.finditer(r"\bvoid\s+(?:\w+::)*(\w+)\s*\(\s*\)\s*(?:override\s*)?\{", code):
        if found.group(1) in names and not found.group(1).endswith("_data"):
            depth = 0
            for at in range(found.end() - 1, len(code)):
                depth += (code[at] == "{") - (code[at] == "}")
                if depth == 0:
                    yield found.group(1), found.start(), code[found.end() : at]
                    break


def a_test_can_fail(files):
    for path, text in files.items():
        if not path.startswith("tests/"):
            continue
        code = plain_code(text, keep_literals=True)
        for check in _CHECK.finditer(code):
            given, _ = arguments(code, check.end())
            where = f"{path}:{line_of(code, check.start())}"
            condition = " ".join(given[0].split()) if given else ""
            if _ALWAYS.search(condition) and "QCOMPARE" not in check.group() and "TRY_COMPARE" not in check.group():
                yield f"{where}: '{condition}' says nothing"
            elif "COMPARE" in check.group() and len(given) > 1 and given[0] == given[1] and "(" not in given[0]:
                yield f"{where}: '{given[0]}' is compared with itself"
            elif "VERIFY" in check.group() and _compared_with_itself(condition):
                yield f"{where}: '{condition}' compares a value with itself"
        for name, offset, body in _test_functions(plain_code(text)):
            if not _ANY_CHECK.search(body):
                yield f"{path}:{line_of(code, offset)}: {name} checks nothing"


_TLS = re.compile(r"\bSSL_CTX_(?:new|set|use|add|load|clear|ctrl)\w*|\bSSL_set_verify\b"
                  r"|\bCURLOPT_(?:SSLCERT|SSLKEY|SSLVERSION|SSL_CIPHER_LIST|TLS13_CIPHERS|CAINFO_BLOB|PINNEDPUBLICKEY)\w*"
                  r"|\bssl::context::(?:tls|sslv)\w*")


def tls_is_set_up_in_one_place(files):
    for path, text in files.items():
        if path.startswith(("net/tls/", "tests/")):
            continue
        code = plain_code(text)
        for found in _TLS.finditer(code):
            yield f"{path}:{line_of(code, found.start())}: {found.group()} belongs into net/tls"


_WORD_TABLE = re.compile(r"kWords\{([^}]*)\}")
_EVENT_NAME = re.compile(r'kName = "([^"]+)"')
_COMPARED = re.compile(r'[=!]=\s*"([^"\\]*)"|"([^"\\]*)"\s*[=!]=')
_LITERAL = re.compile(r'"([^"\\]*)"')
# The hub tells its own events; a test is somebody who listens to the wire.
_SPEAK_THE_WORDS = ("net/control/", "net/hub/", "tests/")
# An axis of a plot, a level of a log, a key of the run's configuration.
_MEANS_SOMETHING_ELSE = {("app/agent/history/history_queries.cpp", "step"), ("app/gui/log_filter.cpp", "error"),
                         ("net/wire/run_config.cpp", "check")}


def words_of_the_control_protocol_stand_in_one_place(files):
    """Words of two letters and more that mean something else elsewhere, too, are found where they are compared."""
    words, names = set(), set()
    for path, text in files.items():
        if path.startswith("net/control/") and path.endswith("words.h"):
            for table in _WORD_TABLE.findall(text):
                words.update(_LITERAL.findall(table))
        if path == "net/control/events.h":
            names.update(_EVENT_NAME.findall(text))
    for path, text in files.items():
        if path.startswith(_SPEAK_THE_WORDS):
            continue
        code = plain_code(text, keep_literals=True)
        for found in _COMPARED.finditer(code):
            word = found.group(1) if found.group(1) is not None else found.group(2)
            if (word in words or word in names) and (path, word) not in _MEANS_SOMETHING_ELSE:
                yield f'{path}:{line_of(code, found.start())}: "{word}" is compared with: there is an enum or a struct'
        for found in _LITERAL.finditer(code):
            if "." in found.group(1) and found.group(1) in names:
                yield f"{path}:{line_of(code, found.start())}: {found.group()} is an event of net/control/events.h"


# Every way into nlohmann::json's parser: parse, accept, sax_parse, the binary formats, streams and literals.
_JSON_PARSED = re.compile(r"\b(?:ordered_)?json\s*::\s*(?:parse|accept|sax_parse|from_(?:cbor|msgpack|ubjson|bjdata|bson))\b"
                          r"|\"_json\b|>>\s*json\b|\bdetail\s*::\s*(?:parser|lexer)\b")
_JSON_PARSER = "net/base/json_text.cpp"


def json_is_parsed_in_one_place(files):
    for path, text in files.items():
        if path.startswith("tests/"):  # what they made themselves
            continue
        code = plain_code(text, keep_literals=True)
        found = list(_JSON_PARSED.finditer(code))
        if path == _JSON_PARSER:
            if not found:
                yield f"{path}: parses nothing: the rule looks for something else"
            continue
        for place in found:
            yield f"{path}:{line_of(code, place.start())}: {place.group()} is not bounded: parse_bounded_json ({_JSON_PARSER})"


# Their parameters are read where they are served; whoever gives one a struct deletes it here.
_UNTYPED = {"checkpoints.list", "config.get", "config.set", "diag.create", "logs.read", "metrics.query", "peers.list",
            "rounds.list"}
_METHOD = re.compile(r'struct (\w+) \{[^}]*?kName = "([a-z_.]+)"')
_ADDED = re.compile(r'\badd(?:_slow)?\(\s*"([a-z_.]+)"')
_SERVING = ("app/agent/methods/", "app/cli/hub_serve_command", "trainer/program/")
_DOCUMENT = "docs/control.md"


def methods_are_served_and_written_down(files):
    """A struct that nobody serves, a name without a struct or in a struct's place, a method without a row in the document.

    Names of one word are words of other things, too.
    """
    rows = "\n".join(line.split(" | ")[0] for line in files[_DOCUMENT].splitlines() if line.startswith("| `"))
    serving = {path: plain_code(text, keep_literals=True) for path, text in files.items() if path.startswith(_SERVING)}
    untyped = set()
    for path, code in serving.items():
        for found in _ADDED.finditer(code):
            untyped.add(found.group(1))
            if found.group(1) not in _UNTYPED:
                yield f"{path}:{line_of(code, found.start())}: {found.group(1)} has no struct in net/control/methods.h"
    for name in sorted(_UNTYPED - untyped):
        yield f"source_rules.py: nobody serves {name} (any more): delete it from _UNTYPED"
    typed = _METHOD.findall(plain_code(files["net/control/methods.h"], keep_literals=True))
    for struct, name in typed:
        if not any(f"{struct}::kName" in code for code in serving.values()):
            yield f"net/control/methods.h: nobody serves method::{struct} ({name})"
    for path, text in files.items():
        if path.startswith(("app/", "net/", "trainer/")) and not path.startswith("net/control/"):
            code = plain_code(text, keep_literals=True)
            for _, name in typed:
                for found in re.finditer(rf'"{re.escape(name)}"', code) if "." in name else ():
                    yield f"{path}:{line_of(code, found.start())}: {name} is named by its struct's kName"
    for name in sorted(untyped | {name for _, name in typed}):
        if f"`{name}`" not in rows:
            yield f"{_DOCUMENT}: no row of {name}"


_COMMAND = re.compile(r"\bvoid (add_\w+_commands?)\(CLI::App&")


def every_command_is_added(files):
    commands = {path: text for path, text in files.items() if path.startswith("app/cli/")}
    code = "\n".join(plain_code(text) for text in commands.values())
    for path, text in sorted(commands.items()):
        for name in _COMMAND.findall(plain_code(text)) if path.endswith(".h") else ():
            if not re.search(rf"^\s+{name}\(\*?\w+, context\);", code, re.MULTILINE):
                yield f"{path}: {name} is never called: the command is not there"


# These look at documents, too.
PROJECT_RULES = (methods_are_served_and_written_down,)

RULES = (every_command_is_added, one_type_a_name, a_test_can_fail, tls_is_set_up_in_one_place, json_is_parsed_in_one_place,
         words_of_the_control_protocol_stand_in_one_place, it_is_done_in_its_place,
         nobody_is_allowed_what_he_does_not_do)


def main(root):
    files = sources(root)
    if len(files) < 100:
        sys.exit(f"only {len(files)} sources under {root}: is that the root of the project?")
    whole = {**files, _DOCUMENT: Path(root, _DOCUMENT).read_text(encoding="utf-8")}
    broken = [f"{complaint} ({rule.__name__})" for rule in RULES for complaint in rule(files)]
    broken += [f"{complaint} ({rule.__name__})" for rule in PROJECT_RULES for complaint in rule(whole)]
    print("\n".join(broken) if broken else f"{len(files)} sources follow {len(RULES) + len(PROJECT_RULES)} rules")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
