#include "app/agent/trainer_exit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <csignal>

#include "net/base/exit_code.h"
#include "net/base/printable.h"
#include "net/control/trainer_contract.h"

namespace atl {
namespace {

constexpr std::string_view kErrorPrefix = "atoll-trainer: ";
constexpr std::string_view kLogTime = "2026-01-01T00:00:00.000";  // with which a line of the log begins
constexpr std::size_t kMostSaid = 300;                            // bytes of a line that is no error of its own
constexpr int kNotStarted = 127;                                  // of the loader, which names the library

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

bool has_any(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

// Its own error line, the last one; empty when it said none.
std::string error_line(std::string_view words) {
  const auto begin = words.rfind(kErrorPrefix);
  if (begin == std::string_view::npos || (begin > 0 && words[begin - 1] != '\n')) return {};
  words.remove_prefix(begin + kErrorPrefix.size());
  return std::string(words.substr(0, words.find('\n')));
}

// What it said last beside its log: of one that did not begin, the loader's reason. Empty: nothing.
std::string last_line(std::string_view words) {
  while (!words.empty()) {
    const auto begin = words.find_last_of('\n', words.size() - 1) + 1;  // npos + 1 is 0
    const std::string_view line = words.substr(begin);
    words = words.substr(0, begin > 0 ? begin - 1 : 0);
    const bool is_log = line.size() > kLogTime.size() && std::isdigit(static_cast<unsigned char>(line[0])) != 0 &&
                        line[4] == kLogTime[4] && line[10] == kLogTime[10] && line[13] == kLogTime[13];
    const bool is_end = line.find(kTrainerExitWords) != std::string_view::npos;
    if (!is_log && !is_end && line.find_first_not_of(" \t\r") != std::string_view::npos)
      return printable(line, kMostSaid);
  }
  return {};
}

std::optional<int> told_status(std::string_view words) {
  const std::string_view marker = kTrainerExitWords;
  const auto begin = words.rfind(marker);
  if (begin == std::string_view::npos) return std::nullopt;
  int status = 0;
  const char* first = words.data() + begin + marker.size();
  const auto [end, error] = std::from_chars(first, words.data() + words.size(), status);
  return error == std::errc() ? std::optional(status) : std::nullopt;
}

// What CUDA, NCCL, the driver and the trainer itself say, in lower case.
std::optional<ExitCause> cause_in_words(const std::string& words) {
  if (has_any(words, {"cuda out of memory", "cuda error: out of memory", "cuda_error_out_of_memory",
                      "cublas_status_alloc_failed"})) {
    return ExitCause::kGpuMemory;
  }
  if (has_any(words,
              {"fallen off the bus", "device lost", "gpu is lost", "uncorrectable ecc", "cuda_error_device_unavailable",
               "all cuda-capable devices are busy or unavailable", "unable to determine the device handle"})) {
    return ExitCause::kGpuLost;
  }
  if (has_any(words, {"driver version is insufficient", "driver/library version mismatch", "no cuda-capable device",
                      "cuda driver", "cuda error: unknown error", "nvml"})) {
    return ExitCause::kDriver;
  }
  if (has_any(words, {"can't allocate memory", "cannot allocate memory", "std::bad_alloc", "not enough memory"})) {
    return ExitCause::kOutOfMemory;
  }
  if (has_any(words, {"not finite", "not both finite"})) return ExitCause::kNotFinite;
  return std::nullopt;
}

ExitCause cause_of_status(int status, const ExitFacts& facts) {
  switch (status) {
    case kExitOk: {
      const bool run_goes_on = facts.last_words.find(kRunGoesOnWords) != std::string::npos;
      return facts.was_told_to_end || run_goes_on ? ExitCause::kStopped : ExitCause::kRunFinished;
    }
    case kTrainerPausedExit: return ExitCause::kPaused;
    case kTrainerFinishedExit: return ExitCause::kFinished;
    case kExitHubUnreachable:
    case kExitTimeout: return ExitCause::kHubUnreachable;
    case kExitDenied:
    case kExitPinMismatch:
    case kExitInvite: return ExitCause::kRefused;
    case kExitUsage:
    case kExitNotJoined:
    case kExitVersion: return ExitCause::kUnusable;
    default: break;
  }
  const int signal = status - 128;
  if (signal == SIGTERM || signal == SIGINT) return ExitCause::kStopped;
  if (signal == SIGKILL) return facts.memory_kills ? ExitCause::kOutOfMemory : ExitCause::kKilled;
  return signal > 0 && signal < 65 ? ExitCause::kCrashed : ExitCause::kOther;
}

std::string_view advice(ExitCause cause) {
  switch (cause) {
    case ExitCause::kOutOfMemory:
      return "the machine ran out of memory: close other programs, compute fewer sequences at once (--micro-batch 1), "
             "or "
             "add memory or swap";
    case ExitCause::kKilled: return "somebody killed it (signal 9)";
    case ExitCause::kGpuMemory: return "the GPU ran out of memory: end other programs on it (nvidia-smi lists them)";
    case ExitCause::kGpuLost: return "a GPU is lost: look at 'dmesg | grep -i xid', and restart the machine";
    case ExitCause::kDriver:
      return "the GPU driver does not work: does nvidia-smi? Reinstall it or restart the machine";
    case ExitCause::kNotFinite: return "its numbers were not finite: check the machine's memory and GPUs";
    default: return {};
  }
}

}  // namespace

TrainerExit judge_exit(const ExitFacts& facts, double unix_seconds) {
  TrainerExit exit;
  exit.unix_seconds = unix_seconds;
  const auto status = facts.status ? facts.status : told_status(facts.last_words);
  exit.status = status.value_or(-1);
  if (!facts.hung.empty()) {
    exit.cause = ExitCause::kHung;
    exit.text = facts.hung;
    return exit;
  }
  // Of a process that was not our child and said nothing we know only that it is gone.
  exit.cause = status ? cause_of_status(*status, facts) : ExitCause::kKilled;
  const bool open =
      exit.cause == ExitCause::kOther || exit.cause == ExitCause::kCrashed || exit.cause == ExitCause::kKilled;
  if (open && status != 128 + SIGKILL) exit.cause = cause_in_words(lower(facts.last_words)).value_or(exit.cause);
  const std::string said = status == 0 ? std::string() : error_line(facts.last_words);
  const std::string_view what_to_do = advice(exit.cause);
  exit.text =
      said.empty() || what_to_do.empty() ? said + std::string(what_to_do) : fmt::format("{} ({})", what_to_do, said);
  if (exit.text.empty() && !is_success(exit.cause)) {
    const std::string last = last_line(facts.last_words);
    exit.text = fmt::format("the trainer ended with {} {}{}", exit.status > 128 ? "signal" : "status",
                            exit.status > 128 ? exit.status - 128 : exit.status,
                            last.empty() ? " and did not say why" : ": " + last);
    if (exit.status == kNotStarted) exit.text += "; what it is made of is not all there: install Atoll again";
  }
  return exit;
}

// The trainer's exit status is one of ours, but what is its fault alone.
ErrorCode error_code_of(const TrainerExit& exit) {
  switch (exit.status) {
    case kExitDenied: return ErrorCode::kPermissionDenied;
    case kExitPinMismatch: return ErrorCode::kPinMismatch;
    case kExitHubUnreachable: return ErrorCode::kUnreachable;
    case kExitVersion: return ErrorCode::kVersionUnsupported;
    case kExitTimeout: return ErrorCode::kTimeout;
    default: return ErrorCode::kTrainerFailed;
  }
}

bool is_final(ExitCause cause) { return cause == ExitCause::kRefused || cause == ExitCause::kUnusable; }

bool is_failure_of_machine(ExitCause cause) {
  return !is_success(cause) && cause != ExitCause::kHubUnreachable && cause != ExitCause::kRefused;
}

bool is_success(ExitCause cause) {
  return cause == ExitCause::kRunFinished || cause == ExitCause::kPaused || cause == ExitCause::kFinished ||
         cause == ExitCause::kStopped;
}

}  // namespace atl
