// An export opens in HuggingFace transformers and is the same model there: `atoll export` of a trained island, `atoll
// eval` of the directory, and transformers' loss of it on the same tokens. Needs a Python with torch and transformers:
// ATOLL_TRANSFORMERS_PYTHON, or else python3 where that has them; what an export consists of is compared without
// (tests/net/model_files/export_golden_test.cpp).
#include <QtCore/QProcess>
#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>
#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>

#include "kernels/bf16.h"
#include "net/base/file.h"
#include "net/control/home.h"
#include "net/model/config.h"
#include "net/model_files/model_reader.h"
#include "tests/process/agent_service.h"
#include "tests/process/run_parts.h"
#include "tests/process/scene.h"
#include "trainer/engine/engine.h"
#include "trainer/island/batch_source.h"
#include "trainer/island/island_disk.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr std::uint32_t kLength = 128;
constexpr std::uint32_t kSequences = 16;
constexpr std::uint32_t kStep = 8;  // sequences of a batch
constexpr std::uint32_t kTrainingSteps = 40;
constexpr float kLearningRate = 0.01f;

// fp32 sums of another order are some 1e-6 of a loss of a few nats off.
constexpr double kTolerance = 1e-4;
// What another rope, or another order of heads, must at least change for such a loss to tell them apart.
constexpr double kTold = 100 * kTolerance;

constexpr char kScript[] = ATOLL_TEST_DATA_DIR "/../process/transformers_loss.py";
constexpr char kRoundTrip[] = ATOLL_TEST_DATA_DIR "/../process/transformers_round_trip.py";
constexpr int kPythonMilliseconds = 180'000;  // to import torch from a cold disk, most of it

struct Shape {
  const char* name;
  bool tied;
  int heads, kv_heads, head_dim;
  std::optional<Llama3RopeScaling> scaling;
};

// Shorter than the sequences, so that all three bands of frequencies are reached.
constexpr Llama3RopeScaling kScaling{
    .factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_max_position_embeddings = 64};

const Shape kShapes[] = {
    {"tied embeddings", true, 4, 4, 16, std::nullopt},
    {"an untied head, two heads a key", false, 4, 2, 16, std::nullopt},
    {"one key for all heads, which are wider together than the model", true, 4, 1, 24, std::nullopt},
    {"tied embeddings, two heads a key, scaled rope", true, 4, 2, 16, kScaling},
    {"an untied head, four heads a key, scaled rope", false, 8, 2, 8, kScaling},
};

ModelConfig config_of(const Shape& shape) {
  ModelConfig config;
  config.vocab_size = 257;
  config.hidden_size = 64;
  config.intermediate_size = 160;
  config.num_hidden_layers = 2;
  config.num_attention_heads = shape.heads;
  config.num_key_value_heads = shape.kv_heads;
  config.head_dim = shape.head_dim;
  config.max_position_embeddings = 256;
  config.rope_scaling = shape.scaling;
  config.tie_word_embeddings = shape.tied;
  config.eos_token_ids = {256};
  return config;
}

// The interpreter, or nothing where there is none with transformers.
std::optional<QString> python_with_transformers() {
  const QString chosen = qEnvironmentVariable("ATOLL_TRANSFORMERS_PYTHON");
  const QString program = chosen.isEmpty() ? "python3" : chosen;
  QProcess process;
  process.start(program, {"-c", "import torch, transformers"});
  const bool imports = process.waitForFinished(kPythonMilliseconds) && process.exitStatus() == QProcess::NormalExit &&
                       process.exitCode() == 0;
  if (imports) return program;
  // Whoever chose one wants the test.
  if (!chosen.isEmpty()) {
    qFatal("ATOLL_TRANSFORMERS_PYTHON=%s does not import torch and transformers: %s", qPrintable(chosen),
           process.readAllStandardError().constData());
  }
  return std::nullopt;
}

QByteArray said_by(const QString& python, const QStringList& arguments) {
  QProcess process;
  process.start(python, arguments);
  if (!process.waitForFinished(kPythonMilliseconds) || process.exitCode() != 0) {
    qFatal("%s: %s", qPrintable(arguments.front()), process.readAllStandardError().constData());
  }
  return process.readAllStandardOutput();
}

}  // namespace

class ExportTransformersTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void a_loss_tells_ropes_and_heads_apart();
  void transformers_computes_the_loss_of_atoll_eval_data();
  void transformers_computes_the_loss_of_atoll_eval();
  void an_export_is_what_was_trained();
  void transformers_opens_shards_of_either_type_data();
  void transformers_opens_shards_of_either_type();
  void a_model_of_transformers_comes_out_of_a_run_as_it_went_in_data();
  void a_model_of_transformers_comes_out_of_a_run_as_it_went_in();

 private:
  std::filesystem::path path(const std::string& name) const {
    return std::filesystem::path(directory_.path().toStdString()) / name;
  }
  DatasetBatches batches() const {
    return {require(Dataset::open(path("data"))),
            {.seed = 0, .sequences_per_step = kStep, .sequence_length = kLength, .validation_sequences = kSequences}};
  }
  std::unique_ptr<Engine> trained(const Shape& shape) const;
  double validation_loss(Engine& engine) const;
  // Of an island that is not running.
  void write_home(const std::filesystem::path& home, const Engine& engine) const;
  void write_validation_tokens(const std::filesystem::path& file) const;
  nlohmann::json evaluated(const std::string& model) const;
  nlohmann::json loss_in_transformers(const QString& python, const std::string& model) const;
  nlohmann::json atoll(const std::vector<std::string>& arguments) const;

  QTemporaryDir directory_;
};

void ExportTransformersTest::initTestCase() { make_dataset(path("text.txt"), path("data")); }

std::unique_ptr<Engine> ExportTransformersTest::trained(const Shape& shape) const {
  auto engine = require(Engine::create(config_of(shape), {.seed = 1}));
  DatasetBatches data = batches();
  for (std::uint32_t step = 0; step < kTrainingSteps; ++step) {
    const TokenBatch batch = require(data.train_batch(OuterStep{0}, step, {0, std::uint64_t{kTrainingSteps} * kStep}));
    require(engine->train_step(batch, kLearningRate));
  }
  return engine;
}

double ExportTransformersTest::validation_loss(Engine& engine) const {
  DatasetBatches data = batches();
  double sum = 0;
  for (std::uint32_t i = 0; i < data.validation_batches(); ++i) {
    sum += require(engine.evaluate(require(data.validation_batch(i))));
  }
  return sum / data.validation_batches();
}

void ExportTransformersTest::write_home(const std::filesystem::path& home, const Engine& engine) const {
  const IslandHome island{home};
  std::vector<float> parameters(static_cast<std::size_t>(engine.numel()));
  engine.read_parameters(parameters);
  OuterStateStore outer(engine.numel());
  outer.initialise(std::move(parameters));
  require(make_directories(home, FileMode::kPrivate));
  JoinFile join;
  join.run_id = "run-0123456789abcdef";
  join.run_name = "test run";
  join.hub_addresses = {{"127.0.0.1", 1}};
  require(save_join_file(island.join_file(), join));
  IslandDisk disk(island.checkpoint());
  disk.of_run(engine.config(), 1, {});
  require(write_snapshot(disk, outer));
}

void ExportTransformersTest::write_validation_tokens(const std::filesystem::path& file) const {
  DatasetBatches data = batches();
  std::string tokens;
  for (std::uint32_t i = 0; i < data.validation_batches(); ++i) {
    const TokenBatch batch = require(data.validation_batch(i));
    tokens.append(reinterpret_cast<const char*>(batch.tokens.data()), batch.tokens.size_bytes());
  }
  require(write_file_atomically(file, tokens, FileMode::kPublic));
}

nlohmann::json ExportTransformersTest::atoll(const std::vector<std::string>& arguments) const {
  const ProgramOutcome outcome = outcome_of(*start_atoll(arguments, QProcessEnvironment::systemEnvironment()));
  if (outcome.exit_code != 0) qFatal("atoll %s: %s", arguments[0].c_str(), outcome.err.c_str());
  return nlohmann::json::parse(outcome.out);
}

nlohmann::json ExportTransformersTest::evaluated(const std::string& model) const {
  return atoll({"eval", "--model", model, "--data", path("data"), "--sequences", std::to_string(kSequences),
                "--sequence-length", std::to_string(kLength), "--json"});
}

nlohmann::json ExportTransformersTest::loss_in_transformers(const QString& python, const std::string& model) const {
  return nlohmann::json::parse(
      said_by(python, {kScript, model.c_str(), path("tokens").c_str(), QString::number(kLength)}).toStdString());
}

// Otherwise transformers could compute another model, and its loss would still be the same.
void ExportTransformersTest::a_loss_tells_ropes_and_heads_apart() {
  const auto engine = trained(kShapes[3]);
  std::vector<float> parameters(static_cast<std::size_t>(engine->numel()));
  engine->read_parameters(parameters);
  ModelConfig unscaled = engine->config(), other_theta = unscaled, other_heads = unscaled;
  unscaled.rope_scaling.reset();
  other_theta.rope_theta = 500000;
  other_heads.num_attention_heads *= 2, other_heads.num_key_value_heads *= 2, other_heads.head_dim /= 2;
  const double loss = validation_loss(*engine);

  for (const ModelConfig& config : {unscaled, other_theta, other_heads}) {
    const auto other = require(Engine::create(config, {}));
    other->write_parameters(parameters);

    QVERIFY(std::abs(validation_loss(*other) - loss) > kTold);
  }
}

void ExportTransformersTest::transformers_computes_the_loss_of_atoll_eval_data() {
  QTest::addColumn<int>("shape");
  for (int i = 0; i < static_cast<int>(std::size(kShapes)); ++i) QTest::newRow(kShapes[i].name) << i;
}

void ExportTransformersTest::transformers_computes_the_loss_of_atoll_eval() {
  QFETCH(const int, shape);
  static const auto python = python_with_transformers();
  if (!python) {
    QSKIP(
        "python3 has no transformers: in a virtual environment, 'pip install torch transformers', then name its "
        "interpreter in ATOLL_TRANSFORMERS_PYTHON");
  }
  const std::string home = path("home " + std::to_string(shape)), model = path("model " + std::to_string(shape));
  write_home(home, *trained(kShapes[shape]));
  write_validation_tokens(path("tokens"));

  atoll({"export", "--home", home, "--output", model, "--json"});
  const nlohmann::json ours = evaluated(model), theirs = loss_in_transformers(*python, model);

  const double our_loss = ours.at("loss_nats"), their_loss = theirs.at("loss_nats");
  qInfo("atoll eval %.7f, transformers %s %.7f: %.1e apart", our_loss,
        theirs.at("transformers").get<std::string>().c_str(), their_loss, std::abs(our_loss - their_loss));
  QCOMPARE(ours.at("tokens").get<int>(), theirs.at("tokens").get<int>());
  QVERIFY(std::abs(our_loss - their_loss) <= kTolerance);
  QCOMPARE(theirs.at("class").get<std::string>(), std::string("LlamaForCausalLM"));
  QCOMPARE(theirs.at("tied").get<bool>(), kShapes[shape].tied);
  QCOMPARE(theirs.at("rope_type").get<std::string>(), std::string(kShapes[shape].scaling ? "llama3" : "default"));
}

// In one file or in shards; as bf16 each number is what it rounds to.
void ExportTransformersTest::an_export_is_what_was_trained() {
  const auto engine = trained(kShapes[1]);
  std::vector<float> parameters(static_cast<std::size_t>(engine->numel()));
  engine->read_parameters(parameters);
  const std::string home = path("exact home"), model = path("exact model");
  write_home(home, *engine);

  atoll({"export", "--home", home, "--output", model, "--json"});
  QVERIFY(require(read_model_directory(model)).parameters == parameters);

  atoll({"export", "--home", home, "--output", model, "--max-shard-size", "100kB", "--force", "--json"});
  QVERIFY(std::filesystem::exists(std::filesystem::path(model) / kIndexFile));
  QVERIFY(require(read_model_directory(model)).parameters == parameters);

  atoll({"export", "--home", home, "--output", model, "--dtype", "bfloat16", "--force", "--json"});
  std::vector<std::byte> halves(2 * parameters.size());
  encode_bf16(parameters.data(), parameters.size(), halves.data());
  decode_bf16(halves.data(), parameters.size(), parameters.data());
  QVERIFY(require(read_model_directory(model)).parameters == parameters);
  QVERIFY(require(read_file(std::filesystem::path(model) / "README.md")).find("test run") != std::string::npos);
}

void ExportTransformersTest::transformers_opens_shards_of_either_type_data() {
  QTest::addColumn<QString>("type");
  for (const char* type : {"float32", "bfloat16"}) QTest::newRow(type) << type;
}

void ExportTransformersTest::transformers_opens_shards_of_either_type() {
  QFETCH(const QString, type);
  static const auto python = python_with_transformers();
  if (!python) QSKIP("python3 has no transformers: name one that has in ATOLL_TRANSFORMERS_PYTHON");
  const std::string home = path("sharded home"), model = path("sharded " + type.toStdString());
  write_home(home, *trained(kShapes[4]));
  write_validation_tokens(path("tokens"));

  atoll({"export", "--home", home, "--output", model, "--dtype", type.toStdString(), "--max-shard-size", "100kB",
         "--json"});
  const nlohmann::json ours = evaluated(model), theirs = loss_in_transformers(*python, model);

  QVERIFY(std::filesystem::exists(std::filesystem::path(model) / kIndexFile));
  const double our_loss = ours.at("loss_nats"), their_loss = theirs.at("loss_nats");
  qInfo("atoll eval %.7f, transformers %.7f: %.1e apart", our_loss, their_loss, std::abs(our_loss - their_loss));
  QVERIFY(std::abs(our_loss - their_loss) <= kTolerance);
}

void ExportTransformersTest::a_model_of_transformers_comes_out_of_a_run_as_it_went_in_data() {
  QTest::addColumn<QString>("head");
  QTest::addColumn<QString>("type");
  QTest::newRow("tied embeddings") << "tied"
                                   << "float32";
  QTest::newRow("an untied head, bf16") << "untied"
                                        << "bfloat16";
}

// Before the first round: with one island of two nothing is trained.
void ExportTransformersTest::a_model_of_transformers_comes_out_of_a_run_as_it_went_in() {
  QFETCH(const QString, head);
  QFETCH(const QString, type);
  static const auto python = python_with_transformers();
  if (!python) QSKIP("python3 has no transformers: name one that has in ATOLL_TRANSFORMERS_PYTHON");
  Scene scene;
  const auto at = [&](const char* name) { return scene.path(name).string(); };
  said_by(*python, {kRoundTrip, "make", at("given").c_str(), head, type});
  make_dataset(scene.path("text.txt"), scene.path("data"));
  const ProgramOutcome made = scene.run({"hub", "init", "--home", at("hub"), "--data", at("data"), "--name", "test run",
                                         "--islands", "2", "--from", at("given")});
  QVERIFY2(made.exit_code == 0, made.err.c_str());
  scene.serve_hub();
  const auto island = scene.start(
      {"join", scene.invite(), "--yes", "--threads", "1", "--listen", "127.0.0.1:0", "--home", at("island")});
  QVERIFY(wait_for([&] {
    const auto state =
        nlohmann::json::parse(scene.run({"status", "--json", "--home", at("island")}).out, nullptr, false);
    return state.is_object() && !state.value("state_hash", std::string()).empty();
  }));

  const ProgramOutcome exported = scene.run({"export", "--home", at("island"), "--output", at("taken"), "--dtype",
                                             type.toStdString(), "--max-shard-size", "100kB"});

  QVERIFY2(exported.exit_code == 0, exported.err.c_str());
  const auto logits = nlohmann::json::parse(
      said_by(*python, {kRoundTrip, "compare", at("given").c_str(), at("taken").c_str()}).toStdString());
  QCOMPARE(logits.at("apart").get<double>(), 0.0);
  QVERIFY(logits.at("largest").get<double>() > 0.1);
  ::kill(static_cast<pid_t>(island->processId()), SIGINT);
  (void)outcome_of(*island);
}

QTEST_GUILESS_MAIN(ExportTransformersTest)
#include "export_transformers_test.moc"
