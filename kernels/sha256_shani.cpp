// Intel, "New Instructions Supporting the Secure Hash Algorithm on Intel Architecture Processors" (2013): two rounds an
// instruction, four words of the message schedule at once.
#include "kernels/sha256_shani.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

namespace atl {
namespace {

alignas(16) constexpr std::array<std::uint32_t, 64> kRounds{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
constexpr int kSteps = 16;           // of four rounds
constexpr int kScheduledSteps = 12;  // after which no step needs new words

const __m128i* vector_at(const void* bytes) { return static_cast<const __m128i*>(bytes); }

// The instructions hold the chain as (A, B, E, F) and (C, D, G, H), from the highest word down.
struct Registers {
  __m128i abef, cdgh;
};

Registers to_registers(const Sha256Chain& chain) {
  const auto word = [&](int i) { return static_cast<int>(chain[static_cast<std::size_t>(i)]); };
  return {_mm_set_epi32(word(0), word(1), word(4), word(5)), _mm_set_epi32(word(2), word(3), word(6), word(7))};
}

Sha256Chain to_chain(const Registers& registers) {
  alignas(16) std::array<std::uint32_t, 4> abef, cdgh;
  _mm_store_si128(reinterpret_cast<__m128i*>(abef.data()), registers.abef);
  _mm_store_si128(reinterpret_cast<__m128i*>(cdgh.data()), registers.cdgh);
  return {abef[3], abef[2], cdgh[3], cdgh[2], abef[1], abef[0], cdgh[1], cdgh[0]};
}

template <std::size_t kStreams>
void run(std::span<Sha256Chain> chains, std::span<const std::byte* const> messages, std::size_t blocks) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  Registers state[kStreams];
  for (std::size_t n = 0; n < kStreams; ++n) state[n] = to_registers(chains[n]);
  for (std::size_t block = 0; block < blocks; ++block) {
    Registers before[kStreams];
    __m128i words[kStreams][4];
    for (std::size_t n = 0; n < kStreams; ++n) {
      before[n] = state[n];
      const __m128i* const from = vector_at(messages[n] + block * kSha256BlockBytes);
      for (int i = 0; i < 4; ++i) words[n][i] = _mm_shuffle_epi8(_mm_loadu_si128(from + i), big_endian);
    }
#pragma GCC unroll 16
    for (int step = 0; step < kSteps; ++step) {
      const __m128i constants = _mm_load_si128(vector_at(kRounds.data() + 4 * step));
#pragma GCC unroll 3
      for (std::size_t n = 0; n < kStreams; ++n) {
        __m128i& oldest = words[n][step % 4];
        const __m128i newest = words[n][(step + 3) % 4];
        const __m128i sum = _mm_add_epi32(oldest, constants);
        state[n].cdgh = _mm_sha256rnds2_epu32(state[n].cdgh, state[n].abef, sum);
        if (step < kScheduledSteps) {
          const __m128i seventh = _mm_alignr_epi8(newest, words[n][(step + 2) % 4], 4);  // back from the new words
          const __m128i partial = _mm_add_epi32(_mm_sha256msg1_epu32(oldest, words[n][(step + 1) % 4]), seventh);
          oldest = _mm_sha256msg2_epu32(partial, newest);
        }
        state[n].abef = _mm_sha256rnds2_epu32(state[n].abef, state[n].cdgh, _mm_shuffle_epi32(sum, 0x0e));
      }
    }
    for (std::size_t n = 0; n < kStreams; ++n) {
      state[n].abef = _mm_add_epi32(state[n].abef, before[n].abef);
      state[n].cdgh = _mm_add_epi32(state[n].cdgh, before[n].cdgh);
    }
  }
  for (std::size_t n = 0; n < kStreams; ++n) chains[n] = to_chain(state[n]);
}

}  // namespace

// GCC 12 cannot be asked for "sha" by name.
bool processor_has_shani() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  return (b & bit_SHA) != 0 && __builtin_cpu_supports("sse4.1");
}

void sha256_shani(std::span<Sha256Chain> chains, std::span<const std::byte* const> messages, std::size_t blocks) {
  static_assert(kSha256Streams == 3);
  if (chains.size() == 1) return run<1>(chains, messages, blocks);
  if (chains.size() == 2) return run<2>(chains, messages, blocks);
  run<3>(chains, messages, blocks);
}

}  // namespace atl

#else

namespace atl {

bool processor_has_shani() { return false; }
void sha256_shani(std::span<Sha256Chain>, std::span<const std::byte* const>, std::size_t) {}

}  // namespace atl

#endif
