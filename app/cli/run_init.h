// A new run, as `atoll hub init` and `atoll train` are told of it. Main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/console.h"
#include "app/cli/run_preset.h"
#include "net/hub/base_model.h"
#include "net/hub/hub.h"

namespace atl {

inline constexpr const char* kUsualPreset = "demo";

struct NewRun {
  std::vector<std::string> data;          // of each source [NAME=]DIR
  std::string weights = {};               // NAME=SHARE,...; empty: by their tokens
  std::vector<std::string> mirrors = {};  // [NAME=]PLACE
  std::string name;
  std::optional<std::string> preset = {};  // empty: kUsualPreset, with `from` as continue_gently has it
  std::string operator_name = {};
  // It begins with the parameters of a published state, s3://BUCKET/PREFIX[/outer-STEP], or of a directory's model
  // (net/hub/base_model.h); empty: fresh.
  std::string from = {};
  std::uint64_t memory_bytes = 0;          // that its islands have, as far as it is known; else 0
  bool force = false;                      // the model of `from` may be of another tokenizer than the data
  std::vector<std::string> evaluate = {};  // task files, asked of outer states every so many rounds
  std::uint32_t evaluate_every = 10;
  RunOverrides overrides;
};

// What becomes a hub's home, after all that can be known beforehand was checked.
struct PlannedRun {
  HubInitOptions options;               // without the directory
  std::optional<BaseModel> base_model;  // with which it begins
  std::vector<std::string> notes = {};  // for a person, each a sentence
};

// The options that set `run` but for data, name, number of islands and of rounds; `run` outlives the parsing.
void add_run_options(CLI::App& sub, NewRun& run);
void add_rounds_option(CLI::App& sub, NewRun& run);
// The learning rate over the run, a line for a person.
std::string describe_learning_rate(const InnerOptimizerConfig& inner);
// What is asked of outer states, a line for a person; empty where nothing is.
std::string describe_evaluation(const RunEvaluation& evaluation);
// Nothing is made yet. `abort` outlives what it returns. `on_matrix`, which may be empty, is told how far the search
// for what is to be trained is, of a run that asks for one (minutes to hours for billions of parameters).
Result<PlannedRun> plan_run(const NewRun& run, const AbortSignal& abort,
                            const std::function<void(std::size_t done, std::size_t all)>& on_matrix = {});
void tell_notes(const PlannedRun& planned, Console& console);
// Makes a hub's home of it. The run as it was made.
Result<RunConfig> init_run(const PlannedRun& planned, const std::filesystem::path& hub_directory);

}  // namespace atl
