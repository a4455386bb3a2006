// Up to where a dataset is prepared: written now and then, once all that it tells of is on the disk. One thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "net/base/result.h"
#include "net/data/block_pipeline.h"
#include "net/data/data_statistics.h"
#include "net/data/shard_writer.h"

namespace atl {

struct PrepareJournal {
  std::string key;       // hash of inputs and options
  bool writing = false;  // all text was read once, and the plan is made
  BlockPlace next;       // what comes next of the pass
  // What the first pass found so far: records in their files, and text.
  std::uint64_t documents = 0;
  std::uint64_t blocks = 0;
  std::uint64_t text_bytes = 0;
  // What the second pass wrote so far.
  std::uint64_t done_bytes = 0;  // of text, duplicates among it
  WrittenShards train, validation;
  DataStatistics statistics;

  Status save(const std::filesystem::path& directory) const;
  // Nothing when there is none.
  static Result<std::optional<PrepareJournal>> load(const std::filesystem::path& directory);
};

inline constexpr char kPrepareJournalFile[] = "journal.json";

}  // namespace atl
