// The words of the control protocol (docs/control.md), each once: an enum, and the table of its words in the enum's
// order. Programs compare enums; words are read and written by net/control alone. Plain values; any thread.
//
// kUnknown is what a newer program means by a word that this one does not know.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace atl {

// What an island does: "state" of state.get.
enum class IslandPhase {
  kUnjoined,  // belongs to no run
  kJoining,   // its trainer is on its way to the hub
  kRecovering,
  kWaiting,  // for the next round
  kTraining,
  kSyncing,
  kFinishing,     // completes the round, then leaves: its owner wishes so
  kPaused,        // its owner wishes so, or the hours do
  kReconnecting,  // its trainer gave the hub up; another one is to come
  kError,
  kStopped,
  kUnknown,
};

// What the owner of a machine wants of it.
enum class Wish { kRun, kPause, kFinish, kStop, kUnknown };

// Why a trainer ended.
enum class ExitCause {
  kRunFinished,  // the run reached its last round
  kPaused,       // as asked, its work kept
  kFinished,     // as asked, after the round's commit
  kStopped,      // as asked
  kKilled,       // SIGKILL of somebody else
  kOutOfMemory,  // the kernel killed something for want of memory at that time
  kCrashed,      // a signal of its own making
  kHung,         // killed by the agent, for it did nothing
  kGpuMemory,
  kGpuLost,
  kDriver,
  kNotFinite,
  kHubUnreachable,
  kRefused,   // by the hub, whose certificate was verified
  kUnusable,  // another version, a home that is not whole: the next start would end the same
  kOther,
  kUnknown,
};

// Of a joining, in the order in which they are reached; the check comes twice.
enum class JoinStage { kKey, kEnrol, kCheck, kTrainer, kData, kState, kFirstStep, kUnknown };
inline constexpr int kJoinStages = 7;
enum class StageStatus { kWaiting, kRunning, kDone, kFailed, kUnknown };

// What a trainer fetches.
enum class Download { kData, kState, kUnknown };
enum class DownloadStatus { kRunning, kDone, kFailed, kUnknown };

// Of the synchronisation at a round's end.
enum class SyncPart {
  kWait,           // for the others
  kConnect,        // these four: of the attempt that went well
  kQuantise,       // what a thread spent on encoding and adding
  kReduceScatter,  // what is left of the ring's two halves
  kAllGather,
  kFailed,  // an attempt
  kCommit,  // waiting for the hub's
  kApply,   // the outer step
  kUnknown,
};

enum class GpuAlertKind { kTemperature, kPower, kUnknown };

// What an island computes on.
enum class DeviceChoice {
  kAuto,  // GPUs that compute what the processor does and hold the model; where there are none, the processor
  kProcessor,
  kGpu,
  kUnknown,
};

// In which numbers an island computes the model, whose parameters are fp32 in any case.
enum class PrecisionChoice {
  kAuto,  // bf16 on GPUs, fp32 on the processor
  kFp32,
  kBf16,
  kUnknown,
};

template <class Word>
struct WordTable;

template <>
struct WordTable<IslandPhase> {
  static constexpr std::array<std::string_view, 12> kWords{"unjoined",     "joining", "recovering", "waiting",
                                                           "training",     "syncing", "finishing",  "paused",
                                                           "reconnecting", "error",   "stopped",    "unknown"};
};
template <>
struct WordTable<Wish> {
  static constexpr std::array<std::string_view, 5> kWords{"run", "pause", "finish", "stop", "unknown"};
};
template <>
struct WordTable<ExitCause> {
  static constexpr std::array<std::string_view, 17> kWords{
      "run_finished",    "paused",  "finished",   "stopped",  "killed", "out_of_memory",
      "crashed",         "hung",    "gpu_memory", "gpu_lost", "driver", "not_finite",
      "hub_unreachable", "refused", "unusable",   "other",    "unknown"};
};
template <>
struct WordTable<JoinStage> {
  static constexpr std::array<std::string_view, 8> kWords{"key",  "enrol", "check",      "trainer",
                                                          "data", "state", "first_step", "unknown"};
};
template <>
struct WordTable<StageStatus> {
  static constexpr std::array<std::string_view, 5> kWords{"waiting", "running", "done", "failed", "unknown"};
};
template <>
struct WordTable<Download> {
  static constexpr std::array<std::string_view, 3> kWords{"data", "state", "unknown"};
};
template <>
struct WordTable<DownloadStatus> {
  static constexpr std::array<std::string_view, 4> kWords{"running", "done", "failed", "unknown"};
};
template <>
struct WordTable<SyncPart> {
  static constexpr std::array<std::string_view, 9> kWords{
      "wait", "connect", "quantise", "reduce_scatter", "all_gather", "failed", "commit", "apply", "unknown"};
};
template <>
struct WordTable<GpuAlertKind> {
  static constexpr std::array<std::string_view, 3> kWords{"temperature", "power", "unknown"};
};

template <>
struct WordTable<DeviceChoice> {
  static constexpr std::array<std::string_view, 4> kWords{"auto", "processor", "gpu", "unknown"};
};
template <>
struct WordTable<PrecisionChoice> {
  static constexpr std::array<std::string_view, 4> kWords{"auto", "fp32", "bf16", "unknown"};
};

template <class Word>
concept ControlWord = requires {
  WordTable<Word>::kWords;
};

template <ControlWord Word>
constexpr std::string_view word_of(Word word) {
  static_assert(WordTable<Word>::kWords.size() == static_cast<std::size_t>(Word::kUnknown) + 1);
  return WordTable<Word>::kWords[static_cast<std::size_t>(word)];
}

template <ControlWord Word>
constexpr Word parse_word(std::string_view text) {
  std::size_t place = 0;
  for (const std::string_view word : WordTable<Word>::kWords) {
    if (word == text) return static_cast<Word>(place);
    ++place;
  }
  return Word::kUnknown;
}

}  // namespace atl
