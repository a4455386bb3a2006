// How every program of Atoll writes its log: a line an event, whatever is in it.
#pragma once

#include <spdlog/formatter.h>

#include <functional>
#include <memory>
#include <string_view>

namespace atl {

// "2026-11-21T21:36:32.125 info ...": what a message holds is made printable (net/base/printable.h), so that no text of
// somebody else's ends a line, forges one, or reaches the terminal as a command.
std::unique_ptr<spdlog::formatter> log_formatter();
// For all loggers of this process: in main, before other threads start.
void set_up_log();
// The least level that is logged from now on: "error", "warning", "info" or "debug"; what is none of these, or empty,
// changes nothing.
void set_log_level(std::string_view name);
// Whoever logs no longer waits for who reads stdout (net/base/output_thread.h, which also says what `on_lost` is).
// Before other threads log.
void log_without_waiting(const std::function<void(int error_number)>& on_lost);
// Writes what waits; nothing is logged any more.
void end_log();
// As at level info, whatever is the least: what another program waits for in this one's log.
void log_at_any_level(std::string_view message);

}  // namespace atl
