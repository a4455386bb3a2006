// `atoll checkpoints` on an island's disk on which there are states and logged rounds: what it lists, makes the newest,
// and removes.
#include <QtTest>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "net/base/encoding.h"
#include "net/base/file.h"
#include "net/collective/canonical_digest.h"
#include "net/control/control_server.h"
#include "net/control/home.h"
#include "net/disk/checkpoint_directory.h"
#include "net/disk/kept_states.h"
#include "net/model/layout.h"
#include "net/recovery/outer_state.h"
#include "net/recovery/outer_step.h"
#include "tests/app/cli_run.h"
#include "tests/app/schema_defects.h"

using namespace atl;
using atl::test::CliOutcome;
using atl::test::CliRun;
using atl::test::contains;
using atl::test::defects;

namespace {

ModelConfig tiny_model() {
  ModelConfig config;
  config.vocab_size = 11;
  config.hidden_size = 8;
  config.intermediate_size = 12;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 4;
  config.max_position_embeddings = 32;
  return config;
}

void must(const Status& status) {
  if (!status.ok()) qFatal("%s", status.error().message.c_str());
}

// An island's disk as one leaves it that has trained.
class IslandOnDisk {
 public:
  explicit IslandOnDisk(const CliRun& atoll) : home{atoll.path("island")} {
    std::filesystem::create_directories(home.directory / "state");
    std::filesystem::create_directories(directory());
    JoinFile join;
    join.run_name = "gcide";
    must(save_join_file(home.join_file(), join));
    must(write_file_atomically(directory() / kModelConfigFile, to_json(tiny_model()), FileMode::kPrivate));
    for (float& value : parameters_) value = uniform_(random_);
    hashes.push_back(hash());
  }
  std::filesystem::path directory() const { return home.checkpoint(); }

  // Rounds that were committed and logged.
  void train(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      std::vector<float> average(numel_);
      for (float& value : average) value = uniform_(random_);
      const ByteView canonical = std::as_bytes(std::span(average));
      LoggedRound round{.record = {}, .from = hash(), .made = {}};
      round.record.commit.round = OuterStep{step_};
      round.record.commit.digest = to_hex(canonical_digest(canonical));
      round.record.commit.outer_learning_rate = 0.7;
      round.record.commit.outer_momentum = 0.9;
      round.record.commit.epoch = 5;
      round.record.hub_certificate = "PEM";
      Digest chunk;
      outer_step(parameters_, momentum_, std::vector<ParameterRange>{{0, static_cast<std::int64_t>(numel_)}},
                 WireFormat::kFp32, canonical, OuterSgd{0.7f, 0.9f}, std::span(&chunk, 1));
      ++step_;
      round.made = hash();
      hashes.push_back(round.made);
      must(RoundLog(directory()).keep(round, {}, WireFormat::kFp32, canonical));
    }
  }
  void snapshot() {
    auto writer = SnapshotWriter::open(directory() / kWrittenSnapshot, numel_);
    must(writer.ok() ? ok_status() : Status(writer.error()));
    const Digest digest = chunk_digest(parameters_, momentum_);
    Bytes bytes;
    for (const auto* half : {&parameters_, &momentum_}) {
      const ByteView values = std::as_bytes(std::span(*half));
      bytes.insert(bytes.end(), values.begin(), values.end());
    }
    must(writer->put(0, {OuterStep{step_}, digest}, bytes));
    must(std::move(*writer).finish({OuterStep{step_}, hash()}, directory() / kept_state_name(OuterStep{step_})));
  }
  // What an island that starts there begins with.
  HeldState newest() const {
    const auto found = newest_states(kept_states(directory()), RoundLog(directory()).rounds());
    return found.empty() ? HeldState{} : found.front().state;
  }
  HeldState held(std::uint32_t step) const { return {OuterStep{step}, hashes[step]}; }
  std::set<std::string> files() const {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory())) {
      if (entry.is_regular_file()) found.insert(entry.path().lexically_relative(directory()).string());
    }
    return found;
  }

  const IslandHome home;
  std::vector<std::string> hashes;  // by outer step

 private:
  std::string hash() const { return to_hex(make_state_manifest(OuterStep{step_}, parameters_, momentum_).tree_hash()); }

  const std::size_t numel_ = static_cast<std::size_t>(canonical_layout(tiny_model()).numel);
  std::mt19937 random_{7};
  std::uniform_real_distribution<float> uniform_{-1, 1};
  std::vector<float> parameters_ = std::vector<float>(numel_), momentum_ = std::vector<float>(numel_);
  std::uint32_t step_ = 0;
};

class FakeTrainer final : public ControlService {
 public:
  Result<nlohmann::json> call(std::string_view, const nlohmann::json&) override {
    return Error{ErrorCode::kNotFound, "no such method"};
  }
};

}  // namespace

class CheckpointsCommandTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void states_and_rounds_are_listed_and_verified() {
    CliRun atoll;
    IslandOnDisk island(atoll);
    island.snapshot();
    island.train(2);

    const CliOutcome outcome = atoll({"checkpoints", "verify", "--json"});

    QVERIFY2(outcome.exit_code == 0, outcome.err.c_str());
    const auto found = nlohmann::json::parse(outcome.out);
    QCOMPARE(defects("checkpoints", found), std::string());
    QCOMPARE(found["checkpoints"].size(), std::size_t{1});
    QCOMPARE(found["checkpoints"][0]["whole"].get<bool>(), true);
    QCOMPARE(found["checkpoints"][0]["state_hash"].get<std::string>(), island.hashes[0]);
    QCOMPARE(found["rounds"].size(), std::size_t{2});
  }

  void who_left_the_run_still_sees_what_is_on_its_disk() {
    CliRun atoll;
    IslandOnDisk island(atoll);
    island.snapshot();
    std::filesystem::rename(island.home.join_file(), island.home.left_file());

    const CliOutcome outcome = atoll({"checkpoints", "list"});

    QVERIFY2(outcome.exit_code == 0, outcome.err.c_str());
    QVERIFY2(contains(outcome.out, "before round 1"), outcome.out.c_str());
  }

  // Between two states that were written: by the older one and its rounds.
  void an_older_outer_step_is_made_the_newest_and_nothing_is_lost() {
    CliRun atoll;
    IslandOnDisk island(atoll);
    island.snapshot();
    island.train(4);
    island.snapshot();
    island.train(2);
    const std::set<std::string> before = island.files();
    QCOMPARE(island.newest(), island.held(6));

    const CliOutcome outcome = atoll({"checkpoints", "restore", "3"});

    QVERIFY2(outcome.exit_code == 0, outcome.err.c_str());
    QVERIFY2(contains(outcome.out, "atoll hub rollback --to 3"), outcome.out.c_str());
    QCOMPARE(island.newest(), island.held(3));
    std::set<std::string> after;
    for (const std::string& file : island.files()) after.insert(file.starts_with("aside.1/") ? file.substr(8) : file);
    QCOMPARE(after, before);
    const CliOutcome again = atoll({"checkpoints", "restore", "3"});
    QVERIFY2(contains(again.out, "nothing newer was here"), again.out.c_str());
  }

  void an_older_outer_step_is_restored_as_its_schema_says() {
    CliRun atoll;
    IslandOnDisk island(atoll);
    island.snapshot();
    island.train(2);

    const CliOutcome outcome = atoll({"checkpoints", "restore", "1", "--json"});

    const auto restored = nlohmann::json::parse(outcome.out, nullptr, false);
    QCOMPARE(defects("checkpoints-restore", restored), std::string());
    QCOMPARE(restored["outer_step"].get<int>(), 1);
    QCOMPARE(restored["state_hash"].get<std::string>(), island.hashes[1]);
    QCOMPARE(restored["moved"].size(), std::size_t{2});  // record and average of round 1
  }

  void what_cannot_be_restored_is_refused_and_nothing_moves_data() {
    QTest::addColumn<bool>("is_damaged");
    QTest::addColumn<QString>("step");
    QTest::addColumn<QString>("says");
    QTest::newRow("not there") << false << "9"
                               << "the state after round 9 is not on this disk: those after rounds 2, 1, 0 are";
    QTest::newRow("a damaged round on the way") << true << "2"
                                                << "after round 1 is as far as it goes; nothing was changed";
    QTest::newRow("no number") << false << "x"
                               << "x";
  }
  void what_cannot_be_restored_is_refused_and_nothing_moves() {
    QFETCH(const bool, is_damaged);
    QFETCH(const QString, step);
    QFETCH(const QString, says);
    CliRun atoll;
    IslandOnDisk island(atoll);
    island.snapshot();
    island.train(2);
    if (is_damaged) {
      std::fstream(RoundLog(island.directory()).average_file(OuterStep{1}),
                   std::ios::in | std::ios::out | std::ios::binary)
          .seekp(103)
          .put('\x77');
    }
    const std::set<std::string> before = island.files();

    const CliOutcome outcome = atoll({"checkpoints", "restore", step.toStdString()});

    QVERIFY(outcome.exit_code != 0);
    QVERIFY2(contains(outcome.err, says.toStdString()), outcome.err.c_str());
    QCOMPARE(island.files(), before);
  }

  void states_that_need_not_stay_are_removed_with_their_rounds_and_their_bytes_are_told() {
    CliRun atoll;
    IslandOnDisk island(atoll);
    for (int i = 0; i < 4; ++i) {
      island.snapshot();
      island.train(2);
    }

    const CliOutcome outcome = atoll({"checkpoints", "prune", "--keep", "2", "--json"});

    const auto removed = nlohmann::json::parse(outcome.out, nullptr, false);
    QCOMPARE(defects("checkpoints-prune", removed), std::string());
    QCOMPARE(removed["checkpoints"].size(), std::size_t{2});
    QCOMPARE(removed["rounds"], (nlohmann::json{0, 1, 2, 3}));
    QVERIFY(removed["bytes"].get<std::uint64_t>() > removed["checkpoints"][0]["bytes"].get<std::uint64_t>());
    QCOMPARE(kept_states(island.directory()).size(), std::size_t{2});
    QCOMPARE(island.newest(), island.held(8));
    const CliOutcome again = atoll({"checkpoints", "prune", "--keep", "2"});
    QVERIFY2(contains(again.out, "nothing is here that need not stay"), again.out.c_str());
  }

  void outer_steps_that_the_owner_names_stay() {
    CliRun atoll;
    IslandOnDisk island(atoll);
    for (int i = 0; i < 4; ++i) {
      island.snapshot();
      island.train(2);
    }
    QCOMPARE(atoll({"config", "set", "checkpoints.keep_rounds", "3"}).exit_code, 0);

    const CliOutcome outcome = atoll({"checkpoints", "prune", "--keep", "1"});

    QVERIFY2(outcome.exit_code == 0, outcome.err.c_str());
    const std::vector<KeptState> kept = kept_states(island.directory());
    QCOMPARE(kept.size(), std::size_t{2});
    QCOMPARE(kept[1].state(), island.held(2));
    QVERIFY(way_to(OuterStep{3}, kept, RoundLog(island.directory()).rounds()).has_value());
  }

  void while_a_trainer_runs_nothing_is_changed_data() {
    QTest::addColumn<QString>("command");
    QTest::newRow("restore") << "restore 0";
    QTest::newRow("prune") << "prune";
  }
  void while_a_trainer_runs_nothing_is_changed() {
    QFETCH(const QString, command);
    CliRun atoll;
    IslandOnDisk island(atoll);
    island.snapshot();
    island.train(2);
    FakeTrainer trainer;
    const auto server = ControlServer::start(island.home.control_socket(), "atoll-trainer", trainer);
    QVERIFY(server.ok());
    const std::set<std::string> before = island.files();
    std::vector<std::string> arguments{"checkpoints"};
    for (const QString& word : command.split(' ')) arguments.push_back(word.toStdString());

    const CliOutcome outcome = atoll(arguments);

    QVERIFY(outcome.exit_code != 0);
    QVERIFY2(contains(outcome.err, "atoll stop"), outcome.err.c_str());
    QCOMPARE(island.files(), before);
  }
};

QTEST_GUILESS_MAIN(CheckpointsCommandTest)
#include "checkpoints_command_test.moc"
