// What an island of tests says of itself, in the words of docs/control.md. Pure functions; any thread.
#pragma once

#include <cstddef>

#include <nlohmann/json.hpp>

namespace atl::test {

inline constexpr double kBeginning = 1'763'700'000;  // an evening in November 2025

// state.get of an island that trains its 43rd round, and of a machine that has joined nothing.
nlohmann::json training_state();
nlohmann::json unjoined_state();
// Of a round, as rounds.list has it.
nlohmann::json round_json(unsigned round, double began);

// Of the method; `run` is the state's run_id, `time` when it is asked.
nlohmann::json rounds_answer(const nlohmann::json& params, const nlohmann::json& run, double time);
nlohmann::json peers_answer(const nlohmann::json& run);
nlohmann::json checkpoints_answer(const nlohmann::json& state_hash, double time);
nlohmann::json settings_answer();                                     // config.get
nlohmann::json changed_setting_answer(const nlohmann::json& params);  // config.set
nlohmann::json log_lines();                                           // of logs.read, without a cursor
// So many points of each series, a second and a step apart, up to `time`.
nlohmann::json metrics_answer(const nlohmann::json& params, const nlohmann::json& run, std::size_t points, double time);

}  // namespace atl::test
