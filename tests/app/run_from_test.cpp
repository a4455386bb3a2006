// A run that goes on from a model: its data must be of the model's tokenizer, and what its organiser leaves open is
// what a trained model can bear.
#include <QtTest/QTest>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/hub/hub_home.h"
#include "net/model_files/model_reader.h"
#include "net/model_files/model_writer.h"
#include "net/tokenizer/huggingface_writer.h"
#include "tests/app/cli_run.h"

using namespace atl;
using namespace atl::test;
using nlohmann::json;

namespace {

const std::filesystem::path kGolden = ATOLL_TEST_DATA_DIR;

json golden_tokenizer() { return json::parse(read_file(kGolden / "tokenizer" / "tokenizer.json").value()); }

}  // namespace

class RunFromTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init();
  void data_of_the_models_tokenizer_is_taken();
  void data_of_another_tokenizer_is_refused_unless_forced_data();
  void data_of_another_tokenizer_is_refused_unless_forced();
  void a_model_without_a_tokenizer_is_taken_with_a_word();
  void a_head_that_is_not_the_embedding_is_kept_and_told();
  void what_is_not_said_is_what_a_trained_model_can_bear_data();
  void what_is_not_said_is_what_a_trained_model_can_bear();
  void a_preset_that_is_named_holds();
  void train_asks_the_same();

 private:
  std::string path(const std::string& name) const { return atoll_->path(name).string(); }
  void put(const std::string& name, const std::string& text) const {
    QVERIFY(write_file_atomically(path(name), text, FileMode::kPublic).ok());
  }
  void write_model(std::int64_t vocab_size, std::int64_t context) const;
  CliOutcome hub_init(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"hub",        "init",   "--home", path("hub"), "--data",
                                       path("data"), "--name", "second", "--from",    path("model")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return (*atoll_)(arguments);
  }
  RunConfig run() const { return load_run(HubHome{path("hub")}).value(); }

  std::unique_ptr<CliRun> atoll_;
};

void RunFromTest::write_model(std::int64_t vocab_size, std::int64_t context) const {
  ModelConfig config;
  config.vocab_size = vocab_size;
  config.hidden_size = 4;
  config.intermediate_size = 8;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 2;
  config.max_position_embeddings = context;
  config.tie_word_embeddings = true;
  const std::vector<float> values(static_cast<std::size_t>(canonical_layout(config).numel), 1.0f);
  QVERIFY(write_model_directory(path("model"), config, values).ok());
}

// A model of the golden tokenizer, with data of it.
void RunFromTest::init() {
  atoll_ = std::make_unique<CliRun>();
  write_model(2176, 1024);
  put("model/tokenizer.json", golden_tokenizer().dump());
  put("tokenizer.json", golden_tokenizer().dump(1));
  const CliOutcome prepared = (*atoll_)({"data", "prepare", atoll_->write_text().string(), "--tokenizer",
                                         path("tokenizer.json"), "--validation", "20", "--output", path("data")});
  QVERIFY2(prepared.exit_code == kExitOk, prepared.err.c_str());
}

void RunFromTest::data_of_the_models_tokenizer_is_taken() {
  const CliOutcome outcome = hub_init();

  QVERIFY2(outcome.exit_code == kExitOk, outcome.err.c_str());
  QVERIFY2(!contains(outcome.err, "tokenizer"), outcome.err.c_str());
}

void RunFromTest::data_of_another_tokenizer_is_refused_unless_forced_data() {
  QTest::addColumn<QByteArray>("tokenizer");  // of the model; all have as many tokens
  QTest::addColumn<QByteArray>("says");
  json merges = golden_tokenizer(), name = golden_tokenizer();
  std::swap(merges["model"]["merges"][2], merges["model"]["merges"][3]);
  name["added_tokens"][1]["content"] = "<|im_end|>";
  QTest::newRow("other merges") << QByteArray::fromStdString(merges.dump()) << QByteArray("another order");
  QTest::newRow("another special token") << QByteArray::fromStdString(name.dump()) << QByteArray("token 2049");
  QTest::newRow("bytes") << QByteArray::fromStdString(byte_tokenizer_to_huggingface()) << QByteArray("token");
  QTest::newRow("none that can be read") << QByteArray("{}") << QByteArray("cannot be told");
}

void RunFromTest::data_of_another_tokenizer_is_refused_unless_forced() {
  QFETCH(const QByteArray, tokenizer);
  QFETCH(const QByteArray, says);
  put("model/tokenizer.json", tokenizer.toStdString());

  const CliOutcome refused = hub_init();
  QCOMPARE(refused.exit_code, static_cast<int>(kExitUsage));
  QVERIFY2(contains(refused.err, says.toStdString()) && contains(refused.err, "--force"), refused.err.c_str());
  QVERIFY(!std::filesystem::exists(path("hub")));

  const CliOutcome forced = hub_init({"--force"});
  QVERIFY2(forced.exit_code == kExitOk, forced.err.c_str());
  QVERIFY2(contains(forced.err, says.toStdString()) && contains(forced.err, "as --force says"), forced.err.c_str());
}

void RunFromTest::a_model_without_a_tokenizer_is_taken_with_a_word() {
  std::filesystem::remove(path("model/tokenizer.json"));

  const CliOutcome outcome = hub_init();

  QVERIFY2(outcome.exit_code == kExitOk, outcome.err.c_str());
  QVERIFY2(contains(outcome.err, "no tokenizer lies beside model"), outcome.err.c_str());
}

void RunFromTest::a_head_that_is_not_the_embedding_is_kept_and_told() {
  ModelConfig config = ModelReader::open(path("model"))->config();
  config.tie_word_embeddings = false;
  std::vector<float> values(static_cast<std::size_t>(canonical_layout(config).numel), 1.0f);
  values.back() = 2;
  QVERIFY(write_model_directory(path("model"), config, values).ok());
  json lie = json::parse(read_file(path("model/config.json")).value());
  lie["tie_word_embeddings"] = true;
  put("model/config.json", lie.dump());

  const CliOutcome outcome = hub_init();

  QVERIFY2(outcome.exit_code == kExitOk, outcome.err.c_str());
  QVERIFY2(contains(outcome.err, "note: ") && contains(outcome.err, "lm_head.weight"), outcome.err.c_str());
  QVERIFY(!model_config_from_json(run().model_json)->tie_word_embeddings);
}

void RunFromTest::what_is_not_said_is_what_a_trained_model_can_bear_data() {
  QTest::addColumn<int>("context");
  QTest::addColumn<QStringList>("said");
  QTest::addColumn<double>("rate");
  QTest::addColumn<quint32>("length");
  QTest::addColumn<quint32>("sequences");
  QTest::newRow("nothing") << 1024 << QStringList() << 5e-5 << 1024u << 8u;
  QTest::newRow("a rate") << 1024 << QStringList{"--lr", "3e-4"} << 3e-4 << 1024u << 8u;
  QTest::newRow("a batch") << 1024 << QStringList{"--batch", "3"} << 5e-5 << 1024u << 3u;
  QTest::newRow("a length") << 1024 << QStringList{"--sequence-length", "128"} << 5e-5 << 128u << 64u;
  QTest::newRow("a model of short texts") << 100 << QStringList() << 5e-5 << 100u << 64u;
  QTest::newRow("a model of long texts") << 131072 << QStringList() << 5e-5 << 2048u << 4u;
}

void RunFromTest::what_is_not_said_is_what_a_trained_model_can_bear() {
  QFETCH(const int, context);
  QFETCH(const QStringList, said);
  QFETCH(const double, rate);
  QFETCH(const quint32, length);
  QFETCH(const quint32, sequences);
  write_model(2176, context);
  std::vector<std::string> more;
  for (const QString& word : said) more.push_back(word.toStdString());

  const CliOutcome outcome = hub_init(more);

  QVERIFY2(outcome.exit_code == kExitOk, outcome.err.c_str());
  QVERIFY2(contains(outcome.err, "for a model that goes on: "), outcome.err.c_str());
  QCOMPARE(run().inner.learning_rate, rate);
  QCOMPARE(run().inner.final_learning_rate, rate / 10);
  QCOMPARE(run().sequence_length, length);
  QCOMPARE(run().sequences_per_step, sequences);
}

void RunFromTest::a_preset_that_is_named_holds() {
  put("preset.json", json{{"model", path("model/config.json")},
                          {"run", {{"sequences_per_step", 2}, {"inner", {{"learning_rate", 0.004}}}}}}
                         .dump());

  const CliOutcome outcome = hub_init({"--preset", path("preset.json")});

  QVERIFY2(outcome.exit_code == kExitOk, outcome.err.c_str());
  QCOMPARE(run().inner.learning_rate, 0.004);
  QCOMPARE(run().sequences_per_step, 2u);
}

void RunFromTest::train_asks_the_same() {
  put("model/tokenizer.json", byte_tokenizer_to_huggingface());

  const CliOutcome outcome =
      (*atoll_)({"train", "--data", path("data"), "--dir", path("run"), "--from", path("model"), "--rounds", "1"});

  QCOMPARE(outcome.exit_code, static_cast<int>(kExitUsage));
  QVERIFY2(contains(outcome.err, "another tokenizer") && contains(outcome.err, "--force"), outcome.err.c_str());
  QVERIFY(!std::filesystem::exists(path("run")));
}

QTEST_GUILESS_MAIN(RunFromTest)
#include "run_from_test.moc"
