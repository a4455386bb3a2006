// Takes files block by block through three steps: read (one thread a file), work (any thread, a block each), and take
// (one thread at a time, in the order of files and blocks, whatever the number of threads). Each of its threads does
// what there is to do: takes what is next in order, else works, else reads ahead. What is read ahead is bounded.
// Returns when all is done; the caller's thread is one of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "net/base/abort_signal.h"
#include "net/base/result.h"
#include "net/data/text_blocks.h"

namespace atl {

struct BlockPlace {
  std::size_t file = 0;
  std::uint64_t block = 0;  // in its file
  auto operator<=>(const BlockPlace&) const = default;
};

// What the work makes of a block.
class BlockResult {
 public:
  virtual ~BlockResult() = default;
};

using BlockWork = std::function<Result<std::unique_ptr<BlockResult>>(BlockPlace place, TextBlock block)>;

struct PipelineSteps {
  std::function<Result<std::unique_ptr<TextBlocks>>(std::size_t file)> open;
  std::function<BlockWork()> make_work;  // one a thread: it may keep what it needs again
  // `disk_bytes`: of its file, read so far.
  std::function<Status(BlockPlace place, std::uint64_t disk_bytes, BlockResult& result)> take;
  std::function<Status(std::size_t file)> end_of_file;  // behind its last block, in order
};

struct PipelineOptions {
  std::size_t files = 0;
  BlockPlace from;  // blocks before it are read, where that is needed to get there, and left out
  std::size_t threads = 1;
  const AbortSignal* interrupt = nullptr;  // null: nobody interrupts
};

// The first error in the order of files and blocks; kAborted when it was interrupted.
Status run_block_pipeline(const PipelineOptions& options, const PipelineSteps& steps);

}  // namespace atl
