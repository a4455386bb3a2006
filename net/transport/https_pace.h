// How long an HTTPS connection may take, and for what: pure, so that the hub's event loop and an island's threads,
// which wait in different ways, judge alike. Each step has a time as a whole, however its bytes come; an answer has
// none, but a rate below which nobody reads who lives. Progress is what the peer's kernel acknowledged: what this end's
// kernel took may be megabytes ahead of it.
#pragma once

#include <chrono>
#include <cstdint>

#include "net/base/deadline.h"

namespace atl {

struct HttpsPaceLimits {
  std::chrono::milliseconds idle{30'000};    // for a request to begin: a fetcher asks on in much less
  std::chrono::milliseconds header{10'000};  // from its first byte; a header is less than a packet or two
  // 4 KiB/s, on average over each window. A link of 1 Mbit/s that fetches from eight islands, two transfers each, has
  // twice as much for each of them; the window lets it be dead for most of half a minute.
  std::chrono::milliseconds window{30'000};
  std::uint64_t least_bytes = 30 * 4096;  // in a window
};

class HttpsPace {
 public:
  explicit HttpsPace(const HttpsPaceLimits& limits) : limits_(limits) {}

  // The steps, in this order, again and again. `acknowledged`: bytes of the connection so far.
  void wait_for_request(Clock::time_point now, std::uint64_t acknowledged);
  void begin_header(Clock::time_point now);
  void begin_answer(Clock::time_point now, std::uint64_t acknowledged);

  // This end held its own answer back for so long: no time of the peer's.
  void held_back(Clock::duration time) { since_ += time; }

  // Whether it has had its time. `unacknowledged`: bytes that the peer's kernel has not got yet; while there are any,
  // the answer goes on, though this end waits for the next request.
  bool is_over(Clock::time_point now, std::uint64_t acknowledged, std::uint64_t unacknowledged);
  bool is_idle() const { return step_ == Step::kIdle; }  // as of the last is_over(): nothing is under way
  Clock::time_point since() const { return since_; }     // the step began, or the last window

 private:
  enum class Step { kIdle, kHeader, kAnswer, kAnswerLeaves };
  bool too_slow(Clock::time_point now, std::uint64_t acknowledged);

  const HttpsPaceLimits limits_;
  Step step_ = Step::kIdle;
  Clock::time_point since_;
  std::uint64_t acknowledged_ = 0;  // at since_
};

}  // namespace atl
