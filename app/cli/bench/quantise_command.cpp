// atoll bench quantise: how fast this machine makes and reads the wire formats.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/cli/bench/bench_commands.h"
#include "app/cli/bench/bench_figures.h"
#include "app/cli/bench/bench_values.h"
#include "app/cli/bench/quantise_bench.h"

namespace atl {
namespace {

struct QuantiseCommand {
  QuantiseBenchOptions options;
  std::string payload = "256MiB", wire = "int8-block";
  bool json = false;
};

nlohmann::json as_json(const QuantiseCommand& command, const QuantiseBenchResult& result) {
  nlohmann::json operations = nlohmann::json::array();
  for (const OperationFigures& figures : result.operations) {
    operations.push_back({{"operation", figures.operation},
                          {"bytes", figures.bytes},
                          {"seconds", figures.all_seconds},
                          {"median_seconds", figures.seconds},
                          {"memcpy_seconds", figures.memcpy_seconds},
                          {"of_memcpy", figures.of_memcpy()}});
  }
  return {
      {"payload_bytes", command.options.payload_bytes}, {"wire", command.wire}, {"threads", command.options.threads},
      {"implementation", result.implementation},        {"verified", true},     {"operations", std::move(operations)}};
}

std::string as_text(const QuantiseCommand& command, const QuantiseBenchResult& result) {
  std::string text = fmt::format("{} of fp32 as {} by {}, threads: {}; verified against the plain reference\n",
                                 command.payload, command.wire, result.implementation, command.options.threads);
  for (const OperationFigures& figures : result.operations) {
    text += fmt::format("{:<20} {:8.2f} ms (median of {}), {:6.2f} GB/s in and out, {:3.0f} % of memcpy's speed\n",
                        figures.operation, figures.seconds * 1e3, figures.all_seconds.size(), figures.gb_per_second(),
                        100 * figures.of_memcpy());
  }
  return text;
}

Status run(QuantiseCommand& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const std::uint64_t payload, parse_size(command.payload));
  command.options.payload_bytes = static_cast<std::int64_t>(payload);
  ATOLL_ASSIGN_OR_RETURN(command.options.wire, parse_wire_format(command.wire));
  ATOLL_ASSIGN_OR_RETURN(const QuantiseBenchResult result, run_quantise_bench(command.options, context.interrupt));
  context.console.out << (command.json ? as_json(command, result).dump(2) + "\n" : as_text(command, result))
                      << std::flush;
  return ok_status();
}

}  // namespace

void add_bench_quantise_command(CLI::App& bench, CommandContext& context) {
  auto command = std::make_shared<QuantiseCommand>();
  CLI::App* sub = bench.add_subcommand("quantise", "Encode and decode a payload, beside memcpy");
  sub->footer("Examples:\n  atoll bench quantise\n  atoll bench quantise --wire fp32 --threads 2 --json");
  sub->add_option("--payload", command->payload, "Of fp32: 256MiB, 1GiB")->capture_default_str();
  sub->add_option("--wire", command->wire, fmt::format("Format: {}", fmt::join(kWireFormatNames, ", ")))
      ->capture_default_str();
  sub->add_option("--threads", command->options.threads, "That share the work")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  sub->add_option("--repeat", command->options.repeats, "Timed runs")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  sub->add_flag("--json", command->json, "Figures as JSON");
  sub->callback([command, &context] { context.finish(run(*command, context)); });
}

}  // namespace atl
