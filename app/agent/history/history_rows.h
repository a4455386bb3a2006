// What the history is made of. Plain values. Times are those that the machine's clock showed, in seconds since 1970; it
// may jump, so nothing is ordered by them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/wire/told_past.h"

namespace atl {

struct HistoryPoint {
  std::string series = {};  // "loss_nats", "gpu.0.power_watts"
  double time = 0;
  std::uint64_t step = 0;    // inner steps of the run: round x H + step of the round
  std::uint64_t tokens = 0;  // that this island has trained in this run
  double value = 0;
};

struct HistoryPhase {  // a part of one all-reduce
  std::uint32_t attempt = 1;
  std::string name = {};  // "wait", "reduce_scatter", ...: those of sync.phase (docs/control.md)
  double seconds = 0;
  std::uint64_t bytes = 0;
};

struct HistoryScore {  // of the state after a round, a metric of a task
  std::string task = {}, metric = {};
  double value = 0;
};

// What is known of a round so far. Written several times: what is not set leaves what was there.
struct HistoryRound {
  std::uint32_t round = 0;
  std::optional<double> began = {}, ended = {};
  std::optional<double> loss_nats = {}, validation_loss_nats = {};  // the second: of the state after it
  std::optional<std::uint64_t> tokens = {}, bytes_sent = {};        // of this island in this round
  std::optional<double> inner_seconds = {}, sync_seconds = {};
  std::optional<std::uint32_t> islands = {};
  std::optional<bool> accepted = {};  // this island's work is in the round's average
  std::optional<std::string> state_hash = {};
  std::vector<HistoryPhase> phases = {};
  std::vector<HistoryScore> scores = {};
};

struct HistoryPeer {
  std::string island = {};  // "isl-..."
  std::string name = {}, address = {};
  std::string state = {};  // "up", "down"; empty: as it was, only the link's figures are new
  double last_change = 0;
  std::optional<double> rtt_seconds = {}, bytes_per_second = {}, down_bytes_per_second = {};
  std::string version = {}, region = {};  // as it says itself
  std::uint32_t retries = 0;              // attempts that failed at the edge to it; written: how many more
};

// How far the island had come, of all of its trainers together.
struct HistoryTotals {
  std::uint64_t earlier_tokens = 0;  // of trainers that ended
  std::int64_t pid = 0;              // of the trainer that runs
  std::uint64_t tokens = 0;          // of that one
};

struct HistoryPast {              // of the run, as its hub told it
  std::uint32_t inner_steps = 0;  // of a round
  double told_at = 0;
  ToldPast told = {};
};

struct HistoryBatch {
  std::string run = {};
  std::vector<HistoryPoint> points = {};
  std::vector<HistoryRound> rounds = {};
  std::vector<HistoryPeer> peers = {};
  std::optional<HistoryTotals> totals = {};
  std::optional<HistoryPast> past = {};  // in place of what was told before

  bool empty() const { return points.empty() && rounds.empty() && peers.empty() && !totals && !past; }
};

}  // namespace atl
