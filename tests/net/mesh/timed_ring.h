// One attempt's all-reduce among the islands of a TimedMesh, with the time that things take: who dials whom, who waits
// for whom and for how long, and what each of them says of it when it fails, as net/collective does. One thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/base/deadline.h"
#include "net/wire/mesh.h"
#include "tests/net/mesh/timed_model.h"

namespace atl {

class TimedIsland;
class TimedMesh;

// What an island does in an attempt.
enum class RingConduct {
  kTakesPart,
  kSilent,       // takes connections and says nothing, also where it has joined
  kStalls,       // sends keepalives and no data
  kSlow,         // sends a byte now and then
  kHalts,        // half of all that its next is to get, and then a byte now and then
  kCloses,       // closes its connections in the midst of it
  kCuts,         // gives its next less than all, at the end, when the others have it
  kAlters,       // chunks that it passes on are not what came
  kStarves,      // lets next to nothing of one chunk come, at the end: most have the average, those after it do not
  kStarvesNext,  // the same, and only to the next
};
// What who dials an island finds.
enum class Port { kOpen, kRefuses, kSwallows };

class TimedRing : public std::enable_shared_from_this<TimedRing> {
 public:
  TimedRing(TimedMesh& mesh, HubAttempt attempt);

  const HubAttempt& attempt() const { return attempt_; }
  bool has(const IslandId& island) const { return seat_of(island).has_value(); }
  void join(TimedIsland& island);
  // The hub gave it up. False: the island is not in it any more.
  bool abort(const TimedIsland& island, const std::string& reason);
  // Its process is gone.
  void leave(const TimedIsland& island);
  // SHA-256 of each chunk, as that member holds them.
  std::vector<std::string> chunks_of(const IslandId& island) const;
  std::optional<IslandId> next_of(const IslandId& island) const;
  std::optional<IslandId> previous_of(const IslandId& island) const;

 private:
  struct Seat {
    enum class State { kAway, kIn, kDone, kFailed };
    TimedIsland* island = nullptr;  // null: nobody
    State state = State::kAway;
    RingConduct conduct = RingConduct::kSilent;
    Clock::time_point joined = {};
  };
  struct Failure {
    std::optional<IslandId> peer;
    std::string reason;
    bool silent = false;
    std::optional<std::uint64_t> stalled_after = {};
    bool never_met = false;
  };

  bool is_direct() const { return attempt_.schedule == Schedule::kDirect; }
  std::optional<std::size_t> seat_of(const IslandId& island) const;
  std::size_t before(std::size_t seat) const { return (seat + seats_.size() - 1) % seats_.size(); }
  std::size_t after(std::size_t seat) const { return (seat + 1) % seats_.size(); }
  std::vector<std::size_t> peers_of(std::size_t seat) const;
  bool dials(std::size_t seat, std::size_t peer) const;
  bool has_come(std::size_t seat) const;
  void watch(std::size_t seat, std::size_t peer);
  void fail(std::size_t seat, Failure failure);
  void close(std::size_t seat);
  Failure when_aborted(std::size_t seat, const std::string& reason) const;
  std::uint64_t bytes_at(std::size_t seat) const;
  void complete_when_all_are_in();
  void complete();
  std::vector<bool> starved() const;
  std::string alterations(std::size_t chunk, std::size_t seat) const;

  TimedMesh& mesh_;
  const HubAttempt attempt_;
  std::vector<Seat> seats_;
  bool broken_ = false, completes_ = false;
};

}  // namespace atl
