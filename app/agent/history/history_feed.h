// Turns the trainer's control events into history. The agent hands it every event as it comes; rows are gathered and
// written a few times a minute, so that neither a slow disk nor a full one is felt by anybody.
//
// One thread. Never fails: what cannot be written is kept, of each kind the newest when it is too much, and trouble()
// says so.
#pragma once

#include <optional>
#include <string>

#include "app/agent/history/history_store.h"
#include "net/base/deadline.h"
#include "net/control/events.h"

namespace atl {

class HistoryFeed {
 public:
  static constexpr Seconds kWriteEvery{5};
  static constexpr Seconds kRetryAfter{30};          // a write that failed
  static constexpr std::size_t kMaxKeptRows = 8192;  // of a kind, at a try to write, while the disk takes nothing

  explicit HistoryFeed(HistoryStore& store) : store_(store) {}  // outlives this

  // What is kept may have been taken before, by an agent that ended. Events that the history knows nothing of change
  // nothing.
  void take(const HeardEvent& event, Clock::time_point now);
  // Writes what is due; call now and then, also without events.
  void tick(Clock::time_point now);
  void flush();  // at the end

  // Why nothing can be written at present, for a person; empty: all is well.
  const std::string& trouble() const { return trouble_; }

 private:
  // The island's state, as an event tells it; false: it is of no run, or written already.
  bool take_state(const IslandState& state, bool is_step, double time, bool kept);
  bool is_written(const IslandState& state, bool is_step) const;
  void add_step(double time, const IslandState& state);
  void take_round(double time, const event::RoundDone& done);
  void take_phase(const event::SyncPhase& phase);
  void take_validation(const event::Validated& validated);
  void take_scores(const event::Evaluated& evaluated);
  void take_past(double time, const event::PastTold& told);
  void take_gpus(double time, const event::GpuSampled& sampled);
  void take_peer(HistoryPeer peer);
  void enter_run(const std::string& run);
  std::uint64_t total_tokens(const IslandState& state);
  void add_point(std::string series, double time, double value);
  void write(Clock::time_point now);

  HistoryStore& store_;
  HistoryBatch batch_;
  HistoryTotals totals_;
  std::uint64_t step_ = 0, tokens_ = 0;  // of the last event, for points that come without
  double validation_loss_ = 0;
  Clock::time_point write_at_{};
  bool row_waits_ = false;
  std::optional<event::RoundDone> kept_round_;  // until its SyncDone
  std::string trouble_;
};

}  // namespace atl
