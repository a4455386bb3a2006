// How every program of Atoll writes its log: a line an event, whatever is in it.
#pragma once

#include <spdlog/formatter.h>

#include <memory>

namespace atl {

// "2026-11-21T21:36:32.125 info ...": what a message holds is made printable (net/base/printable.h), so that no text of
// somebody else's ends a line, forges one, or reaches the terminal as a command.
std::unique_ptr<spdlog::formatter> log_formatter();
// For all loggers of this process: in main, before other threads start.
void set_up_log();

}  // namespace atl
