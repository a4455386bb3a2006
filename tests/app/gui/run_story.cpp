#include "tests/app/gui/run_story.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/format.h>

namespace atl::test {
namespace {

constexpr double kBegan = 1'763'700'000;
constexpr int kRounds = 43;
constexpr int kSteps = 500;
constexpr double kStepSeconds = 0.5;
constexpr double kTokensAStep = 636'300;
constexpr int kPausedRound = 24;  // for two hours before it
constexpr double kPauseSeconds = 7200;
constexpr int kStepNow = 371;

struct Place {
  const char* id;
  const char* name;
  const char* region;
  double rtt, up, down;
  unsigned retries;
};
constexpr Place kPlaces[] = {
    {"isl-2mf4k7q3x", "under the desk", "Lisbon", 0, 105e6, 0, 0},
    {"isl-7c2qw81nz", "uni-h100-a", "Z\u00FCrich", 0.031, 62e6, 71e6, 0},
    {"isl-9x4rt6bkm", "basement-4090", "Hamburg", 0.042, 44e6, 48e6, 1},
    {"isl-3hq8vd2pl", "hetzner-01", "Falkenstein", 0.038, 118e6, 112e6, 0},
    {"isl-5tz1mn7cf", "loft", "Bergen", 0.055, 38e6, 41e6, 0},
    {"isl-1kb6ws9yg", "garage", "Austin", 0.131, 5.4e6, 22e6, 7},
    {"isl-8pd3xj5ra", "montreal-8xh100", "Montr\u00E9al", 0.104, 125e6, 121e6, 0},
    {"isl-6vn9hf4te", "tokyo-a100", "Tokyo", 0.228, 57e6, 60e6, 2},
};

struct Times {
  std::vector<double> sync, begins;
};

// Drawn once: tests ask for them a million times.
const Times& times() {
  static const Times drawn = [] {
    Times made;
    double time = kBegan;
    for (int round = 0; round <= kRounds; ++round) {
      std::mt19937 random(static_cast<unsigned>(round) * 7919 + 3);
      std::gamma_distribution<double> slow(2.2, 3.1);
      made.sync.push_back(27 + slow(random) + (round % 13 == 7 ? 24 : 0));
      if (round == kPausedRound) time += kPauseSeconds;
      made.begins.push_back(time);
      time += kSteps * kStepSeconds + made.sync.back();
    }
    return made;
  }();
  return drawn;
}

double sync_seconds(int round) { return times().sync[static_cast<std::size_t>(round)]; }
double round_begins(int round) { return times().begins[static_cast<std::size_t>(round)]; }

double now() { return round_begins(kRounds - 1) + kStepNow * kStepSeconds; }

double loss_at(double step) { return 2.55 + 5.6 * std::exp(-step / 1500) + 2.4 * std::exp(-step / 9000); }

// A noise that is the same each time.
double noise(double seed) {
  const double value = std::sin(seed * 12.9898) * 43758.5453;
  return 2 * (value - std::floor(value)) - 1;
}

double value_of(const std::string& name, double step, double time) {
  if (name == "loss_nats") {
    const double spike = std::fmod(step, 4321) < 3 ? 0.5 : 0;
    return loss_at(step) + 0.11 * (noise(step) + noise(step * 1.7 + 5)) + spike;
  }
  if (name == "validation_loss_nats") return loss_at(step) + 0.045 + 0.012 * noise(step);
  if (name == "tokens_per_second") return 318'000 + 5'500 * noise(step / 3) - (std::fmod(step, 500) < 4 ? 70'000 : 0);
  if (name == "learning_rate") {
    return step < 1000 ? 3e-4 * step / 1000 : 3e-5 + 2.7e-4 * 0.5 * (1 + std::cos(3.14159 * (step - 1000) / 30'000));
  }
  if (name == "gradient_norm") return 0.45 + 1.6 * std::exp(-step / 900) + 0.16 * std::abs(noise(step * 3.1));
  if (name == "mfu") return 0.384 + 0.008 * noise(step / 5);
  const bool syncing = std::fmod(time - kBegan, 285) > 250;
  if (name.ends_with("utilisation")) return syncing ? 0.06 : 0.97 + 0.02 * noise(time);
  if (name.ends_with("memory_bytes")) return 71.2e9 + 0.5e9 * (name[4] - '0') + 0.4e9 * noise(time / 60);
  if (name.ends_with("power_watts"))
    return (syncing ? 142 : 592) + 9 * (name[4] - '0') + 9 * noise(time * 1.3 + name[4]);
  if (name.ends_with("temperature_celsius")) return (syncing ? 55 : 66) + 3 * noise(name[4] * 3.3) + noise(time);
  return 0;
}

nlohmann::json peer_json(const Place& place) {
  return {{"island", place.id},
          {"name", place.name},
          {"address", "203.0.113.7:47001"},
          {"state", std::string(place.name) == "loft" ? "down" : "up"},
          {"last_change", now() - 3600},
          {"rtt_seconds", place.rtt},
          {"bytes_per_second", place.up},
          {"down_bytes_per_second", place.down},
          {"version", "0.1.0"},
          {"region", place.region},
          {"retries", place.retries}};
}

nlohmann::json phases_json(double seconds) {
  const auto phase = [](const char* name, double share, double bytes) {
    return nlohmann::json{
        {"attempt", 1u}, {"name", name}, {"seconds", share}, {"bytes", static_cast<std::uint64_t>(bytes)}};
  };
  return {phase("wait", seconds * 0.09, 0),           phase("connect", seconds * 0.01, 0),
          phase("quantise", seconds * 0.06, 0),       phase("reduce_scatter", seconds * 0.41, 948e6),
          phase("all_gather", seconds * 0.38, 948e6), phase("commit", seconds * 0.015, 0),
          phase("apply", seconds * 0.035, 0)};
}

nlohmann::json round_row(int round) {
  nlohmann::json row = round_json(static_cast<unsigned>(round), round_begins(round));
  const double sync = sync_seconds(round);
  row["ended"] = round_begins(round) + kSteps * kStepSeconds + sync;
  row["loss_nats"] = loss_at((round + 1.0) * kSteps);
  row["validation_loss_nats"] = row["loss_nats"].get<double>() + 0.045;
  row["inner_seconds"] = kSteps * kStepSeconds;
  row["sync_seconds"] = sync;
  row["islands"] = round < 6 ? 5u : round < 15 ? 6u : round % 13 == 7 ? 7u : 8u;
  row["tokens"] = static_cast<std::uint64_t>(kSteps * kTokensAStep);
  row["phases"] = phases_json(sync);
  return row;
}

}  // namespace

RunStory::RunStory(FakeAgent& agent, int gpus) : agent_(agent), gpus_(gpus) {
  nlohmann::json state = training_state();
  state["name"] = kPlaces[0].name;
  state["island"] = kPlaces[0].id;
  state["run_name"] = "atlas-150m";
  state["parameters"] = 162'322'944u;
  state["inner_step"] = kStepNow;
  state["loss_nats"] = 2.871;
  state["validation_loss_nats"] = 2.914;
  state["next_sync_seconds"] = (kSteps - kStepNow) * kStepSeconds;
  state["last_sync_seconds"] = sync_seconds(kRounds - 2);
  state["tokens"] = static_cast<std::uint64_t>(((kRounds - 1.0) * kSteps + kStepNow) * kTokensAStep);
  state["bytes_sent"] = 79'632'000'000u;
  state["islands_live"] = 7u;
  state["gpus"] = nlohmann::json::array();
  for (int i = 0; i < gpus_; ++i) state["gpus"].push_back(gpu_json(i));
  agent_.become(state);
  answer_lists();
  agent_.answer("metrics.query",
                [this](const nlohmann::json& params) -> Result<nlohmann::json> { return metrics(params); });
}

void RunStory::be_empty() {
  empty_ = true;
  agent_.say({{"round", 0u},
              {"inner_step", 0u},
              {"loss_nats", 0.0},
              {"validation_loss_nats", nullptr},
              {"next_sync_seconds", nullptr},
              {"last_sync_seconds", nullptr},
              {"accepted_round", nullptr},
              {"tokens", 0u},
              {"bytes_sent", 0u},
              {"inner_seconds", 0.0},
              {"sync_seconds", 0.0},
              {"tokens_per_second", 0.0},
              {"outer_step", 0u},
              {"mfu", nullptr},
              {"flops_per_second", nullptr},
              {"step_seconds", nullptr},
              {"state", "waiting"}});
  agent_.answer("rounds.list", {{"run", "run-1"}, {"rounds", nlohmann::json::array()}, {"more", false}});
  agent_.answer("peers.list", {{"run", "run-1"}, {"peers", nlohmann::json::array()}});
  agent_.answer("checkpoints.list", {{"checkpoints", nlohmann::json::array()}});
}

void RunStory::answer_lists() {
  agent_.answer("rounds.list", [](const nlohmann::json& params) -> Result<nlohmann::json> {
    nlohmann::json rounds = nlohmann::json::array();
    const int limit = params.value("limit", 50);
    int next = std::min(params.value("before", kRounds - 1), kRounds - 1);
    while (next > 0 && static_cast<int>(rounds.size()) < limit) rounds.push_back(round_row(--next));
    return nlohmann::json{{"run", "run-1"}, {"rounds", rounds}, {"more", next > 0}};
  });
  nlohmann::json peers = nlohmann::json::array();
  for (const Place& place : kPlaces) {
    if (place.rtt > 0) peers.push_back(peer_json(place));
  }
  agent_.answer("peers.list", {{"run", "run-1"}, {"peers", peers}});
  nlohmann::json checkpoints = nlohmann::json::array();
  for (const auto& [step, whole] : {std::pair(42u, nlohmann::json()), std::pair(41u, nlohmann::json(true))}) {
    checkpoints.push_back({{"path", fmt::format("/home/ana/.local/share/atoll/checkpoint/outer-{}.state", step)},
                           {"outer_step", step},
                           {"parameters", 162'322'944u},
                           {"bytes", 1'298'583'552u},
                           {"saved_at", round_begins(static_cast<int>(step))},
                           {"state_hash", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
                           {"whole", whole}});
  }
  agent_.answer("checkpoints.list", {{"checkpoints", checkpoints}});
}

nlohmann::json RunStory::gpu_json(int index) const {
  const double time = now();
  const auto value = [&](const char* field) { return value_of(fmt::format("gpu.{}.{}", index, field), 0, time); };
  return {{"name", gpus_ == 1 ? "NVIDIA GeForce RTX 4090" : "H100 80GB HBM3"},
          {"utilisation", 0.97 + 0.004 * index},
          {"memory_bytes", gpus_ == 1 ? 21.3e9 : 71.2e9},
          {"memory_total_bytes", gpus_ == 1 ? 24e9 : 80e9},
          {"power_watts", gpus_ == 1 ? 388.0 : 600.0 + 9 * index},
          {"power_limit_watts", gpus_ == 1 ? 450.0 : 700.0},
          {"temperature_celsius", index == 5 ? 78.0 : std::round(value("temperature_celsius"))},
          {"sm_clock_hertz", 1.98e9},
          {"throttling", index == 5 ? "heat" : ""},
          {"ecc_errors", 0u},
          {"nvlink_bytes_per_second", gpus_ == 1 ? nlohmann::json() : nlohmann::json(212e9)}};
}

void RunStory::tell_gpus() {
  nlohmann::json gpus = nlohmann::json::array();
  for (int i = 0; i < gpus_; ++i) gpus.push_back(gpu_json(i));
  agent_.tell("gpu.sample", {{"gpus", gpus}}, now());
}

void RunStory::begin_sync(int islands) {
  nlohmann::json ring = nlohmann::json::array();
  for (int i = 0; i < islands; ++i) {
    const Place& place = kPlaces[static_cast<std::size_t>(i) % std::size(kPlaces)];
    const bool known = i < static_cast<int>(std::size(kPlaces));
    ring.push_back({{"island", known ? place.id : fmt::format("isl-{}", i)},
                    {"name", known ? place.name : fmt::format("island {}", i)},
                    {"tokens", 318'150'000u},
                    {"edge_bytes_per_second", known ? place.up : 4e7 + 1e6 * i}});
  }
  agent_.tell_state("state.changed", {{"state", "syncing"}, {"inner_step", kSteps}});
  agent_.tell("sync.phase", {{"phase", "begin"}, {"round", 42u}, {"attempt", 1u}, {"ring", ring}}, now());
}

void RunStory::progress_sync(double fraction) {
  constexpr std::uint32_t kRingSteps = 14 * 3;
  agent_.tell("sync.progress",
              {{"round", 42u},
               {"attempt", 1u},
               {"phase", fraction < 0.5 ? "reduce_scatter" : "all_gather"},
               {"bytes_done", static_cast<std::uint64_t>(fraction * 1.896e9)},
               {"bytes_total", 1'896'000'000u},
               {"step", static_cast<std::uint32_t>(fraction * kRingSteps)},
               {"steps", kRingSteps},
               {"sent_bytes_per_second", 61.2e6},
               {"received_bytes_per_second", 58.7e6}},
              now());
}

RunStory::Points RunStory::make(const std::string& name) const {
  Points points;
  const bool a_round = name == "validation_loss_nats" || name == "sync_seconds";
  const bool gpu = name.starts_with("gpu.");
  const int first = gpu ? kRounds - 14 : 0;
  for (int round = first; round < kRounds; ++round) {
    const int last_step = round == kRounds - 1 ? kStepNow : kSteps;
    if (a_round && last_step < kSteps) break;
    for (int step = a_round ? kSteps : 1; step <= last_step; step += gpu ? 10 : 1) {
      const double at = round * double{kSteps} + step;
      const double time = round_begins(round) + step * kStepSeconds + (a_round ? sync_seconds(round) : 0);
      points.time.push_back(time);
      points.step.push_back(at);
      points.tokens.push_back(at * kTokensAStep);
      const double share = gpus_ != 1 ? 1 : name.ends_with("memory_bytes") ? 0.3 : name.ends_with("watts") ? 0.65 : 1;
      points.value.push_back(name == "sync_seconds" ? sync_seconds(round) : share * value_of(name, at, time));
    }
  }
  return points;
}

const RunStory::Points& RunStory::points(const std::string& name) {
  const auto found = points_.find(name);
  return found != points_.end() ? found->second : points_[name] = make(name);
}

nlohmann::json RunStory::metrics(const nlohmann::json& params) {
  const std::string name = params.value("name", "");
  if (name.empty()) {
    return {{"run", "run-1"},
            {"names",
             {"gradient_norm", "learning_rate", "loss_nats", "mfu", "sync_seconds", "tokens_per_second",
              "validation_loss_nats"}}};
  }
  nlohmann::json answer = {{"run", "run-1"}, {"name", name}, {"axis", params.value("axis", "time")}, {"width", 0}};
  for (const char* column : {"time", "step", "tokens", "count", "mean", "low", "high"}) {
    answer[column] = nlohmann::json::array();
  }
  if (empty_) return answer;
  const Points& all = points(name);
  const std::vector<double>& x = answer["axis"] == "step"     ? all.step
                                 : answer["axis"] == "tokens" ? all.tokens
                                                              : all.time;
  const auto begin = static_cast<std::size_t>(std::ranges::lower_bound(x, params.value("from", -1e18)) - x.begin());
  const auto end = static_cast<std::size_t>(std::ranges::upper_bound(x, params.value("to", 1e18)) - x.begin());
  const std::size_t most = params.value("max_points", 1000u);
  const std::size_t each = std::max<std::size_t>(1, (end - begin + most - 1) / most);
  if (each > 1) answer["width"] = (x[end - 1] - x[begin]) / static_cast<double>(most);
  for (std::size_t i = begin; i < end; i += each) {
    const std::size_t past = std::min(i + each, end);
    double sum = 0;
    for (std::size_t j = i; j < past; ++j) sum += all.value[j];
    const auto [low, high] = std::minmax_element(all.value.begin() + static_cast<std::ptrdiff_t>(i),
                                                 all.value.begin() + static_cast<std::ptrdiff_t>(past));
    answer["time"].push_back(all.time[i]);
    answer["step"].push_back(all.step[i]);
    answer["tokens"].push_back(all.tokens[i]);
    answer["count"].push_back(past - i);
    answer["mean"].push_back(sum / static_cast<double>(past - i));
    answer["low"].push_back(*low);
    answer["high"].push_back(*high);
  }
  return answer;
}

}  // namespace atl::test
