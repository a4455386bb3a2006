// Makes a dataset out of text: what `atoll data prepare` does. All inputs are read twice. The first pass hashes every
// document; then it is decided which are left out, because the same text stands before them, and which are held out for
// validation; the second pass turns the rest into tokens. The same inputs give the same bytes, whatever the number of
// threads. What is done lies in "<output>.preparing", and a second call goes on from there. Blocks on the disk and on
// its threads; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/result.h"
#include "net/data/dataset.h"
#include "net/data/dataset_tokenizer.h"
#include "net/data/text_blocks.h"

namespace atl {

struct PrepareOptions {
  DatasetTokenizer tokenizer = byte_dataset_tokenizer();
  ReadOptions read = {};
  double validation_share = 0.005;  // of documents, by their hash: more than 0, at most 0.5
  std::uint64_t seed = 1;           // which of them
  bool keep_duplicates = false;
  std::uint64_t shard_tokens = std::uint64_t{512} << 20;
  std::size_t threads = 0;  // 0: the machine's processors
  std::uint64_t memory_bytes = std::uint64_t{1}
                               << 30;                 // for finding duplicates; fewer take more passes over the hashes
  std::string license = {};                           // of the text, is_license; empty: unknown
  bool replace = false;                               // an older dataset in the output directory
  bool restart = false;                               // what another call left unfinished is removed
  std::chrono::milliseconds checkpoint_every{5'000};  // so much is done again after a kill
  const AbortSignal* interrupt = nullptr;             // null: nobody interrupts
};

enum class PrepareStage {
  kReading,    // bytes of the files on the disk
  kComparing,  // hashes; bytes of them
  kWriting,    // bytes of text
};

struct PrepareProgress {
  PrepareStage stage = PrepareStage::kReading;
  std::uint64_t done_bytes = 0;
  std::uint64_t total_bytes = 0;
  std::uint64_t begun_bytes = 0;  // done by an earlier call
  std::uint64_t tokens = 0;       // written so far
};

// Called by one of the threads at a time.
using OnPrepareProgress = std::function<void(const PrepareProgress&)>;

// Texts shorter than this cannot be split usefully.
inline constexpr std::uint64_t kMinTextBytes = 16 * 1024;

// The manifest of what is in `output`. The directory appears whole or not at all, and only a dataset is ever replaced.
// kConflict when another process prepares there, or what was left unfinished is of other inputs or options.
Result<DatasetManifest> prepare_dataset(const std::vector<std::filesystem::path>& inputs,
                                        const std::filesystem::path& output, const PrepareOptions& options,
                                        const OnPrepareProgress& progress);

}  // namespace atl
