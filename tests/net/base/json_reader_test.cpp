// Text of others becomes JSON within bounds, and is read field by field, each problem named with its path.
#include "net/base/json_reader.h"

#include <QtTest>
#include <cmath>
#include <nlohmann/json.hpp>

#include "net/base/printable.h"

namespace atl {

struct ReadMember {
  IslandId id;
  Address address;
  std::uint16_t weight = 0;
};

void fields(JsonReader& reader, ReadMember& member) {
  reader.field("id", member.id);
  reader.field("address", member.address);
  reader.field("weight", member.weight);
}

namespace {

constexpr std::size_t kBytes = 1 << 20;
constexpr int kDepth = 4;

Result<nlohmann::json> parse(std::string_view text, RepeatedKeys repeated = RepeatedKeys::kRefused) {
  return parse_bounded_json(text, kBytes, kDepth, repeated);
}

// What `read` finds wrong with the text; empty: nothing.
template <class Read>
std::string problem_of(std::string_view text, Read read) {
  const auto json = parse(text);
  if (!json.ok()) return json.error().message;
  JsonReader reader(*json);
  read(reader);
  return reader.status().ok() ? std::string() : reader.status().error().message;
}

template <class T>
std::string problem_of_field(const char* text, T value = {}) {
  return problem_of(text, [&](JsonReader& reader) { reader.field("x", value); });
}

}  // namespace

class JsonReaderTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  // ---- text

  void what_is_json_is_what_the_library_makes_of_it_data() {
    QTest::addColumn<QByteArray>("text");
    for (const char* text :
         {"null", "true", "-1", "18446744073709551615", "1.5e300", "\"a\"", "[]", "{}", "[[],[{}],{\"a\":[1]}]",
          "{\"b\":{\"a\":null},\"a\":[1,2,{\"c\":\"\\u0041\"}]}", " \n[1 , 2]\t", "{\"\":1}", "\"\\ud83d\\ude00\""}) {
      QTest::newRow(text) << QByteArray(text);
    }
  }
  void what_is_json_is_what_the_library_makes_of_it() {
    QFETCH(const QByteArray, text);

    const auto json = parse(text.toStdString());

    QVERIFY2(json.ok(), json.ok() ? "" : json.error().message.c_str());
    QCOMPARE(*json, nlohmann::json::parse(text.toStdString()));
  }

  void what_is_no_json_is_refused_and_says_where_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QByteArray>("says");
    QTest::newRow("nothing") << QByteArray() << QByteArray("no JSON");
    QTest::newRow("a word") << QByteArray("hello") << QByteArray("from column 1 on");
    QTest::newRow("on the third line") << QByteArray("{\n \"a\": 1,\n \"b\": }") << QByteArray("line 3, column 7");
    QTest::newRow("cut") << QByteArray("{\"a\":") << QByteArray("no JSON");
    QTest::newRow("two values") << QByteArray("{} {}") << QByteArray("no JSON");
    QTest::newRow("a comma too many") << QByteArray("[1,]") << QByteArray("no JSON");
    QTest::newRow("a comment") << QByteArray("[1] // one") << QByteArray("no JSON");
    QTest::newRow("NaN") << QByteArray("[NaN]") << QByteArray("no JSON");
    QTest::newRow("a zero byte") << QByteArray("[1]\n\0 hidden", 12) << QByteArray("zero byte in line 2, column 1");
    QTest::newRow("no UTF-8") << QByteArray("\"\xff\"") << QByteArray("no JSON");
    QTest::newRow("half a surrogate") << QByteArray("\"\\ud800\"") << QByteArray("no JSON");
    QTest::newRow("a control character") << QByteArray("\"\x01\"") << QByteArray("no JSON");
    QTest::newRow("a number too large") << QByteArray("{\"a\":[1,1e999]}")
                                        << QByteArray("number at 'a[1]' is too large");
    QTest::newRow("brackets without end") << QByteArray(500'000, '[') << QByteArray("nested deeper than 4");
    QTest::newRow("objects without end") << QByteArray("{\"a\":").repeated(1000) << QByteArray("nested deeper than 4");
    QTest::newRow("one level too deep") << QByteArray("[[[[[]]]]]") << QByteArray("nested deeper than 4");
    QTest::newRow("too large") << QByteArray(kBytes + 1, ' ') << QByteArray("more than the 1048576 allowed");
    QTest::newRow("a key twice") << QByteArray("{\"a\":1,\"b\":2,\"a\":3}") << QByteArray("the key 'a' stands twice");
    QTest::newRow("a key twice, spelt otherwise")
        << QByteArray("{\"a\":1,\"\\u0061\":3}") << QByteArray("'a' stands twice");
    QTest::newRow("a key twice within") << QByteArray("{\"a\":[{},{\"b\":{\"c\":1,\"c\":1}}]}")
                                        << QByteArray("'a[2].b.c' stands twice");
  }
  void what_is_no_json_is_refused_and_says_where() {
    QFETCH(const QByteArray, text);
    QFETCH(const QByteArray, says);

    const auto json = parse({text.constData(), static_cast<std::size_t>(text.size())});

    QVERIFY(!json.ok());
    QCOMPARE(json.error().code, ErrorCode::kProtocol);
    QVERIFY2(json.error().message.find(says.toStdString()) != std::string::npos, json.error().message.c_str());
  }

  void the_deepest_that_is_allowed_is_read() { QVERIFY(parse("[[[{\"a\":1}]]]").ok()); }

  void where_anybody_may_write_a_key_twice_the_last_counts() {
    const auto json = parse("{\"a\":{\"x\":1},\"a\":2}", RepeatedKeys::kLastCounts);

    QVERIFY(json.ok());
    QCOMPARE(*json, (nlohmann::json{{"a", 2}}));
  }

  void an_error_quotes_nothing_that_could_be_a_secret_and_nothing_that_cannot_be_shown() {
    const std::string secret = parse("{\"key\": \"-----BEGIN PRIVATE KEY-----\" oops").error().message;
    QVERIFY2(secret.find("PRIVATE") == std::string::npos && secret.find("oops") == std::string::npos, secret.c_str());

    const std::string key = "a\\u001b[31m\\u202e" + std::string(1000, 'x');
    const std::string twice = parse("{\"" + key + "\":1,\"" + key + "\":1}").error().message;
    QVERIFY(is_printable(twice));
    QVERIFY(twice.size() < 200);
  }

  void what_is_dumped_is_valid_whatever_it_holds() {
    const std::string text = dump_json({{"a", "\xff\xfe"}});

    QVERIFY(parse(text).ok());
  }

  void every_text_within_is_made_printable() {
    nlohmann::json json = {{"a", {"\x1b[31mred", {{"b", "x\ny"}}}}, {"n", 1}};

    make_printable(json);

    QVERIFY(is_printable(json["a"][0].get<std::string>()));
    QCOMPARE(json["a"][1]["b"], "x\ny");
    QCOMPARE(json["n"], 1);
  }

  // ---- fields

  void numbers_are_within_their_type() {
    QCOMPARE(problem_of_field<std::uint8_t>("{\"x\":255}"), std::string());
    QCOMPARE(problem_of_field<std::uint64_t>("{\"x\":18446744073709551615}"), std::string());
    for (const char* text : {"{\"x\":256}", "{\"x\":-1}", "{\"x\":1.0}", "{\"x\":1e2}", "{\"x\":\"1\"}", "{\"x\":null}",
                             "{\"x\":true}", "{\"x\":[1]}", "{\"x\":18446744073709551616}"}) {
      QCOMPARE(problem_of_field<std::uint8_t>(text), std::string("field 'x' is no whole number from 0 to 255"));
    }
    QVERIFY(problem_of_field<int>("{\"x\":2147483648}").find("0 to 2147483647") != std::string::npos);
    QCOMPARE(problem_of_field<bool>("{\"x\":1}"), std::string("field 'x' is neither true nor false"));
  }

  void signed_numbers_are_within_their_range() {
    std::int64_t value = 5;
    const auto read = [&](JsonReader& reader) { reader.integer("x", value, -3, 7); };
    QCOMPARE(problem_of("{\"x\":-3}", read), std::string());
    QCOMPARE(value, std::int64_t{-3});
    for (const char* text : {"{\"x\":-4}", "{\"x\":8}", "{\"x\":18446744073709551615}", "{\"x\":0.5}"}) {
      QCOMPARE(problem_of(text, read), std::string("field 'x' is no whole number from -3 to 7"));
    }
    QCOMPARE(value, std::int64_t{-3});
    const auto any = [&](JsonReader& reader) { reader.integer("x", value); };
    QCOMPARE(problem_of("{\"x\":-9223372036854775808}", any), std::string());
    QCOMPARE(value, std::numeric_limits<std::int64_t>::min());
    QVERIFY(!problem_of("{\"x\":9223372036854775808}", any).empty());
  }

  void null_is_a_figure_that_is_not_known_or_no_number() {
    double value = 1;
    QCOMPARE(problem_of("{\"x\":null}", [&](JsonReader& reader) { reader.field("x", value); }), std::string());
    QVERIFY(std::isnan(value));
    value = 1;
    QCOMPARE(problem_of("{\"x\":null}", [&](JsonReader& reader) { reader.number("x", value); }),
             std::string("field 'x' is no number"));
    QCOMPARE(value, 1.0);
  }

  void what_may_be_missing_may() {
    std::optional<std::uint32_t> value;
    const auto read = [&](JsonReader& reader) { reader.field("x", value); };
    QCOMPARE(problem_of("{}", read), std::string());
    QVERIFY(!value);
    QCOMPARE(problem_of("{\"x\":3}", read), std::string());
    QCOMPARE(value, 3u);
    QCOMPARE(problem_of_field<std::uint32_t>("{}"), std::string("field 'x' is missing"));
  }

  void texts_are_bounded_and_made_printable() {
    std::string value;
    const auto text = [&](JsonReader& reader) { reader.text("x", value, 8); };
    QCOMPARE(problem_of("{\"x\":\"a\\u001bb\"}", text), std::string());
    QCOMPARE(value, std::string("a?b"));
    QCOMPARE(problem_of("{\"x\":\"123456789\"}", text), std::string("field 'x' is no text of at most 8 bytes"));
    QCOMPARE(problem_of("{\"x\":{}}", text), std::string("field 'x' is no text of at most 8 bytes"));
  }

  void lists_are_bounded_and_of_one_kind() {
    std::vector<std::int64_t> numbers;
    const auto read = [&](JsonReader& reader) { reader.integers("x", numbers); };
    QCOMPARE(problem_of("{\"x\":[1,-2]}", read), std::string());
    QCOMPARE(numbers, (std::vector<std::int64_t>{1, -2}));
    QCOMPARE(problem_of("{\"x\":[1,2,\"a\"]}", read), std::string("field 'x[2]' is no whole number of 64 bits"));
    QCOMPARE(problem_of("{\"x\":{}}", read), std::string("field 'x' is no list of at most 4096 entries"));
    std::string many = "{\"x\":[0";
    for (std::size_t i = 0; i < kMaxListed; ++i) many += ",0";
    QCOMPARE(problem_of(many + "]}", read), std::string("field 'x' is no list of at most 4096 entries"));
  }

  void a_problem_is_named_with_its_path() {
    const auto read = [](JsonReader& reader) {
      std::vector<ReadMember> members;
      reader.field("members", members);
    };
    const std::string good = R"({"id":"isl-1","address":{"host":"a.example","port":1},"weight":2})";
    QCOMPARE(problem_of("{\"members\":[" + good + "]}", read), std::string());
    const std::pair<const char*, const char*> wrong[] = {
        {R"({"id":"isl-1","address":{"host":"a","port":65536},"weight":2})",
         "field 'members[1].address.port' is no whole number from 0 to 65535"},
        {R"({"id":"isl-1","address":"a:1","weight":2})", "field 'members[1].address' is no JSON object"},
        {R"({"id":"ISL","address":{"host":"a","port":1},"weight":2})", "field 'members[1].id' is no island's id"},
        {R"({"id":"isl-1","address":{"host":"a","port":1}})", "field 'members[1].weight' is missing"},
        {"7", "field 'members[1]' is no JSON object"},
    };
    for (const auto& [entry, says] : wrong) {
      QCOMPARE(problem_of("{\"members\":[" + good + "," + entry + "," + good + "]}", read), std::string(says));
    }
    QCOMPARE(problem_of("[]", read), std::string("it is no JSON object"));
  }

  void the_first_problem_is_told_and_nothing_is_read_after_it() {
    std::uint32_t first = 1, second = 2;
    const std::string problem = problem_of("{\"a\":\"x\",\"b\":7}", [&](JsonReader& reader) {
      reader.field("a", first);
      reader.field("b", second);
      reader.fail("another");
    });

    QVERIFY(problem.starts_with("field 'a'"));
    QCOMPARE(first, 1u);
    QCOMPARE(second, 2u);
  }
};

}  // namespace atl

QTEST_GUILESS_MAIN(atl::JsonReaderTest)
#include "json_reader_test.moc"
