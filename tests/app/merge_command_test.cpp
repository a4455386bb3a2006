// atoll merge: what is merged, what is refused, and what a person is told.
#include <QtTest/QTest>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/model_files/model_reader.h"
#include "net/model_files/model_writer.h"
#include "tests/app/cli_run.h"

using namespace atl;
using namespace atl::test;

class MergeCommandTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init();
  void two_models_become_their_mean();
  void a_weight_stands_behind_its_model();
  void what_another_method_reads_is_refused_data();
  void what_another_method_reads_is_refused();
  void a_directory_that_is_there_is_replaced_only_when_asked();
  void models_of_two_tokenizers_are_merged_only_when_asked();
  void json_says_what_was_made();

 private:
  std::string path(const std::string& name) const { return atoll_->path(name).string(); }
  // A small model all of whose numbers are `value`.
  void write(const std::string& name, float value) const;
  float value_of(const std::string& name) const { return read_model_directory(path(name))->parameters.at(0); }

  std::unique_ptr<CliRun> atoll_;
};

void MergeCommandTest::write(const std::string& name, float value) const {
  ModelConfig config;
  config.vocab_size = 5;
  config.hidden_size = 4;
  config.intermediate_size = 8;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 2;
  const std::vector<float> values(static_cast<std::size_t>(canonical_layout(config).numel), value);
  if (!write_model_directory(path(name), config, values).ok()) qFatal("cannot write %s", name.c_str());
}

void MergeCommandTest::init() {
  atoll_ = std::make_unique<CliRun>();
  write("a", 1);
  write("b", 3);
  write("base", 0.5f);
}

void MergeCommandTest::two_models_become_their_mean() {
  const CliOutcome outcome = (*atoll_)({"merge", "--model", path("a"), "--model", path("b"), "-o", path("out")});

  QVERIFY2(outcome.exit_code == kExitOk, outcome.err.c_str());
  QVERIFY(contains(outcome.out, "of 2 models, merged by linear"));
  QCOMPARE(value_of("out"), 2.0f);
}

void MergeCommandTest::a_weight_stands_behind_its_model() {
  write("c:2", 7);  // whose name ends as a weight does

  QCOMPARE((*atoll_)({"merge", "--method", "task-arithmetic", "--base", path("base"), "--model", path("a") + ":2",
                      "--model", path("c:2"), "-o", path("out")})
               .exit_code,
           static_cast<int>(kExitOk));

  QCOMPARE(value_of("out"), 0.5f + 2 * 0.5f + 6.5f);
}

void MergeCommandTest::what_another_method_reads_is_refused_data() {
  QTest::addColumn<QStringList>("options");
  QTest::addColumn<QString>("said");
  QTest::newRow("no base") << QStringList{"--method", "ties", "--density", "0.5"} << "--base DIR";
  QTest::newRow("no density") << QStringList{"--method", "ties", "--base", "BASE"} << "--density 0.5";
  QTest::newRow("a base") << QStringList{"--base", "BASE"} << "--base is of";
  QTest::newRow("lambda") << QStringList{"--lambda", "2"} << "--lambda is of";
  QTest::newRow("t") << QStringList{"--t", "0.5"} << "--t is of slerp";
  QTest::newRow("a seed") << QStringList{"--seed", "3"} << "--seed is of DARE";
  QTest::newRow("a density") << QStringList{"--density", "0.5"} << "--density is of";
  QTest::newRow("normalize") << QStringList{"--method", "slerp", "--normalize"} << "--normalize is of";
  QTest::newRow("a method of nobody") << QStringList{"--method", "magic"} << "--method";
  QTest::newRow("densities for others") << QStringList{"--method", "ties",      "--base", "BASE",      "--density",
                                                       "0.5",      "--density", "0.5",    "--density", "0.5"}
                                        << "stands 3 times";
}

void MergeCommandTest::what_another_method_reads_is_refused() {
  QFETCH(const QStringList, options);
  QFETCH(const QString, said);
  std::vector<std::string> arguments{"merge", "--model", path("a"), "--model", path("b"), "-o", path("out")};
  for (const QString& option : options) arguments.push_back(option == "BASE" ? path("base") : option.toStdString());

  const CliOutcome outcome = (*atoll_)(arguments);

  QCOMPARE(outcome.exit_code, static_cast<int>(kExitUsage));
  QVERIFY2(contains(outcome.err, said.toStdString()), outcome.err.c_str());
  QVERIFY(!std::filesystem::exists(path("out")));
}

void MergeCommandTest::a_directory_that_is_there_is_replaced_only_when_asked() {
  write("out", 9);
  std::vector<std::string> arguments{"merge", "--model", path("a"), "--model", path("b"), "-o", path("out")};

  const CliOutcome refused = (*atoll_)(arguments);
  QVERIFY(refused.exit_code != kExitOk);
  QVERIFY(contains(refused.err, "--force"));
  QCOMPARE(value_of("out"), 9.0f);

  arguments.push_back("--force");
  QCOMPARE((*atoll_)(arguments).exit_code, static_cast<int>(kExitOk));
  QCOMPARE(value_of("out"), 2.0f);
}

// Of one shape and size, so that nothing else would tell.
void MergeCommandTest::models_of_two_tokenizers_are_merged_only_when_asked() {
  const std::string text = read_file(std::string(ATOLL_TEST_DATA_DIR) + "/tokenizer/tokenizer.json").value();
  nlohmann::json other = nlohmann::json::parse(text);
  std::swap(other["model"]["merges"][2], other["model"]["merges"][3]);
  const auto put = [&](const std::string& name, const std::string& content) {
    QVERIFY(write_file_atomically(path(name) + "/tokenizer.json", content, FileMode::kPublic).ok());
  };
  put("a", text);
  put("b", other.dump());
  std::vector<std::string> arguments{"merge", "--model", path("a"), "--model", path("b"), "-o", path("out")};

  const CliOutcome refused = (*atoll_)(arguments);
  QCOMPARE(refused.exit_code, static_cast<int>(kExitUsage));
  QVERIFY2(contains(refused.err, "two tokenizers") && contains(refused.err, "--force"), refused.err.c_str());
  QVERIFY(!std::filesystem::exists(path("out")));

  arguments.push_back("--force");
  const CliOutcome forced = (*atoll_)(arguments);
  QCOMPARE(forced.exit_code, static_cast<int>(kExitOk));
  QVERIFY2(contains(forced.err, "note: ") && contains(forced.err, "two tokenizers"), forced.err.c_str());

  put("b", nlohmann::json::parse(text).dump(1));
  const CliOutcome same = (*atoll_)(arguments);
  QCOMPARE(same.exit_code, static_cast<int>(kExitOk));
  QVERIFY2(same.err.empty(), same.err.c_str());
}

void MergeCommandTest::json_says_what_was_made() {
  const CliOutcome outcome = (*atoll_)({"merge", "--method", "slerp", "--model", path("a"), "--model", path("b"), "-o",
                                        path("out"), "--dtype", "bfloat16", "--json"});

  const nlohmann::json made = nlohmann::json::parse(outcome.out);
  QCOMPARE(made.at("method").get<std::string>(), std::string("slerp"));
  QCOMPARE(made.at("models").get<int>(), 2);
  QCOMPARE(made.at("dtype").get<std::string>(), std::string("bfloat16"));
  QVERIFY(ModelReader::open(path("out"))->is_bf16());
  QCOMPARE(made.at("parameters").get<std::int64_t>(), ModelReader::open(path("out"))->layout().numel);
}

QTEST_GUILESS_MAIN(MergeCommandTest)
#include "merge_command_test.moc"
