// Pauses between tries of what failed: each twice the one before, up to the longest, and by chance up to a half shorter
// or longer, so that the many who lost one peer do not come back in one moment. One thread.
#pragma once

#include <chrono>
#include <random>

namespace atl {

class Backoff {
 public:
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds longest);

  std::chrono::milliseconds next();
  void reset() { pause_ = first_; }  // it went well

 private:
  const std::chrono::milliseconds first_, longest_;
  std::chrono::milliseconds pause_;  // the next one, but for chance
  std::minstd_rand random_;
};

}  // namespace atl
