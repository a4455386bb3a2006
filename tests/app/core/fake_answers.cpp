#include "tests/app/core/fake_answers.h"

#include <algorithm>
#include <cmath>

namespace atl::test {
namespace {

nlohmann::json peer_json(const char* island, const char* name, const char* state, double rate) {
  return {{"island", island},
          {"name", name},
          {"address", "203.0.113.7:47001"},
          {"state", state},
          {"last_change", kBeginning},
          {"rtt_seconds", 0.032},
          {"bytes_per_second", rate},
          {"down_bytes_per_second", rate * 1.1},
          {"version", "atoll 0.1.0"},
          {"region", "eu-west"},
          {"retries", 0}};
}

nlohmann::json setting_json(const char* key, const char* value, const char* otherwise, const char* meaning) {
  return {{"key", key}, {"value", value}, {"default", otherwise}, {"origin", "default"}, {"meaning", meaning}};
}

double value_at(const std::string& name, double i) {
  if (name == "loss_nats") return 2 + 8 * std::exp(-i / 4000) + 0.15 * std::sin(i * 1.7);
  if (name == "validation_loss_nats") return 2.1 + 8 * std::exp(-i / 4000);
  if (name == "tokens_per_second") return 318'000 + 4'000 * std::sin(i / 40);
  if (name == "learning_rate") return 3e-4 * std::min(1.0, i / 500);
  if (name == "gradient_norm") return 0.6 + 0.3 * std::abs(std::sin(i * 0.9));
  if (name == "mfu") return 0.38 + 0.01 * std::sin(i / 90);
  if (name == "sync_seconds") return 38 + 6 * std::sin(i);
  return 50 + 20 * std::sin(i / 60);
}

// Pieces of the axis, as an agent makes them of what is more than `most`.
nlohmann::json metric_points(const std::string& name, const std::string& axis, double from, double to, std::size_t most,
                             std::size_t kept_points, double time) {
  const auto points = static_cast<double>(kept_points);
  const double scale = axis == "time" ? 1 : axis == "step" ? 1 : 636'300;
  const double offset = axis == "time" ? time - points + 1 : 0;
  const double first = std::max(0.0, std::ceil((from - offset) / scale));
  const double last = std::min(points - 1, std::floor((to - offset) / scale));
  nlohmann::json answer;
  for (const char* column : {"time", "step", "tokens", "count", "mean", "low", "high"}) {
    answer[column] = nlohmann::json::array();
  }
  const double total = last - first + 1;
  const double each = total > static_cast<double>(most) ? std::ceil(total / static_cast<double>(most)) : 1;
  answer["width"] = each > 1 ? each * scale : 0;
  for (double i = first; i <= last; i += each) {
    const double mean = value_at(name, i), spread = each > 1 ? 0.1 * std::abs(mean) : 0;
    answer["time"].push_back(time - points + 1 + i);
    answer["step"].push_back(i);
    answer["tokens"].push_back(i * 636'300);
    answer["count"].push_back(std::min(each, last - i + 1));
    answer["mean"].push_back(static_cast<float>(mean));
    answer["low"].push_back(static_cast<float>(mean - spread));
    answer["high"].push_back(static_cast<float>(mean + spread));
  }
  return answer;
}

}  // namespace

nlohmann::json training_state() {
  return {{"state", "training"},
          {"island", "isl-2mf4k7q3x"},
          {"name", "under the desk"},
          {"run_id", "run-1"},
          {"run_name", "gcide-demo"},
          {"pid", 4711},
          {"parameters", 1'234'567u},
          {"round", 42u},
          {"inner_step", 371u},
          {"inner_steps", 500u},
          {"loss_nats", 2.9141},
          {"validation_loss_nats", 3.0217},
          {"tokens_per_second", 318'150.0},
          {"next_sync_seconds", 250.0},
          {"islands_live", 7u},
          {"islands_total", 8u},
          {"last_sync_seconds", 38.0},
          {"accepted_round", 41u},
          {"tokens", 98'765'432u},
          {"bytes_sent", 1'900'000'000u},
          {"inner_seconds", 9200.0},
          {"sync_seconds", 800.0},
          {"outer_step", 42u},
          {"state_hash", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
          {"error", ""},
          {"mfu", 0.384},
          {"flops_per_second", 3.02e14},
          {"step_seconds",
           {{"total", 0.5},
            {"data", 0.01},
            {"matmul", 0.3},
            {"attention", 0.08},
            {"elementwise", 0.04},
            {"loss", 0.02},
            {"optimiser", 0.015},
            {"communication", 0.025}}},
          {"learning_rate", 3e-4},
          {"gradient_norm", 0.71},
          {"disk_free_bytes", 812e9},
          {"agent",
           {{"pid", 4700},
            {"version", "0.1.0"},
            {"wish", "run"},
            {"followed", "run"},
            {"since_unix_seconds", kBeginning},
            {"paused_until_unix_seconds", nullptr},
            {"seconds", 86'400.0},
            {"trainer_pid", 4711},
            {"taken_over", false},
            {"heard_seconds_ago", 0.4},
            {"restarts", 0u},
            {"restart_in_seconds", nullptr},
            {"last_exit", nullptr},
            {"warning", ""}}}};
}

nlohmann::json unjoined_state() {
  nlohmann::json state = training_state();
  for (const char* key : {"mfu", "flops_per_second", "step_seconds", "learning_rate", "gradient_norm"})
    state.erase(key);
  for (const char* key : {"island", "name", "run_id", "run_name", "state_hash"}) state[key] = "";
  for (const char* key : {"pid", "parameters", "round", "inner_step", "inner_steps", "islands_live", "islands_total",
                          "tokens", "bytes_sent", "outer_step"}) {
    state[key] = 0u;
  }
  for (const char* key : {"loss_nats", "tokens_per_second", "inner_seconds", "sync_seconds"}) state[key] = 0.0;
  for (const char* key : {"validation_loss_nats", "next_sync_seconds", "last_sync_seconds", "accepted_round"}) {
    state[key] = nullptr;
  }
  state["state"] = "unjoined";
  state["agent"]["trainer_pid"] = 0;
  state["agent"]["heard_seconds_ago"] = nullptr;
  return state;
}

nlohmann::json round_json(unsigned round, double began) {
  const auto phase = [](const char* name, double seconds, unsigned bytes) {
    return nlohmann::json{{"attempt", 1u}, {"name", name}, {"seconds", seconds}, {"bytes", bytes}};
  };
  return {{"round", round},
          {"began", began},
          {"ended", began + 288},
          {"loss_nats", value_at("loss_nats", round * 500.0)},
          {"validation_loss_nats", nullptr},
          {"tokens", 79'500'000u},
          {"bytes_sent", 1'900'000'000u},
          {"inner_seconds", 250.0},
          {"sync_seconds", value_at("sync_seconds", round)},
          {"islands", 7u},
          {"accepted", true},
          {"state_hash", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
          {"phases",
           {phase("wait", 3.1, 0), phase("connect", 0.2, 0), phase("quantise", 2.4, 0),
            phase("reduce_scatter", 15.2, 950'000'000), phase("all_gather", 14.6, 950'000'000), phase("commit", 0.5, 0),
            phase("apply", 1.9, 0)}}};
}

nlohmann::json rounds_answer(const nlohmann::json& params, const nlohmann::json& run, double time) {
  nlohmann::json rounds = nlohmann::json::array();
  const unsigned limit = params.value("limit", 50u);
  unsigned next = std::min(params.value("before", 42u), 42u);
  for (; next > 0 && rounds.size() < limit; --next) rounds.push_back(round_json(next - 1, time - 300.0 * (43 - next)));
  return {{"run", run}, {"rounds", rounds}, {"more", next > 0}};
}

nlohmann::json peers_answer(const nlohmann::json& run) {
  return {{"run", run},
          {"peers",
           {peer_json("isl-aaaa", "basement", "up", 12.5e6), peer_json("isl-bbbb", "garage", "up", 5.5e6),
            peer_json("isl-cccc", "attic", "down", 11e6)}}};
}

nlohmann::json checkpoints_answer(const nlohmann::json& state_hash, double time) {
  const nlohmann::json checkpoint = {{"path", "/home/me/.local/share/atoll/checkpoint/outer.state"},
                                     {"outer_step", 42u},
                                     {"parameters", 1'234'567u},
                                     {"bytes", 9'876'624u},
                                     {"saved_at", time},
                                     {"state_hash", state_hash},
                                     {"whole", nullptr}};
  return {{"checkpoints", {checkpoint}}};
}

nlohmann::json settings_answer() {
  return {{"values",
           {setting_json("limits.upload", "none", "none", "The most that the all-reduce may send"),
            setting_json("schedule.hours", "always", "always", "When to train, local time"),
            setting_json("log.level", "info", "info", "How much is written to the log")}},
          {"file", "/home/me/.config/atoll/config.toml"},
          {"settings", "/home/me/.local/state/atoll/settings.json"}};
}

nlohmann::json changed_setting_answer(const nlohmann::json& params) {
  nlohmann::json value = setting_json("", "", "", "");
  value["key"] = params["key"];
  value["value"] = params["value"].is_null() ? nlohmann::json("") : params["value"];
  value["origin"] = "settings";
  return {{"values", {value}}, {"file", ""}, {"settings", ""}};
}

nlohmann::json log_lines() {
  return {{{"source", "agent"},
           {"time", "2026-11-21T21:36:32.125"},
           {"level", "info"},
           {"text", "2026-11-21T21:36:32.125 info agent started version=0.1.0"}},
          {{"source", "trainer"},
           {"time", "2026-11-21T21:36:33.001"},
           {"level", "warning"},
           {"text", "2026-11-21T21:36:33.001 warning edge slow island=isl-bbbb"}}};
}

nlohmann::json metrics_answer(const nlohmann::json& params, const nlohmann::json& run, std::size_t points,
                              double time) {
  const std::string name = params.value("name", "");
  if (name.empty()) {
    return {{"run", run},
            {"names",
             {"gradient_norm", "learning_rate", "loss_nats", "mfu", "sync_seconds", "tokens_per_second",
              "validation_loss_nats"}}};
  }
  const std::string axis = params.value("axis", "time");
  if (name.starts_with("run.")) points = 0;  // its hub tells no past
  nlohmann::json answer = metric_points(name, axis, params.value("from", -1e18), params.value("to", 1e18),
                                        params.value("max_points", 1000u), points, time);
  answer["run"] = run;
  answer["name"] = name;
  answer["axis"] = axis;
  return answer;
}

}  // namespace atl::test
