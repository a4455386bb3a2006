// Exit codes of atoll-trainer: those of `atoll`, which passes them on.
#pragma once

#include "net/base/result.h"

namespace atl {

inline constexpr int kExitUsage = 2;

constexpr int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return kExitUsage;
    case ErrorCode::kNotRunning: return 3;
    case ErrorCode::kNotJoined: return 4;
    case ErrorCode::kPermissionDenied:
    case ErrorCode::kCertificate: return 5;
    case ErrorCode::kPinMismatch: return 9;
    case ErrorCode::kUnreachable: return 10;
    case ErrorCode::kVersionUnsupported: return 11;
    case ErrorCode::kTimeout: return 12;
    default: return 1;
  }
}

}  // namespace atl
