// Which implementation of the kernels this processor runs. Asked of the processor once, at first use; the environment
// variable ATOLL_KERNELS (plain, avx2 or avx512) lowers it, for comparison: what the processor lacks is never chosen.
#pragma once

#include <array>
#include <string_view>

namespace atl {

enum class InstructionSet { kPlain, kAvx2, kAvx512 };  // each includes those before it

inline constexpr std::array kInstructionSets{InstructionSet::kPlain, InstructionSet::kAvx2, InstructionSet::kAvx512};

constexpr std::string_view instruction_set_name(InstructionSet set) {
  switch (set) {
    case InstructionSet::kPlain: return "plain";
    case InstructionSet::kAvx2: return "avx2";
    case InstructionSet::kAvx512: return "avx512";
  }
  return "unknown";
}

bool processor_has(InstructionSet set);
InstructionSet chosen_instruction_set();

}  // namespace atl
