// Islands (timed_island.h) around a RoundCoordinator, in virtual time: messages take some, inner phases and averages
// take theirs, and so does whatever fails. Counts what becomes of the run, and checks what must always hold. One
// thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "net/mesh/round_coordinator.h"
#include "tests/net/mesh/timed_island.h"
#include "tests/net/mesh/timed_ring.h"

namespace atl {

struct TimedTimes {
  Clock::duration inner = std::chrono::seconds(10);  // an inner phase
  Clock::duration ring = std::chrono::milliseconds(500);
  Clock::duration message = std::chrono::milliseconds(20);
  Clock::duration fetch = std::chrono::seconds(1);  // of the model by one that recovers
  Clock::duration tick = std::chrono::milliseconds(250);
  std::int64_t numel = 1'000'000;  // that `ring` averages
};

class TimedMesh {
 public:
  struct Commit {
    Clock::time_point at;
    std::set<IslandId> trainers;
  };

  TimedMesh(RunConfig run, TimedTimes times, unsigned seed);

  // It comes at once. Ids are in the order of their names.
  template <class Kind, class... Args>
  Kind& add(const std::string& name, Args&&... args) {
    auto made = std::make_unique<Kind>(*this, IslandId{name}, std::forward<Args>(args)...);
    Kind& island = *made;
    islands_.emplace(island.id(), std::move(made));
    island.link();
    return island;
  }

  const RunConfig& run() const { return run_; }
  const TimedTimes& times() const { return times_; }
  std::mt19937& random() { return random_; }
  Clock::time_point now() const { return now_; }
  RoundCoordinator& hub() { return *hub_; }
  TimedIsland* find(const IslandId& id);
  const std::map<IslandId, std::unique_ptr<TimedIsland>>& islands() const { return islands_; }
  // Of the newest where that one was undone.
  const TimedModel& model(OuterStep step) const {
    return models_.at(std::min<std::size_t>(step.value, models_.size() - 1));
  }
  const std::string& honest_hash(OuterStep step) const {
    return hashes_.at(std::min<std::size_t>(step.value, hashes_.size() - 1));
  }

  void after(Clock::duration time, std::function<void()> act);
  void pass(Clock::duration time);

  // ---- for islands
  void hub_hears(const CoordinatorEvent& event);
  std::shared_ptr<TimedRing> ring(const HubAttempt& attempt);  // of it, or of a later one of its round: null

  // ---- what was seen
  const std::string& violation() const { return violation_; }
  void violate(const std::string& what);
  const std::vector<Commit>& commits() const { return commits_; }
  const std::vector<std::pair<Clock::time_point, CoordinatorNews>>& news() const { return news_; }
  bool keeps_news = true;
  std::map<IslandId, int> left_out;              // WorkLeftOut
  std::map<IslandId, int> sent_away;             // goodbyes
  std::function<void(const std::string&)> tell;  // of all that happens; may be empty

 private:
  struct Event {
    Clock::time_point at;
    std::uint64_t number;
    std::function<void()> act;
    bool operator>(const Event& other) const { return std::tie(at, number) > std::tie(other.at, other.number); }
  };

  void carry_out(const SendTo& send);
  void carry_out(const CloseConnection& close);
  void carry_out(const DialIsland& dial);
  void carry_out(const PersistCommit& persist);
  void carry_out(const PersistStateHash& persist);
  void carry_out(const WantRollback& want);
  void carry_out(const PersistRollback& persist);
  void carry_out(const Publish& publish);
  template <class Other>
  void carry_out(const Other&) {}
  void tick();

  const RunConfig run_;
  const TimedTimes times_;
  std::mt19937 random_;
  Clock::time_point now_ = Clock::time_point(std::chrono::hours(1));
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t next_event_ = 0;
  std::uint64_t epoch_ = 0;
  std::map<IslandId, std::unique_ptr<TimedIsland>> islands_;
  std::vector<TimedModel> models_;   // by outer step
  std::vector<std::string> hashes_;  // likewise
  std::shared_ptr<TimedRing> ring_;  // the newest
  std::vector<Commit> commits_;
  std::vector<std::pair<Clock::time_point, CoordinatorNews>> news_;
  std::string violation_;
  std::optional<RoundCoordinator> hub_;
};

std::string told(const CoordinatorNews& news);

}  // namespace atl
