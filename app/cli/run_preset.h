// The run and model presets that are embedded in the program (resources/presets, resources/models), and files of the
// same form. Pure but for reading a named file; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/result.h"
#include "net/data/dataset.h"
#include "net/wire/run_config.h"

namespace atl {

std::vector<std::string_view> preset_names();

// Values that `atoll hub init` and `atoll demo` set over a preset's.
struct RunOverrides {
  std::optional<std::string> model;  // a model preset's name or the path of a config.json
  std::optional<std::string> wire;   // one of kRunWireFormatNames
  std::optional<std::uint64_t> seed;
  std::optional<std::uint32_t> inner_steps, min_islands, max_rounds, sequences_per_step, sequence_length,
      validate_every, warmup_steps, quorum, keep_states, safe_copies, upload_every, fragments;
  // Without a start the decay ends with the last round.
  std::optional<std::uint64_t> decay_start_step, decay_steps;
  std::optional<double> learning_rate, final_learning_rate, outer_learning_rate, outer_momentum, norm_bound,
      validation_rise;
  std::optional<std::string> when_lost;      // "ask", "rollback"
  std::optional<std::string> attention;      // one of kAttentionScopes
  std::optional<std::string> decay_shape;    // "1-sqrt", "linear", "cosine"
  std::optional<std::string> upload_store;   // s3://BUCKET/PREFIX
  std::vector<std::string> train_only = {};  // patterns; empty: the preset's
  std::optional<double> train_top_snr = {};  // share of each kind of matrix that is trained beside them
};

// What a model preset takes from the dataset that it is to be trained on.
struct DataTokens {
  std::uint32_t vocab_size = 0;  // it gets as many where it has fewer, rounded up to a multiple of 128
  std::optional<std::uint32_t> begin_of_text, end_of_text;
};
DataTokens tokens_of(const DatasetManifest& manifest);

// A run of this name; `preset`: a name of preset_names(), or the path of a JSON file. run_id and dataset_json are left
// for hub_init. A model that is no preset of ours stays as its file says.
Result<RunConfig> make_run(const std::string& preset, const std::string& run_name, const RunOverrides& overrides,
                           const DataTokens& tokens = {});
// A run that is there, with these values; a decay whose length alone is given ends with the last round.
Result<RunConfig> change_run(const RunConfig& run, const RunOverrides& changes);

}  // namespace atl
