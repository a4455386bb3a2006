// The power goes at any moment: what an island had said to keep is there, and nothing torn is taken for whole. The disk
// loses whatever was not flushed, in any mixture (tests/fakes/recorded_disk.h).
#include <fmt/format.h>

#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>
#include <cstring>
#include <map>
#include <random>

#include "net/base/encoding.h"
#include "net/base/mutex.h"
#include "net/collective/canonical_digest.h"
#include "net/model/fragments.h"
#include "net/model/layout.h"
#include "tests/fakes/recorded_disk.h"
#include "tests/trainer/island/round_loop_fixture.h"
#include "trainer/island/island_disk.h"
#include "trainer/island/round_keeper.h"
#include "trainer/island/snapshot_keeper.h"

namespace atl {
namespace {

constexpr int kMoments = 1'000;
constexpr std::chrono::seconds kLong{60};

ModelConfig model() {
  ModelConfig config = test::tiny_model();
  config.num_hidden_layers = 3;
  return config;
}

// An island that trains, as far as its disk sees it, and what it told the hub to keep, when.
class RecordedIsland {
 public:
  RecordedIsland(const std::filesystem::path& directory, std::uint32_t fragments)
      : fragments_(*fragments_of(canonical_layout(model()), fragments)),
        outer_(canonical_layout(model()).numel),
        disk_(directory),
        keeper_(std::in_place, disk_,
                RoundKeeper::Tell{.kept = [](OuterStep, const Status& kept) { QVERIFY(kept.ok()); },
                                  .durable_changed = [this] { note(); }}) {
    disk_.of_run(model(), fragments, Retention{2, 0, 0, {}});
    std::vector<float> parameters(static_cast<std::size_t>(canonical_layout(model()).numel));
    for (float& value : parameters) value = uniform_(random_);
    outer_.initialise(std::move(parameters));
    remember();
    snapshots_.emplace(disk_, outer_, [this](const Status& written) {
      QVERIFY2(written.ok(), written.ok() ? "" : written.error().message.c_str());
      note();
    });
    snapshots_->state_is({outer_.version(), outer_.tree_hash()});
  }

  // As a lane does it; sometimes the disk is waited for, sometimes it falls behind.
  void train_round() {
    const FragmentId fragment{outer_.version().value % static_cast<std::uint32_t>(fragments_.size())};
    const Fragment& part = fragments_[fragment.value];
    const auto bytes = static_cast<std::size_t>(encoded_bytes(WireFormat::kFp32, part.numel));
    const SharedBytes average = room_.take(bytes);
    for (std::int64_t i = 0; i < part.numel; ++i) {
      const float value = uniform_(random_);
      std::memcpy(average->data() + static_cast<std::size_t>(i) * sizeof value, &value, sizeof value);
    }
    HubCommit commit;
    commit.round = outer_.version();
    commit.attempt = Attempt{1};
    commit.digest = to_hex(canonical_digest(*average));
    commit.outer_learning_rate = 0.7;
    commit.outer_momentum = 0.9;
    commit.epoch = 5;
    commit.fragment = fragment;
    commit.signature = "signature " + commit.digest;
    const auto patience = random_() % 2 == 0 ? std::chrono::milliseconds(0) : std::chrono::milliseconds(kLong);
    auto writing = keeper_->begin(fragment, commit.round, WireFormat::kFp32, average);
    const std::size_t half = bytes / 2;
    writing->final_bytes(half, bytes - half);
    writing->final_bytes(0, half);
    keeper_->finish(std::move(writing), commit.digest, patience);
    disk_.told(std::make_shared<const SignedCommit>(SignedCommit{commit, "PEM"}));
    disk_.keep_commit(commit);
    const std::string from = outer_.tree_hash();
    const HeldState made = outer_.apply(part.ranges, WireFormat::kFp32, *average, 0.7f, 0.9f);
    remember();
    keeper_->keep_round(commit, WireFormat::kFp32, average, from, made);
    snapshots_->state_is(made);
    if (patience > patience.zero()) QVERIFY(keeper_->await_idle(Deadline::after(kLong)));
  }
  void end() {
    keeper_.reset();
    QVERIFY(snapshots_->finish().ok());
    note();
    snapshots_.reset();
  }

  const std::map<OuterStep, std::string>& states() const { return states_; }
  // The newest outer step that it had said to keep when so much was done.
  std::optional<OuterStep> promised(std::size_t moment) const {
    const MutexLock lock(kept_mutex_);
    const auto after = kept_.upper_bound(moment);
    return after == kept_.begin() ? std::nullopt : std::optional(std::prev(after)->second);
  }

 private:
  void remember() { states_[outer_.version()] = outer_.tree_hash(); }
  void note() {
    const std::vector<HeldState> durable = disk_.durable();
    const MutexLock lock(kept_mutex_);
    if (!durable.empty()) kept_[test::recorded_operations()] = durable.front().outer_step;
  }

  const std::vector<Fragment> fragments_;
  OuterStateStore outer_;
  IslandDisk disk_;
  mutable Mutex kept_mutex_;
  std::map<std::size_t, OuterStep> kept_ ATOLL_GUARDED_BY(kept_mutex_);
  std::map<OuterStep, std::string> states_;
  std::mt19937 random_{7};
  std::uniform_real_distribution<float> uniform_{-1, 1};
  AverageRoom room_;
  std::optional<RoundKeeper> keeper_;
  std::optional<SnapshotKeeper> snapshots_;
};

}  // namespace

class PowerCutTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void what_was_said_to_be_kept_is_there_and_nothing_torn_is_loaded_data();
  void what_was_said_to_be_kept_is_there_and_nothing_torn_is_loaded();
};

void PowerCutTest::what_was_said_to_be_kept_is_there_and_nothing_torn_is_loaded_data() {
  QTest::addColumn<quint32>("fragments");
  QTest::addColumn<int>("rounds");
  QTest::newRow("one fragment") << 1u << 25;
  QTest::newRow("three fragments") << 3u << 25;
}

void PowerCutTest::what_was_said_to_be_kept_is_there_and_nothing_torn_is_loaded() {
  QFETCH(const quint32, fragments);
  QFETCH(const int, rounds);
  QTemporaryDir directory;
  const std::filesystem::path place = directory.path().toStdString();
  std::filesystem::create_directory(place / "island");
  test::record_disk(place / "island");
  RecordedIsland island(place / "island", fragments);
  for (int i = 0; i < rounds; ++i) island.train_round();
  island.end();
  test::stop_recording();
  const std::size_t all = test::recorded_operations();
  QVERIFY(all > static_cast<std::size_t>(10 * rounds));
  QCOMPARE(island.promised(all), std::optional(OuterStep{static_cast<std::uint32_t>(rounds)}));

  std::mt19937 random(11);
  int nothing_yet = 0, newer = 0;
  for (int i = 0; i < kMoments; ++i) {
    const std::size_t moment = i == 0 ? all : random() % (all + 1);
    const std::filesystem::path after = place / "after";
    test::restore_after_power_cut(moment, random, /*keep_nothing=*/i % 4 == 0, after);
    const std::optional<OuterStep> promised = island.promised(moment);

    IslandDisk disk(after);
    const auto loaded = disk.load();

    const std::string where =
        fmt::format("operation {} of {}, crash {}: {} was promised, {}", moment, all, i,
                    promised ? static_cast<int>(promised->value) : -1,
                    loaded.ok() ? fmt::format("{} found", loaded->outer->version().value) : loaded.error().message);
    if (loaded.ok()) {
      const OuterStep found = loaded->outer->version();
      QVERIFY2(!promised || found >= *promised, where.c_str());
      QVERIFY2(island.states().contains(found), where.c_str());
      QVERIFY2(loaded->outer->tree_hash() == island.states().at(found), where.c_str());
      newer += promised && found > *promised ? 1 : 0;
      for (const HeldState& held : disk.durable()) {
        QVERIFY2(island.states().at(held.outer_step) == held.state_hash, where.c_str());
      }
    } else {
      QVERIFY2(!promised, where.c_str());
      ++nothing_yet;
    }
    std::filesystem::remove_all(after);
  }
  qInfo("%d moments of %zu: nothing was kept yet at %d, more than was said at %d", kMoments, all, nothing_yet, newer);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::PowerCutTest)
#include "power_cut_test.moc"
