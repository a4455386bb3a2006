// Outer states made again of what an island's disk keeps: a snapshot's chunks, each brought forward by the logged
// rounds since its own outer step, chunks on all processors and apart from each other. Averages are read where they are
// needed: what it takes of memory is the state, or a chunk for each processor. A round is taken on no other state than
// that from which it was taken first, and has to make the same: what it leads to is right to the last bit, or is not
// used. The files are the island's own; where somebody altered them, or its memory errs, the island says another hash
// than the others and is outvoted as ever.
//
// Block, as long as a model and the averages take to be read. Any thread.
#pragma once

#include <memory>

#include "net/base/abort_signal.h"
#include "net/disk/kept_states.h"
#include "net/model/layout.h"
#include "net/recovery/outer_state.h"

namespace atl {

// Where a round cannot be taken again, the state before it, and the log says why: whoever wants another looks at what
// it is. kCorrupt when the snapshot is not whole, or of another model, or leads to no state before that round. In the
// memory of `room`, a state that is not needed any more.
Result<FetchedState> restore(const StateOnDisk& way, const RoundLog& log, const ParameterLayout& layout,
                             FetchedState room = {});
// The same without keeping it: which state it is.
Result<HeldState> try_restore(const StateOnDisk& way, const RoundLog& log, const ParameterLayout& layout);

// The chunks of a state that is on the disk, for who has no room for all of them: one pass finds their digests, then
// each is made again when it is asked for. What it reads may be removed meanwhile.
class RestoredChunks {
 public:
  // kCorrupt when what is there does not make that state; kAborted soon after `abort`, which outlives it, is raised.
  static Result<RestoredChunks> open(const StateOnDisk& way, const RoundLog& log, const ParameterLayout& layout,
                                     const AbortSignal& abort);
  RestoredChunks(RestoredChunks&&) noexcept;
  RestoredChunks& operator=(RestoredChunks&&) noexcept;
  ~RestoredChunks();

  const StateManifest& manifest() const;
  Result<Bytes> chunk(std::uint64_t index) const;  // several threads at once

 private:
  struct Impl;
  explicit RestoredChunks(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace atl
