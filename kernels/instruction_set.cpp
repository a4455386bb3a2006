#include "kernels/instruction_set.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace atl {
namespace {

InstructionSet choose() {
  const char* const wish = std::getenv("ATOLL_KERNELS");
  const auto is_name = [&](InstructionSet set) { return wish == instruction_set_name(set); };
  if (wish != nullptr && std::ranges::none_of(kInstructionSets, is_name)) {
    std::fprintf(stderr, "ATOLL_KERNELS=%s is ignored: it may be plain, avx2 or avx512\n", wish);
  }
  InstructionSet best = InstructionSet::kPlain;
  for (const InstructionSet set : kInstructionSets) {
    if (!processor_has(set)) break;
    best = set;
    if (wish != nullptr && wish == instruction_set_name(set)) break;
  }
  return best;
}

}  // namespace

bool processor_has(InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx2) return __builtin_cpu_supports("avx2");
  if (set == InstructionSet::kAvx512) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
#endif
  return set == InstructionSet::kPlain;
}

InstructionSet chosen_instruction_set() {
  static const InstructionSet chosen = choose();
  return chosen;
}

}  // namespace atl
