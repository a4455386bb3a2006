// What this processor's device takes of the tensor library: its threads and its fp32 matrix product. The one place that
// includes its headers for the CPU.
#pragma once

#include <cstdint>
#include <type_traits>

namespace atl {

// For this thread, and what it calls: how many threads compute.
void set_cpu_threads(int threads);

// task(0), ..., task(count - 1), each once, on the threads of the caller.
namespace detail {
void run_parallel(std::int64_t count, void (*task)(void*, std::int64_t), void* context);
}
template <class Task>
void cpu_parallel(std::int64_t count, Task&& task) {
  if (count == 1) return task(std::int64_t{0});
  const auto call = [](void* context, std::int64_t index) {
    (*static_cast<std::remove_reference_t<Task>*>(context))(index);
  };
  detail::run_parallel(count, call, const_cast<void*>(static_cast<const void*>(&task)));
}

// An Sgemm (kernels/model/gemm.h): MKL's, which libtorch_cpu carries.
void library_sgemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                   std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc);

}  // namespace atl
