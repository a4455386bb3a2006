// `atoll tokenize` prints the tokens of a text, and the text of tokens.
#include <unistd.h>

#include <QtTest>

#include <nlohmann/json.hpp>

#include "tests/app/cli_run.h"

using namespace atl;
using atl::test::CliOutcome;
using atl::test::CliRun;
using atl::test::contains;

namespace {

const std::string kTokenizer = ATOLL_TEST_DATA_DIR "/tokenizer/tokenizer.json";
const std::string kRanks = ATOLL_TEST_DATA_DIR "/tokenizer/small.tiktoken";

std::string write(const CliRun& atoll, const std::string& name, std::string_view content) {
  std::ofstream(atoll.path(name), std::ios::binary) << content;
  return atoll.path(name).string();
}

// Standard input is this text as long as it lives. At most what a pipe holds.
class Input {
 public:
  explicit Input(std::string_view text) : kept_(::dup(STDIN_FILENO)) {
    int ends[2];
    if (::pipe(ends) != 0 || ::write(ends[1], text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      qFatal("pipe");
    ::close(ends[1]);
    ::dup2(ends[0], STDIN_FILENO);
    ::close(ends[0]);
  }
  ~Input() {
    ::dup2(kept_, STDIN_FILENO);
    ::close(kept_);
  }

 private:
  int kept_;
};

}  // namespace

class TokenizeCommandTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void bytes_are_printed_as_numbers();
  void what_it_prints_it_reads();
  void standard_input_is_read_without_a_file();
  void special_tokens_are_text_unless_asked_for();
  void text_that_takes_the_tokenizer_too_long_is_refused();
  void what_cannot_be_read_is_named_data();
  void what_cannot_be_read_is_named();
};

void TokenizeCommandTest::bytes_are_printed_as_numbers() {
  CliRun atoll;
  const std::string text = write(atoll, "text", "a\nb");

  QCOMPARE(atoll({"tokenize", "--tokenizer", "bytes", text}).out, std::string("97 10 98\n"));
  QCOMPARE(atoll({"tokenize", "--tokenizer", "bytes", "--json", text}).out, std::string("{\"ids\":[97,10,98]}\n"));
  QCOMPARE(atoll({"tokenize", "--tokenizer", "bytes", write(atoll, "empty", "")}).out, std::string("\n"));
}

void TokenizeCommandTest::what_it_prints_it_reads() {
  CliRun atoll;
  std::string content = "The atoll's 1234 islands \xFF\n\n";
  for (int i = 0; i < 100'000; ++i) content += std::to_string(i) + " words ";  // more than is written at once
  const std::string text = write(atoll, "text", content);
  for (const std::vector<std::string>& tokenizer : {std::vector<std::string>{"--tokenizer", "bytes"},
                                                    {"--tokenizer", kTokenizer},
                                                    {"--tokenizer", kRanks, "--pattern", "o200k_base"}}) {
    for (const bool json : {false, true}) {
      std::vector<std::string> forth{"tokenize", text}, back{"tokenize", "--decode"};
      forth.insert(forth.end(), tokenizer.begin(), tokenizer.end());
      back.insert(back.end(), tokenizer.begin(), tokenizer.end());
      if (json) forth.push_back("--json");
      back.push_back(write(atoll, "ids", atoll(forth).out));

      const CliOutcome outcome = atoll(back);

      QCOMPARE(outcome.exit_code, 0);
      QVERIFY(outcome.out == content);
    }
  }
}

void TokenizeCommandTest::standard_input_is_read_without_a_file() {
  CliRun atoll;
  {
    const Input input("hi");
    QCOMPARE(atoll({"tokenize", "--tokenizer", "bytes"}).out, std::string("104 105\n"));
  }
  const Input input("104 105\n");
  QCOMPARE(atoll({"tokenize", "--tokenizer", "bytes", "--decode", "-"}).out, std::string("hi"));
}

void TokenizeCommandTest::special_tokens_are_text_unless_asked_for() {
  CliRun atoll;
  const std::string text = write(atoll, "text", "<|end_of_text|>");

  QCOMPARE(atoll({"tokenize", "--tokenizer", kTokenizer, "--special", text}).out, std::string("2049\n"));
  QVERIFY(!contains(atoll({"tokenize", "--tokenizer", kTokenizer, text}).out, "2049"));
}

void TokenizeCommandTest::text_that_takes_the_tokenizer_too_long_is_refused() {
  CliRun atoll;
  auto whole = nlohmann::json::parse(std::ifstream(kTokenizer));
  whole["normalizer"] = {{"type", "Replace"}, {"pattern", {{"Regex", "(?:a+)+(?:a+)+c|b"}}}, {"content", "b"}};
  const std::string tokenizer = write(atoll, "tokenizer.json", whole.dump());
  const std::string text = write(atoll, "text.txt", std::string(200, 'a'));
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += "A line like others, with number " + std::to_string(i) + ".\n";
  const std::string corpus = write(atoll, "corpus.txt", lines + std::string(200, 'a') + "\n" + lines);

  const CliOutcome printed = atoll({"tokenize", "--tokenizer", tokenizer, text});
  const auto prepare = [&](const std::string& by) {
    return atoll({"data", "prepare", corpus, "--tokenizer", by, "-o", atoll.path("data").string(), "--threads", "1"});
  };
  const CliOutcome prepared = prepare(tokenizer), by_another = prepare(kTokenizer);

  QCOMPARE(printed.exit_code, 2);
  QCOMPARE(printed.out, std::string());
  QVERIFY2(contains(printed.err, "takes too long from byte 0 of a text on"), printed.err.c_str());
  QCOMPARE(prepared.exit_code, 2);
  QVERIFY2(contains(prepared.err, "corpus.txt, document ") && contains(prepared.err, "takes too long from byte "),
           prepared.err.c_str());
  QVERIFY2(by_another.exit_code == 0, by_another.err.c_str());  // nothing is left of it
}

void TokenizeCommandTest::what_cannot_be_read_is_named_data() {
  QTest::addColumn<QStringList>("arguments");
  QTest::addColumn<QString>("words");
  QTest::addColumn<int>("exit_code");
  const QString ranks = QString::fromStdString(kRanks);
  QTest::newRow("no tokenizer") << QStringList{"IDS"} << "--tokenizer" << 2;
  QTest::newRow("no such file") << QStringList{"--tokenizer", "/no/such", "IDS"} << "/no/such" << 1;
  QTest::newRow("no such text") << QStringList{"--tokenizer", "bytes", "/no/such"} << "/no/such" << 1;
  QTest::newRow("no pattern") << QStringList{"--tokenizer", ranks, "IDS"} << "by which pattern" << 2;
  QTest::newRow("another pattern") << QStringList{"--tokenizer", ranks, "--pattern", "p50k", "IDS"}
                                   << "--pattern: must be gpt2" << 2;
  QTest::newRow("not tokens") << QStringList{"--tokenizer", "bytes", "--decode", "WORDS"} << "'12x' is no token" << 2;
  QTest::newRow("no list") << QStringList{"--tokenizer", "bytes", "--decode", "JSON"} << "entry 1 of \"ids\"" << 2;
  QTest::newRow("beyond the vocabulary") << QStringList{"--tokenizer", "bytes", "--decode", "IDS"}
                                         << "4000000 is no token" << 2;
  QTest::newRow("json of text") << QStringList{"--tokenizer", "bytes", "--decode", "--json", "IDS"} << "--json" << 2;
}

void TokenizeCommandTest::what_cannot_be_read_is_named() {
  QFETCH(const QStringList, arguments);
  QFETCH(const QString, words);
  QFETCH(const int, exit_code);
  CliRun atoll;
  const std::map<QString, std::string> files{{"IDS", write(atoll, "ids", "12 4000000\n")},
                                             {"WORDS", write(atoll, "words", "1 12x 3")},
                                             {"JSON", write(atoll, "json", R"({"ids": [1, -2]})")}};
  std::vector<std::string> command{"tokenize"};
  for (const QString& argument : arguments)
    command.push_back(files.contains(argument) ? files.at(argument) : argument.toStdString());

  const CliOutcome outcome = atoll(command);

  QCOMPARE(outcome.exit_code, exit_code);
  QVERIFY2(contains(outcome.err, words.toStdString()), outcome.err.c_str());
}

QTEST_GUILESS_MAIN(TokenizeCommandTest)
#include "tokenize_command_test.moc"
