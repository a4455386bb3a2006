// sha256_blocks() by x86's SHA extensions; on other processors it is not there, and says so.
#pragma once

#include "kernels/sha256_blocks.h"

namespace atl {

bool processor_has_shani();
void sha256_shani(std::span<Sha256Chain> chains, std::span<const std::byte* const> messages, std::size_t blocks);

}  // namespace atl
