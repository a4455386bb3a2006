// The exit codes of `atoll` and `atoll-trainer`, which are one: documented in `atoll --help`, tested, frozen.
#pragma once

#include "net/base/result.h"

namespace atl {

enum ExitCode : int {
  kExitOk = 0,
  kExitOther = 1,
  kExitUsage = 2,
  kExitNotRunning = 3,
  kExitNotJoined = 4,
  kExitDenied = 5,
  kExitCheckFailed = 6,
  kExitCheckWarnings = 7,  // with --strict
  kExitInvite = 8,         // expired, used, unknown, of another run
  kExitPinMismatch = 9,
  kExitHubUnreachable = 10,
  kExitVersion = 11,
  kExitTimeout = 12,
  kExitTrainerFailed = 13,
  // Cut short by Ctrl-C or SIGTERM. `join` and `hub serve` run until then: for them it is the end, and 0.
  kExitInterrupted = 130,
};

constexpr ExitCode exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kInviteMalformed: return kExitUsage;
    case ErrorCode::kNotRunning: return kExitNotRunning;
    case ErrorCode::kNotJoined: return kExitNotJoined;
    case ErrorCode::kPermissionDenied:
    case ErrorCode::kConflict: return kExitDenied;
    case ErrorCode::kInviteExpired:
    case ErrorCode::kInviteUsed:
    case ErrorCode::kInviteUnknown:
    case ErrorCode::kInviteOtherRun: return kExitInvite;
    case ErrorCode::kPinMismatch: return kExitPinMismatch;
    case ErrorCode::kUnreachable:
    case ErrorCode::kCertificate: return kExitHubUnreachable;  // whoever answers there, it is not the hub
    case ErrorCode::kVersionUnsupported: return kExitVersion;
    case ErrorCode::kTimeout: return kExitTimeout;
    case ErrorCode::kTrainerFailed: return kExitTrainerFailed;
    default: return kExitOther;
  }
}

}  // namespace atl
