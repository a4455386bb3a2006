// Breaks an exchange at each of its bytes in turn, in both directions, and asks whether it comes to its end all the
// same: nothing that happens to a connection is final. For tests.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "net/base/result.h"
#include "tests/fakes/fault_proxy.h"

namespace atl {

struct Breaking {
  bool stalls = false;                     // else cuts and resets, by turns
  std::uint64_t every_byte_until = 4'000;  // of each direction: handshake and first exchange
  std::uint64_t then_every = 4'999;        // of a long body
  std::uint64_t stride = 1;                // where each case takes long: not every byte
};
// So many connections in a row break before one is whole: what tries a bounded number of times needs a few more.
inline constexpr int kBrokenInARow = 20;
inline constexpr int kEnoughTries = 2 * kBrokenInARow + 10;

inline constexpr std::chrono::seconds kPatience{30};
// Silence is found out by time alone: shorter here than any in production, and long for loopback.
inline constexpr std::chrono::milliseconds kSilence{150};
inline constexpr std::uint64_t kStallStride = 199;  // fewer: each costs kSilence

void add_kinds_of_faults();                            // the rows of a test: bool stalls
std::chrono::milliseconds silence_until(bool stalls);  // of a connection that may stall; else what a slow machine needs
std::string words(const Error& error);

// `exchange` makes connections through the proxy, one after the other, tries as production code does, and says what is
// wrong with how it ended; nothing: it has the right result. It is called once without a fault, to count its bytes, and
// then again and again. What was wrong first, and where; nothing: all is well.
std::optional<std::string> break_everywhere(FaultProxy& proxy, const Breaking& breaking,
                                            const std::function<std::optional<std::string>()>& exchange);

}  // namespace atl
