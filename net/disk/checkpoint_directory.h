// An island's checkpoint directory: what its files are called, and which outer states are in it. Who writes what: the
// trainer all of it (trainer/island); the agent and `atoll checkpoints` list and verify. Pure but for the listing; any
// thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/id.h"
#include "net/base/result.h"

namespace atl {

inline constexpr const char* kOuterStateFile = "outer.state";     // of islands before snapshots; outer_state_file.h
inline constexpr const char* kWrittenSnapshot = "outer.writing";  // that is not whole yet; snapshot.h
inline constexpr const char* kRemovedSnapshot = "outer.removed";  // that is not whole any more
inline constexpr const char* kIncomingState = "incoming.state";   // that is being fetched; snapshot.h
inline constexpr const char* kInnerStateFile = "inner.state";     // of a paused round; inner_state_file.h
inline constexpr const char* kKeptAverageFile = "average.kept";   // of the open round of fragment 0; see below
inline constexpr const char* kRoundsDirectory = "rounds";         // of committed rounds; round_log.h
inline constexpr const char* kModelConfigFile = "config.json";    // of the model; net/model/config.h
inline constexpr const char* kRunFile = "run.json";               // of the run; net/wire/run_config.h
inline constexpr const char* kCommitLogFile = "commits.log";      // the hub's signed commits; commit_log.h
inline constexpr const char* kEpochFile = "epoch.json";           // the highest epoch of the hub's; commit_log.h

// The averages in kRoundsDirectory take no more bytes than so many outer states (8 bytes a parameter) and the last of
// them. To read so much takes as long as to fetch a state over a link of half the disk's rate, and few links are as
// fast: what is logged is worth replaying. An int8 average is 1.02 bytes a parameter, so these are 15 rounds of the
// whole model. Where a state takes so long to be written that more rounds come between two of them, one is written
// after so many, which adds half to the bytes that the rounds write themselves.
inline constexpr std::uint64_t kMostLoggedStates = 2;
// Of averages, for a model of so many parameters.
inline constexpr std::uint64_t most_logged_bytes(std::uint64_t numel) {
  return kMostLoggedStates * 2 * sizeof(float) * numel;
}

// outer.STEP.state: a kept state.
std::string kept_state_name(OuterStep step);
// kKeptAverageFile for fragment 0; average.FRAGMENT.kept for those after it.
std::string kept_average_name(FragmentId fragment);
// outer.STEP.state, outer.STEP.N.state, or kOuterStateFile.
bool is_outer_state_name(std::string_view name);
// All that are called so, in no order; a directory that is not there holds none.
Result<std::vector<std::filesystem::path>> outer_state_files(const std::filesystem::path& directory);

}  // namespace atl
