// What `atoll-trainer` does: the subcommands behind `atoll join`, `export`, `eval` and `sample`. Each blocks until it
// is done.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "net/base/result.h"

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
  std::filesystem::path output;
  bool json = false;
};
Status export_model(const ExportCommand& command);

// A model: an exported directory, or the one that the island at `home` trains now.
struct ModelSource {
  std::filesystem::path model;
  std::filesystem::path home;
};

struct EvalCommand {  // loss over the validation split of a prepared dataset
  ModelSource source;
  std::filesystem::path data;
  std::uint32_t sequences = 64;
  std::uint32_t sequence_length = 256;
  int threads = 0;
  bool json = false;
};
Status eval_model(const EvalCommand& command);

struct SampleCommand {  // continues a prompt
  ModelSource source;
  std::string prompt;
  int tokens = 200;
  double temperature = 0.8;  // 0: always the likeliest token
  int top_k = 0;             // 0: all tokens
  std::uint64_t seed = 1;
  int threads = 0;
  bool json = false;
};
Status sample_model(const SampleCommand& command);

}  // namespace atl
