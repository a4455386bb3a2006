#include "net/base/printable.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <QtTest>
#include <sstream>

#include "net/base/log.h"

using namespace atl;

namespace {

const std::string kAcute = "\u0301";     // upon what stands before it
const std::string kOverride = "\u202E";  // what follows is written from right to left
const std::string kEscape = "\x1b[2J\x1b]0;owned\x07";
const std::string kOdd = fmt::format("ok{}{}{}{}", kEscape, "\n2026-01-01T00:00:00.000 info forged\r", kOverride,
                                     "\u2028\u200B\x9B\xC2\x9B");

std::string times(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

}  // namespace

class PrintableTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void what_is_acted_upon_or_hidden_is_replaced_data();
  void what_is_acted_upon_or_hidden_is_replaced();
  void what_people_write_stays_data();
  void what_people_write_stays();
  void what_is_piled_up_is_left_out();
  void a_mark_needs_something_beneath_it();
  void a_text_is_cut_before_a_character_with_its_marks_data();
  void a_text_is_cut_before_a_character_with_its_marks();
  void what_was_made_printable_stays_as_it_is();
  void prose_keeps_its_lines_and_joiners();
  void a_name_with_joiners_is_printable_and_one_with_overrides_is_not();
  void a_line_of_a_log_stays_one_whatever_is_in_it();
};

void PrintableTest::what_is_acted_upon_or_hidden_is_replaced_data() {
  QTest::addColumn<QByteArray>("text");
  const auto row = [](const char* name, const std::string& text) {
    QTest::newRow(name) << QByteArray(text.data(), static_cast<qsizetype>(text.size()));
  };
  row("nothing", std::string(1, '\0'));
  row("escape", "\x1b");
  row("line feed", "\n");
  row("carriage return", "\r");
  row("delete", "\x7f");
  row("control sequence introducer", "\u009B");
  row("line separator", "\u2028");
  row("paragraph separator", "\u2029");
  row("left to right mark", "\u200E");
  row("right to left mark", "\u200F");
  row("arabic letter mark", "\u061C");
  for (const char* control :
       {"\u202A", "\u202B", "\u202C", "\u202D", "\u202E", "\u2066", "\u2067", "\u2068", "\u2069"}) {
    row(QByteArray("direction ").append(QByteArray(control).toHex()).constData(), control);
  }
  row("zero width space", "\u200B");
  row("word joiner", "\u2060");
  row("byte order mark", "\uFEFF");
  row("soft hyphen", "\u00AD");
  row("tag", "\U000E0041");
  row("a filler of Hangul", "\u3164");
  row("private use", "\uE000");
  row("assigned to nothing", "\u0378");
  row("no character", "\uFFFF");
}

void PrintableTest::what_is_acted_upon_or_hidden_is_replaced() {
  QFETCH(QByteArray, text);
  const std::string within = (QByteArray("a") + text + "b").toStdString();
  QCOMPARE(printable(within), std::string("a?b"));
  QVERIFY(!is_printable(within));
}

void PrintableTest::what_people_write_stays_data() {
  QTest::addColumn<QString>("text");
  for (const char* text :
       {"under the desk", "Łódź", "島", "שלום", "مرحبا", "हिन्दी", "ภาษาไทย", "Việt Nam", "🏝 atoll", "50 °C – “x”"}) {
    QTest::newRow(text) << QString::fromUtf8(text);
  }
  QTest::newRow("accents of their own") << QString::fromUtf8("e\u0301\u0323");
}

void PrintableTest::what_people_write_stays() {
  QFETCH(QString, text);
  QCOMPARE(QString::fromStdString(printable(text.toStdString())), text);
}

void PrintableTest::what_is_piled_up_is_left_out() {
  const std::string shown = printable(fmt::format("a{}b", times(kAcute, 500)));

  QCOMPARE(shown, fmt::format("a{}b", times(kAcute, 6)));
}

void PrintableTest::a_mark_needs_something_beneath_it() {
  QCOMPARE(printable(kAcute + 'a'), std::string("?a"));
  QCOMPARE(printable(fmt::format("a {}", kAcute)), std::string("a ?"));
}

void PrintableTest::a_text_is_cut_before_a_character_with_its_marks_data() {
  QTest::addColumn<QString>("text");
  QTest::addColumn<int>("bytes");
  QTest::addColumn<QString>("kept");
  QTest::newRow("it fits") << "abc" << 3 << "abc";
  QTest::newRow("in the middle of a character") << QString::fromUtf8("aö") << 2 << "a";
  QTest::newRow("between a character and its mark") << QString::fromUtf8("xe\u0301") << 3 << "x";
  QTest::newRow("nothing at all") << QString::fromUtf8("ö") << 0 << "";
}

void PrintableTest::a_text_is_cut_before_a_character_with_its_marks() {
  QFETCH(QString, text);
  QFETCH(int, bytes);
  QFETCH(QString, kept);
  QCOMPARE(printable(text.toStdString(), static_cast<std::size_t>(bytes)), kept.toStdString());
}

void PrintableTest::what_was_made_printable_stays_as_it_is() {
  const std::string once = printable(kOdd), lines = printable_lines(kOdd);

  QCOMPARE(printable(once), once);
  QCOMPARE(printable_lines(lines), lines);
  QVERIFY(once.size() <= kOdd.size());
}

void PrintableTest::prose_keeps_its_lines_and_joiners() {
  QCOMPARE(printable_lines("one\r\ntwo\tthree\n\x1b[2J"), std::string("one\ntwo three\n?[2J"));
  const std::string persian = "می\u200Cخواهم";
  QCOMPARE(printable_lines(persian), persian);
  QCOMPARE(printable_lines("\u200D\u200Dx"), std::string("x"));
}

void PrintableTest::a_name_with_joiners_is_printable_and_one_with_overrides_is_not() {
  QVERIFY(is_printable("❤\uFE0F atoll"));
  QVERIFY(!is_printable(fmt::format("atoll{}", kOverride)));
  QVERIFY(!is_printable("two\nlines"));
}

void PrintableTest::a_line_of_a_log_stays_one_whatever_is_in_it() {
  std::ostringstream written;
  spdlog::logger log("test", std::make_shared<spdlog::sinks::ostream_sink_st>(written));
  log.set_formatter(log_formatter());

  log.info("peer said \"{}\"", kOdd);
  log.warn("next");

  const std::string text = written.str();
  QCOMPARE(std::ranges::count(text, '\n'), 2);
  QCOMPARE(printable_lines(text), text);
  QVERIFY(text.find(" info peer said \"ok?[2J") != std::string::npos);
  QVERIFY(text.find(" warning next\n") != std::string::npos);
}

QTEST_GUILESS_MAIN(PrintableTest)
#include "printable_test.moc"
