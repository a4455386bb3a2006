// A new run, as `atoll hub init` and `atoll train` are told of it. Main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

#include "app/cli/run_preset.h"

namespace atl {

struct NewRun {
  std::string data;  // directory of a dataset
  std::string name;
  std::string preset = "demo";
  std::string operator_name = {};
  std::string from =
      {};  // s3://BUCKET/PREFIX[/outer-STEP]: it begins with the parameters published there; empty: fresh
  RunOverrides overrides;
};

// The options that set `run` but for data, name and number of islands; `run` outlives the parsing.
void add_run_options(CLI::App& sub, NewRun& run);
// The learning rate over the run, a line for a person.
std::string describe_learning_rate(const InnerOptimizerConfig& inner);
// Makes a hub's home of it, after all that can be known beforehand was checked. The run as it was made.
Result<RunConfig> init_run(const NewRun& run, const std::filesystem::path& hub_directory);

}  // namespace atl
