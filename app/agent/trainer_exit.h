// Why a trainer ended: judged from its exit status and its last words. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "net/base/result.h"
#include "net/control/words.h"

namespace atl {

struct TrainerExit {
  ExitCause cause = ExitCause::kOther;
  std::string text;         // for a person: what happened, and what to do
  int status = -1;          // 128 + signal for a signal; -1: unknown
  double unix_seconds = 0;  // when
};

struct ExitFacts {
  std::optional<int> status = {};  // empty: it was not our child
  std::string last_words = {};     // the end of its log
  bool memory_kills = false;       // the kernel killed for want of memory meanwhile
  std::string hung = {};           // why the agent killed it; empty: it did not
  bool was_told_to_end = false;
};

TrainerExit judge_exit(const ExitFacts& facts, double unix_seconds);

// For a command that ends with its trainer: one of those that exit codes are made of.
ErrorCode error_code_of(const TrainerExit& exit);
// Another start would end the same way: a person has to do something first.
bool is_final(ExitCause cause);
// Neither that, nor what its hub or the network did.
bool is_failure_of_machine(ExitCause cause);
// It ended as it was meant to.
bool is_success(ExitCause cause);

}  // namespace atl
