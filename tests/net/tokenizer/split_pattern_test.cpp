// The hand-written scanners cut text where PCRE2 (Qt's QRegularExpression) cuts it by the published regular
// expressions, and normal forms are Qt's. Qt and PCRE2 have their own versions of Unicode, so code points that Qt does
// not know are left out.
#include <QtTest>

#include <QRegularExpression>
#include <random>

#include "net/tokenizer/normal_form.h"
#include "net/tokenizer/split_pattern.h"
#include "net/tokenizer/unicode_classes.h"

using namespace atl;

namespace {

constexpr const char* kContractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";

// As published; U+180E, which PCRE2 alone takes for space, is why \s is written out below.
QString regex_of(SplitPattern pattern) {
  const QString lines = R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
  const QString word = R"([^\r\n\p{L}\p{N}]?\p{L}+)";
  switch (pattern) {
    case SplitPattern::kGpt2:
      return R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++\z|\s+(?!\S)|\s)";
    case SplitPattern::kCl100kBase:
      return R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+|)"
             R"( ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++\z|\s*[\r\n]|\s+(?!\S)|\s)";
    case SplitPattern::kLlama3:
      return kContractions + ("|" + word) + R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" + lines;
    case SplitPattern::kQwen2: return kContractions + ("|" + word) + R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" + lines;
    case SplitPattern::kO200kBase:
      return R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)" +
             QString(kContractions) +
             R"(?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)" + kContractions +
             R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" + lines;
  }
  return {};
}

QRegularExpression compiled(SplitPattern pattern) {
  const QString space =
      R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
  QString regex = regex_of(pattern);
  regex.replace(R"([^\s)", "[^" + space).replace(R"(\s)", "[" + space + "]").replace(R"(\S)", "[^" + space + "]");
  QRegularExpression expression(regex, QRegularExpression::UseUnicodePropertiesOption);
  if (!expression.isValid()) qFatal("%s", qPrintable(expression.errorString()));
  return expression;
}

std::vector<std::size_t> ends_by_regex(const QRegularExpression& expression, const QString& text) {
  std::vector<std::size_t> ends;
  std::size_t end = 0;
  for (auto at = expression.globalMatch(text); at.hasNext();) {
    end += static_cast<std::size_t>(at.next().captured().toUtf8().size());
    ends.push_back(end);
  }
  return ends;
}

constexpr std::array kPatterns{SplitPattern::kGpt2, SplitPattern::kCl100kBase, SplitPattern::kLlama3,
                               SplitPattern::kQwen2, SplitPattern::kO200kBase};

// Whether Qt's version of Unicode has it, too: in newer ones nothing of what it says of such a code point is another.
bool is_known(char32_t code) {
  const bool is_surrogate = code >= 0xD800 && code < 0xE000;
  return !is_surrogate && code < 0x110000 && QChar::unicodeVersion(code) != QChar::Unicode_Unassigned;
}

void append(char32_t code, QString& text) { text += QString::fromUcs4(&code, 1); }

QString random_text(std::mt19937& random, int parts) {
  static const std::vector<QString> kParts{"'",
                                           "'s",
                                           "'S",
                                           "'ll",
                                           "'RE",
                                           "'vE",
                                           "'d",
                                           QString::fromUtf8("'ſ"),
                                           " ",
                                           "  ",
                                           "   ",
                                           "\t",
                                           "\n",
                                           "\r\n",
                                           "\n\n",
                                           "a",
                                           "B",
                                           "ab",
                                           "AB",
                                           "word",
                                           "HTTPServer",
                                           QString::fromUtf8("é"),
                                           QString::fromUtf8("ÉÉ"),
                                           QString::fromUtf8("ǅ"),
                                           QString::fromUtf8("ʰ"),
                                           QString::fromUtf8("ª"),
                                           QString::fromUtf8("中"),
                                           QString::fromUtf8("\u0301"),
                                           QString::fromUtf8("\u0e31"),
                                           "1",
                                           "1234",
                                           QString::fromUtf8("٣"),
                                           QString::fromUtf8("Ⅷ"),
                                           "!",
                                           "...",
                                           "/",
                                           "//",
                                           "-",
                                           QString::fromUtf8("😀"),
                                           QString::fromUtf8("\u00a0"),
                                           QString::fromUtf8("\u2028"),
                                           QString::fromUtf8("\u3000"),
                                           QString::fromUtf8("\u200d"),
                                           QString::fromUtf8("𝐀𝐚"),
                                           "abcdefghijklmnopqrstuvwxyz",
                                           "ABCDEFGHIJKLMNOPQRSTUVWXYZ"};
  QString text;
  for (int i = 0; i < parts; ++i) {
    if (random() % 16 != 0) {
      text += kParts[random() % kParts.size()];
      continue;
    }
    const char32_t code = random() % 4 == 0 ? random() % 0x110000 : random() % 0x3000;
    if (code != 0x180E && code != 0 && is_known(code)) append(code, text);
  }
  return text;
}

}  // namespace

class SplitPatternTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void pieces_are_those_of_the_regular_expression_data();
  void pieces_are_those_of_the_regular_expression();
  void every_code_point_is_what_unicode_says_it_is();
  void bytes_that_are_no_utf8_are_symbols_of_a_byte();
  void known_expressions_are_recognised_and_others_are_not();
  void normal_forms_are_qts();
  void later_characters_are_neither_composed_nor_put_in_order();
  void normal_form_c_leaves_broken_utf8_alone();
};

void SplitPatternTest::pieces_are_those_of_the_regular_expression_data() {
  QTest::addColumn<int>("pattern");
  for (const SplitPattern pattern : kPatterns) {
    QTest::addRow("%s", std::string(split_pattern_name(pattern)).c_str()) << static_cast<int>(pattern);
  }
}

void SplitPatternTest::pieces_are_those_of_the_regular_expression() {
  QFETCH(const int, pattern);
  const auto chosen = static_cast<SplitPattern>(pattern);
  const QRegularExpression expression = compiled(chosen);
  std::mt19937 random(static_cast<unsigned>(pattern));
  for (int round = 0; round < 4000; ++round) {
    const QString text = random_text(random, 1 + static_cast<int>(random() % 30));
    const QByteArray bytes = text.toUtf8();
    QVERIFY2(split_ends(chosen, bytes.toStdString()) == ends_by_regex(expression, text),
             bytes.toPercentEncoding(" '!"));
  }
}

void SplitPatternTest::every_code_point_is_what_unicode_says_it_is() {
  const QRegularExpression letters(R"(^\p{L}\z)", QRegularExpression::UseUnicodePropertiesOption);
  std::size_t known = 0;
  for (char32_t code = 0; code < 0x110000; ++code) {
    if (!is_known(code)) continue;
    ++known;
    const auto found = static_cast<CharClass>(unicode_classes()[code] & kClassBits);
    const QChar::Category category = QChar::category(code);
    const bool is_letter = category >= QChar::Letter_Uppercase && category <= QChar::Letter_Other;
    const QByteArray where = QByteArray::number(static_cast<uint>(code), 16);
    QVERIFY2(is_letter == ((class_set(found) & kLetters) != 0), where);
    QVERIFY2(QChar::isUpper(code) == (found == CharClass::kUpper && category == QChar::Letter_Uppercase), where);
    QVERIFY2((category == QChar::Letter_Lowercase) == (found == CharClass::kLower), where);
    QVERIFY2(QChar::isMark(code) == (found == CharClass::kMark), where);
    QVERIFY2(QChar::isNumber(code) == (found == CharClass::kNumber), where);
    QVERIFY2(QChar::isSpace(code) == ((class_set(found) & kSpaces) != 0), where);
  }
  QVERIFY(known > 140'000);
}

void SplitPatternTest::bytes_that_are_no_utf8_are_symbols_of_a_byte() {
  // Overlong, surrogate, beyond U+10FFFF, cut off, out of place: each byte as a sign, which stand together.
  for (const std::string broken :
       {"\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF8\x88", "\xE4\xB8", "\x80\xBF"}) {
    const std::string text = "ab" + broken + "12";
    const std::vector<std::size_t> expected{2, 2 + broken.size(), text.size()};
    for (const SplitPattern pattern : {SplitPattern::kGpt2, SplitPattern::kLlama3, SplitPattern::kO200kBase}) {
      QCOMPARE(split_ends(pattern, text), expected);
    }
  }
}

void SplitPatternTest::known_expressions_are_recognised_and_others_are_not() {
  for (const SplitPattern pattern : {SplitPattern::kLlama3, SplitPattern::kQwen2, SplitPattern::kO200kBase}) {
    const std::string regex = regex_of(pattern).toStdString();
    QCOMPARE(split_pattern_of_regex(regex), std::optional(pattern));
    QVERIFY(!split_pattern_of_regex(regex + "+"));
  }
  QVERIFY(!split_pattern_of_regex(""));
  for (const SplitPattern pattern : kPatterns)
    QCOMPARE(parse_split_pattern(split_pattern_name(pattern)), std::optional(pattern));
  QVERIFY(!parse_split_pattern("p50k"));
}

// Of what Unicode 9 has: that is the version of the tables.
void SplitPatternTest::normal_forms_are_qts() {
  const auto is_old = [](char32_t code) {
    const QChar::UnicodeVersion version = QChar::unicodeVersion(code);
    return is_known(code) && version != QChar::Unicode_Unassigned && version <= QChar::Unicode_9_0;
  };
  const auto check = [](const QString& text) {
    const std::string bytes = text.toStdString();
    const std::string normal = text.normalized(QString::NormalizationForm_C).toStdString();
    const auto is_qts = [&](NormalForm form, QString::NormalizationForm qts) {
      return to_normal_form(bytes, form) == text.normalized(qts).toStdString();
    };
    return is_qts(NormalForm::kC, QString::NormalizationForm_C) &&
           is_qts(NormalForm::kD, QString::NormalizationForm_D) &&
           is_qts(NormalForm::kKc, QString::NormalizationForm_KC) &&
           is_qts(NormalForm::kKd, QString::NormalizationForm_KD) && (!is_surely_normal(bytes) || bytes == normal);
  };
  std::vector<char32_t> joined;  // what is never alone in text of normal form C, or joins what is before it
  for (char32_t code = 0; code < 0x110000; ++code) {
    if (!is_old(code)) continue;
    QString text;
    append(code, text);
    QVERIFY2(check(text), QByteArray::number(static_cast<uint>(code), 16));
    if ((unicode_classes()[code] & kNfcUnsafe) != 0) joined.push_back(code);
  }
  QVERIFY(joined.size() > 1000);
  std::mt19937 random(4);
  for (int round = 0; round < 50'000; ++round) {
    QString text;
    for (int i = 0; i < 6; ++i) {
      const char32_t any = random() % 0x3100;
      const char32_t hangul = 0xAC00 + random() % 11172;
      const unsigned kind = random() % 8;
      const char32_t code = kind < 4    ? joined[random() % joined.size()]
                            : kind < 6  ? any
                            : kind == 6 ? hangul
                                        : U'a' + random() % 26;
      if (is_old(code)) append(code, text);
    }
    QVERIFY2(check(text), text.toUtf8().toPercentEncoding());
  }
}

// HuggingFace's tokenizers leave what Unicode 9 does not know as it is.
void SplitPatternTest::later_characters_are_neither_composed_nor_put_in_order() {
  for (const std::string text :
       {"\U000113c2\U000113c2", "\U000113c2\U000113b8", "\U0001611e\U0001611e", "\U0001611e\U00016129",
        "\U00016d67\U00016d67", "\U00016d63\U00016d67", "\u09c7\u09fe\u0323"}) {
    QCOMPARE(to_normal_form_c(text), text);
    QCOMPARE(to_normal_form(text, NormalForm::kD), text);
  }
  QCOMPARE(to_normal_form("\U00016d6a", NormalForm::kKd), std::string("\U00016d6a"));
}

void SplitPatternTest::normal_form_c_leaves_broken_utf8_alone() {
  QCOMPARE(to_normal_form_c("e\xCC\x81\xCC\xFF\xE4\xB8 e\xCC"), std::string("\u00e9\xCC\xFF\xE4\xB8 e\xCC"));
  // A broken byte between them keeps a letter and its accent apart.
  QCOMPARE(to_normal_form_c("e\xFF\xCC\x81"), std::string("e\xFF\xCC\x81"));
}

QTEST_GUILESS_MAIN(SplitPatternTest)
#include "split_pattern_test.moc"
