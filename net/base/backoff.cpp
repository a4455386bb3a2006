#include "net/base/backoff.h"

#include <algorithm>

namespace atl {

Backoff::Backoff(std::chrono::milliseconds first, std::chrono::milliseconds longest)
    : first_(std::min(first, longest)), longest_(longest), pause_(first_), random_(std::random_device{}()) {}

std::chrono::milliseconds Backoff::next() {
  const auto middle = pause_;
  pause_ = std::min(2 * pause_, longest_);
  std::uniform_int_distribution<std::chrono::milliseconds::rep> chance(0, middle.count());
  return middle / 2 + std::chrono::milliseconds(chance(random_));
}

}  // namespace atl
