#include "app/agent/history/history_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace atl {
namespace {

constexpr std::size_t kMaxRunBytes = 64, kMaxTextBytes = 128;
constexpr std::uint32_t kMaxAttempt = 1'000'000;

std::optional<double> positive(std::optional<double> value) {
  return value && std::isfinite(*value) && *value > 0 ? value : std::nullopt;
}

// A step leaves six points, and a round, which is what people count, a few rows: many steps cost no round its rows.
template <class Row>
void forget_oldest(std::vector<Row>& rows) {
  if (rows.size() < HistoryFeed::kMaxKeptRows) return;
  rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 2));
}

std::string bounded(const std::string& text) { return text.substr(0, kMaxTextBytes); }

template <class Peer>
HistoryPeer peer_of(const Peer& peer, const char* state, double time) {
  return {.island = bounded(peer.island),
          .name = bounded(peer.name),
          .address = bounded(peer.address),
          .state = state,
          .last_change = time,
          .version = bounded(peer.version),
          .region = bounded(peer.region)};
}

HistoryPeer link_of(const event::PeerLink& link, double time) {
  return {.island = bounded(link.island),
          .last_change = time,
          .rtt_seconds = positive(link.rtt_seconds),
          .bytes_per_second = positive(link.bytes_per_second),
          .down_bytes_per_second = positive(link.down_bytes_per_second),
          .retries = link.failed ? 1u : 0u};
}

}  // namespace

void HistoryFeed::take(const HeardEvent& event, Clock::time_point now) {
  const double time = event.time;
  if (!(time > 0 && time < 1e12)) return;
  const bool is_step = std::holds_alternative<event::Step>(event.what);
  const NodeState* state = state_in(event.what);
  if (state != nullptr && !take_state(state->island, is_step, time, event.kept)) {
    if (std::holds_alternative<event::SyncDone>(event.what)) kept_round_.reset();
    return tick(now);
  }
  std::visit(
      Overloaded{
          [&](const event::Step& e) { add_step(time, e.state.island); },
          [&](const event::RoundBegin& e) {
            const IslandState& island = e.state.island;
            batch_.rounds.push_back({.round = island.round, .began = time, .islands = island.islands_live});
          },
          [&](const event::RoundDone& e) {
            // Whether one that is kept is written already its SyncDone tells.
            event.kept ? static_cast<void>(kept_round_ = e) : take_round(time, e);
          },
          [&](const event::SyncDone&) {
            if (const auto done = std::exchange(kept_round_, std::nullopt)) take_round(time, *done);
          },
          [&](const event::SyncPhase& e) { take_phase(e); }, [&](const event::Validated& e) { take_validation(e); },
          [&](const event::Evaluated& e) { take_scores(e); }, [&](const event::PastTold& e) { take_past(time, e); },
          [&](const event::GpuSampled& e) { take_gpus(time, e); },
          [&](const event::PeerUp& e) { take_peer(peer_of(e, "up", time)); },
          [&](const event::PeerDown& e) { take_peer(peer_of(e, "down", time)); },
          [&](const event::PeerLink& e) { take_peer(link_of(e, time)); }, [](const auto&) {}},
      event.what);
  tick(now);
}

void HistoryFeed::enter_run(const std::string& run) {
  if (batch_.run == run) return;
  flush();
  if (!batch_.run.empty()) batch_ = {};
  batch_.run = run;
  totals_ = {};
  validation_loss_ = 0;
  step_ = tokens_ = 0;
  if (const auto known = store_.totals(run); known.ok() && *known) totals_ = **known;
}

// Within one trainer's life tokens only grow, and each step brings some.
bool HistoryFeed::is_written(const IslandState& state, bool is_step) const {
  if (state.pid != totals_.pid) return false;
  return state.tokens < totals_.tokens || (is_step && state.tokens == totals_.tokens);
}

// Each trainer counts from zero; the island's own count goes on.
std::uint64_t HistoryFeed::total_tokens(const IslandState& state) {
  if (state.pid != totals_.pid || state.tokens < totals_.tokens) {
    totals_.earlier_tokens += totals_.tokens;
  }
  totals_.pid = state.pid;
  totals_.tokens = state.tokens;
  batch_.totals = totals_;
  return totals_.earlier_tokens + totals_.tokens;
}

bool HistoryFeed::take_state(const IslandState& state, bool is_step, double time, bool kept) {
  if (state.run_id.empty() || state.run_id.size() > kMaxRunBytes) return false;
  enter_run(state.run_id);
  if (kept && is_written(state, is_step)) return false;
  tokens_ = total_tokens(state);
  step_ = std::uint64_t{state.round} * state.inner_steps + state.inner_step;
  row_waits_ = true;
  const auto validation = positive(state.validation_loss_nats);
  if (validation && *validation != validation_loss_) {
    validation_loss_ = *validation;
    add_point("validation_loss_nats", time, *validation);
  }
  return true;
}

void HistoryFeed::add_step(double time, const IslandState& state) {
  if (positive(state.loss_nats)) add_point("loss_nats", time, state.loss_nats);
  if (positive(state.tokens_per_second)) add_point("tokens_per_second", time, state.tokens_per_second);
  if (state.mfu) add_point("mfu", time, *state.mfu);
  if (positive(state.flops_per_second)) add_point("flops_per_second", time, *state.flops_per_second);
  if (state.learning_rate) add_point("learning_rate", time, *state.learning_rate);
  if (state.gradient_norm) add_point("gradient_norm", time, *state.gradient_norm);
}

void HistoryFeed::take_round(double time, const event::RoundDone& done) {
  if (batch_.run.empty()) return;
  HistoryRound row{.round = done.round, .ended = time, .islands = done.islands};
  row.loss_nats = positive(done.loss_nats);
  row.tokens = done.tokens;
  row.bytes_sent = done.bytes_sent;
  row.inner_seconds = done.inner_seconds;
  row.sync_seconds = done.sync_seconds;
  row.accepted = done.accepted;
  if (!done.state_hash.empty() && done.state_hash.size() <= kMaxTextBytes) row.state_hash = done.state_hash;
  if (done.sync_seconds) add_point("sync_seconds", time, *done.sync_seconds);
  batch_.rounds.push_back(std::move(row));
  row_waits_ = true;
}

void HistoryFeed::take_phase(const event::SyncPhase& phase) {
  if (batch_.run.empty() || phase.part == SyncPart::kUnknown) return;
  HistoryRound row{.round = phase.round};
  row.phases.push_back({.attempt = std::min(phase.attempt, kMaxAttempt),
                        .name = std::string(word_of(phase.part)),
                        .seconds = phase.seconds,
                        .bytes = phase.bytes});
  batch_.rounds.push_back(std::move(row));
  row_waits_ = true;
}

// A state is told of with the round that made it; the one with which the run began has none.
void HistoryFeed::take_validation(const event::Validated& validated) {
  const auto loss = positive(validated.loss_nats);
  if (batch_.run.empty() || validated.outer_step == 0 || !loss) return;
  batch_.rounds.push_back({.round = validated.outer_step - 1, .validation_loss_nats = loss});
  row_waits_ = true;
}

void HistoryFeed::take_scores(const event::Evaluated& evaluated) {
  if (batch_.run.empty() || evaluated.outer_step == 0) return;
  HistoryRound row{.round = evaluated.outer_step - 1};
  for (const event::TaskFigure& figure : evaluated.figures) {
    if (std::isfinite(figure.value))
      row.scores.push_back({bounded(evaluated.task), bounded(figure.metric), figure.value});
  }
  batch_.rounds.push_back(std::move(row));
  row_waits_ = true;
}

// It names its run, and may come before the island's state.
void HistoryFeed::take_past(double time, const event::PastTold& told) {
  if (told.run.empty() || told.run.size() > kMaxRunBytes || told.inner_steps == 0) return;
  enter_run(told.run);
  batch_.past = HistoryPast{told.inner_steps, time, told.past};
  row_waits_ = true;
}

void HistoryFeed::take_gpus(double time, const event::GpuSampled& sampled) {
  if (batch_.run.empty()) return;
  for (const GpuSample& gpu : sampled.gpus) {
    if (gpu.index >= kMaxSampledGpus) continue;
    for (const auto& [figure, value] : changing_figures(gpu)) {
      add_point(fmt::format("gpu.{}.{}", gpu.index, figure), time, value);
    }
  }
}

void HistoryFeed::take_peer(HistoryPeer peer) {
  // The roster may come before the island has said which run it is in.
  if (peer.island.empty() || (batch_.run.empty() && batch_.peers.size() >= kMaxKeptRows)) return;
  batch_.peers.push_back(std::move(peer));
  row_waits_ = true;
}

void HistoryFeed::add_point(std::string series, double time, double value) {
  batch_.points.push_back({std::move(series), time, step_, tokens_, value});
  row_waits_ = true;
}

void HistoryFeed::tick(Clock::time_point now) {
  if (!row_waits_ || batch_.run.empty()) return;
  if (write_at_ == Clock::time_point{}) write_at_ = now + std::chrono::duration_cast<Clock::duration>(kWriteEvery);
  if (now >= write_at_) write(now);
}

void HistoryFeed::flush() {
  if (row_waits_ && !batch_.run.empty()) write(Clock::now());
}

void HistoryFeed::write(Clock::time_point now) {
  const Status written = store_.write(batch_);
  const Seconds pause = written.ok() ? kWriteEvery : kRetryAfter;
  write_at_ = written.ok() ? Clock::time_point{} : now + std::chrono::duration_cast<Clock::duration>(pause);
  if (written.ok()) {
    trouble_.clear();
  } else {
    trouble_ = fmt::format("the history is not written: {}. Training goes on", written.error().message);
    forget_oldest(batch_.points);
    forget_oldest(batch_.rounds);
    forget_oldest(batch_.peers);
    return;
  }
  const std::string run = batch_.run;
  batch_ = {};
  batch_.run = run;
  row_waits_ = false;
}

}  // namespace atl
