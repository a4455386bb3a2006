// trainer/device/cpu_library.h without the tensor library: what GPUs are compared with, where there is no more than
// they need.
#include "trainer/device/cpu_library.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "kernels/model/gemm.h"

namespace atl {
namespace {

thread_local int threads = 1;

}  // namespace

void set_cpu_threads(int count) { threads = count; }

void detail::run_parallel(std::int64_t count, void (*task)(void*, std::int64_t), void* context) {
  std::atomic<std::int64_t> next = 0;
  const auto work = [&] {
    for (std::int64_t index = next++; index < count; index = next++) task(context, index);
  };
  std::vector<std::jthread> others;
  for (int i = 1; i < std::min<std::int64_t>(threads, count); ++i) others.emplace_back(work);
  work();
}

void library_sgemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                   std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  reference_sgemm(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, beta, c, ldc);
}

}  // namespace atl
