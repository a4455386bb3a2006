// A run that trains only some of a model's parameters, with programs alone: the others stay as they began, to the last
// bit, on every island and through a death; and what is averaged is less by their share.
#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>
#include <cstring>
#include <map>

#include "kernels/wire_codec.h"
#include "net/base/file.h"
#include "net/disk/checkpoint_directory.h"
#include "net/disk/checkpoint_model.h"
#include "net/disk/kept_average_file.h"
#include "net/disk/round_log.h"
#include "net/model/fragments.h"
#include "net/model/initialise.h"
#include "net/model/train_only.h"
#include "net/model_files/model_reader.h"
#include "net/model_files/model_writer.h"
#include "tests/process/whole_run.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr std::uint32_t kIslands = 2;
const std::vector<std::string> kTrainOnly{"model.layers.1.*", "*.0.self_attn.v_proj.weight"};

}  // namespace

class TrainOnlyRunTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void what_is_frozen_stays_and_what_travels_is_less_by_its_share_data();
  void what_is_frozen_stays_and_what_travels_is_less_by_its_share();
  void a_pattern_that_names_nothing_is_told_before_a_hub_is_made();
  void what_has_most_signal_is_trained_by_a_share();

 private:
  std::filesystem::path path(const std::string& name) const {
    return std::filesystem::path(directory_.path().toStdString()) / name;
  }

  QTemporaryDir directory_;
};

void TrainOnlyRunTest::what_is_frozen_stays_and_what_travels_is_less_by_its_share_data() {
  QTest::addColumn<std::uint32_t>("fragments");
  QTest::newRow("the whole at once") << 1u;
  QTest::newRow("two fragments in turn") << 2u;
}

void TrainOnlyRunTest::what_is_frozen_stays_and_what_travels_is_less_by_its_share() {
  QFETCH(const std::uint32_t, fragments);
  const ModelConfig config = require(model_config_from_json(small_model_json()));
  const ParameterLayout layout = layout_of_training(config, kTrainOnly);
  const std::vector<float> before = fresh_parameters(config, 99);
  std::filesystem::remove_all(path("model"));
  require(write_model_directory(path("model"), config, before));
  RunConfig run = small_run(kIslands);
  run.model_json = to_json(config);
  run.train_only = kTrainOnly;
  run.fragments = fragments;
  WholeRun whole(run, kIslands, WholeRun::Parents::kNone, path("model"));
  whole.start_all();
  HubState state;
  QVERIFY(whole.wait_for_step(3, state));
  // Given a death, after which the state is made again of the logged rounds,
  whole.kill_all();
  whole.start_all();
  QVERIFY(whole.wait_for_step(state.outer_step + 2, state));
  whole.kill_all();

  for (const IslandHome& home : whole.homes()) {
    const ProgramOutcome exported =
        whole.scene().run({"export", "--home", home.directory.string(), "--output", path("exported").string()});
    QVERIFY2(exported.exit_code == 0, exported.err.c_str());
    const std::vector<float> after = require(read_model_directory(path("exported"))).parameters;
    std::filesystem::remove_all(path("exported"));
    for (const ParameterInfo& parameter : layout.parameters) {
      const auto at = static_cast<std::size_t>(parameter.offset);
      const bool same = std::memcmp(&before[at], &after[at], sizeof(float) * parameter.numel) == 0;
      QVERIFY2(same != parameter.trained, parameter.name.c_str());
    }
    // What the ring averaged: of all fragments together, as many bytes as what is trained takes.
    std::uint64_t bytes = 0, expected = 0;
    const RoundLog log(home.checkpoint());
    // The newest that the kill left of each fragment.
    std::map<std::uint32_t, std::uint64_t> bytes_of_fragment;
    for (const auto& [round, logged] : log.rounds()) {
      bytes_of_fragment[round.value % fragments] = require(AverageFile::open(log.average_file(round))).info().bytes;
    }
    QCOMPARE(bytes_of_fragment.size(), std::size_t{fragments});
    for (const auto& [fragment, of_fragment] : bytes_of_fragment) bytes += of_fragment;
    for (const Fragment& fragment : require(fragments_of(layout, fragments))) {
      expected += static_cast<std::uint64_t>(encoded_bytes(run.wire, fragment.numel));
    }
    QCOMPARE(bytes, expected);
    const double share = static_cast<double>(trained_numel(layout)) / static_cast<double>(layout.numel);
    // Whoever cannot read what is trained does not take it to be everything.
    QCOMPARE(require(load_checkpoint_model(home.checkpoint())).layout.parameters.front().trained, false);
    require(write_file_atomically(home.checkpoint() / kRunFile, "{", FileMode::kPrivate));
    QVERIFY(!load_checkpoint_model(home.checkpoint()).ok());
    QVERIFY(static_cast<double>(bytes) < 1.02 * share * static_cast<double>(encoded_bytes(run.wire, layout.numel)));
  }
}

void TrainOnlyRunTest::a_pattern_that_names_nothing_is_told_before_a_hub_is_made() {
  Scene scene;
  make_dataset(scene.path("text.txt"), scene.path("data"));
  const auto init = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{
        "hub", "init", "--home", scene.path("none").string(), "--data", scene.path("data").string(), "--name", "a run"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return scene.run(arguments);
  };

  const ProgramOutcome nothing = init({"--train-only", "model.layers.77.*"}), fresh = init({"--train-top-snr", "0.25"});

  QVERIFY(nothing.exit_code != 0 && fresh.exit_code != 0);
  QVERIFY2(nothing.err.find("names no parameter of the model") != std::string::npos, nothing.err.c_str());
  QVERIFY2(fresh.err.find("--from DIR") != std::string::npos, fresh.err.c_str());
  QVERIFY(!std::filesystem::exists(scene.path("none")));
}

void TrainOnlyRunTest::what_has_most_signal_is_trained_by_a_share() {
  const ModelConfig config = require(model_config_from_json(small_model_json()));
  std::filesystem::remove_all(path("model"));
  require(write_model_directory(path("model"), config, fresh_parameters(config, 99)));
  Scene scene;
  make_dataset(scene.path("text.txt"), scene.path("data"));

  const ProgramOutcome made = scene.run(
      {"hub", "init", "--home", scene.path("hub").string(), "--data", scene.path("data").string(), "--name", "a run",
       "--from", path("model").string(), "--train-only", "model.norm.weight", "--train-top-snr", "0.5"});

  QVERIFY2(made.exit_code == 0, made.err.c_str());
  const RunConfig run = require(RunConfig::from_json(require(read_file(scene.path("hub") / "run.json"))));
  const auto of_each_kind = static_cast<std::size_t>(std::max<std::int64_t>(1, config.num_hidden_layers / 2));
  QCOMPARE(run.train_only.size(), 1 + 7 * of_each_kind);
  QCOMPARE(run.train_only.front(), std::string("model.norm.weight"));
  QVERIFY2(made.out.find("parameters are trained; the others stay as they begin") != std::string::npos,
           made.out.c_str());
}

QTEST_GUILESS_MAIN(TrainOnlyRunTest)
#include "train_only_run_test.moc"
