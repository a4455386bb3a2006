// The outer states on an island's disk: the newest (outer.state), the one before it, and older ones at rounds that were
// validated, outer.STEP.state, as many in all as the run asks for. What logged rounds make of them: replay.h. One
// thread at a time changes them.
#pragma once

#include <filesystem>
#include <vector>

#include "net/recovery/outer_state.h"
#include "net/wire/mesh.h"

namespace atl {

class KeptStates {
 public:
  // `keep`: states in all, at least 1. `anchor_every`: of the older ones, those whose outer step is a multiple of it
  // stay longest; 0: none does.
  KeptStates(std::filesystem::path directory, std::uint32_t keep, std::uint32_t anchor_every)
      : directory_(std::move(directory)), keep_(keep), anchor_every_(anchor_every) {}

  // To be called before outer.state is replaced by that of another step: what is there is kept under its own name.
  // Where that cannot be, it is told in the log: the newest state is worth more than the one before it.
  void make_room(OuterStep next) const;
  struct Entry {
    HeldState state;
    std::filesystem::path file;
  };
  // Newest first, by what the files say of themselves; read in full only when one is loaded.
  std::vector<Entry> entries() const;
  std::vector<HeldState> list() const;
  // kNotFound when it is not kept; kCorrupt when it is not whole any more.
  Result<FetchedState> load(const HeldState& wanted, std::int64_t numel) const;
  // What is too many. Never outer.state; first what does not come before it: a rollback undid that.
  void prune() const;

 private:
  const std::filesystem::path directory_;
  const std::uint32_t keep_;
  const std::uint32_t anchor_every_;
};

}  // namespace atl
