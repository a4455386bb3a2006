// The HTTP Range header (RFC 9110, section 14): one range of bytes. No state; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace atl {

struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

enum class RangeVerdict { kWhole, kPart, kUnsatisfiable };

struct RangeChoice {
  RangeVerdict verdict = RangeVerdict::kWhole;
  ByteRange range;  // what to send, unless unsatisfiable
};

// What to send of `size` bytes. A header that is absent, not understood, or asks for several ranges means all of it, as
// the RFC wants.
RangeChoice choose_range(std::string_view header, std::uint64_t size);

}  // namespace atl
