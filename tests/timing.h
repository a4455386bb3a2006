// Tests judge no time but where something hangs: a machine that is shared, or whose owner is a virtual one's, takes
// tens of milliseconds from any program unseen. Figures are printed, and judged by tests/bench.
#pragma once

#include <chrono>
#include <cstdlib>

namespace atl::test {

// How many times a goal a time may take: 20, which waiting is above and working below; 1 with ATOLL_STRICT_TIMING=1,
// for a machine of its own.
inline int timing_slack() { return std::getenv("ATOLL_STRICT_TIMING") != nullptr ? 1 : 20; }

// A timeout for what must not be waited for: whatever ends before it did not wait for it.
inline constexpr std::chrono::seconds kForEver{60};

}  // namespace atl::test
