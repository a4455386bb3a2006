#!/usr/bin/env python3
"""Each rule finds what breaks it, and nothing in what does not."""
import unittest

from cpp_scopes import definitions
from places import PLACES, it_is_done_in_its_place, nobody_is_allowed_what_he_does_not_do
from source_rules import (a_test_can_fail, every_command_is_added, json_is_parsed_in_one_place,
                          methods_are_served_and_written_down, one_type_a_name, tls_is_set_up_in_one_place,
                          words_of_the_control_protocol_stand_in_one_place)


def names(text):
    return [found.name for found in definitions(text)]


class Definitions(unittest.TestCase):
    def test_types_of_a_named_namespace_are_found_with_their_namespace_and_line(self):
        text = """namespace atl {
struct A { int x; };
class B final : public Base<int> {};
enum class C : std::uint8_t { kOne };
namespace wire { union D { int i; }; }
}
namespace atl::test { struct E {}; }
"""
        self.assertEqual(names(text), ["atl::A", "atl::B", "atl::C", "atl::wire::D", "atl::test::E"])
        self.assertEqual([found.line for found in definitions(text)], [2, 3, 4, 5, 7])

    def test_what_no_other_file_can_see_is_not_counted(self):
        self.assertEqual(names("""namespace atl {
namespace { struct Hidden {}; }
class Outer { struct Inner {}; enum { kA }; };
void f() { struct Local {}; }
auto g = [](int a) { struct InLambda {}; return a; };
struct { int x; } nameless;
}"""), ["atl::Outer"])

    def test_a_declaration_is_no_definition(self):
        self.assertEqual(names("""namespace atl {
struct Declared;
enum class Opaque : int;
struct Declared make(struct Other* other) { return {}; }
struct Declared value = {1, 2};
template <class T, struct Tag> void f(T) {}
friend class X;
}"""), [])

    def test_templates_specialisations_and_types_defined_outside_their_class(self):
        self.assertEqual(names("""namespace atl {
template <class T> struct Box { T t; };
template <> struct Box<int> {};
template <class A, class B> requires Fits<A> class Pair {};
class Outer::Impl : public Base {};
struct [[nodiscard]] Kept {};
}"""), ["atl::Box", "atl::Box<int>", "atl::Outer::Impl", "atl::Kept"])

    def test_text_and_comments_hide_nothing_and_add_nothing(self):
        self.assertEqual(names("""namespace atl {
// struct InComment {
/* struct InOther { */
#define BRACE {
const char* text = "struct InText {";
const char* raw = R"(struct InRaw { ")";
const char brace = '{', quote = '\\'', number = 1'000'000;
struct After {};
}"""), ["atl::After"])

    def test_braces_that_do_not_match_are_an_error(self):
        for text in ("namespace atl { struct A {};", "namespace atl {} }"):
            self.assertRaises(ValueError, definitions, text)


class Rules(unittest.TestCase):
    def broken(self, rule, **files):
        return list(rule({path.replace("__", "/") + ".cpp": text for path, text in files.items()}))

    def test_one_type_a_name(self):
        view = "namespace atl { struct HubView { int x; }; }"
        found = self.broken(one_type_a_name, net__hub__view=view, app__core__model="\n" + view)
        self.assertEqual(len(found), 1)
        self.assertIn("atl::HubView", found[0])
        self.assertIn("net/hub/view.cpp:1", found[0])
        self.assertIn("app/core/model.cpp:2", found[0])

    def test_names_of_other_namespaces_do_not_clash(self):
        self.assertEqual(self.broken(one_type_a_name, a="namespace atl { struct V {}; }",
                                     b="namespace atl::test { struct V {}; }",
                                     c="namespace atl { namespace { struct V {}; } }"), [])

    def test_a_source_that_cannot_be_read_is_told(self):
        self.assertEqual(len(self.broken(one_type_a_name, a="namespace atl {")), 1)

    def test_checks_that_cannot_fail_are_found(self):
        for check in ("QVERIFY(true);", "QVERIFY(x.ok() || true);", "QVERIFY(true || x);", "QVERIFY2(1, \"why\");",
                      "QCOMPARE(a[0], a[0]);", "QVERIFY(a.b == a.b);", "QTRY_VERIFY(true);"):
            self.assertEqual(len(self.broken(a_test_can_fail, tests__a=check)), 1, check)

    def test_checks_that_can_fail_are_left_alone(self):
        for check in ("QVERIFY(a[0] == a[1]);", "QCOMPARE(a.live, true);", "QCOMPARE(next(), next());",
                      "QVERIFY(x || y);", "QCOMPARE(a, \"a, a\");", "QVERIFY(rank == 1 || rank == 2);"):
            self.assertEqual(self.broken(a_test_can_fail, tests__a=check), [], check)

    def test_a_test_function_without_a_check_is_found(self):
        of = """class T : public QObject { Q_OBJECT
 private Q_SLOTS:
  void init() {}
  void rows_data() { QTest::addColumn<int>("x"); }
  void %s();
 private:
  void helper() {}
};
void T::%s() { %s }"""
        self.assertEqual(len(self.broken(a_test_can_fail, tests__a=of % ("calls", "calls", "news.tell();"))), 1)
        self.assertEqual(self.broken(a_test_can_fail, tests__a=of % ("calls", "calls", "QVERIFY(news.tell());")), [])
        self.assertEqual(self.broken(a_test_can_fail, tests__a=of % ("calls", "calls", "verify_all(news);")), [])

    def test_tls_set_up_outside_its_room_is_found(self):
        for line in ("SSL_CTX_set_verify(c, 1, nullptr);", "curl_easy_setopt(e, CURLOPT_SSLCERT_BLOB, &b);",
                     "asio::ssl::context tls(asio::ssl::context::tls_client);"):
            self.assertEqual(len(self.broken(tls_is_set_up_in_one_place, net__https__x=line)), 1, line)
            self.assertEqual(self.broken(tls_is_set_up_in_one_place, net__tls__context=line), [])

    def test_words_of_the_control_protocol_elsewhere_are_found(self):
        protocol = {
            "net/control/words.h": 'static constexpr std::array<std::string_view, 2> kWords{"training", "unknown"};',
            "net/control/events.h": 'kName = "sync.done"; kName = "step";',
        }
        for line in ('if (state == "training") return;', 'if ("training" != word) return;', 'if (name == "step") return;',
                     'publish("sync.done", data);'):
            found = list(words_of_the_control_protocol_stand_in_one_place({**protocol, "app/x.cpp": line}))
            self.assertEqual(len(found), 1, line)
            self.assertIn("app/x.cpp:1", found[0])
        for path, line in (("net/control/y.cpp", 'if (state == "training") return;'), ("app/x.cpp", 'icon("training");'),
                           ("app/x.cpp", 'if (step == "other") return;'), ("tests/x.cpp", 'tell("sync.done");')):
            self.assertEqual(list(words_of_the_control_protocol_stand_in_one_place({**protocol, path: line})), [], line)

    def test_json_is_parsed_in_one_place(self):
        for text in ("auto j = nlohmann::json::parse(text);", "if (json ::\n accept(text)) f();", "json::sax_parse(a, b, &c);",
                     "auto j = ordered_json::parse(text);", "auto j = json::from_cbor(bytes);", "auto j = \"{}\"_json;",
                     "stream >> json;"):
            self.assertEqual(len(self.broken(json_is_parsed_in_one_place, app__core__model=text)), 1, text)
            self.assertEqual(self.broken(json_is_parsed_in_one_place, tests__app__model_test=text), [])
            self.assertEqual(self.broken(json_is_parsed_in_one_place, net__base__json_text=text), [])
        innocent = "// json::parse(text)\nauto j = parse_bounded_json(text, 1, 1); listener.accept();"
        self.assertEqual(self.broken(json_is_parsed_in_one_place, app__core__model=innocent), [])
        self.assertEqual(len(self.broken(json_is_parsed_in_one_place, net__base__json_text=innocent)), 1)

    def test_what_is_done_out_of_its_place_is_found(self):
        for place in PLACES:
            found = self.broken(it_is_done_in_its_place, net__x="\n" + place.breaks_it)
            self.assertEqual(found, [f"net/x.cpp:2: {place.what}"])
            for allowed in place.allowed:
                path = allowed if allowed.endswith((".cpp", ".h")) else allowed + "/x.cpp"
                self.assertEqual(list(it_is_done_in_its_place({path: place.breaks_it}, [place])), [], path)
        self.assertEqual(self.broken(it_is_done_in_its_place, net__x='// std::mutex\nlog("std::mutex, fork()");'), [])

    def test_who_is_allowed_and_does_not_do_it_is_found(self):
        for place in PLACES:
            files = {name if name.endswith((".cpp", ".h")) else name + "/x.cpp": place.breaks_it for name in place.allowed}
            self.assertEqual(list(nobody_is_allowed_what_he_does_not_do(files, [place])), [])
            for path in files:
                found = list(nobody_is_allowed_what_he_does_not_do({**files, path: "int x;"}, [place]))
                self.assertEqual(len(found), 1, path)

    def test_methods_that_are_not_served_or_not_written_down_are_found(self):
        untyped = ["checkpoints.list", "config.get", "config.set", "diag.create", "logs.read", "metrics.query", "peers.list",
                   "rounds.list"]
        whole = {
            "net/control/methods.h": 'struct Stop { static constexpr std::string_view kName = "stop"; bool now; };'
                                     'struct RunIt { static constexpr std::string_view kName = "run.it"; };',
            "app/agent/methods/all.cpp": "table.add(method::Stop::kName, stop);\nadd(method::RunIt::kName, run);\n" +
                                         "".join(f'table.add("{name}", f);\n' for name in untyped),
            "docs/control.md": "".join(f"| `{name}` (agent) | | text |\n" for name in [*untyped, "stop", "run.it"]),
        }
        self.assertEqual(list(methods_are_served_and_written_down(whole)), [])
        for path, text, said in (
                ("app/agent/methods/all.cpp", whole["app/agent/methods/all.cpp"].replace("Stop::kName", "Go::kName"), "Stop"),
                ("app/agent/methods/all.cpp", whole["app/agent/methods/all.cpp"] + 'table.add("x.y", f);', "x.y"),
                ("app/agent/methods/all.cpp", whole["app/agent/methods/all.cpp"].replace("logs.read", "config.get"), "logs.read"),
                ("app/core/x.cpp", 'link.call("run.it", {});', "run.it"),
                ("docs/control.md", whole["docs/control.md"].replace("`stop`", "`halt`"), "stop")):
            found = list(methods_are_served_and_written_down({**whole, path: text}))
            self.assertTrue(found, said)
            self.assertTrue(all(said in complaint for complaint in found), found)

    def test_commands_that_are_not_added_are_found(self):
        header = "void add_stop_command(CLI::App& app, CommandContext& context);"
        added = "  add_stop_command(app, context);"
        self.assertEqual(list(every_command_is_added({"app/cli/c.h": header, "app/cli/run_cli.cpp": added})), [])
        self.assertEqual(len(list(every_command_is_added({"app/cli/c.h": header, "app/cli/run_cli.cpp": "// " + added}))), 1)


if __name__ == "__main__":
    unittest.main()
