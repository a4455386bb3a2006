// A run on the tokens of a tokenizer, with programs alone: from text to a trained model, which is exported with its
// tokenizer, evaluated, sampled from, and opened by HuggingFace's AutoTokenizer where that is installed (name its
// interpreter in ATOLL_TRANSFORMERS_PYTHON).
#include <QtCore/QProcess>
#include <QtTest/QTest>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/control/home.h"
#include "net/data/dataset.h"
#include "net/tokenizer/load_tokenizer.h"
#include "tests/process/run_parts.h"
#include "tests/process/scene.h"

using namespace atl;
using namespace atl::test;

namespace {

const std::string kGolden = ATOLL_TEST_DATA_DIR "/tokenizer/";
constexpr int kPythonMilliseconds = 120'000;

std::string content_of(const std::filesystem::path& path) { return require(read_file(path)); }

constexpr const char* kAutoTokenizer = R"(
import json, sys
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
text = open(sys.argv[2], encoding='utf-8', newline='').read()
ids = tokenizer(text, add_special_tokens=False).input_ids
print(json.dumps({'ids': ids, 'same': tokenizer.decode(ids, clean_up_tokenization_spaces=False) == text,
                  'first': tokenizer('a').input_ids[0], 'eos': tokenizer.eos_token_id}))
)";

}  // namespace

class TokenizerRunTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void a_dataset_says_what_it_was_made_with();
  void documents_stand_between_their_tokens();
  void an_island_trains_on_them();
  void an_export_brings_the_tokenizer();
  void the_model_is_evaluated_and_sampled_from();
  void an_export_of_a_run_on_bytes_has_a_tokenizer_too();
  void transformers_opens_them_data();
  void transformers_opens_them();
  void what_is_no_tokenizer_is_refused_data();
  void what_is_no_tokenizer_is_refused();

 private:
  void require_success(const ProgramOutcome& outcome) const;
  ProgramOutcome atoll(const std::vector<std::string>& arguments) const { return scene_.run(arguments); }
  void train(const std::string& data, const std::string& name);

  Scene scene_;
  std::string tokenizer_;  // of the dataset, as its file has it
};

void TokenizerRunTest::initTestCase() {
  std::string lines;
  for (int i = 0; i < 400; ++i) {
    const std::string text = "Island " + std::to_string(i) + " of the atoll: naïve fish, <|end_of_text|> and " +
                             std::string(static_cast<std::size_t>(i % 50), 'x') + " waves.";
    lines += nlohmann::json{{"text", text}}.dump() + "\n";
  }
  require(write_file_atomically(scene_.path("text.jsonl"), lines, FileMode::kPublic));
  tokenizer_ = content_of(kGolden + "tokenizer.json");
  require_success(atoll({"data", "prepare", scene_.path("text.jsonl").string(), "--tokenizer",
                         kGolden + "tokenizer.json", "--validation", "10", "--output", scene_.path("data").string()}));
}

void TokenizerRunTest::require_success(const ProgramOutcome& outcome) const {
  if (outcome.exit_code != 0) qFatal("exit code %d: %s", outcome.exit_code, outcome.err.c_str());
}

void TokenizerRunTest::a_dataset_says_what_it_was_made_with() {
  const DatasetManifest manifest = require(Dataset::open(scene_.path("data"))).manifest();
  const auto tokenizer = require(read_tokenizer(tokenizer_));
  QCOMPARE(manifest.vocab_size, tokenizer->facts().vocab_size);
  QCOMPARE(manifest.begin_of_text, tokenizer->facts().begin_of_text);
  QCOMPARE(std::optional(manifest.end_of_text), tokenizer->facts().end_of_text);
  QCOMPARE(content_of(scene_.path("data") / manifest.tokenizer_file.value().file), tokenizer_);
  const ProgramOutcome info = atoll({"data", "info", scene_.path("data").string(), "--verify"});
  QCOMPARE(info.exit_code, 0);
  QVERIFY2(info.out.find("llama3") != std::string::npos, info.out.c_str());
}

void TokenizerRunTest::documents_stand_between_their_tokens() {
  const Dataset dataset = require(Dataset::open(scene_.path("data")));
  const auto tokenizer = require(read_tokenizer(tokenizer_));
  const auto& facts = tokenizer->facts();
  std::vector<TokenId> document;
  std::size_t documents = 0;
  std::vector<std::int32_t> pair(2);
  for (std::uint64_t i = 0; i < dataset.sequences(Split::kTrain, 1); ++i) {
    dataset.read_sequence(Split::kTrain, i, 1, pair);
    document.push_back(static_cast<TokenId>(pair[0]));
    if (document.back() != facts.end_of_text) continue;
    QCOMPARE(document.front(), facts.begin_of_text.value());
    std::string text;
    require(tokenizer->decode(std::span(document).subspan(1, document.size() - 2), text));
    QVERIFY2(text.starts_with("Island ") && text.ends_with(" waves."), text.c_str());
    // What a page spells ends no document.
    QVERIFY2(text.find("<|end_of_text|>") != std::string::npos, text.c_str());
    document.clear();
    ++documents;
  }
  QVERIFY(documents > 300);
}

void TokenizerRunTest::train(const std::string& data, const std::string& name) {
  require_success(atoll({"train", "--data", scene_.path(data).string(), "--dir", scene_.path(name).string(), "--rounds",
                         "2", "--inner-steps", "2", "--batch", "2", "--sequence-length", "32", "--threads", "1"}));
  require_success(atoll({"export", "--home", (scene_.path(name) / "island").string(), "--output",
                         scene_.path(name + "-model").string()}));
}

void TokenizerRunTest::an_island_trains_on_them() {
  train("data", "run");
  const auto config = nlohmann::json::parse(content_of(scene_.path("run-model") / "config.json"));
  const auto tokenizer = require(read_tokenizer(tokenizer_));
  // The preset's 257 were too few.
  QVERIFY(config.at("vocab_size").get<std::uint32_t>() >= tokenizer->facts().vocab_size);
  QCOMPARE(config.at("eos_token_id").get<TokenId>(), tokenizer->facts().end_of_text.value());
  QCOMPARE(config.at("bos_token_id").get<TokenId>(), tokenizer->facts().begin_of_text.value());
}

void TokenizerRunTest::an_export_brings_the_tokenizer() {
  QCOMPARE(content_of(scene_.path("run-model") / "tokenizer.json"), tokenizer_);
  const auto config = nlohmann::json::parse(content_of(scene_.path("run-model") / "tokenizer_config.json"));
  QCOMPARE(config.at("eos_token").get<std::string>(), std::string("<|end_of_text|>"));
  // Without its file, which the island had from the hub, the model alone is exported.
  QVERIFY(std::filesystem::remove(IslandHome{scene_.path("run") / "island"}.data() / "tokenizer.json"));
  const auto bare = scene_.path("bare-model");
  require_success(atoll({"export", "--home", (scene_.path("run") / "island").string(), "--output", bare.string()}));
  QVERIFY(std::filesystem::exists(bare / "model.safetensors"));
  QVERIFY(!std::filesystem::exists(bare / "tokenizer.json"));
}

void TokenizerRunTest::the_model_is_evaluated_and_sampled_from() {
  const std::string model = scene_.path("run-model").string();
  const ProgramOutcome evaluated =
      atoll({"eval", "--model", model, "--data", scene_.path("data").string(), "--sequence-length", "32", "--json"});
  QVERIFY2(evaluated.exit_code == 0, evaluated.err.c_str());
  const auto losses = nlohmann::json::parse(evaluated.out);
  const DataStatistics statistics = require(Dataset::open(scene_.path("data"))).manifest().statistics.value();
  const double tokens_a_byte =
      static_cast<double>(statistics.validation.tokens) / static_cast<double>(statistics.validation.text_bytes);
  QVERIFY(losses.at("loss_nats").get<double>() > 0);
  QCOMPARE(losses.at("loss_nats_a_byte").get<double>(), losses.at("loss_nats").get<double>() * tokens_a_byte);
  const ProgramOutcome sampled =
      atoll({"sample", "--model", model, "--prompt", "Island", "--tokens", "5", "--seed", "1"});
  QVERIFY2(sampled.exit_code == 0, sampled.err.c_str());
  QVERIFY2(sampled.out.starts_with("Island"), sampled.out.c_str());
}

void TokenizerRunTest::an_export_of_a_run_on_bytes_has_a_tokenizer_too() {
  require_success(atoll({"data", "prepare", scene_.path("text.jsonl").string(), "--output",
                         scene_.path("bytes").string(), "--validation", "10"}));
  train("bytes", "byte-run");
  const auto tokenizer = require(load_tokenizer(scene_.path("byte-run-model")));
  std::vector<TokenId> ids;
  QVERIFY(tokenizer->encode("é", SpecialText::kIsText, *tokenizer->make_scratch(), ids).ok());
  QCOMPARE(ids, (std::vector<TokenId>{0xC3, 0xA9}));
}

void TokenizerRunTest::transformers_opens_them_data() {
  QTest::addColumn<QString>("model");
  QTest::newRow("byte-level BPE") << "run-model";
  QTest::newRow("bytes") << "byte-run-model";
  QTest::newRow("ranks") << "ranks";
}

void TokenizerRunTest::transformers_opens_them() {
  QFETCH(const QString, model);
  const QString chosen = qEnvironmentVariable("ATOLL_TRANSFORMERS_PYTHON");
  if (chosen.isEmpty()) QSKIP("ATOLL_TRANSFORMERS_PYTHON names no python3 with transformers");
  const std::filesystem::path directory = scene_.path(model.toStdString());
  if (model == "ranks") {  // what `data prepare` makes of a tiktoken file
    require_success(atoll({"data", "prepare", scene_.path("text.jsonl").string(), "--tokenizer",
                           kGolden + "small.tiktoken", "--pattern", "cl100k_base", "--output", directory.string()}));
    require(write_file_atomically(directory / "tokenizer_config.json",
                                  R"({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"})",
                                  FileMode::kPublic));
  }
  std::string text;
  for (const auto& one : nlohmann::json::parse(content_of(kGolden + "expected.json")).at("texts")) {
    text += one.get<std::string>() + "\n";
  }
  require(write_file_atomically(scene_.path("texts"), text, FileMode::kPublic));
  QProcess python;
  python.start(chosen, {"-c", kAutoTokenizer, QString::fromStdString(directory.string()),
                        QString::fromStdString(scene_.path("texts").string())});
  QVERIFY(python.waitForFinished(kPythonMilliseconds));
  const QByteArray errors = python.readAllStandardError();
  QVERIFY2(python.exitCode() == 0, errors.constData());
  const auto theirs = nlohmann::json::parse(python.readAllStandardOutput().toStdString());
  const auto tokenizer = require(load_tokenizer(directory));
  std::vector<TokenId> ids;
  QVERIFY(tokenizer->encode(text, SpecialText::kIsToken, *tokenizer->make_scratch(), ids).ok());
  QCOMPARE(theirs.at("ids").get<std::vector<TokenId>>(), ids);
  QVERIFY(theirs.at("same").get<bool>());
  QCOMPARE(theirs.at("eos").get<TokenId>(), tokenizer->facts().end_of_text.value());
  if (tokenizer->facts().begins_with_token) {
    QCOMPARE(theirs.at("first").get<TokenId>(), tokenizer->facts().begin_of_text.value());
  }
}

void TokenizerRunTest::what_is_no_tokenizer_is_refused_data() {
  QTest::addColumn<QStringList>("arguments");
  QTest::addColumn<QString>("says");
  const QString json = QString::fromStdString(kGolden + "tokenizer.json");
  const QString ranks = QString::fromStdString(kGolden + "small.tiktoken");
  QTest::newRow("no such file") << QStringList{"--tokenizer", "nowhere.json"} << "nowhere.json";
  QTest::newRow("no tokenizer") << QStringList{"--tokenizer",
                                               QString::fromStdString(scene_.path("text.jsonl").string())}
                                << "text.jsonl";
  QTest::newRow("ranks without a pattern") << QStringList{"--tokenizer", ranks} << "by which pattern";
  QTest::newRow("a pattern without a tokenizer") << QStringList{"--pattern", "gpt2"} << "--tokenizer";
  QTest::newRow("an unknown pattern") << QStringList{"--tokenizer", ranks, "--pattern", "gpt5"} << "o200k_base";
  QTest::newRow("an unknown end") << QStringList{"--tokenizer", json, "--end-of-text", "<|stop|>"}
                                  << "<|begin_of_text|>";
}

void TokenizerRunTest::what_is_no_tokenizer_is_refused() {
  QFETCH(const QStringList, arguments);
  QFETCH(const QString, says);
  std::vector<std::string> words{"data", "prepare", scene_.path("text.jsonl").string(), "--output",
                                 scene_.path("refused").string()};
  for (const QString& argument : arguments) words.push_back(argument.toStdString());
  const ProgramOutcome outcome = atoll(words);
  QVERIFY(outcome.exit_code != 0);
  QVERIFY2(outcome.err.find(says.toStdString()) != std::string::npos, outcome.err.c_str());
  QVERIFY(!std::filesystem::exists(scene_.path("refused")));
}

QTEST_GUILESS_MAIN(TokenizerRunTest)
#include "tokenizer_run_test.moc"
