// What an island does, as text for a terminal of any width. Pure functions of what `state.get` answers (of the agent or
// of a trainer alone) and of the loss so far.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "app/cli/console.h"

namespace atl {

// As `atoll status` prints it: a few lines, none wider than the terminal where it can be helped.
std::vector<std::string> status_lines(const nlohmann::json& state, const Console& console);

struct WatchFrame {
  nlohmann::json const* state = nullptr;  // the last one that came; null: none yet
  std::vector<double> losses;             // oldest first
  double age_seconds = 0;                 // of the state
  std::string trouble;                    // why there is nothing newer; empty: it is fresh
  std::vector<double> run_losses = {};    // all islands' mean, from the run's first round on
};
// As `atoll status --watch` draws it, again and again.
std::vector<std::string> watch_lines(const WatchFrame& frame, const Console& console);

// A curve of one line: eight heights where the terminal shows Unicode, else four signs. NaN is a gap.
std::string spark_line(const std::vector<double>& values, std::size_t width, bool unicode);
// "[#####.....]"
std::string progress_bar(double fraction, std::size_t width, bool unicode);

}  // namespace atl
