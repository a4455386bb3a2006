// The tokens of `atoll tokenize` are those of tiktoken and of HuggingFace's tokenizers on megabytes of text of all
// kinds (tests/bench/tokenizer_peers.py compare). Needs a Python with both: ATOLL_TOKENIZERS_PYTHON, or else python3
// where that has them; what they make of a few texts is compared without (tokenizer_test). ATOLL_TOKENIZER_FILES names
// tokenizers to compare instead of the small ones of tests/golden/tokenizer, with ':' between.
#include <QtCore/QProcess>
#include <QtTest/QTest>

namespace {

constexpr int kMilliseconds = 900'000;
constexpr int kMissing = 3;  // what the script exits with where a package is

struct Ended {
  int exit_code = -1;
  QByteArray said;
};
Ended run(const QString& program, const QStringList& arguments) {
  QProcess process;
  process.setProcessChannelMode(QProcess::MergedChannels);
  process.start(program, arguments);
  const bool ended = process.waitForFinished(kMilliseconds) && process.exitStatus() == QProcess::NormalExit;
  return {ended ? process.exitCode() : -1, process.readAll()};
}

}  // namespace

class TokenizerPeersTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void tokens_of_megabytes_are_those_of_tiktoken_and_huggingface();
};

void TokenizerPeersTest::tokens_of_megabytes_are_those_of_tiktoken_and_huggingface() {
  const QString chosen = qEnvironmentVariable("ATOLL_TOKENIZERS_PYTHON");
  QStringList arguments{ATOLL_PEERS_SCRIPT, "compare", "--atoll", ATOLL_BIN_DIR "/atoll", "--megabytes", "6"};
  for (const QString& file : qEnvironmentVariable("ATOLL_TOKENIZER_FILES").split(':', Qt::SkipEmptyParts)) {
    arguments << "--tokenizer" << file;
  }

  const Ended ended = run(chosen.isEmpty() ? "python3" : chosen, arguments);

  if (chosen.isEmpty() && (ended.exit_code == kMissing || ended.exit_code == -1)) {  // whoever chose one wants the test
    QSKIP(
        "python3 has no tiktoken and tokenizers: in a virtual environment, 'pip install tiktoken tokenizers numpy', "
        "then name "
        "its interpreter in ATOLL_TOKENIZERS_PYTHON");
  }
  QVERIFY2(ended.exit_code == 0, ended.said);
  QVERIFY2(ended.said.contains(" 0 differences"), ended.said);
}

QTEST_GUILESS_MAIN(TokenizerPeersTest)
#include "tokenizer_peers_test.moc"
