// What `atoll-trainer` does: the subcommands behind `atoll join`, `export`, `eval` and `sample`. Each blocks until it
// is done.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "net/base/result.h"
#include "net/control/words.h"

namespace atl {

struct RunCommand {  // train as the island whose home this is
  std::filesystem::path home;
  std::optional<int> local_ranks;  // otherwise as join.json says
  std::optional<int> threads;
  std::optional<int> micro_batch;
};
// The exit status: 0, or that of a pause or finish that was followed (net/control/trainer_contract.h).
Result<int> run_island(const RunCommand& command);

struct ExportCommand {  // a HuggingFace directory of the island's outer parameters
  std::filesystem::path home;
  std::string
      from;  // or of a published state, s3://BUCKET/PREFIX[/outer-STEP]; with its run's home, where that is given
  std::string run;  // of `home`, left for another one, by its id; empty: its own
  std::filesystem::path output;
  std::string dtype = "float32";                  // or bfloat16
  std::uint64_t max_shard_bytes = 5'000'000'000;  // of a file
  std::optional<std::uint32_t> round;             // the outer step, of those that its disk leads to; none: the newest
  bool json = false;
};
Status export_model(const ExportCommand& command);

// A model: an exported directory, or the one that the island at `home` trains now.
struct ModelSource {
  std::filesystem::path model;
  std::filesystem::path home;
};

// How a model is computed that is asked and continued.
struct InferenceChoice {
  std::filesystem::path tokenizer;  // empty: the model directory's own, else bytes
  bool bf16 = false;                // in place of fp32
  int batch = 8;                    // texts at once
  int threads = 0;                  // of the processor; 0: all
  DeviceChoice device = DeviceChoice::kAuto;
};

// How good a model is: its loss on the validation split of a prepared dataset, and its scores on tasks
// (docs/eval-tasks.md). One of them must be there.
struct EvalCommand {
  ModelSource source;
  std::vector<std::string> data;  // [NAME=]DIR: the loss on each, and on all
  std::uint32_t sequences = 64;   // of each
  std::uint32_t sequence_length = 256;
  std::string attention;  // "packed", "document"; empty: the run's at `source`, packed where there is none
  std::vector<std::filesystem::path> tasks;
  InferenceChoice inference;
  std::int64_t max_length = 0;   // tokens of context; 0: as many as the model takes
  std::int64_t limit = 0;        // of each task the first so many questions; 0: all
  int bootstrap = 100'000;       // rounds, for the standard errors that need them
  std::filesystem::path output;  // results, as lm-evaluation-harness writes them: a directory, or a .json
  bool log_samples = false;      // each answer beside them
  bool json = false;
};
Status eval_model(const EvalCommand& command);

struct SampleCommand {  // continues prompts
  ModelSource source;
  std::vector<std::string> prompts;    // none, and no file: the empty one
  std::filesystem::path prompts_file;  // JSON Lines, each {"prompt": TEXT}
  int tokens = 200;
  double temperature = 0.8;  // 0: always the likeliest token
  int top_k = 0;             // 0: all tokens
  double top_p = 1;          // 1: all tokens
  std::vector<std::string> stops;
  std::uint64_t seed = 1;
  InferenceChoice inference;
  bool json = false;
};
Status sample_model(const SampleCommand& command);

}  // namespace atl
