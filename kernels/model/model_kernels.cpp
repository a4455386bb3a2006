#include "kernels/model/model_kernels.h"

#include "kernels/model/model_kernels_sets.h"

namespace atl {
namespace {

// AVX2 is compiled with fused multiply-add, which every known processor with AVX2 has, but which is a promise of its
// own.
InstructionSet usable(InstructionSet set) {
#if defined(__x86_64__)
  if (processor_has(set) && (set == InstructionSet::kPlain || __builtin_cpu_supports("fma"))) return set;
#else
  (void)set;
#endif
  return InstructionSet::kPlain;
}

template <class Table>
const Table& pick(InstructionSet set, const Table& of_plain, const Table& of_avx2, const Table& of_avx512) {
  switch (usable(set)) {
    case InstructionSet::kPlain: return of_plain;
    case InstructionSet::kAvx2: return of_avx2;
    case InstructionSet::kAvx512: return of_avx512;
  }
  return of_plain;
}

#if !defined(__x86_64__)
namespace avx2 = plain;
namespace avx512 = plain;
#endif

}  // namespace

template <>
const ModelKernels<float>& model_kernels<float>(InstructionSet set) {
  return pick(set, plain::kModelKernelsFp32, avx2::kModelKernelsFp32, avx512::kModelKernelsFp32);
}

template <>
const ModelKernels<Bf16>& model_kernels<Bf16>(InstructionSet set) {
  return pick(set, plain::kModelKernelsBf16, avx2::kModelKernelsBf16, avx512::kModelKernelsBf16);
}

const ValueKernels& value_kernels(InstructionSet set) {
  return pick(set, plain::kValueKernels, avx2::kValueKernels, avx512::kValueKernels);
}

}  // namespace atl
