#include "app/agent/history/history_feed.h"

#include <fmt/format.h>

#include <cmath>

#include "net/control/island_state.h"
#include "net/control/json_fields.h"
#include "net/control/told.h"

namespace atl {
namespace {

constexpr std::size_t kMaxRunBytes = 64, kMaxGpus = 64, kMaxGpuFields = 24, kMaxTextBytes = 128;

// What a trainer may say of a step beside its state.
constexpr const char* kStepMetrics[] = {"mfu", "learning_rate", "gradient_norm"};

// A count that came from outside as any number.
std::uint64_t count_of(const nlohmann::json& data, const char* key) {
  const double value = told::number(data, key).value_or(0);
  return value > 0 && value < 9e15 ? static_cast<std::uint64_t>(value) : 0;
}

std::optional<double> positive(double value) {
  return std::isfinite(value) && value > 0 ? std::optional(value) : std::nullopt;
}

}  // namespace

void HistoryFeed::take(const nlohmann::json& event, Clock::time_point now) {
  if (!event.is_object()) return;
  const auto data = event.find("data");
  const std::string name = told::text(event, "event", kMaxTextBytes);
  const double time = told::number(event, "time").value_or(-1);
  if (data == event.end() || !data->is_object() || !(time > 0 && time < 1e12)) return;
  if (name == "gpu.sample") {
    take_gpus(time, *data);
  } else if (name.starts_with("peer.")) {
    take_peer(time, name.substr(5), *data);
  } else if (name == "sync.phase" && data->contains("phase")) {
    take_phase(*data);
  } else if (const auto state = IslandState::from_json(*data); state.ok()) {
    take_state(name, time, *state, *data, event.contains("kept"));
  }
  tick(now);
}

void HistoryFeed::enter_run(const std::string& run) {
  if (batch_.run == run) return;
  flush();
  if (!batch_.run.empty()) batch_ = {};
  batch_.run = run;
  round_ = {};
  totals_ = {};
  validation_loss_ = 0;
  step_ = tokens_ = 0;
  if (const auto known = store_.totals(run); known.ok() && *known) totals_ = **known;
}

// Within one trainer's life tokens only grow, and each step brings some.
bool HistoryFeed::is_written(const std::string& name, const IslandState& state) const {
  if (state.pid != totals_.pid) return false;
  return state.tokens < totals_.tokens || (name == "step" && state.tokens == totals_.tokens);
}

// Each trainer counts from zero; the island's own count goes on.
std::uint64_t HistoryFeed::total_tokens(const IslandState& state) {
  if (state.pid != totals_.pid || state.tokens < totals_.tokens) {
    totals_.earlier_tokens += totals_.tokens;
    round_ = {};
  }
  totals_.pid = state.pid;
  totals_.tokens = state.tokens;
  batch_.totals = totals_;
  return totals_.earlier_tokens + totals_.tokens;
}

void HistoryFeed::take_state(const std::string& name, double time, const IslandState& state, const nlohmann::json& data,
                             bool kept) {
  if (state.run_id.empty() || state.run_id.size() > kMaxRunBytes) return;
  enter_run(state.run_id);
  if (kept && is_written(name, state)) return;
  tokens_ = total_tokens(state);
  step_ = std::uint64_t{state.round} * state.inner_steps + state.inner_step;
  row_waits_ = true;
  if (name == "step") {
    if (positive(state.loss_nats)) add_point("loss_nats", time, state.loss_nats);
    if (positive(state.tokens_per_second)) add_point("tokens_per_second", time, state.tokens_per_second);
    for (const char* metric : kStepMetrics) {
      const double value = told::number(data, metric).value_or(NAN);
      if (std::isfinite(value)) add_point(metric, time, value);
    }
  } else if (name == "round.begin") {
    round_ = {state.round, state.tokens, state.bytes_sent, state.inner_seconds};
    batch_.rounds.push_back({.round = state.round, .began = time, .islands = state.islands_live});
  } else if (name == "sync.done") {
    take_round_end(time, state);
  }
  const double validation = state.validation_loss_nats.value_or(0);
  if (positive(validation) && validation != validation_loss_) {
    validation_loss_ = validation;
    add_point("validation_loss_nats", time, validation);
  }
}

void HistoryFeed::take_round_end(double time, const IslandState& state) {
  // The state is already that after the round's outer step.
  const std::uint32_t round = state.outer_step > 0 ? state.outer_step - 1 : 0;
  HistoryRound row{.round = round, .ended = time, .islands = state.islands_live};
  row.loss_nats = positive(state.loss_nats);
  row.sync_seconds = state.last_sync_seconds;
  row.accepted = state.accepted_round == round;
  if (!state.state_hash.empty() && state.state_hash.size() <= kMaxTextBytes) row.state_hash = state.state_hash;
  if (round_.round == round && state.tokens >= round_.tokens && state.bytes_sent >= round_.bytes_sent) {
    row.tokens = state.tokens - round_.tokens;
    row.bytes_sent = state.bytes_sent - round_.bytes_sent;
    row.inner_seconds = state.inner_seconds - round_.inner_seconds;
  }
  if (state.last_sync_seconds) add_point("sync_seconds", time, *state.last_sync_seconds);
  batch_.rounds.push_back(std::move(row));
}

void HistoryFeed::take_phase(const nlohmann::json& data) {
  HistoryPhase phase;
  phase.name = told::text(data, "phase", kMaxTextBytes);
  phase.seconds = told::number(data, "seconds").value_or(-1);
  phase.attempt = static_cast<std::uint32_t>(std::min<std::uint64_t>(count_of(data, "attempt"), 1'000'000));
  phase.bytes = count_of(data, "bytes");
  const auto round = data.find("round");
  const bool known = round != data.end() && round->is_number_integer() && *round >= 0 && *round <= UINT32_MAX;
  if (batch_.run.empty() || phase.name.empty() || !(phase.seconds >= 0) || !known) return;
  HistoryRound row{.round = round->get<std::uint32_t>()};
  row.phases.push_back(std::move(phase));
  batch_.rounds.push_back(std::move(row));
  row_waits_ = true;
}

void HistoryFeed::take_gpus(double time, const nlohmann::json& data) {
  const auto gpus = data.find("gpus");
  if (batch_.run.empty() || gpus == data.end() || !gpus->is_array() || gpus->size() > kMaxGpus) return;
  std::size_t position = 0;
  for (const nlohmann::json& gpu : *gpus) {
    if (gpu.is_object() && gpu.size() <= kMaxGpuFields) {
      // By its own number, where it says it: an island may use some of the machine's.
      const double number = told::number(gpu, "index").value_or(static_cast<double>(position));
      const auto index = number >= 0 && number < kMaxGpus ? static_cast<std::size_t>(number) : position;
      for (const auto& [key, value] : gpu.items()) {
        const bool never_changes = key == "index" || key == "memory_total_bytes";
        if (never_changes || !value.is_number() || !std::isfinite(value.get<double>())) continue;
        add_point(fmt::format("gpu.{}.{}", index, key), time, value.get<double>());
      }
    }
    ++position;
  }
}

void HistoryFeed::take_peer(double time, const std::string& change, const nlohmann::json& data) {
  if (change != "up" && change != "down" && change != "link") return;
  HistoryPeer peer{.island = told::text(data, "island", kMaxTextBytes),
                   .name = told::text(data, "name", kMaxTextBytes),
                   .address = told::text(data, "address", kMaxTextBytes),
                   .state = change == "link" ? "" : change,
                   .last_change = time,
                   .rtt_seconds = positive(told::number(data, "rtt_seconds").value_or(0)),
                   .bytes_per_second = positive(told::number(data, "bytes_per_second").value_or(0)),
                   .down_bytes_per_second = positive(told::number(data, "down_bytes_per_second").value_or(0)),
                   .version = told::text(data, "version", kMaxTextBytes),
                   .region = told::text(data, "region", kMaxTextBytes),
                   .retries = change == "link" && data.value("failed", nlohmann::json()) == true ? 1u : 0u};
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
    if (batch_.points.size() + batch_.rounds.size() + batch_.peers.size() < kMaxKeptRows) return;
  }
  const std::string run = batch_.run;
  batch_ = {};
  batch_.run = run;
  row_waits_ = false;
}

}  // namespace atl
