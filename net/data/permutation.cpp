#include "net/data/permutation.h"

#include <bit>

namespace atl {
namespace {

constexpr int kFeistelRounds = 6;

// A permutation of [0, 2^(2 * half_bits)), whatever the round function.
std::uint64_t feistel(std::uint64_t key, std::uint64_t value, int half_bits) {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  std::uint64_t left = value >> half_bits, right = value & mask;
  for (int round = 0; round < kFeistelRounds; ++round) {
    const std::uint64_t next =
        left ^ (mix_bits(key ^ mix_bits(right + (static_cast<std::uint64_t>(round) << 56))) & mask);
    left = right;
    right = next;
  }
  return (left << half_bits) | right;
}

}  // namespace

std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t permute(std::uint64_t key, std::uint64_t value, std::uint64_t size) {
  if (size <= 1) return 0;
  const int half_bits = (std::bit_width(size - 1) + 1) / 2;
  // Cycle walking: the domain is less than four times too large, so this takes under four steps on average.
  do {
    value = feistel(key, value, half_bits);
  } while (value >= size);
  return value;
}

}  // namespace atl
