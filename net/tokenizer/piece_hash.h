// Hashing of pieces of text, for tables that live in memory alone. A table draws its own seed, so that nobody who
// writes a vocabulary or a text can make its keys meet. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace atl {

// Both halves of the 128-bit product, added without carry: a good mix of 128 bits to 64 in four cycles (as in wyhash).
inline std::uint64_t mix_hash(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline constexpr std::uint64_t kHashMultiplier = 0x9E3779B97F4A7C15;  // 2^64 / the golden ratio

// Of sixteen bytes in two words.
inline std::uint64_t hash_words(std::uint64_t low, std::uint64_t high, std::uint64_t seed) {
  return mix_hash(low ^ seed, high ^ kHashMultiplier);
}

// Of any bytes.
inline std::uint64_t hash_bytes(const void* data, std::size_t size, std::uint64_t seed) {
  const auto* at = static_cast<const unsigned char*>(data);
  std::uint64_t hash = seed ^ size * kHashMultiplier;
  std::uint64_t words[2];
  for (std::size_t left = size; left > 0;) {
    const std::size_t part = left < sizeof words ? left : sizeof words;
    words[0] = words[1] = 0;
    std::memcpy(words, at, part);
    hash = hash_words(words[0], words[1], hash) + seed;
    at += part;
    left -= part;
  }
  return mix_hash(hash, kHashMultiplier);
}

std::uint64_t draw_hash_seed();  // of the system's randomness, odd

}  // namespace atl
