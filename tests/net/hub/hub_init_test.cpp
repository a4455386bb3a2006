// A hub is made only for a run that its islands can train.
#include <QTemporaryDir>
#include <QtTest>

#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/data/prepare.h"
#include "net/hub/hub.h"
#include "net/hub/hub_data.h"
#include "net/hub/hub_store.h"
#include "tests/fakes/test_run.h"

using namespace atl;

class HubInitTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void hub_init_refuses_what_every_island_refuses_data();
  void hub_init_refuses_what_every_island_refuses();
  void a_run_that_islands_can_train_is_made();
  void files_that_are_not_there_are_told();
  void a_hub_that_stepped_down_is_the_newest_when_it_is_started_again();

 private:
  std::filesystem::path path(const char* name) const {
    return std::filesystem::path(directory_.path().toStdString()) / name;
  }
  HubInitOptions options(const char* hub) const {
    RunConfig run;
    run.name = "a run";
    run.model_json = tiny_model_json();
    run.sequence_length = 64;
    return {path(hub), {{path("data")}}, run};
  }
  QTemporaryDir directory_;
};

void HubInitTest::initTestCase() {
  std::string text;
  for (int i = 0; text.size() < 16 * 1024; ++i) text += "line " + std::to_string(i) + " of a ring of islands\n";
  QVERIFY(write_file_atomically(path("text.txt"), text, FileMode::kPublic).ok());
  QVERIFY(prepare_dataset({path("text.txt")}, path("data"), {}, {}).ok());
}

void HubInitTest::hub_init_refuses_what_every_island_refuses_data() {
  QTest::addColumn<QByteArray>("change");  // of a model that would do
  QTest::addColumn<quint32>("sequence_length");
  QTest::addColumn<QByteArray>("says");
  const auto row = [](const char* name, const char* change, const char* says, quint32 sequence_length = 64) {
    QTest::newRow(name) << QByteArray(change) << sequence_length << QByteArray(says);
  };
  row("biases", R"({"attention_bias": true})", "attention_bias");
  row("biases of the feed-forward block", R"({"mlp_bias": true})", "mlp_bias");
  row("another activation", R"({"hidden_act": "gelu"})", "hidden_act");
  row("another scaling", R"({"rope_scaling": {"rope_type": "yarn", "factor": 2}})", "rope_type");
  row("another model", R"({"model_type": "mistral"})", "model_type");
  row("another architecture", R"({"architectures": ["MistralForCausalLM"]})", "architectures");
  row("dropout", R"({"attention_dropout": 0.1})", "attention_dropout");
  row("quantised", R"({"quantization_config": {"bits": 4}})", "quantization_config");
  row("no size", R"({"hidden_size": null})", "hidden_size");
  row("odd heads", R"({"head_dim": 3})", "head_dim");
  row("heads that do not divide", R"({"num_key_value_heads": 3})", "num_key_value_heads");
  row("layers without end", R"({"num_hidden_layers": 1000000})", "num_hidden_layers");
  row("more parameters than can be counted",
      R"({"hidden_size": 1048576, "intermediate_size": 1048576, "num_hidden_layers": 4096, "head_dim": 2})",
      "parameters");
  row("wider than any machine", R"({"num_attention_heads": 1048576, "num_key_value_heads": 1, "head_dim": 1048576})",
      "num_attention_heads");
  row("fewer kinds of token than the data", R"({"vocab_size": 256})", "vocab_size is 256");
  row("longer than its positions", "{}", "max_position_embeddings", 2048);
}

void HubInitTest::hub_init_refuses_what_every_island_refuses() {
  QFETCH(const QByteArray, change);
  QFETCH(const quint32, sequence_length);
  QFETCH(const QByteArray, says);
  HubInitOptions refused = options("refused");
  auto model = nlohmann::json::parse(refused.run.model_json);
  model.update(nlohmann::json::parse(change.toStdString()));
  refused.run.model_json = model.dump();
  refused.run.sequence_length = sequence_length;

  const auto made = hub_init(refused);

  QVERIFY(!made.ok());
  QCOMPARE(made.error().code, ErrorCode::kInvalidArgument);
  QVERIFY2(QByteArray::fromStdString(made.error().message).contains(says), made.error().message.c_str());
  QVERIFY(!std::filesystem::exists(path("refused")));
}

void HubInitTest::a_run_that_islands_can_train_is_made() {
  const auto made = hub_init(options("made"));

  QVERIFY2(made.ok(), made.ok() ? "" : made.error().message.c_str());
  QVERIFY(std::filesystem::exists(path("made") / "run.json"));
}

void HubInitTest::files_that_are_not_there_are_told() {
  const HubHome home{path("lacking")};
  HubInitOptions chosen = options("lacking");
  const char* question = R"({"kind": "multiple_choice"})"
                         "\n"
                         R"({"context": "An atoll is a", "choices": ["ring", "line"], "gold": 0})";
  QVERIFY(write_file_atomically(path("asked.jsonl"), question, FileMode::kPublic).ok());
  auto tasks = read_evaluation_files({path("asked.jsonl")});
  QVERIFY2(tasks.ok(), tasks.ok() ? "" : tasks.error().message.c_str());
  chosen.evaluation = std::move(*tasks);
  chosen.evaluate_every = 1;
  const auto made = hub_init(chosen);
  QVERIFY2(made.ok(), made.ok() ? "" : made.error().message.c_str());
  const auto files = served_files(*made, *load_hub_file(home), home);
  QVERIFY2(files.ok(), files.ok() ? "" : files.error().message.c_str());
  const std::string nothing = lacking(*files);
  QVERIFY2(nothing.empty(), nothing.c_str());

  const std::filesystem::path task = evaluation_file_in(home, made->evaluation.tasks.front());
  std::filesystem::remove(task);
  const std::string one = lacking(*files);
  QVERIFY2(one.starts_with(task.string() + " is not there;"), one.c_str());
  QVERIFY(write_file_atomically(task, "cut", FileMode::kPublic).ok());
  const std::string cut = lacking(*files);
  QVERIFY2(cut.starts_with(task.string() + " is shorter than"), cut.c_str());
  std::filesystem::remove(path("data") / "train-00000.tok");
  const std::string two = lacking(*files);
  QVERIFY2(two.find("train-00000.tok is not there, and 1 more;") != std::string::npos, two.c_str());
}

// Its machine's clock is behind that of the hub whose backup it serves.
void HubInitTest::a_hub_that_stepped_down_is_the_newest_when_it_is_started_again() {
  const auto store = HubStore::open(path("hub.sqlite"));
  QVERIFY(store.ok());
  QCOMPARE(*(*store)->begin_epoch(1'000), std::uint64_t{1'000});

  QVERIFY((*store)->know_epoch(900).ok());
  QVERIFY((*store)->know_epoch(50'000).ok());

  QCOMPARE(*(*store)->begin_epoch(2'000), std::uint64_t{50'001});
}

QTEST_GUILESS_MAIN(HubInitTest)
#include "hub_init_test.moc"
