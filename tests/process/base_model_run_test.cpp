// A run that begins with a model of its organiser's, with programs alone: what comes out before any training is what
// went in, to the last bit; and the hub's copy serves whoever lacks outer step 0, whatever died before.
#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "kernels/bf16.h"
#include "net/base/file.h"
#include "net/model/initialise.h"
#include "net/model_files/model_reader.h"
#include "net/model_files/model_writer.h"
#include "tests/process/whole_run.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr std::uint32_t kIslands = 2;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

ModelConfig small_config(bool tied) {
  ModelConfig config = require(model_config_from_json(small_model_json()));
  config.tie_word_embeddings = tied;
  config.eos_token_ids = {256};
  return config;
}

// No run draws these from its seed.
std::vector<float> some_parameters(const ModelConfig& config, ModelDtype dtype) {
  std::vector<float> parameters = fresh_parameters(config, 1234);
  if (dtype == ModelDtype::kFloat32) return parameters;
  std::vector<std::byte> halves(2 * parameters.size());
  encode_bf16(parameters.data(), parameters.size(), halves.data());
  decode_bf16(halves.data(), parameters.size(), parameters.data());
  return parameters;
}

bool same_bits(const std::vector<float>& one, const std::vector<float>& other) {
  return one.size() == other.size() && std::memcmp(one.data(), other.data(), sizeof(float) * one.size()) == 0;
}

// A hub that waits for two islands: with one of them nothing is trained.
void make_hub_of_two(Scene& scene, const std::string& from) {
  make_dataset(scene.path("text.txt"), scene.path("data"));
  const ProgramOutcome made =
      scene.run({"hub", "init", "--home", scene.path("hub").string(), "--data", scene.path("data").string(), "--name",
                 "test run", "--islands", "2", "--from", from});
  if (made.exit_code != 0) qFatal("hub init: %s", made.err.c_str());
  scene.serve_hub();
}

void wipe(const IslandHome& home) { std::filesystem::remove_all(home.checkpoint()); }

}  // namespace

class BaseModelRunTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void what_comes_out_before_training_is_what_went_in_data();
  void what_comes_out_before_training_is_what_went_in();
  void what_contradicts_the_model_is_refused_before_a_hub_is_made();
  void everybody_dies_before_the_first_round();
  void who_comes_later_has_it_from_the_others();
  void a_rollback_to_the_beginning_works_with_every_disk_gone();
  void a_hub_from_a_backup_is_given_its_model_again();
  void another_run_begins_with_what_an_island_trained();

 private:
  std::filesystem::path path(const std::string& name) const {
    return std::filesystem::path(directory_.path().toStdString()) / name;
  }
  void start_run(std::uint32_t min_islands);
  bool holds_the_beginning(std::size_t island) const;
  std::string status_of(std::size_t island) const {
    return run_->scene().run({"status", "--home", run_->homes()[island].directory.string()}).out;
  }
  std::vector<float> exported(const Scene& scene, const std::string& home, const std::string& dtype = "float32") const;

  QTemporaryDir directory_;
  std::unique_ptr<WholeRun> run_;
  std::string hash_;  // of outer step 0
};

std::vector<float> BaseModelRunTest::exported(const Scene& scene, const std::string& home,
                                              const std::string& dtype) const {
  const ProgramOutcome outcome =
      scene.run({"export", "--home", home, "--output", path("exported").string(), "--dtype", dtype});
  if (outcome.exit_code != 0) qFatal("export: %s", outcome.err.c_str());
  auto model = require(read_model_directory(path("exported")));
  std::filesystem::remove_all(path("exported"));
  return std::move(model.parameters);
}

void BaseModelRunTest::what_comes_out_before_training_is_what_went_in_data() {
  QTest::addColumn<bool>("tied");
  QTest::addColumn<QString>("dtype");
  QTest::addColumn<quint64>("shard_bytes");
  constexpr quint64 kOneFile = 5'000'000'000;
  QTest::newRow("tied, fp32") << true << "float32" << kOneFile;
  QTest::newRow("an untied head, fp32, shards") << false << "float32" << quint64{60'000};
  QTest::newRow("tied, bf16, shards") << true << "bfloat16" << quint64{60'000};
  QTest::newRow("an untied head, bf16") << false << "bfloat16" << kOneFile;
}

void BaseModelRunTest::what_comes_out_before_training_is_what_went_in() {
  QFETCH(const bool, tied);
  QFETCH(const QString, dtype);
  QFETCH(const quint64, shard_bytes);
  const ModelDtype type = *parse_model_dtype(dtype.toStdString());
  const ModelConfig config = small_config(tied);
  const std::vector<float> parameters = some_parameters(config, type);
  const std::string model = path("a model").string();
  std::filesystem::remove_all(model);
  require(write_model_directory(model, config, parameters, {.dtype = type, .max_shard_bytes = shard_bytes}));
  Scene scene;
  make_hub_of_two(scene, model);

  const std::string home = scene.path("island").string();
  const auto island =
      scene.start({"join", scene.invite(), "--yes", "--threads", "1", "--listen", "127.0.0.1:0", "--home", home});
  QVERIFY(wait_for([&] {
    const auto state = nlohmann::json::parse(scene.run({"status", "--json", "--home", home}).out, nullptr, false);
    return state.is_object() && !state.value("state_hash", std::string()).empty();
  }));

  const RunConfig run = require(RunConfig::from_json(require(read_file(HubHome{scene.path("hub")}.run_file()))));
  QCOMPARE(run.initial_state, std::string("hub:a model"));
  QVERIFY(require(model_config_from_json(run.model_json)) == config);
  QVERIFY(same_bits(exported(scene, home), parameters));
  if (type == ModelDtype::kBfloat16) QVERIFY(same_bits(exported(scene, home, "bfloat16"), parameters));
  ::kill(static_cast<pid_t>(island->processId()), SIGINT);
  (void)outcome_of(*island);
}

void BaseModelRunTest::what_contradicts_the_model_is_refused_before_a_hub_is_made() {
  const ModelConfig config = small_config(true);
  const std::string model = path("a model").string();
  std::filesystem::remove_all(model);
  require(write_model_directory(model, config, some_parameters(config, ModelDtype::kFloat32)));
  Scene scene;
  make_dataset(scene.path("text.txt"), scene.path("data"));
  const auto init = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{
        "hub",    "init",  "--home", scene.path("none").string(), "--data", scene.path("data").string(),
        "--name", "second"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return scene.run(arguments);
  };

  const ProgramOutcome other_model = init({"--from", model, "--model", "150m"}),
                       other_preset = init({"--from", model, "--preset", "150m"}),
                       no_directory = init({"--from", path("nowhere").string()}),
                       no_model = init({"--from", scene.path("data").string()}),
                       too_long = init({"--from", model, "--sequence-length", "512"});

  for (const ProgramOutcome* outcome : {&other_model, &other_preset, &no_directory, &no_model, &too_long}) {
    QVERIFY(outcome->exit_code != 0);
  }
  QVERIFY2(has(other_model.err, "leave --model out"), other_model.err.c_str());
  QVERIFY2(has(other_preset.err, "leave --preset out"), other_preset.err.c_str());
  QVERIFY2(has(no_directory.err, "is no directory here"), no_directory.err.c_str());
  QVERIFY2(has(no_model.err, "holds no model"), no_model.err.c_str());
  QVERIFY2(has(too_long.err, "max_position_embeddings"), too_long.err.c_str());
  QVERIFY(!std::filesystem::exists(scene.path("none")));
  // What names the same is no contradiction.
  const ProgramOutcome same = init({"--from", model, "--model", model + "/config.json"});
  QVERIFY2(same.exit_code == 0, same.err.c_str());
}

void BaseModelRunTest::start_run(std::uint32_t min_islands) {
  const ModelConfig config = small_config(true);
  std::filesystem::remove_all(path("a model"));
  require(write_model_directory(path("a model"), config, some_parameters(config, ModelDtype::kFloat32)));
  RunConfig run = small_run(min_islands);
  run.model_json = to_json(config);
  run.heartbeat = std::chrono::milliseconds(500);
  run.dead_after = std::chrono::seconds(2);
  run_.reset();
  run_ = std::make_unique<WholeRun>(run, kIslands, WholeRun::Parents::kNone, path("a model"));
  run_->start_hub();
  hash_ = run_->hash_of(OuterStep{0}).value_or("");
  QVERIFY(!hash_.empty());
}

bool BaseModelRunTest::holds_the_beginning(std::size_t island) const {
  return wait_for([&] {
    const auto outcome = run_->scene().run({"status", "--json", "--home", run_->homes()[island].directory.string()});
    const auto state = nlohmann::json::parse(outcome.out, nullptr, false);
    return state.is_object() && state.value("state_hash", std::string()) == hash_;
  });
}

// With their disks, and without.
void BaseModelRunTest::everybody_dies_before_the_first_round() {
  start_run(kIslands);
  run_->start_island(0);
  QVERIFY(holds_the_beginning(0));

  run_->kill_all();
  wipe(run_->homes()[0]);
  run_->start_hub();
  run_->start_island(0);
  QVERIFY(holds_the_beginning(0));
  run_->kill_all();
  run_->start_all();

  HubState state;
  QVERIFY(run_->wait_for_step(2, state));
  QCOMPARE(run_->hash_of(OuterStep{0}).value_or(""), hash_);
  QVERIFY(!state.standstill);
}

void BaseModelRunTest::who_comes_later_has_it_from_the_others() {
  start_run(kIslands);
  run_->start_island(0);
  QVERIFY(holds_the_beginning(0));
  // Not from the hub any more.
  std::filesystem::remove(run_->hub_home().base_model_parameters());

  run_->start_island(1);

  HubState state;
  QVERIFY(run_->wait_for_step(3, state));
  QVERIFY(wait_for([&] {
    state = run_->state();
    return std::ranges::any_of(state.rounds, [](const HubState::Round& round) {
      return round.members == kIslands && round.outer_hashes_equal == true;
    });
  }));
}

void BaseModelRunTest::a_rollback_to_the_beginning_works_with_every_disk_gone() {
  start_run(kIslands);
  for (std::size_t i = 0; i < kIslands; ++i) run_->start_island(i);
  HubState state;
  QVERIFY(run_->wait_for_step(3, state));
  run_->kill_all();
  for (const IslandHome& home : run_->homes()) wipe(home);
  run_->start_all();
  QVERIFY(wait_for([&] { return run_->state().standstill.has_value(); }));

  const auto back = run_->go_back_as_told(run_->state());

  QCOMPARE(back.value_or(99), 0u);
  QVERIFY(run_->wait_for_step(2, state));
  QCOMPARE(run_->hash_of(OuterStep{0}).value_or(""), hash_);
}

void BaseModelRunTest::a_hub_from_a_backup_is_given_its_model_again() {
  start_run(kIslands);
  const std::string hub = run_->hub_home().directory.string(), file = path("hub.tar").string();
  std::filesystem::remove(file);
  const ProgramOutcome saved = run_->scene().run({"hub", "backup", file, "--home", hub});
  QVERIFY2(saved.exit_code == 0, saved.err.c_str());
  QVERIFY2(has(saved.err, "nor is the model with which the run began"), saved.err.c_str());
  QVERIFY(std::filesystem::file_size(file) < 1'000'000);
  run_->kill_all();
  std::filesystem::remove_all(hub);
  const ProgramOutcome restored = run_->scene().run({"hub", "restore", file, "--home", hub});
  QVERIFY2(restored.exit_code == 0, restored.err.c_str());
  QVERIFY2(has(restored.err, "atoll hub base-model DIR"), restored.err.c_str());

  // Given islands that wait for it, and are told so,
  run_->start_all();
  QVERIFY(wait_for([&] { return has(status_of(0), "atoll hub base-model DIR"); }));
  QCOMPARE(run_->state().outer_step, 0u);

  const ProgramOutcome given =
      run_->scene().run({"hub", "base-model", path("a model").string(), "--home", hub, "--json"});

  QVERIFY2(given.exit_code == 0, given.err.c_str());
  QCOMPARE(nlohmann::json::parse(given.out).at("tree_hash").get<std::string>(), hash_);
  HubState state;
  QVERIFY(run_->wait_for_step(2, state, /*islands=*/kIslands + 1));  // a standstill is over as soon as they have it
  QVERIFY(wait_for([&] { return !has(status_of(0), "atoll hub base-model DIR"); }));
}

void BaseModelRunTest::another_run_begins_with_what_an_island_trained() {
  start_run(kIslands);
  for (std::size_t i = 0; i < kIslands; ++i) run_->start_island(i);
  HubState state;
  QVERIFY(run_->wait_for_step(3, state));
  run_->kill_all();
  const std::string trained = run_->homes()[0].directory.string();
  const std::vector<float> parameters = exported(run_->scene(), trained);
  QVERIFY(!same_bits(parameters, some_parameters(small_config(true), ModelDtype::kFloat32)));

  Scene scene;
  make_hub_of_two(scene, trained);
  const std::string home = scene.path("island").string();
  const auto island =
      scene.start({"join", scene.invite(), "--yes", "--threads", "1", "--listen", "127.0.0.1:0", "--home", home});
  QVERIFY(wait_for([&] {
    const auto now = nlohmann::json::parse(scene.run({"status", "--json", "--home", home}).out, nullptr, false);
    return now.is_object() && !now.value("state_hash", std::string()).empty();
  }));

  QVERIFY(same_bits(exported(scene, home), parameters));
  ::kill(static_cast<pid_t>(island->processId()), SIGINT);
  (void)outcome_of(*island);
}

QTEST_GUILESS_MAIN(BaseModelRunTest)
#include "base_model_run_test.moc"
