#include "trainer/device/cpu_library.h"

#include <ATen/Parallel.h>

// BLAS as Fortran has it, with 32-bit integers: exported by libtorch_cpu, which no header of torch says.
extern "C" void sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n, const int* k,
                       const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
                       const float* beta, float* c, const int* ldc);

namespace atl {

void set_cpu_threads(int threads) { at::set_num_threads(threads); }

void detail::run_parallel(std::int64_t count, void (*task)(void*, std::int64_t), void* context) {
  at::parallel_for(0, count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) task(context, index);
  });
}

void library_sgemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                   std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  // Fortran's matrices are column-major, so it is asked for the transpose: c' = op(b)' op(a)'.
  const char* first = transpose_b ? "T" : "N";
  const char* second = transpose_a ? "T" : "N";
  const auto width = [](std::int64_t value) { return static_cast<int>(value); };
  const int rows = width(n), columns = width(m), inner = width(k);
  const int ld_first = width(ldb), ld_second = width(lda), ld_out = width(ldc);
  const float one = 1;
  ::sgemm_(first, second, &rows, &columns, &inner, &one, b, &ld_first, a, &ld_second, &beta, c, &ld_out);
}

}  // namespace atl
