// atoll bench quantise: how fast this machine makes and reads the wire formats.
#include <fmt/format.h>

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

nlohmann::json as_json(const KernelTimes& times) {
  return {{"seconds", times.seconds},
          {"median_seconds", median(times.seconds)},
          {"memcpy_seconds", times.memcpy_seconds},
          {"of_memcpy", times.memcpy_seconds / median(times.seconds)}};
}

std::string as_text(std::string_view name, const KernelTimes& times, std::uint64_t payload_bytes) {
  const double seconds = median(times.seconds);
  return fmt::format(
      "{:<20} {:.4f} s (median of {}), {:.4f} s (fastest), {:.2f} GB/s of fp32, {:.0f} % of memcpy's speed\n", name,
      seconds, times.seconds.size(), minimum(times.seconds), static_cast<double>(payload_bytes) / seconds / 1e9,
      100 * times.memcpy_seconds / seconds);
}

Status run(QuantiseCommand& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(command.options.payload_bytes, parse_size(command.payload));
  ATOLL_ASSIGN_OR_RETURN(command.options.wire, parse_wire_format(command.wire));
  ATOLL_ASSIGN_OR_RETURN(const QuantiseBenchResult result, run_quantise_bench(command.options, context.interrupt));
  if (command.json) {
    const nlohmann::json json{{"payload_bytes", command.options.payload_bytes},
                              {"wire", command.wire},
                              {"threads", command.options.threads},
                              {"relative_error", result.relative_error},
                              {"quantise", as_json(result.quantise)},
                              {"dequantise_add", as_json(result.dequantise_add)}};
    context.console.out << json.dump(2) << std::endl;
    return ok_status();
  }
  context.console.out << fmt::format("{} of fp32 as {}, threads: {}; verified: relative error {:.2g}\n",
                                     command.payload, command.wire, command.options.threads, result.relative_error)
                      << as_text("quantise", result.quantise, command.options.payload_bytes)
                      << as_text("dequantise and add", result.dequantise_add, command.options.payload_bytes)
                      << std::flush;
  return ok_status();
}

}  // namespace

void add_bench_quantise_command(CLI::App& bench, CommandContext& context) {
  auto command = std::make_shared<QuantiseCommand>();
  CLI::App* sub = bench.add_subcommand("quantise", "Encode and decode a payload, beside memcpy");
  sub->footer("Examples:\n  atoll bench quantise\n  atoll bench quantise --wire fp32 --threads 2 --json");
  sub->add_option("--payload", command->payload, "Of fp32: 256MiB, 1GiB")->capture_default_str();
  sub->add_option("--wire", command->wire, "Format: fp32, int8-block")->capture_default_str();
  sub->add_option("--threads", command->options.threads, "That share the work")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  sub->add_option("--repeat", command->options.repeat, "Timed runs")->check(CLI::Range(1, 1000))->capture_default_str();
  sub->add_flag("--json", command->json, "Figures as JSON");
  sub->callback([command, &context] { context.finish(run(*command, context)); });
}

}  // namespace atl
