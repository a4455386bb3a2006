#include "net/data/sequence_order.h"

#include "net/data/permutation.h"

namespace atl {

std::uint64_t sequence_at(std::uint64_t seed, std::uint64_t position, std::uint64_t sequences) {
  if (sequences <= 1) return 0;
  const std::uint64_t epoch = position / sequences;
  return permute(mix_bits(mix_bits(seed) ^ epoch), position % sequences, sequences);
}

}  // namespace atl
