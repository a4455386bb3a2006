#include "net/base/result.h"

namespace atl {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid_argument";
    case ErrorCode::kNotFound: return "not_found";
    case ErrorCode::kPermissionDenied: return "permission_denied";
    case ErrorCode::kTimeout: return "timeout";
    case ErrorCode::kUnreachable: return "unreachable";
    case ErrorCode::kPeerLost: return "peer_lost";
    case ErrorCode::kProtocol: return "protocol";
    case ErrorCode::kVersionUnsupported: return "version_unsupported";
    case ErrorCode::kCertificate: return "certificate";
    case ErrorCode::kPinMismatch: return "pin_mismatch";
    case ErrorCode::kInviteMalformed: return "invite_malformed";
    case ErrorCode::kInviteExpired: return "invite_expired";
    case ErrorCode::kInviteUsed: return "invite_used";
    case ErrorCode::kInviteUnknown: return "invite_unknown";
    case ErrorCode::kInviteOtherRun: return "invite_other_run";
    case ErrorCode::kConflict: return "conflict";
    case ErrorCode::kCorrupt: return "corrupt";
    case ErrorCode::kDiskFull: return "disk_full";
    case ErrorCode::kIo: return "io";
    case ErrorCode::kAborted: return "aborted";
    case ErrorCode::kNonFinite: return "non_finite";
    case ErrorCode::kNotRunning: return "not_running";
    case ErrorCode::kNotJoined: return "not_joined";
    case ErrorCode::kTrainerFailed: return "trainer_failed";
    case ErrorCode::kInternal: return "internal";
  }
  return "unknown";
}

std::optional<ErrorCode> parse_error_code(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::kInternal); ++i) {
    if (to_string(static_cast<ErrorCode>(i)) == name) return static_cast<ErrorCode>(i);
  }
  return std::nullopt;
}

}  // namespace atl
