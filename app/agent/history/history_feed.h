// Turns the trainer's control events into history. The agent hands it every event as it comes; rows are gathered and
// written a few times a minute, so that neither a slow disk nor a full one is felt by anybody.
//
// One thread. Never fails: what cannot be written is kept for a while, then dropped, and trouble() says so.
#pragma once

#include <map>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "app/agent/history/history_store.h"
#include "net/base/deadline.h"

namespace atl {

struct IslandState;

class HistoryFeed {
 public:
  static constexpr Seconds kWriteEvery{5};
  static constexpr Seconds kRetryAfter{30};          // a write that failed
  static constexpr std::size_t kMaxKeptRows = 8192;  // while the disk takes nothing

  explicit HistoryFeed(HistoryStore& store) : store_(store) {}  // outlives this

  // `event`: {"event", "seq", "time", "data"}, as ControlClient::next_event returns it; with "kept" as well it may
  // have been taken before, by an agent that ended. Events that the history knows nothing of, or that are not well
  // formed, change nothing.
  void take(const nlohmann::json& event, Clock::time_point now);
  // Writes what is due; call now and then, also without events.
  void tick(Clock::time_point now);
  void flush();  // at the end

  // Why nothing can be written at present, for a person; empty: all is well.
  const std::string& trouble() const { return trouble_; }

 private:
  struct RoundStart {  // the trainer's counters when the round began
    std::uint32_t round = 0;
    std::uint64_t tokens = 0, bytes_sent = 0;
    double inner_seconds = 0;
  };

  void take_state(const std::string& name, double time, const IslandState& state, const nlohmann::json& data,
                  bool kept);
  bool is_written(const std::string& name, const IslandState& state) const;
  void take_round_end(double time, const IslandState& state);
  void take_phase(const nlohmann::json& data);
  void take_gpus(double time, const nlohmann::json& data);
  void take_peer(double time, const std::string& change, const nlohmann::json& data);
  void enter_run(const std::string& run);
  std::uint64_t total_tokens(const IslandState& state);
  void add_point(std::string series, double time, double value);
  void write(Clock::time_point now);

  HistoryStore& store_;
  HistoryBatch batch_;
  HistoryTotals totals_;
  RoundStart round_;
  std::uint64_t step_ = 0, tokens_ = 0;  // of the last event, for points that come without
  double validation_loss_ = 0;
  Clock::time_point write_at_{};
  bool row_waits_ = false;
  std::string trouble_;
};

}  // namespace atl
