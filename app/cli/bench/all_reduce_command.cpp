// atoll bench all-reduce: how fast this machine averages.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/cli/bench/all_reduce_bench.h"
#include "app/cli/bench/bench_commands.h"
#include "app/cli/bench/bench_figures.h"
#include "app/cli/bench/bench_values.h"

namespace atl {
namespace {

struct AllReduceCommand {
  AllReduceBenchOptions options;
  std::string payload = "256MiB", wire = "int8-block", schedule = "ring";
  bool json = false;
};

nlohmann::json as_json(const AllReduceCommand& command, const AllReduceBenchResult& result) {
  return {{"islands", command.options.islands},
          {"payload_bytes", command.options.payload_bytes},
          {"wire", command.wire},
          {"schedule", command.schedule},
          {"connections_per_edge", command.options.connections_per_edge},
          {"relative_error", result.relative_error},
          {"seconds", result.seconds},
          {"median_seconds", median(result.seconds)},
          {"minimum_seconds", minimum(result.seconds)},
          {"payload_bytes_per_second", static_cast<double>(command.options.payload_bytes) / median(result.seconds)},
          {"cpu_seconds_per_island", result.cpu_seconds_per_island},
          {"extra_bytes_per_island", result.extra_bytes_per_island},
          {"sent_bytes_per_island", result.sent_bytes_per_island},
          {"memcpy_seconds", result.memcpy_seconds},
          {"tcp_seconds", result.tcp_seconds},
          {"congestion_control", result.congestion_control}};
}

std::string as_text(const AllReduceCommand& command, const AllReduceBenchResult& result) {
  const double seconds = median(result.seconds);
  const double payload = static_cast<double>(command.options.payload_bytes);
  std::string text = fmt::format(
      "{} islands, {} of fp32 as {}, {} on 127.0.0.1{}{}\n"
      "verified: same bytes everywhere, relative error {:.2g}\n"
      "time         {:.3f} s (median of {}), {:.3f} s (fastest)\n"
      "rate         {:.2f} GB/s of fp32\n"
      "to memcpy    {:.1f} x its {:.3f} s for one payload\n",
      command.options.islands, command.payload, command.wire,
      command.options.schedule == Schedule::kDirect
          ? "directly, a TLS connection each pair"
          : fmt::format("{} TLS connections an edge", command.options.connections_per_edge),
      result.congestion_control.empty() ? "" : ", ", result.congestion_control, result.relative_error, seconds,
      result.seconds.size(), minimum(result.seconds), payload / seconds / 1e9, seconds / result.memcpy_seconds,
      result.memcpy_seconds);
  if (result.tcp_seconds > 0) {
    text += fmt::format("to plain TCP {:.2f} x its {:.3f} s for the {:.0f} MB that each island sends\n",
                        seconds / result.tcp_seconds, result.tcp_seconds,
                        static_cast<double>(result.sent_bytes_per_island) / 1e6);
  }
  return text +
         fmt::format("an island    {:.2f} s of CPU, {:.0f} MiB above its input, its quantised copy and its mean\n",
                     result.cpu_seconds_per_island, static_cast<double>(result.extra_bytes_per_island) / (1 << 20));
}

Status run(AllReduceCommand& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(command.options.payload_bytes, parse_size(command.payload));
  ATOLL_ASSIGN_OR_RETURN(command.options.wire, parse_wire_format(command.wire));
  ATOLL_ASSIGN_OR_RETURN(command.options.schedule, parse_schedule(command.schedule));
  ATOLL_ASSIGN_OR_RETURN(const AllReduceBenchResult result, run_all_reduce_bench(command.options, context.interrupt));
  context.console.out << (command.json ? as_json(command, result).dump(2) + "\n" : as_text(command, result))
                      << std::flush;
  return ok_status();
}

}  // namespace

void add_bench_all_reduce_command(CLI::App& bench, CommandContext& context) {
  auto command = std::make_shared<AllReduceCommand>();
  CLI::App* sub = bench.add_subcommand("all-reduce", "Average among islands on this machine, over TLS");
  sub->footer(
      "Examples:\n  atoll bench all-reduce\n"
      "  atoll bench all-reduce --islands 2 --payload 1GiB --wire fp32 --connections 8 --json");
  sub->add_option("--islands", command->options.islands, "How many, a thread each")
      ->check(CLI::Range(1, 128))
      ->capture_default_str();
  sub->add_option("--payload", command->payload, "Of fp32, each: 256MiB, 1GiB")->capture_default_str();
  sub->add_option("--wire", command->wire, fmt::format("How values travel: {}", fmt::join(kWireFormatNames, ", ")))
      ->capture_default_str();
  sub->add_option("--schedule", command->schedule,
                  fmt::format("By which way they come together: {}", fmt::join(kScheduleNames, ", ")))
      ->capture_default_str();
  sub->add_option("--connections", command->options.connections_per_edge, "TLS connections an edge of the ring")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  sub->add_option("--threads", command->options.threads, "Of each island; 0: as many as processors, at most 4")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  sub->add_option("--repeat", command->options.repeat, "Timed all-reduces")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  sub->add_flag("--json", command->json, "Figures as JSON");
  sub->callback([command, &context] { context.finish(run(*command, context)); });
}

}  // namespace atl
