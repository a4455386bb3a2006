#include "tests/app/gui/run_story.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/format.h>

#include "net/control/events.h"

namespace atl::test {
namespace {

constexpr double kBegan = 1'763'700'000;
constexpr int kRounds = 43;
constexpr std::uint32_t kRoundNow = kRounds - 1;
constexpr int kSteps = 500;
constexpr double kStepSeconds = 0.5;
constexpr double kTokensAStep = 8 * 216 * 1024;  // on each of eight GPUs 216 sequences of 1024
constexpr double kTokensASecond = kTokensAStep / kStepSeconds;
// Twelve layers of 768, 50,304 tokens whose embedding is not tied; what a token costs is docs/control.md's.
constexpr std::uint64_t kParameters = 162'322'944;
constexpr double kAttentionFlops = 12.0 * 12 * 768 * 1024;
constexpr double kFlops = kTokensASecond * (6.0 * kParameters + kAttentionFlops);
constexpr double kMfu = kTokensASecond * (6.0 * (kParameters - 50'304 * 768) + kAttentionFlops) /
                        (8 * 989.4e12 /* an H100's, dense bf16 */);
constexpr int kPausedRound = 24;  // the hub was away for two hours before it
constexpr double kPauseSeconds = 7200;
constexpr int kStepNow = 371;
constexpr int kThrottledGpu = 5;

struct Place {
  const char* id;
  const char* name;
  const char* region;
  double rtt, up, down;
  unsigned retries;
  bool lives = true;
};
constexpr Place kPlaces[] = {
    {"isl-2mf4k7q3x", "under the desk", "Lisbon", 0, 105e6, 0, 0},
    {"isl-7c2qw81nz", "uni-h100-a", "Z\u00FCrich", 0.031, 62e6, 71e6, 0},
    {"isl-9x4rt6bkm", "basement-4090", "Hamburg", 0.042, 44e6, 48e6, 1},
    {"isl-3hq8vd2pl", "hetzner-01", "Falkenstein", 0.038, 118e6, 112e6, 0},
    {"isl-5tz1mn7cf", "loft", "Bergen", 0.055, 38e6, 41e6, 0, false},
    {"isl-1kb6ws9yg", "garage", "Austin", 0.131, 11.6e6, 22e6, 7},
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

unsigned islands_in(int round) { return round < 6 ? 5 : round < 15 ? 6 : round % 13 == 7 ? 7 : 8; }

// That one island sends in an all-reduce of so many, in int8-block: a scale of two bytes for each 128 values.
double ring_bytes(unsigned islands) { return 2.0 * (islands - 1) / islands * kParameters * (1 + 2.0 / 128); }

double value_of(const std::string& name, double step, double time, bool syncing = false) {
  if (name == "loss_nats") {
    const double spike = std::fmod(step, 4321) < 3 ? 0.5 : 0;
    return loss_at(step) + 0.05 * (noise(step) + noise(step * 1.7 + 5)) + spike;
  }
  if (name == "validation_loss_nats") return loss_at(step) + 0.045 + 0.012 * noise(step);
  if (name == "tokens_per_second")
    return kTokensASecond * (1 + 0.017 * noise(step / 3) - (std::fmod(step, 500) < 4 ? 0.22 : 0));
  if (name == "learning_rate") {
    return step < 1000 ? 3e-4 * step / 1000 : 3e-5 + 2.7e-4 * 0.5 * (1 + std::cos(3.14159 * (step - 1000) / 30'000));
  }
  if (name == "gradient_norm") return 0.45 + 1.6 * std::exp(-step / 900) + 0.16 * std::abs(noise(step * 3.1));
  if (name == "mfu") return kMfu + 0.008 * noise(step / 5);
  const bool throttled = name.starts_with(fmt::format("gpu.{}.", kThrottledGpu)) && !syncing;
  if (name.ends_with("utilisation")) return syncing ? 0.06 : 0.97 + 0.02 * noise(time + name[4]);
  if (name.ends_with("memory_bytes")) return 71.2e9 + 0.05e9 * (name[4] - '0') + 0.1e9 * noise(time / 60);
  if (name.ends_with("power_watts"))
    return (syncing ? 142 : throttled ? 540 : 592) + 9 * (name[4] - '0') + 9 * noise(time * 1.3 + name[4]);
  if (name.ends_with("temperature_celsius"))
    return (syncing ? 55 : throttled ? 83 : 66) + 3 * noise(name[4] * 3.3) + noise(time);
  return 0;
}

nlohmann::json peer_json(const Place& place) {
  const auto number = &place - std::begin(kPlaces);
  return {{"island", place.id},
          {"name", place.name},
          {"address", fmt::format("203.0.113.{}:47001", 7 + 12 * number)},
          {"state", place.lives ? "up" : "down"},
          {"last_change", place.lives ? kBegan + 1800.0 * static_cast<double>(number) : now() - 140},
          {"rtt_seconds", place.rtt},
          {"bytes_per_second", place.up},
          {"down_bytes_per_second", place.down},
          {"version", "0.1.0"},
          {"region", place.region},
          {"retries", place.retries}};
}

nlohmann::json phases_json(double seconds, double bytes) {
  const auto phase = [seconds](const char* name, double share, double sent) {
    return nlohmann::json{
        {"attempt", 1u}, {"name", name}, {"seconds", seconds * share}, {"bytes", static_cast<std::uint64_t>(sent)}};
  };
  return {phase("wait", 0.13, 0),
          phase("connect", 0.01, 0),
          phase("quantise", 0.01, 0),
          phase("reduce_scatter", 0.435, bytes / 2),
          phase("all_gather", 0.39, bytes / 2),
          phase("commit", 0.015, 0),
          phase("apply", 0.01, 0)};
}

nlohmann::json round_row(int round) {
  nlohmann::json row = round_json(static_cast<unsigned>(round), round_begins(round));
  const double sync = sync_seconds(round);
  row["ended"] = round_begins(round) + kSteps * kStepSeconds + sync;
  row["loss_nats"] = loss_at((round + 1.0) * kSteps);
  row["validation_loss_nats"] = value_of("validation_loss_nats", (round + 1.0) * kSteps, 0);
  row["inner_seconds"] = kSteps * kStepSeconds;
  row["sync_seconds"] = sync;
  row["islands"] = islands_in(round);
  row["bytes_sent"] = static_cast<std::uint64_t>(ring_bytes(islands_in(round)));
  row["tokens"] = static_cast<std::uint64_t>(kSteps * kTokensAStep);
  row["phases"] = phases_json(sync, ring_bytes(islands_in(round)));
  return row;
}

// What the island gave to the run: every round that has ended took its part.
void contribute(nlohmann::json& state) {
  double bytes = 0, sync = 0;
  for (int round = 0; round < kRounds - 1; ++round) {
    bytes += std::floor(ring_bytes(islands_in(round)));
    sync += sync_seconds(round);
  }
  const double steps = (kRounds - 1.0) * kSteps + kStepNow;
  state["tokens"] = static_cast<std::uint64_t>(steps * kTokensAStep);
  state["rounds_accepted"] = static_cast<unsigned>(kRounds - 1);
  state["bytes_sent"] = static_cast<std::uint64_t>(bytes);
  state["inner_seconds"] = steps * kStepSeconds;
  state["sync_seconds"] = sync;
  const nlohmann::json given = {{"tokens", state["tokens"]},
                                {"rounds_accepted", state["rounds_accepted"]},
                                {"bytes_sent", state["bytes_sent"]},
                                {"seconds", steps * kStepSeconds + sync}};
  state["agent"]["contributed"] = {{"run", given}, {"life", given}};
}

}  // namespace

RunStory::RunStory(FakeAgent& agent, int gpus) : agent_(agent), gpus_(gpus) {
  nlohmann::json state = training_state();
  state["name"] = kPlaces[0].name;
  state["island"] = kPlaces[0].id;
  state["run_name"] = "atlas-150m";
  state["parameters"] = kParameters;
  state["inner_step"] = kStepNow;
  constexpr double kStepsEnded = (kRounds - 1.0) * kSteps, kStepsDone = kStepsEnded + kStepNow;
  for (const char* name : {"loss_nats", "learning_rate", "gradient_norm"}) {
    state[name] = value_of(name, kStepsDone, now());
  }
  state["validation_loss_nats"] = value_of("validation_loss_nats", kStepsEnded, now());
  state["tokens_per_second"] = kTokensASecond;
  state["flops_per_second"] = kFlops;
  state["mfu"] = kMfu;
  state["next_sync_seconds"] = (kSteps - kStepNow) * kStepSeconds;
  state["last_sync_seconds"] = sync_seconds(kRounds - 2);
  state["outer_step"] = static_cast<unsigned>(kRounds - 1);
  state["safe_outer_step"] = static_cast<unsigned>(kRounds - 1);
  contribute(state);
  state["islands_live"] = static_cast<unsigned>(std::ranges::count_if(kPlaces, &Place::lives));
  state["islands_total"] = static_cast<unsigned>(std::size(kPlaces));
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
              {"rounds_accepted", 0u},
              {"safe_outer_step", nullptr},
              {"tokens", 0u},
              {"bytes_sent", 0u},
              {"inner_seconds", 0.0},
              {"sync_seconds", 0.0},
              {"tokens_per_second", 0.0},
              {"outer_step", 0u},
              {"mfu", nullptr},
              {"flops_per_second", nullptr},
              {"step_seconds", nullptr},
              {"agent", {{"contributed", nullptr}}},
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
                           {"parameters", kParameters},
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
  const bool throttled = index == kThrottledGpu;
  return {{"name", gpus_ == 1 ? "NVIDIA GeForce RTX 4090" : "H100 80GB HBM3"},
          {"utilisation", value("utilisation")},
          {"memory_bytes", gpus_ == 1 ? 21.3e9 : value("memory_bytes")},
          {"memory_total_bytes", gpus_ == 1 ? 24e9 : 80e9},
          {"power_watts", gpus_ == 1 ? 388.0 : std::round(value("power_watts"))},
          {"power_limit_watts", gpus_ == 1 ? 450.0 : 700.0},
          {"temperature_celsius", std::round(value("temperature_celsius"))},
          {"sm_clock_hertz", throttled ? 1.59e9 : 1.98e9},
          {"throttling", throttled ? "heat" : ""},
          {"ecc_errors", 0u},
          {"nvlink_bytes_per_second", gpus_ == 1 ? nlohmann::json() : nlohmann::json(2.3e9)}};
}

void RunStory::tell_gpus() {
  nlohmann::json gpus = nlohmann::json::array();
  for (int i = 0; i < gpus_; ++i) gpus.push_back(gpu_json(i));
  agent_.tell("gpu.sample", {{"gpus", gpus}}, now());
}

void RunStory::begin_sync(int islands) {
  std::vector<Place> places;
  std::ranges::copy_if(kPlaces, std::back_inserter(places), &Place::lives);
  ring_islands_ = static_cast<unsigned>(islands > 0 ? islands : static_cast<int>(places.size()));
  nlohmann::json ring = nlohmann::json::array();
  for (unsigned i = 0; i < ring_islands_; ++i) {
    const bool known = i < places.size();
    ring.push_back({{"island", known ? places[i].id : fmt::format("isl-{}", i)},
                    {"name", known ? places[i].name : fmt::format("island {}", i)},
                    {"tokens", static_cast<std::uint64_t>(kSteps * kTokensAStep)},
                    {"edge_bytes_per_second", known ? places[i].up : 4e7 + 1e6 * i}});
  }
  agent_.tell_state("state.changed", {{"state", "syncing"}, {"inner_step", kSteps}, {"next_sync_seconds", nullptr}});
  agent_.tell("sync.phase", {{"phase", "wait"}, {"round", kRoundNow}, {"attempt", 1u}, {"seconds", 4.6}, {"bytes", 0u}},
              now());
  agent_.tell("sync.phase", {{"phase", "begin"}, {"round", kRoundNow}, {"attempt", 1u}, {"ring", ring}}, now());
}

void RunStory::progress_sync(double fraction) {
  constexpr std::uint32_t kBuckets = 3;
  const std::uint32_t half = ring_islands_ - 1, steps = kBuckets * 2 * half;  // of a bucket; of all
  const auto step = static_cast<std::uint32_t>(fraction * steps);
  const double bytes = ring_bytes(ring_islands_);
  agent_.tell("sync.progress",
              {{"round", kRoundNow},
               {"attempt", 1u},
               {"phase", step % (2 * half) < half ? "reduce_scatter" : "all_gather"},
               {"bytes_done", static_cast<std::uint64_t>(fraction * bytes)},
               {"bytes_total", static_cast<std::uint64_t>(bytes)},
               {"step", step},
               {"steps", steps},
               {"sent_bytes_per_second", 10.2e6},  // all go at the pace of the slowest edge
               {"received_bytes_per_second", 10.1e6}},
              now());
}

void RunStory::be_a_newcomer(int first_round) {
  first_round_ = first_round;
  points_.clear();
}

// As an agent makes it of what the hub told: this island validated all states since it came.
RunStory::Points RunStory::make_past(bool validations) const {
  Points points;
  for (int round = 0; round < (validations ? first_round_ : kRounds - 1); ++round) {
    const double span = kSteps * kStepSeconds + sync_seconds(round), part = validations ? 1 : 0.5;
    const double step = (round + part) * kSteps;
    points.time.push_back(round_begins(round) + part * span);
    points.step.push_back(step);
    points.tokens.push_back(0);
    points.value.push_back(validations ? value_of("validation_loss_nats", step, 0)
                                       : loss_at(step) + 0.008 * noise(step));
  }
  return points;
}

RunStory::Points RunStory::make(const std::string& name) const {
  if (name.starts_with("run.")) return make_past(name == kPastValidationSeries);
  Points points;
  const double share = gpus_ != 1 ? 1 : name.ends_with("memory_bytes") ? 0.3 : name.ends_with("watts") ? 0.65 : 1;
  const auto add = [&](double time, double step, double value) {
    points.time.push_back(time);
    points.step.push_back(step);
    points.tokens.push_back(step * kTokensAStep);
    points.value.push_back(share * value);
  };
  const bool a_round = name == "validation_loss_nats" || name == "sync_seconds";
  const bool gpu = name.starts_with("gpu.");
  for (int round = gpu ? kRounds - 14 : first_round_; round < kRounds; ++round) {
    const bool ended = round < kRounds - 1;
    const double began = round_begins(round), before = round * double{kSteps};
    const double synced = began + kSteps * kStepSeconds;
    if (a_round && ended) {
      const double time = synced + sync_seconds(round), step = before + kSteps;
      add(time, step, name == "sync_seconds" ? sync_seconds(round) : value_of(name, step, time));
    }
    for (int step = 1; !a_round && step <= (ended ? kSteps : kStepNow); step += gpu ? 10 : 1) {
      const double time = began + step * kStepSeconds;
      add(time, before + step, value_of(name, before + step, time));
    }
    for (double time = synced; gpu && ended && time < synced + sync_seconds(round); time += 5) {
      add(time, before + kSteps, value_of(name, before + kSteps, time, /*syncing=*/true));
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
              "validation_loss_nats", kPastLossSeries, kPastValidationSeries}}};
  }
  nlohmann::json answer = {{"run", "run-1"}, {"name", name}, {"axis", params.value("axis", "time")}, {"width", 0}};
  for (const char* column : {"time", "step", "tokens", "count", "mean", "low", "high"}) {
    answer[column] = nlohmann::json::array();
  }
  const bool placed = !name.starts_with("run.") || answer["axis"] != "tokens";
  if (empty_ || !placed) return answer;
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
