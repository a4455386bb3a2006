// The order in which a run reads its training sequences: a permutation of each epoch, a pure function of seed and
// position, so that a lease is just a range of positions and no island keeps a shuffle buffer.
#pragma once

#include <cstdint>

namespace atl {

// Position p >= 0 of the run's endless order -> index of a training sequence in [0, sequences).
// Epoch e = p / sequences is a permutation of its own (a Feistel network with cycle walking).
std::uint64_t sequence_at(std::uint64_t seed, std::uint64_t position, std::uint64_t sequences);

}  // namespace atl
