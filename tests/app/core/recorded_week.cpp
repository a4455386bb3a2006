#include "tests/app/core/recorded_week.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "tests/app/core/recording_script.h"

namespace atl::test {
namespace {

constexpr int kPeers = 3;
constexpr double kPeerLeavesEvery = 3600, kPeerIsAwayFor = 600, kHubIsAwayAt = 86'400, kHubIsAwayFor = 900;
constexpr std::uint64_t kTokensAStep = 636'300;

std::string peer_id(int peer) { return fmt::format("isl-{:04}", peer); }

class Week {
 public:
  Week(const QString& path, const WeekPlan& plan) : plan_(plan), script_(path) {
    state_ = training_state();
    agent_ = state_["agent"];
    state_["round"] = state_["inner_step"] = state_["outer_step"] = 0u;
    state_["inner_steps"] = plan.inner_steps;
    state_["accepted_round"] = nullptr;
    state_["tokens"] = 0u;
    for (int peer = 0; peer < kPeers; ++peer) up_[static_cast<std::size_t>(peer)] = true;
    script_.greet(0, whole_state());
    state_.erase("agent");
    answer_lists();
  }

  WeekEnd record() {
    const double end = plan_.days * 86'400;
    while (now_ < end) {
      step();
      if (state_["inner_step"] == plan_.inner_steps) synchronise();
    }
    script_.event(now_ + plan_.silence, "hub.link", {{"up", true}});
    script_.close();
    WeekEnd told{
        .state = state_, .gpus = gpus_, .events = script_.events(), .stepped = RecordingScript::kBegan + stepped_};
    for (const bool up : up_) ++(up ? told.islands_up : told.islands_away);
    return told;
  }

 private:
  nlohmann::json whole_state() const {
    nlohmann::json state = state_;
    state["agent"] = agent_;
    if (!gpus_.is_null()) state["gpus"] = gpus_;
    return state;
  }

  // As when the window was opened: nothing but what comes live.
  void answer_lists() {
    const auto none = nlohmann::json::array();
    script_.answer(0, "peers.list", nlohmann::json::object(), {{"run", "run-1"}, {"peers", none}});
    script_.answer(0, "rounds.list", {{"limit", 200u}}, {{"run", "run-1"}, {"rounds", none}, {"more", false}});
    script_.answer(0, "checkpoints.list", nlohmann::json::object(), {{"checkpoints", none}});
    script_.answer(0, "logs.read", {{"limit", 2000u}},
                   {{"lines", {{{"source", "agent"}, {"time", "14:05:01"}, {"level", "info"}, {"text", "it begins"}}}},
                    {"cursor", "1"},
                    {"more", false}});
  }

  // What else is told until `then`.
  void go_on_to(double then) {
    while (next_state_ < then || next_gpus_ < then || next_peer_ < then || next_hub_ < then) {
      const double at = std::min({next_state_, next_gpus_, next_peer_, next_hub_});
      if (at == next_state_) {
        script_.answer(at, "state.get", nlohmann::json::object(), whole_state());
        next_state_ = at + plan_.state_seconds;
      } else if (at == next_gpus_) {
        sample(at);
        next_gpus_ += plan_.gpu_seconds;
      } else if (at == next_peer_) {
        peer_comes_or_goes(at);
      } else {
        hub_comes_or_goes(at);
      }
    }
    now_ = then;
  }

  void step() {
    go_on_to(now_ + plan_.step_seconds);
    ++steps_;
    state_["inner_step"] = state_["inner_step"].get<std::uint32_t>() + 1;
    state_["tokens"] = steps_ * kTokensAStep;
    state_["loss_nats"] = 2 + 8 * std::exp(-static_cast<double>(steps_) / 40'000) + 0.1 * std::sin(1.7 * now_);
    state_["tokens_per_second"] = 318'000 + 4'000 * std::sin(now_ / 40);
    tell("step", "training");
    stepped_ = now_;
  }

  void synchronise() {
    const std::uint32_t round = state_["round"];
    const double begin = now_, end = now_ + plan_.sync_seconds;
    tell("state.changed", "syncing");
    script_.event(now_, "sync.phase", ring(round));
    while (now_ + plan_.progress_seconds < end) {
      go_on_to(now_ + plan_.progress_seconds);
      script_.event(now_, "sync.progress", progress(round, (now_ - begin) / plan_.sync_seconds));
    }
    go_on_to(end);
    for (const char* phase : {"wait", "connect", "quantise", "reduce_scatter", "all_gather", "commit", "apply"}) {
      script_.event(now_, "sync.phase",
                    {{"round", round}, {"attempt", 1u}, {"phase", phase}, {"seconds", 5.0}, {"bytes", 900'000'000u}});
    }
    script_.event(now_, "peer.link", {{"island", peer_id(0)}, {"rtt_seconds", 0.03}, {"bytes_per_second", 1.2e7}});
    state_["outer_step"] = round + 1;
    state_["accepted_round"] = round;
    state_["last_sync_seconds"] = plan_.sync_seconds;
    state_["validation_loss_nats"] = state_["loss_nats"].get<double>() + 0.05;
    state_["sync_seconds"] = plan_.sync_seconds * (round + 1);
    state_["inner_seconds"] = plan_.step_seconds * static_cast<double>(steps_);
    state_["bytes_sent"] = 1'900'000'000ull * (round + 1);
    tell("sync.done", "training");
    state_["round"] = round + 1;
    state_["inner_step"] = 0u;
    tell("round.begin", "training");
  }

  void tell(const char* event, const char* word) {
    state_["state"] = word;
    script_.event(now_, event, state_);
    next_state_ = now_ + plan_.state_seconds;
  }

  nlohmann::json ring(std::uint32_t round) const {
    nlohmann::json members = nlohmann::json::array();
    const auto add = [&](const std::string& island) {
      members.push_back({{"island", island}, {"name", island}, {"tokens", 1u}, {"edge_bytes_per_second", 1.2e7}});
    };
    add(state_["island"]);
    for (int peer = 0; peer < kPeers; ++peer) {
      if (up_[static_cast<std::size_t>(peer)]) add(peer_id(peer));
    }
    return {{"round", round}, {"attempt", 1u}, {"phase", "begin"}, {"ring", members}};
  }

  static nlohmann::json progress(std::uint32_t round, double done) {
    return {{"round", round},
            {"attempt", 1u},
            {"phase", done < 0.5 ? "reduce_scatter" : "all_gather"},
            {"bytes_done", static_cast<std::uint64_t>(1.9e9 * done)},
            {"bytes_total", 1'900'000'000u},
            {"step", static_cast<std::uint32_t>(42 * done)},
            {"steps", 42u},
            {"sent_bytes_per_second", 5e7},
            {"received_bytes_per_second", 5e7}};
  }

  void sample(double at) {
    if (plan_.gpus == 0) return;
    gpus_ = nlohmann::json::array();
    for (int i = 0; i < plan_.gpus; ++i) {
      gpus_.push_back({{"index", static_cast<unsigned>(i)},
                       {"name", "H100 80GB HBM3"},
                       {"utilisation", 0.9 + 0.09 * std::sin(at / 60)},
                       {"memory_bytes", 71'200'000'000u},
                       {"memory_total_bytes", 80'000'000'000u},
                       {"power_watts", std::round(600 + 50 * std::sin(at / 90 + i))},
                       {"power_limit_watts", 700.0},
                       {"temperature_celsius", std::round(60 + 5 * std::sin(at / 300 + i))},
                       {"sm_clock_hertz", 1.98e9},
                       {"throttling", ""},
                       {"ecc_errors", 0u},
                       {"nvlink_bytes_per_second", 2.1e11}});
    }
    script_.event(at, "gpu.sample", {{"gpus", gpus_}});
  }

  // One after the other.
  void peer_comes_or_goes(double at) {
    const auto peer = static_cast<std::size_t>(visits_ % kPeers);
    up_[peer] = !up_[peer];
    script_.event(at, up_[peer] ? "peer.up" : "peer.down",
                  {{"island", peer_id(static_cast<int>(peer))},
                   {"name", fmt::format("island {}", peer)},
                   {"address", "203.0.113.7:47001"},
                   {"version", "atoll 0.1.0"},
                   {"region", "eu-west"}});
    if (up_[peer]) ++visits_;
    next_peer_ = at + (up_[peer] ? kPeerLeavesEvery : kPeerIsAwayFor);
  }

  void hub_comes_or_goes(double at) {
    hub_up_ = !hub_up_;
    nlohmann::json data = {{"up", hub_up_}};
    if (!hub_up_) data.update({{"text", "no route to host"}, {"tries_for_seconds", 3600.0}});
    script_.event(at, "hub.link", data);
    next_hub_ = at + (hub_up_ ? kHubIsAwayAt : kHubIsAwayFor);
  }

  const WeekPlan plan_;
  RecordingScript script_;
  nlohmann::json state_, agent_, gpus_;
  std::array<bool, kPeers> up_{};
  bool hub_up_ = true;
  std::uint64_t steps_ = 0, visits_ = 0;
  double now_ = 0, stepped_ = 0, next_state_ = 1, next_gpus_ = 2.5, next_peer_ = kPeerLeavesEvery,
         next_hub_ = kHubIsAwayAt;
};

}  // namespace

WeekEnd record_week(const QString& path, const WeekPlan& plan) { return Week(path, plan).record(); }

}  // namespace atl::test
