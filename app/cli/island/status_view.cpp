#include "app/cli/island/status_view.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/cli/contribution_text.h"
#include "app/cli/text.h"
#include "net/base/round_words.h"
#include "net/check/figures.h"
#include "net/control/node_state.h"
#include "net/control/told.h"
#include "net/control/words.h"

namespace atl {
namespace {

constexpr double kStaleSeconds = 5;
constexpr double kLatestUnixSeconds = 1e11;

double figure(const nlohmann::json& object, const char* key, double otherwise = 0) {
  return told::number(object, key).value_or(otherwise);
}
bool has_number(const nlohmann::json& object, const char* key) { return told::number(object, key).has_value(); }
using told::count;
nlohmann::json part(const nlohmann::json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() ? *found : nlohmann::json();
}

Style style_of(const std::string& state) {
  const IslandPhase phase = parse_word<IslandPhase>(state);
  if (phase == IslandPhase::kTraining || phase == IslandPhase::kSyncing) return Style::kGood;
  return phase == IslandPhase::kError || phase == IslandPhase::kStopped ? Style::kBad : Style::kWarning;
}

// Facts beside each other, and on the next line when the terminal is too narrow.
void flow(const std::vector<std::string>& facts, int columns, std::vector<std::string>& lines) {
  std::string line;
  for (const std::string& fact : facts) {
    if (fact.empty()) continue;
    if (!line.empty() && display_width(line) + 2 + display_width(fact) > static_cast<std::size_t>(columns)) {
      lines.push_back(std::move(line));
      line.clear();
    }
    line += line.empty() ? fact : "  " + fact;
  }
  if (!line.empty()) lines.push_back(std::move(line));
}

std::vector<std::string> training_facts(const nlohmann::json& state, const Console& console) {
  const std::string word = told::line(state, "state");
  std::vector<std::string> facts = {console.styled(word.empty() ? "unknown" : word, style_of(word))};
  if (!told::line(state, "run_name").empty()) facts.push_back("run " + told::line(state, "run_name"));
  if (!told::line(state, "name").empty()) facts.push_back("as " + told::line(state, "name"));
  if (count(state, "inner_steps") > 0) {
    facts.push_back(fmt::format("round {}", round_number(static_cast<std::uint32_t>(count(state, "round")))));
    facts.push_back(fmt::format("step {}/{}", count(state, "inner_step"), count(state, "inner_steps")));
    facts.push_back("loss " + format_loss(figure(state, "loss_nats")));
    facts.push_back(format_rate(figure(state, "tokens_per_second")));
  }
  if (has_number(state, "mfu")) facts.push_back("MFU " + format_percent(figure(state, "mfu")));
  return facts;
}

// How fast the last step was, and where its time went: what is half a per cent or more of it.
std::vector<std::string> step_facts(const nlohmann::json& state) {
  std::vector<std::string> facts;
  if (figure(state, "flops_per_second") > 0) facts.push_back(figures::flops(figure(state, "flops_per_second")));
  const nlohmann::json times = part(state, "step_seconds");
  const double total = times.is_object() ? figure(times, "total") : 0;
  if (!(total > 0)) return facts;
  facts.insert(facts.begin(), "step " + figures::seconds(total));
  double rest = total;
  const auto add = [&](const char* name, double seconds) {
    if (seconds >= 0.005 * total) facts.push_back(fmt::format("{} {}", name, format_percent(seconds / total)));
  };
  for (const char* name : {"data", "matmul", "attention", "elementwise", "loss", "optimiser", "communication"}) {
    add(name, figure(times, name));
    rest -= figure(times, name);
  }
  if (has_number(times, "matmul")) add("other", rest);
  return facts;
}

std::vector<std::string> sync_facts(const nlohmann::json& state) {
  std::string last = "-";
  if (has_number(state, "last_sync_seconds")) {
    last = format_duration(figure(state, "last_sync_seconds"));
    last += has_number(state, "accepted_round")
                ? fmt::format(", round {} accepted",
                              round_number(static_cast<std::uint32_t>(count(state, "accepted_round"))))
                : ", nothing accepted since the trainer started";
  }
  std::vector<std::string> facts{
      "next sync " + (has_number(state, "next_sync_seconds") ? "~" + format_duration(figure(state, "next_sync_seconds"))
                                                             : std::string("-")),
      fmt::format("islands {}/{}", count(state, "islands_live"), count(state, "islands_total")), "last sync " + last};
  if (count(state, "islands_live") < count(state, "islands_needed")) {
    facts.push_back(fmt::format("a round needs {}", format_number_of(count(state, "islands_needed"), "island")));
  }
  if (has_number(state, "safe_outer_step")) {
    facts.push_back(fmt::format("safe {}", after_round(static_cast<std::uint32_t>(count(state, "safe_outer_step")))));
  }
  return facts;
}

std::vector<std::string> total_facts(const nlohmann::json& state) {
  const double seconds = figure(state, "inner_seconds") + figure(state, "sync_seconds");
  std::vector<std::string> facts = {
      "since the trainer started " + format_number_of(count(state, "tokens"), "token"),
      format_bytes(figure(state, "bytes_sent")) + " sent",
      "computing " + (seconds > 0 ? format_percent(figure(state, "inner_seconds") / seconds) : std::string("-")),
      "validation loss " + format_loss(figure(state, "validation_loss_nats"))};
  if (count(state, "pid") > 0) facts.push_back(fmt::format("pid {}", count(state, "pid")));
  return facts;
}

std::string given_in(const nlohmann::json& given) {
  return contribution_text({.tokens = count(given, "tokens"),
                            .rounds_accepted = count(given, "rounds_accepted"),
                            .bytes_sent = count(given, "bytes_sent"),
                            .seconds = figure(given, "seconds")});
}

// Over all restarts, which the figures of the trainer are not.
std::vector<std::string> contributed_lines(const nlohmann::json& state) {
  const nlohmann::json given = part(part(state, "agent"), "contributed");
  if (!given.is_object()) return {};
  std::vector<std::string> lines;
  if (!told::line(state, "run_id").empty()) lines.push_back("contributed to this run: " + given_in(part(given, "run")));
  lines.push_back("contributed to all runs: " + given_in(part(given, "life")));
  return lines;
}

std::vector<std::string> machine_facts(const nlohmann::json& state) {
  std::vector<std::string> facts;
  const nlohmann::json gpus = part(state, "gpus");
  if (gpus.is_array() && !gpus.empty()) {
    double load = 0, watts = 0, hottest = 0;
    for (const nlohmann::json& gpu : gpus) {
      load += figure(gpu, "utilisation") / static_cast<double>(gpus.size());
      watts += figure(gpu, "power_watts");
      hottest = std::max(hottest, figure(gpu, "temperature_celsius"));
    }
    facts.push_back(fmt::format("gpu {}x {}", gpus.size(), told::line(gpus[0], "name")));
    facts.push_back(fmt::format("{}  {:.0f} W  {:.0f} C", format_percent(load), watts, hottest));
  }
  if (has_number(state, "memory_bytes") && has_number(state, "micro_batch")) {
    facts.push_back(fmt::format("up to {} of memory, {} at once", format_bytes(figure(state, "memory_bytes")),
                                format_number_of(count(state, "micro_batch"), "sequence")));
  }
  if (has_number(state, "disk_free_bytes"))
    facts.push_back("disk " + format_bytes(figure(state, "disk_free_bytes")) + " free");
  return facts;
}

std::string local_time(double unix_seconds) {
  const auto moment = static_cast<std::time_t>(std::clamp(unix_seconds, 0.0, kLatestUnixSeconds));
  return fmt::format("{:%F %H:%M}", fmt::localtime(moment));
}

// "up to 20 Mbit/s until 18:00"; empty: no limit, now or later.
std::string cap_text(const char* what, const nlohmann::json& cap) {
  const bool limited = has_number(cap, "bytes_per_second"), changes = has_number(cap, "until_unix_seconds");
  if (!limited && !changes) return {};
  std::string text = fmt::format(
      "{} {}", what,
      limited ? "up to " + figures::bits_per_second(figure(cap, "bytes_per_second")) : std::string("without a limit"));
  if (!changes) return text;
  const auto until = static_cast<std::time_t>(std::clamp(figure(cap, "until_unix_seconds"), 0.0, kLatestUnixSeconds));
  return text + fmt::format(" until {:%H:%M}", fmt::localtime(until));
}

std::vector<std::string> cap_facts(const nlohmann::json& state) {
  const nlohmann::json agent = part(state, "agent");
  return {cap_text("upload", part(agent, "upload_cap")), cap_text("download", part(agent, "download_cap"))};
}

// What the owner wants, unless it is that it trains.
std::string wish_text(const nlohmann::json& agent) {
  switch (parse_word<Wish>(told::line(agent, "wish"))) {
    case Wish::kPause: {
      if (!has_number(agent, "paused_until_unix_seconds")) return "paused until 'atoll resume'";
      return fmt::format("paused until {}, or 'atoll resume'", local_time(figure(agent, "paused_until_unix_seconds")));
    }
    case Wish::kFinish: return "finishes this round, then stops";
    case Wish::kStop: return "stopped until 'atoll resume'";
    default: return {};
  }
}

// What pauses it though its owner wants it: a line each, which is broken where the terminal ends.
std::vector<std::string> pause_lines(const nlohmann::json& state, const Console& console) {
  const nlohmann::json pauses = part(part(state, "agent"), "paused_by");
  std::vector<std::string> lines;
  for (std::size_t i = 0; pauses.is_array() && i < std::min(pauses.size(), kMaxPauses); ++i) {
    const PausedBy pause{.rule = parse_word<OwnersRule>(told::line(pauses[i], "rule")),
                         .why = told::line(pauses[i], "why"),
                         .until = told::line(pauses[i], "until"),
                         .advice = told::line(pauses[i], "advice")};
    lines.push_back(console.styled("paused: " + sentence_of(pause), Style::kWarning));
  }
  return lines;
}

std::vector<std::string> paused_gpus(const nlohmann::json& agent) {
  const nlohmann::json gpus = part(agent, "paused_gpus");
  std::vector<std::string> facts;
  for (std::size_t i = 0; gpus.is_array() && i < std::min(gpus.size(), kMaxSampledGpus); ++i) {
    const std::uint64_t gpu = count(gpus[i], "gpu");
    facts.push_back(has_number(gpus[i], "until_unix_seconds")
                        ? fmt::format("GPU {} paused until {}, or 'atoll resume --gpu {}'", gpu,
                                      local_time(figure(gpus[i], "until_unix_seconds")), gpu)
                        : fmt::format("GPU {} paused until 'atoll resume --gpu {}'", gpu, gpu));
  }
  return facts;
}

// What the agent adds: the owner's wish, and how the trainer ended last.
std::vector<std::string> agent_facts(const nlohmann::json& state, const Console& console) {
  const nlohmann::json agent = part(state, "agent");
  if (!agent.is_object()) return {};
  std::vector<std::string> facts;
  const bool joined = parse_word<IslandPhase>(told::line(state, "state")) != IslandPhase::kUnjoined;
  if (const std::string wish = wish_text(agent); !wish.empty() && joined) facts.push_back(wish);
  for (std::string& gpu : paused_gpus(agent)) facts.push_back(std::move(gpu));
  if (figure(agent, "seconds") > 0) facts.push_back("agent up for " + format_duration(figure(agent, "seconds")));
  if (count(agent, "restarts") > 0) facts.push_back(format_number_of(count(agent, "restarts"), "restart"));
  const std::string exit = told::line(part(agent, "last_exit"), "text");
  if (!exit.empty() && count(agent, "restarts") > 0) facts.push_back(console.styled("last: " + exit, Style::kWarning));
  if (!told::line(agent, "warning").empty())
    facts.push_back(console.styled(told::line(agent, "warning"), Style::kWarning));
  return facts;
}

}  // namespace

std::vector<std::string> status_lines(const nlohmann::json& state, const Console& console) {
  std::vector<std::string> lines;
  flow(training_facts(state, console), console.columns, lines);
  flow(step_facts(state), console.columns, lines);
  if (!told::line(state, "error").empty()) lines.push_back(told::line(state, "error"));
  for (const std::string& line : pause_lines(state, console)) lines.push_back(line);
  if (!told::line(state, "run_id").empty()) {
    flow(sync_facts(state), console.columns, lines);
    flow(total_facts(state), console.columns, lines);
  }
  flow(machine_facts(state), console.columns, lines);
  flow(cap_facts(state), console.columns, lines);
  for (const std::string& line : contributed_lines(state)) flow({line}, console.columns, lines);
  flow(agent_facts(state, console), console.columns, lines);
  return lines;
}

std::string progress_bar(double fraction, std::size_t width, bool unicode) {
  const double full = std::clamp(std::isfinite(fraction) ? fraction : 0.0, 0.0, 1.0) * static_cast<double>(width);
  std::string bar;
  for (std::size_t i = 0; i < width; ++i) {
    const bool filled = static_cast<double>(i) + 0.5 < full;
    bar += unicode ? (filled ? "█" : "░") : (filled ? "#" : ".");
  }
  return unicode ? bar : "[" + bar + "]";
}

std::string spark_line(const std::vector<double>& values, std::size_t width, bool unicode) {
  static constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr const char* kSigns[] = {"_", ".", "-", "'"};
  std::vector<double> columns;
  const std::size_t shown = std::min(width, values.size());
  for (std::size_t i = 0; i < shown; ++i) {  // of the values that share a column, the last
    columns.push_back(values[(i + 1) * values.size() / shown - 1]);
  }
  double low = INFINITY, high = -INFINITY;
  for (const double value : columns) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const std::size_t levels = unicode ? std::size(kBlocks) : std::size(kSigns);
  std::string line;
  for (const double value : columns) {
    if (!std::isfinite(value)) {
      line += ' ';
      continue;
    }
    const double height = high > low ? (value - low) / (high - low) : 0;
    const auto level = std::min(levels - 1, static_cast<std::size_t>(height * static_cast<double>(levels)));
    line += unicode ? kBlocks[level] : kSigns[level];
  }
  return line;
}

std::vector<std::string> watch_lines(const WatchFrame& frame, const Console& console) {
  std::vector<std::string> lines;
  if (frame.state != nullptr) {
    const nlohmann::json& state = *frame.state;
    lines = status_lines(state, console);
    const auto width = static_cast<std::size_t>(std::clamp(console.columns - 8, 10, 100));
    if (count(state, "inner_steps") > 0) {
      lines.push_back("round " + progress_bar(figure(state, "inner_step") / figure(state, "inner_steps", 1), width - 2,
                                              console.unicode));
    }
    if (frame.run_losses.size() > 1) lines.push_back("run   " + spark_line(frame.run_losses, width, console.unicode));
    if (frame.losses.size() > 1) lines.push_back("loss  " + spark_line(frame.losses, width, console.unicode));
  }
  if (!frame.trouble.empty()) {
    lines.push_back(console.styled(printable(frame.trouble), Style::kBad));
  }
  if (frame.state != nullptr && frame.age_seconds > kStaleSeconds) {
    lines.push_back(console.styled(fmt::format("last update {} ago", format_duration(frame.age_seconds)), Style::kDim));
  }
  return lines;
}

}  // namespace atl
