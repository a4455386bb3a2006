#include "kernels/sha256_blocks.h"

#include <algorithm>

#include "kernels/instruction_set.h"
#include "kernels/sha256_shani.h"

namespace atl {

bool has_sha256_blocks() {
  static const bool has = chosen_instruction_set() != InstructionSet::kPlain && processor_has_shani();
  return has;
}

void sha256_blocks(std::span<Sha256Chain> chains, std::span<const std::byte* const> messages, std::size_t blocks) {
  sha256_shani(chains, messages, blocks);
}

}  // namespace atl
