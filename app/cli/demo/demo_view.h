// The demo's screen as lines of text. Pure functions: what was seen, and how wide the screen is, in; lines out.
#pragma once

#include <string>
#include <vector>

#include "app/cli/console.h"
#include "app/cli/demo/demo_history.h"

namespace atl {

// At most `rows` lines, none wider than the console.
std::vector<std::string> demo_screen(const DemoHistory& history, const DemoRunFacts& facts, double now_seconds,
                                     int rows, const Console& console);

// One line for one committed round: what is printed where there is no terminal.
std::string demo_round_line(const DemoHistory& history, const HubState::Round& round);

// Validation loss over outer steps, `height` lines of at most `columns`; empty with fewer than two points.
std::vector<std::string> loss_plot(const std::vector<HubState::Validation>& points, int columns, int height,
                                   bool unicode);

}  // namespace atl
