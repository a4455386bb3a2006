// What the demo came to: for a script (--summary) and for a person. Pure functions.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "app/cli/console.h"
#include "app/cli/demo/demo_history.h"

namespace atl {

struct DemoSummary {
  std::uint32_t rounds = 0;
  double training_seconds = 0;
  double first_validation_loss = 0, last_validation_loss = 0;  // nats a byte; 0: none
  double tokens_per_second = 0;
  std::uint64_t tokens = 0;
  std::uint64_t parameters = 0;
  std::uint64_t bytes_sent = 0;
  double bytes_data_parallel_fp32 = 0;
  double compute_utilisation = 0;
  std::optional<bool> outer_hashes_equal;  // after every round; empty: not known, null in JSON
  std::string export_dir;                  // empty: not exported
  std::string sample;
  std::string no_sample;  // why there is none

  nlohmann::json to_json() const;
};

DemoSummary summarise(const DemoHistory& history, const DemoRunFacts& facts);
std::string to_text(const DemoSummary& summary, const Console& console);

}  // namespace atl
