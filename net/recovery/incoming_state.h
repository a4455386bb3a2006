// What a fetch has brought so far, on the disk (net/disk/snapshot.h), so that a process that comes after a crash goes
// on with it, and so that what was fetched needs not be written again at its end. A thread of its own writes: whoever
// fetches never waits for it. What the disk does not take in time, or at all, is left out and said.
//
// Owned and used by who fetches; one thread.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <thread>

#include "net/base/mailbox.h"
#include "net/disk/snapshot.h"
#include "net/recovery/partial_state.h"

namespace atl {

class IncomingState {
 public:
  // `trouble`: that nothing is kept, for a person; on the writing thread.
  IncomingState(std::filesystem::path directory, std::uint64_t numel, std::function<void(const std::string&)> trouble);
  ~IncomingState();  // what was written stays

  // Before the first put(): what a process before this one left there, where it is newer than what is in `state`.
  void read_into(PartialState& state);
  // Written soon, and flushed a few seconds later, unless the disk is behind by too much.
  void put(std::uint64_t index, const PartialState& state);
  // All of `state` is what it is said to be: as a snapshot at `place`. Where nearly all of it would have to be written
  // first, that is left to others, and what was written is removed: false.
  Result<bool> finish(const PartialState& state, const HeldState& held, const std::filesystem::path& place) &&;
  void remove() &&;

 private:
  struct Item {
    std::uint64_t index = 0;
    StoredChunk chunk;
    Bytes bytes;
  };
  bool open();
  void fail(const Error& error);
  void write_what_comes();
  void end_writing();

  const std::filesystem::path directory_;
  const std::uint64_t numel_;
  const std::function<void(const std::string&)> trouble_;
  std::optional<SnapshotWriter> writer_;  // the thread's while there is one
  std::atomic<bool> failed_{false};
  Mailbox<Item> items_;
  std::jthread thread_;  // last
};

}  // namespace atl
