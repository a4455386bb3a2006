// A recording of a week of training as an agent tells it: steps, rounds with their all-reduce, samples of GPUs, answers
// to state.get, islands that come and go, a hub that is away for a while. For tests and benches.
#pragma once

#include <cstdint>

#include <QString>
#include <nlohmann/json.hpp>

namespace atl::test {

// As eight GPUs tell it that train one step in two seconds.
struct WeekPlan {
  double days = 7;
  double step_seconds = 2;
  std::uint32_t inner_steps = 500;
  double sync_seconds = 38, progress_seconds = 0.25;  // of an all-reduce, and between two words of how far it is
  int gpus = 8;
  double gpu_seconds = 5;    // between two samples
  double state_seconds = 1;  // then state.get is asked, if no event told the state
  double silence = 12;       // between the last that is said of the state, and the recording's end
};

// How it ended.
struct WeekEnd {
  nlohmann::json state;      // the last that was told
  nlohmann::json gpus;       // the last sample
  std::uint64_t events = 0;  // answers to state.get not counted
  double stepped = 0;        // when the last step was told, seconds since 1970
  int islands_up = 0, islands_away = 0;
};

WeekEnd record_week(const QString& path, const WeekPlan& plan);

}  // namespace atl::test
