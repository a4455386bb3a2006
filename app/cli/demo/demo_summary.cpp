#include "app/cli/demo/demo_summary.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/text.h"

namespace atl {

nlohmann::json DemoSummary::to_json() const {
  return {{"rounds", rounds},
          {"training_seconds", training_seconds},
          {"first_validation_loss", first_validation_loss},
          {"last_validation_loss", last_validation_loss},
          {"tokens_per_second", tokens_per_second},
          {"tokens", tokens},
          {"parameters", parameters},
          {"bytes_sent", bytes_sent},
          {"bytes_data_parallel_fp32", bytes_data_parallel_fp32},
          {"compute_utilisation", compute_utilisation},
          {"outer_hashes_equal", outer_hashes_equal ? nlohmann::json(*outer_hashes_equal) : nlohmann::json(nullptr)},
          {"export_dir", export_dir},
          {"sample", sample}};
}

DemoSummary summarise(const DemoHistory& history, const DemoRunFacts& facts) {
  DemoSummary summary;
  summary.rounds = history.outer_step();
  summary.training_seconds = history.seconds_to_last_commit();
  if (!history.validations().empty()) {
    summary.first_validation_loss = history.validations().front().loss_nats;
    summary.last_validation_loss = history.validations().back().loss_nats;
  }
  summary.tokens_per_second = history.tokens_per_second();
  summary.tokens = history.committed_tokens();
  summary.parameters = facts.parameters;
  summary.bytes_sent = history.bytes_sent();
  summary.bytes_data_parallel_fp32 = history.data_parallel_bytes(facts);
  summary.compute_utilisation = history.compute_utilisation();
  summary.outer_hashes_equal = history.outer_hashes_equal();
  return summary;
}

std::string to_text(const DemoSummary& summary, const Console& console) {
  std::string text = "\n" + console.styled("Summary", Style::kBold) + "\n";
  const auto row = [&](const char* what, const std::string& value) {
    text += fmt::format("  {} {}\n", fit(what, 22), value);
  };
  row("trained",
      fmt::format("{}, {} tokens in {}, {}", format_number_of(summary.rounds, "round"), format_count(summary.tokens),
                  format_duration(summary.training_seconds), format_rate(summary.tokens_per_second)));
  row("validation loss", fmt::format("{} -> {} nats a byte", format_loss(summary.first_validation_loss),
                                     format_loss(summary.last_validation_loss)));
  const std::string sent = format_bytes(static_cast<double>(summary.bytes_sent));
  if (summary.bytes_sent == 0) {
    row("sent between islands", "nothing: there was one island");
  } else {
    row("sent between islands",
        fmt::format("{}; data-parallel training with fp32 gradients: {} ({:.0f} times as much)", sent,
                    format_bytes(summary.bytes_data_parallel_fp32),
                    summary.bytes_data_parallel_fp32 / static_cast<double>(summary.bytes_sent)));
  }
  row("time computing", format_percent(summary.compute_utilisation));
  row("outer states", !summary.outer_hashes_equal   ? "not every island has said which it holds"
                      : *summary.outer_hashes_equal ? "equal to the last bit on all islands after every round"
                                                    : "DIFFERENT on some island after a round");
  if (!summary.export_dir.empty()) row("model", summary.export_dir);
  if (!summary.no_sample.empty()) row("sample", "none: " + summary.no_sample);
  if (!summary.sample.empty()) {
    text += fmt::format("\n{}\n{}\n", console.styled("It now writes", Style::kBold), without_gaps(summary.sample));
  }
  return text;
}

}  // namespace atl
