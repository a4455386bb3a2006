#include "net/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace atl {

std::size_t parallel_threads() { return std::max(1u, std::thread::hardware_concurrency()); }

void parallel_for(std::size_t count, const std::function<void(std::size_t)>& part) {
  std::atomic<std::size_t> next{0};
  const auto work = [&]() noexcept {
    for (std::size_t i; (i = next.fetch_add(1)) < count;) part(i);
  };
  const std::size_t threads = std::min(parallel_threads(), count);
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
}

}  // namespace atl
