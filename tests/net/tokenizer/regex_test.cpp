// Regular expressions of tokenizer.json files find what Oniguruma finds in HuggingFace's tokenizers (what is expected
// here is what those give), and no expression and no text makes them go wrong.
#include <QtTest>

#include "net/tokenizer/regex.h"

using namespace atl;

namespace {

// Matches and what stands between them, with '|' between.
std::string pieces(std::string_view regex, std::string_view text) {
  const auto made = Regex::make(regex);
  if (!made.ok()) return "refused: " + made.error().message;
  RegexRoom room;
  std::vector<TextSpan> found;
  if (const Status status = made->find_all(text, room, found); !status.ok()) return status.error().message;
  std::string all;
  std::size_t from = 0;
  const auto add = [&](std::size_t to) {
    if (to == from) return;
    all += (all.empty() ? "" : "|") + std::string(text.substr(from, to - from));
    from = to;
  };
  for (const TextSpan& one : found) {
    add(one.begin);
    add(one.end);
  }
  add(text.size());
  return all;
}

}  // namespace

class RegexTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void matches_are_onigurumas_data();
  void matches_are_onigurumas();
  void what_is_not_understood_is_refused_data();
  void what_is_not_understood_is_refused();
  void bytes_that_are_no_utf8_are_symbols();
  void characters_later_than_pcre2_are_of_their_category();
  void a_search_that_takes_too_long_is_an_error();
  void a_long_run_ends();
};

void RegexTest::matches_are_onigurumas_data() {
  QTest::addColumn<QString>("regex");
  QTest::addColumn<QString>("text");
  QTest::addColumn<QString>("expected");
  const auto row = [](const char* regex, const char* text, const char* expected) {
    QTest::newRow(regex) << QString(regex) << QString(text) << QString(expected);
  };
  row(R"(\h+)", "zaf0 G\t ", "z|af0| G\t ");
  row(R"(\v)", "a\x0b\nb", "a|\x0b|\nb");
  row(R"(a{2}?)", "aaaaa", "aa|aa|a");
  row(R"(a{1,2}+b)", "aaab aab", "aaab| |aab");
  row(R"(a{,2}b)", "aaab b", "a|aab| |b");
  row(R"(a{,})", "a{,}", "a{,}");
  row(R"({a)", "{a", "{a");
  row(R"(a**)", "baac", "b|aa|c");
  row(R"(x(?i)a|b)", "xA xB B", "xA| |xB| B");
  row(R"((?:(?i)a|b)A)", "BA bA", "BA| |bA");
  row(R"(a.c)", "a\nc abc", "a\nc |abc");
  row(R"(^b|c$)", "a\nb\nc", "a\n|b|\n|c");
  row(R"(\Aa|b\z|c\Z)", "aa bb", "a|a b|b");
  row(R"(\w+)", "½௰①Ⓐ_‿\u0301x", "½|௰①|Ⓐ_‿\u0301x");
  row(R"(\bx\b)", "x.x \u200dx Ⓐx", "x|.|x| \u200d|x| Ⓐx");
  row(R"(\s+)", "\u180e\u0085\u00a0x\u200b ", "\u180e|\u0085\u00a0|x\u200b| ");
  row(R"([^\S\n]+)", " \t\n x", " \t|\n| |x");
  row(R"([a[bc]d]+)", "xabcdx", "x|abcd|x");
  row(R"([a-z&&[^aeiou]]+)", "hello", "h|e|ll|o");
  row(R"([^a-c&&b]+)", "abc", "a|b|c");
  row(R"([\w&&[^\d]]+)", "ab12cd", "ab|12|cd");
  row(R"([\P{L}x]+)", "ab1x", "ab|1x");
  row(R"(\p{^L})", "a1", "a|1");
  row(R"([]a]+)", "a]b", "a]|b");
  row(R"([a-c-e]+)", "a-e", "a-e");
  row(R"((?<=a)b++)", "abb cbb", "a|bb| cbb");
  row(R"((?=b))", "abab", "a|ba|b");
  row(R"(x*)", "axxb", "a|xx|b");
  row(R"((a|ab)(c|bcd))", "abcd", "abcd");
  row(R"((?i:'s|k))", "'ſ \u212a 'S", "'ſ| |\u212a| |'S");
  row(R"(\x{e9}\u00e8)", "éè", "éè");
  row(R"(\R)", "a\r\nb\u2028c", "a|\r\n|b|\u2028|c");
}

void RegexTest::matches_are_onigurumas() {
  QFETCH(const QString, regex);
  QFETCH(const QString, text);
  QFETCH(const QString, expected);
  QCOMPARE(QString::fromStdString(pieces(regex.toStdString(), text.toStdString())), expected);
}

void RegexTest::what_is_not_understood_is_refused_data() {
  QTest::addColumn<QByteArray>("regex");
  QTest::addColumn<QString>("words");
  const auto row = [](const char* name, const std::string& regex, const char* words) {
    QTest::newRow(name) << QByteArray::fromStdString(regex) << QString(words);
  };
  row("a reference", R"((a)\1)", "\\1 is not supported");
  row("a name", R"((?<n>a))", "the group (?<n is not supported");
  row("a conditional", R"((?(1)a|b))", "the group (?(1 is not supported");
  row("a verb", "(*SKIP)a", "the group (*SK is not supported");
  row("a call", R"(a\g<0>)", "\\g is not supported");
  row("a property", R"(\p{Emoji})", "\\p{Emoji} is not supported");
  row("a POSIX set", "[[:alpha:]]", "[:alpha: is not supported");
  row("a fold of several letters", "(?i:gross)", "\"ss\" without regard to case is not supported");
  row("a letter that folds to several", "(?i:\u00df)", "U+00DF without regard to case is not supported");
  row("an open group", "(a", "a group is not closed");
  row("an open set", "[a", "a set is not closed");
  row("a closed group", "a)", "a ')' closes nothing");
  row("a range without a begin", R"([\s-a])", "a range of a set has no begin");
  row("a range backwards", "[z-a]", "a range of a set has no end");
  row("nothing to repeat", "a|*", "'*' repeats nothing");
  row("too many repetitions", "a{99999}", "not from 0 to 10000 times");
  row("an enormous program", "(?:(?:(?:a{1000}){1000}){1000}){1000}", "cannot be compiled");
  row("a surrogate", R"(\x{d800})", "is no character");
  row("no UTF-8", "a\xff", "it is no UTF-8");
  row("depth", std::string(100, '(') + "a" + std::string(100, ')'), "groups stand within each other");
  row("depth of sets", std::string(100, '[') + "a" + std::string(100, ']'), "sets stand within each other");
  row("length", std::string(20'000, 'a'), "at most 16384 are taken");
  row("an end", "a\\", "a '\\' stands at the end");
}

void RegexTest::what_is_not_understood_is_refused() {
  QFETCH(const QByteArray, regex);
  QFETCH(const QString, words);
  const auto made = Regex::make(regex.toStdString());
  QVERIFY(!made.ok());
  QCOMPARE(made.error().code, ErrorCode::kInvalidArgument);
  QVERIFY2(made.error().message.find(words.toStdString()) != std::string::npos, made.error().message.c_str());
}

void RegexTest::bytes_that_are_no_utf8_are_symbols() {
  QCOMPARE(pieces(R"([^\s\p{L}\p{N}]+)", "a\xff\xe4\xb8 b\xed\xa0\x80"), std::string("a|\xff\xe4\xb8| b|\xed\xa0\x80"));
  QCOMPARE(pieces(R"(\p{S})",
                  "\xff\xfe"
                  "1"),
           std::string("\xff|\xfe|1"));
}

void RegexTest::characters_later_than_pcre2_are_of_their_category() {
  // Of Unicode 15 and 16: a letter, a mark, a digit, a sign; a Han character.
  QCOMPARE(pieces(R"(\p{L}+)", "1\U00011f04\u897f"), std::string("1|\U00011f04\u897f"));
  QCOMPARE(pieces(R"(\p{M})", "a\u0897"), std::string("a|\u0897"));
  QCOMPARE(pieces(R"(\p{Nd}+)", "a\U00011f50"), std::string("a|\U00011f50"));
  QCOMPARE(pieces(R"(\p{S}+)", "a\U0001cc00"), std::string("a|\U0001cc00"));
  QCOMPARE(pieces(R"(\p{Han}+)", "a\U00031350\U0002ebf0"), std::string("a|\U00031350\U0002ebf0"));
}

// Oniguruma might find a match there: what is behind it is not taken for one piece in silence.
void RegexTest::a_search_that_takes_too_long_is_an_error() {
  // Each letter more doubles the time of a search that remembers nothing.
  const std::string text = "bcé" + std::string(200, 'a') + "b";
  const std::string told = pieces("b|(?:a+)+(?:a+)+c|(?:a|aa)+d", text);
  QVERIFY2(told.find("takes too long from byte 1 of a text on (match limit exceeded)") != std::string::npos,
           told.c_str());
}

void RegexTest::a_long_run_ends() {
  const std::string run(3'000'000, 'a');
  QCOMPARE(pieces(R"(\p{L}+|\s+(?!\S)|\s+)", run + " "), run + "| ");
  // Each repetition keeps a place to come back to.
  const std::string words(500'000, 'a');
  QCOMPARE(pieces(R"((?:a|b)+|[\p{L}&&[^\p{Han}]]+)", words + "1" + words), words + "|1|" + words);
}

QTEST_GUILESS_MAIN(RegexTest)
#include "regex_test.moc"
