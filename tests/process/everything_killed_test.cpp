// `kill -9` of the hub, of every agent and of every trainer in the same instant, thirty times in one run: at random
// moments, and at those that files announce, in which a fault would hide: before anything is committed, while averages
// take their place, between a commit and the outer step that it allows, while a round is logged, while a snapshot is
// written, while a run comes back from the kill before. What lies on the disks afterwards says which moment was hit.
#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <QtCore/QThread>
#include <QtTest/QTest>
#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>

#include "net/base/deadline.h"
#include "net/base/unique_fd.h"
#include "net/disk/kept_average_file.h"
#include "net/disk/round_log.h"
#include "net/disk/snapshot.h"
#include "net/hub/hub_store.h"
#include "tests/process/whole_run.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr std::uint32_t kIslands = 3;

// When everybody is to die.
enum class Moment {
  kFirstRound,  // nothing is committed
  kRecovery,    // the run comes back from the kill before
  kAverage,     // the first average of a round takes its place on a disk: the others' may not have
  kCommit,      // the averages are on all disks, and the hub writes its record
  kLog,         // an island moves an average to its round log, to write what was made of it
  kSnapshot,    // an island begins to write a snapshot
  kAny,
};
constexpr std::array kMoments{Moment::kFirstRound, Moment::kRecovery, Moment::kAverage, Moment::kCommit,
                              Moment::kLog,        Moment::kSnapshot, Moment::kAny};
constexpr std::size_t index_of(Moment moment) { return static_cast<std::size_t>(moment); }
constexpr std::array kNames{"the first round", "recovery", "average", "commit", "log", "snapshot", "any"};
using Count = std::array<int, kMoments.size()>;
constexpr Count kThirty{3, 5, 4, 6, 5, 5, 2};  // kills of each moment
constexpr Count kFew{1, 3, 1, 2, 3, 2, 1};
constexpr int kMostAgain = 10;

// Names that come and go, and what is written, in some directories.
class Watch {
 public:
  struct Event {
    int directory = -1;  // as add() returned it
    std::string name;
    std::uint32_t what = 0;  // IN_...
  };

  int add(const std::filesystem::path& directory) {
    std::filesystem::create_directories(directory);
    const int watched = ::inotify_add_watch(fd_.get(), directory.c_str(), IN_CREATE | IN_MOVED_TO | IN_MODIFY);
    if (watched < 0) qFatal("inotify_add_watch %s: %s", directory.c_str(), std::strerror(errno));
    return watched;
  }

  // Waits a little; what was seen.
  std::vector<Event> next() const {
    pollfd readable{fd_.get(), POLLIN, 0};
    if (::poll(&readable, 1, /*timeout_ms=*/20) <= 0) return {};
    alignas(inotify_event) std::array<char, 16384> bytes;
    const ssize_t count = ::read(fd_.get(), bytes.data(), bytes.size());
    std::vector<Event> events;
    for (ssize_t at = 0; at < count;) {
      const auto* event = reinterpret_cast<const inotify_event*>(bytes.data() + at);
      events.push_back({event->wd, event->len > 0 ? std::string(event->name) : std::string(), event->mask});
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
    return events;
  }

 private:
  UniqueFd fd_{::inotify_init1(IN_CLOEXEC)};
};

// What the disks say when everybody is dead.
struct Disks {
  OuterStep committed;                   // by the hub
  std::map<OuterStep, std::string> hub;  // hashes that were agreed on
  struct Island {
    std::vector<HeldState> states;  // of rounds and snapshots
    bool writes_snapshot = false;
    bool writes_round = false;         // an average without its record, or a file that has not taken its place
    OuterStep logged;                  // to which outer step its log leads
    std::optional<OuterStep> average;  // of this round, the newest one that is not in its log
  };
  std::vector<Island> islands;
};

Disks::Island look_at(const IslandHome& home) {
  Disks::Island island;
  const RoundLog log(home.checkpoint());
  std::set<std::string> names;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(home.checkpoint() / kRoundsDirectory, missing)) {
    names.insert(entry.path().filename().string());
  }
  for (const auto& [number, round] : log.rounds()) {
    island.states.push_back(round.before());
    island.states.push_back(round.after());
    island.logged = std::max(island.logged, round.after().outer_step);
    const std::string name = "round." + std::to_string(number.value);
    names.erase(name + ".average");
    names.erase(name + ".record");
  }
  island.writes_round = !names.empty();
  island.writes_snapshot = std::filesystem::exists(home.checkpoint() / kWrittenSnapshot);
  for (std::uint32_t fragment = 0; fragment < kMaxFragments; ++fragment) {
    const auto kept = peek_average(home.checkpoint() / kept_average_name(FragmentId{fragment}));
    if (kept.ok()) island.average = std::max(island.average, std::optional(kept->round));
  }
  for (const auto& file : require(outer_state_files(home.checkpoint()))) {
    const auto info = peek_snapshot(file);
    if (!info.ok()) continue;
    island.states.push_back(info->state);
    island.logged = std::max(island.logged, info->state.outer_step);
  }
  return island;
}

Disks look_at(const WholeRun& run) {
  Disks disks;
  const auto store = require(HubStore::open(run.hub_home().database()));
  const CoordinatorMemory memory = require(store->memory());
  disks.committed = memory.committed;
  for (std::uint32_t step = 0; step <= memory.committed.value; ++step) {
    if (const auto hash = store->state_hash(OuterStep{step}); hash.ok()) disks.hub.emplace(OuterStep{step}, *hash);
  }
  for (const IslandHome& home : run.homes()) disks.islands.push_back(look_at(home));
  return disks;
}

}  // namespace

class EverythingKilledTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void no_committed_round_is_lost_or_changed_whenever_everything_dies_data();
  void no_committed_round_is_lost_or_changed_whenever_everything_dies();

 private:
  void watch_all();
  void dies(Moment moment, std::mt19937& random, Count& hits);
  std::string what_it_says(const HubState& state) const;
  bool reach(Moment moment, std::mt19937& random);
  bool is_the_moment(Moment moment, const Watch::Event& event);
  bool was_hit(Moment moment, const Disks& disks) const;
  bool nothing_was_lost(const Disks& disks);

  std::unique_ptr<WholeRun> run_;
  std::vector<pid_t> pids_;  // of all that is to die
  std::unique_ptr<Watch> watch_;
  int hub_ = -1;
  std::set<int> checkpoints_, rounds_;
  std::set<int> has_average_;  // whose checkpoint directory took one in since the hub's last record

  OuterStep known_;                        // committed, as anybody has said
  std::map<OuterStep, std::string> made_;  // by the hub's word or an island's: the hash of each outer step
};

void EverythingKilledTest::watch_all() {
  watch_ = std::make_unique<Watch>();
  hub_ = watch_->add(run_->hub_home().directory);
  checkpoints_.clear();
  rounds_.clear();
  has_average_.clear();
  for (const IslandHome& home : run_->homes()) {
    checkpoints_.insert(watch_->add(home.checkpoint()));
    rounds_.insert(watch_->add(home.checkpoint() / kRoundsDirectory));
  }
}

bool EverythingKilledTest::is_the_moment(Moment moment, const Watch::Event& event) {
  const bool took_place = (event.what & IN_MOVED_TO) != 0;
  const bool is_average = checkpoints_.contains(event.directory) && took_place && event.name.ends_with(".kept");
  if (is_average) has_average_.insert(event.directory);
  switch (moment) {
    case Moment::kAverage: return is_average;
    case Moment::kCommit:
      return has_average_.size() == kIslands && event.directory == hub_ && event.name.ends_with("-wal");
    case Moment::kLog: return rounds_.contains(event.directory) && took_place && event.name.ends_with(".average");
    case Moment::kSnapshot:
      return checkpoints_.contains(event.directory) && (event.what & IN_CREATE) != 0 && event.name == kWrittenSnapshot;
    case Moment::kFirstRound:
    case Moment::kRecovery:
    case Moment::kAny: break;
  }
  return false;
}

// From a start until the moment has come; false when it does not.
bool EverythingKilledTest::reach(Moment moment, std::mt19937& random) {
  const auto wait_up_to = [&](unsigned long most_us) {
    QThread::usleep(std::uniform_int_distribution<unsigned long>(0, most_us)(random));
  };
  const Deadline deadline = Deadline::after(kRunLimit);
  if (moment == Moment::kRecovery) {
    wait_up_to(1'000'000);  // about as long as it takes to come back
    pids_ = run_->processes();
    return true;
  }
  // Hub, agents and their trainers are there.
  if (!wait_for([&] { return (pids_ = run_->processes()).size() >= 1 + 2 * kIslands; }, kRunLimit)) return false;
  if (moment == Moment::kFirstRound) {
    // The hub writes who comes, and what it leases: to ask it would take longer than the round does.
    while (!watch_->next().empty()) {
    }
    const auto writes = [&](const Watch::Event& event) {
      return event.directory == hub_ && event.name.ends_with("-wal");
    };
    while (!deadline.expired()) {
      if (std::ranges::none_of(watch_->next(), writes)) continue;
      wait_up_to(60'000);
      return true;
    }
    return false;
  }
  if (moment == Moment::kAny) {
    HubState state;
    if (!run_->wait_for_step(known_.value + 1, state)) return false;
    wait_up_to(500'000);
    return true;
  }
  while (!deadline.expired()) {
    for (const Watch::Event& event : watch_->next()) {
      if (!is_the_moment(moment, event)) continue;
      if (moment == Moment::kCommit) wait_up_to(3'000);
      return true;
    }
  }
  return false;
}

bool EverythingKilledTest::was_hit(Moment moment, const Disks& disks) const {
  const auto any = [&](auto is_so) { return std::ranges::any_of(disks.islands, is_so); };
  switch (moment) {
    case Moment::kFirstRound: return disks.committed == OuterStep{0};
    case Moment::kRecovery: return disks.committed == known_;
    case Moment::kAverage: return any([&](const Disks::Island& island) { return island.average >= disks.committed; });
    case Moment::kCommit:
      return any([&](const Disks::Island& island) {
        return island.logged < disks.committed && island.average && island.average->value + 1 == disks.committed.value;
      });
    case Moment::kLog: return any([](const Disks::Island& island) { return island.writes_round; });
    case Moment::kSnapshot: return any([](const Disks::Island& island) { return island.writes_snapshot; });
    case Moment::kAny: return true;
  }
  return false;
}

// The hub has what it ever said to be committed, and each outer step is the one that it always was.
bool EverythingKilledTest::nothing_was_lost(const Disks& disks) {
  if (disks.committed < known_) {
    qWarning("outer step %u was committed, and the hub's disk has %u", known_.value, disks.committed.value);
    return false;
  }
  known_ = disks.committed;
  const auto is_same = [&](const HeldState& state, const char* whose) {
    const auto [found, is_new] = made_.emplace(state.outer_step, state.state_hash);
    if (found->second == state.state_hash) return true;
    qWarning("outer step %u was %s, and is %s on the disk of %s", state.outer_step.value, found->second.c_str(),
             state.state_hash.c_str(), whose);
    return false;
  };
  for (const auto& [step, hash] : disks.hub) {
    if (!is_same({step, hash}, "the hub")) return false;
  }
  for (const Disks::Island& island : disks.islands) {
    for (const HeldState& state : island.states) {
      if (!is_same(state, "an island")) return false;
    }
  }
  return true;
}

// Why it does not go on, as far as its hub knows.
std::string EverythingKilledTest::what_it_says(const HubState& state) const {
  std::string text =
      state.standstill ? state.standstill->text : "silence at outer step " + std::to_string(state.outer_step);
  for (const HubState::Island& island : state.islands) {
    text += fmt::format("; {} is {}, seen {:.1f} s ago", island.id, word_of(island.state), island.last_seen_seconds);
  }
  return text;
}

void EverythingKilledTest::dies(Moment moment, std::mt19937& random, Count& hits) {
  // Given a run that one command a machine has started again,
  watch_all();
  run_->start_all();
  const std::uint32_t said = run_->state().outer_step;
  QVERIFY(said >= known_.value);

  // when everything dies at that moment,
  if (!reach(moment, random)) {
    QFAIL(fmt::format("before {}: {}", kNames[index_of(moment)], what_it_says(run_->state())).c_str());
  }
  run_->kill_all(pids_);

  // then nothing that was committed is forgotten, and no outer step has become another.
  const Disks disks = look_at(*run_);
  if (was_hit(moment, disks)) ++hits[index_of(moment)];
  qInfo("%s: outer step %u", kNames[index_of(moment)], disks.committed.value);
  QVERIFY(nothing_was_lost(disks) && disks.committed.value >= said);
}

void EverythingKilledTest::no_committed_round_is_lost_or_changed_whenever_everything_dies_data() {
  QTest::addColumn<std::uint32_t>("fragments");
  QTest::addColumn<Count>("kills");
  QTest::newRow("the whole model") << 1u << kThirty;
  QTest::newRow("rounds that overlap") << 2u << kFew;
}

void EverythingKilledTest::no_committed_round_is_lost_or_changed_whenever_everything_dies() {
  QFETCH(const std::uint32_t, fragments);
  QFETCH(const Count, kills);
  const int asked = qEnvironmentVariableIntValue("ATOLL_KILL_SEED");
  const unsigned seed = asked > 0 ? static_cast<unsigned>(asked) : 1;
  qInfo("ATOLL_KILL_SEED=%u", seed);
  std::mt19937 random(seed);
  RunConfig config = small_run(kIslands);
  config.inner_steps = 10;
  config.fragments = fragments;
  run_ = std::make_unique<WholeRun>(config, kIslands, WholeRun::Parents::kAgents);
  known_ = {};
  made_.clear();
  std::vector<Moment> moments;
  for (const Moment moment : kMoments) {
    if (moment == Moment::kFirstRound) continue;
    moments.insert(moments.end(), static_cast<std::size_t>(kills[index_of(moment)]), moment);
  }
  std::ranges::shuffle(moments, random);
  moments.insert(moments.begin(), static_cast<std::size_t>(kills[index_of(Moment::kFirstRound)]), Moment::kFirstRound);
  Count hits{};
  for (const Moment moment : moments) {
    dies(moment, random, hits);
    if (QTest::currentTestFailed()) return;
  }
  // A moment may be over when the kill comes: again, until it was not.
  for (const Moment moment : kMoments) {
    for (int again = 0; again < kMostAgain && moment != Moment::kFirstRound && hits[index_of(moment)] == 0; ++again) {
      dies(moment, random, hits);
      if (QTest::currentTestFailed()) return;
    }
  }
  // And the run goes on by itself from where it was, with the state that this made.
  run_->start_all();
  HubState state;
  QVERIFY(run_->state().outer_step >= known_.value);
  QVERIFY2(run_->wait_for_step(known_.value + 2, state), what_it_says(state).c_str());
  run_->kill_all();
  QVERIFY(nothing_was_lost(look_at(*run_)));
  for (const Moment moment : kMoments) {
    qInfo("%s: %d kills, %d hit it", kNames[index_of(moment)], kills[index_of(moment)], hits[index_of(moment)]);
    QVERIFY2(hits[index_of(moment)] > 0, kNames[index_of(moment)]);
  }
}

QTEST_GUILESS_MAIN(EverythingKilledTest)
#include "everything_killed_test.moc"
