// The all-reduce that is under way, the newest where there are several, or was last: the ring, its edges' rates, how
// far it is. Fed by the trainer's events. Owned by a Node; GUI thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <QObject>

#include "app/core/agent_link.h"
#include "app/core/paced.h"
#include "app/core/rounds_model.h"

namespace atl {

struct RingIsland {
  std::string id, name;
  bool self = false;
  std::uint64_t tokens = 0;                     // its weight
  std::optional<double> edge_bytes_per_second;  // to the next member, as the hub knows or this island measured it
};

struct SyncProgress {
  std::uint32_t round = 0, attempt = 0;
  SyncPart part = SyncPart::kReduceScatter;       // or kAllGather
  std::uint64_t bytes_done = 0, bytes_total = 0;  // received by this island
  double sent_bytes_per_second = 0, received_bytes_per_second = 0;
  std::uint32_t step = 0, steps = 0;  // ring steps: which chunk travels
  double fraction() const {
    return bytes_total > 0 ? static_cast<double>(bytes_done) / static_cast<double>(bytes_total) : 0;
  }
};

class SyncModel : public QObject {
  Q_OBJECT

 public:
  static constexpr std::size_t kMaxMembers = 1024, kMaxPhases = 256;

  explicit SyncModel(QObject* parent = nullptr);

  bool active() const { return active_; }
  // In ring order; empty before the first attempt that was seen.
  const std::vector<RingIsland>& ring() const { return ring_; }
  // Everybody sends to everybody: no edge of that ring is of more account than any other pair, and none has a rate.
  bool directly() const { return directly_; }
  const std::optional<SyncProgress>& progress() const { return progress_; }
  // Of the round that is under way, or of the last one.
  const std::vector<PhaseTime>& phases() const { return phases_; }
  std::optional<std::uint32_t> round() const { return round_; }  // that ring, progress and phases are of
  // Index into ring(): the edge with the least rate, where it is at most half the next slowest's.
  std::optional<std::size_t> slowest_edge() const;

  void take(const HeardEvent& event, const std::string& own_island);
  void reset();

 Q_SIGNALS:
  void changed();  // at most thirty times a second

 private:
  // Whether it is news.
  bool begin(const event::AttemptBegin& attempt, const std::string& own_island);
  bool takePhase(const event::SyncPhase& phase);
  bool takeProgress(const event::SyncProgress& told);
  bool takeLink(const event::PeerLink& link, const std::string& own_island);
  bool takeState(const IslandState& state);
  bool end();
  bool enter(std::uint32_t round);

  bool active_ = false;
  std::optional<std::uint32_t> round_;
  std::vector<RingIsland> ring_;
  bool directly_ = false;
  std::optional<SyncProgress> progress_;
  std::vector<PhaseTime> phases_;
  Paced tell_;
};

}  // namespace atl
