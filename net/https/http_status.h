// The HTTP statuses that fetches tell apart, as `HttpsOutcome::http_status` and libcurl give them.
#pragma once

namespace atl {

inline constexpr long kStatusOk = 200, kStatusPartialContent = 206;
inline constexpr long kStatusForbidden = 403, kStatusNotFound = 404, kStatusPreconditionFailed = 412;

}  // namespace atl
