// The formats in vectors: how a whole block of values is encoded and read, over `Lanes`, a processor's
// vectors of floats and what the formats ask of them. Included by codec_simd.h alone, which says why all of it is in an
// unnamed namespace and calls no inline function of the standard library.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/int4_e3m0.h"
#include "kernels/int8_block.h"
#include "kernels/wire_format.h"

namespace atl {
namespace {

constexpr std::uint32_t kNaN = 0x7fc00000u;
constexpr std::uint32_t kInfinity = 0x7f800000u;

// Reads a block's scale, fp32 or bf16; false when it is not finite.
inline bool read_scale(const std::byte* encoded, float& scale) {
  __builtin_memcpy(&scale, encoded, sizeof scale);
  return (__builtin_bit_cast(std::uint32_t, scale) & ~0x80000000u) < kInfinity;
}
inline bool read_short_scale(const std::byte* encoded, float& scale) {
  std::uint16_t upper = 0;
  __builtin_memcpy(&upper, encoded, sizeof upper);
  const std::uint32_t bits = std::uint32_t{upper} << 16;
  scale = __builtin_bit_cast(float, bits);
  return (bits & ~0x80000000u) < kInfinity;
}

// A format encodes a block of values, given the bits of the largest magnitude if it is Scaled, and reads one: it calls
// use(at). values(i) and at(i) give values i .. i + kCount - 1, so that what is done with them happens in registers. It
// rounds a block alike: at(i) gives what reading gives of the block that encoding makes.
template <class L>
struct Fp32 {
  static constexpr bool kScaled = false;
  static constexpr std::size_t kBlock = kBlockNumel;
  static constexpr std::size_t kBytes = block_bytes(WireFormat::kFp32);
  template <class Values>
  static void encode(Values values, std::uint32_t, std::byte* encoded) {
    auto* const out = reinterpret_cast<float*>(encoded);  // loads and stores ask for no alignment
    for (std::size_t i = 0; i < kBlock; i += L::kCount) L::store(out + i, L::without_payload(values(i)));
  }
  template <class Use>
  static void read(const std::byte* encoded, Use use) {
    use([=](std::size_t i) { return L::load(reinterpret_cast<const float*>(encoded) + i); });
  }
  template <class Values, class Use>
  static void round(Values values, std::uint32_t, Use use) {
    use([=](std::size_t i) { return L::without_payload(values(i)); });
  }
};

template <class L>
struct Bf16 {
  static constexpr bool kScaled = false;
  static constexpr std::size_t kBlock = kBlockNumel;
  static constexpr std::size_t kBytes = block_bytes(WireFormat::kBf16);
  template <class Values>
  static void encode(Values values, std::uint32_t, std::byte* encoded) {
    for (std::size_t i = 0; i < kBlock; i += L::kCount) {
      L::store_bf16(encoded + 2 * i, L::without_payload(values(i)));
    }
  }
  template <class Use>
  static void read(const std::byte* encoded, Use use) {
    use([=](std::size_t i) { return L::without_payload(L::load_bf16(encoded + 2 * i)); });
  }
  template <class Values, class Use>
  static void round(Values values, std::uint32_t, Use use) {
    use([=](std::size_t i) { return L::rounded_to_bf16(L::without_payload(values(i))); });
  }
};

template <class L>
struct Int8Block {
  static constexpr bool kScaled = true;
  static constexpr std::size_t kBlock = kInt8BlockNumel;
  static constexpr std::size_t kBytes = block_bytes(WireFormat::kInt8Block);
  // Bits of a block's scale, the lower half of them zero: 0 where the block is, the quiet NaN where it is poisoned.
  static std::uint32_t scale_bits(std::uint32_t largest) {
    const float quotient = __builtin_bit_cast(float, largest) / kInt8Steps;
    const std::uint32_t rounded_up = (__builtin_bit_cast(std::uint32_t, quotient) + 0xffffu) & 0xffff0000u;
    if (largest >= kInfinity) return kNaN;
    return __builtin_bit_cast(float, rounded_up) < kMinInt8Scale ? 0u : rounded_up;
  }
  template <class Values>
  static void encode(Values values, std::uint32_t largest, std::byte* encoded) {
    const std::uint32_t bits = scale_bits(largest);
    const auto travels = static_cast<std::uint16_t>(bits >> 16);
    __builtin_memcpy(encoded, &travels, sizeof travels);
    std::byte* const q = encoded + 2;
    if (bits == 0 || bits == kNaN) {
      __builtin_memset(q, 0, kBlock);
      return;
    }
    const auto inverse = L::all(1.0f / __builtin_bit_cast(float, bits));
    for (std::size_t i = 0; i < kBlock; i += 4 * L::kCount) {
      typename L::Bits q4[4];
      for (std::size_t k = 0; k < 4; ++k) q4[k] = L::nearest(values(i + k * L::kCount) * inverse);
      L::store_int8(q + i, q4);
    }
  }
  template <class Use>
  static void read(const std::byte* encoded, Use use) {
    float scale = 0;
    const bool finite = read_short_scale(encoded, scale);
    const auto scales = L::all(scale);
    if (finite) return use([=](std::size_t i) { return scales * L::load_int8(encoded + 2 + i); });
    use([](std::size_t) { return L::all(__builtin_bit_cast(float, kNaN)); });
  }
  template <class Values, class Use>
  static void round(Values values, std::uint32_t largest, Use use) {
    const std::uint32_t bits = scale_bits(largest);
    const auto scale = L::all(__builtin_bit_cast(float, bits));
    // Of a block that is zero or poisoned every value is the scale, 0 or the NaN, whatever is multiplied with it here.
    const auto inverse = L::all(bits == 0 || bits == kNaN ? 0.0f : 1.0f / __builtin_bit_cast(float, bits));
    use([=](std::size_t i) { return scale * L::floats(L::nearest(values(i) * inverse)); });
  }
};

template <class L>
struct Int4E3m0 {
  static constexpr bool kScaled = true;
  static constexpr std::size_t kBlock = kBlockNumel;
  static constexpr std::size_t kBytes = block_bytes(WireFormat::kInt4E3m0);
  template <class Values>
  static void encode(Values values, std::uint32_t largest, std::byte* encoded) {
    const bool poisoned = largest >= kInfinity;
    float scale = __builtin_bit_cast(float, poisoned ? kNaN : largest);
    if (scale < kMinInt4Scale) scale = 0.0f;
    __builtin_memcpy(encoded, &scale, sizeof scale);
    std::byte* const pairs = encoded + 4;
    if (poisoned || scale == 0.0f) {
      __builtin_memset(pairs, 0, kBlock / 2);
      return;
    }
    const auto inverse = L::all(1.0f / scale);
    for (std::size_t i = 0; i < kBlock; i += 4 * L::kCount) {
      typename L::Bits codes[4];
      for (std::size_t k = 0; k < 4; ++k) codes[k] = L::e3m0_codes(values(i + k * L::kCount) * inverse);
      L::store_nibbles(pairs + i / 2, codes);
    }
  }
  template <class Use>
  static void read(const std::byte* encoded, Use use) {
    float scale = 0;
    const bool finite = read_scale(encoded, scale);
    const auto levels = L::e3m0_levels(scale);
    if (finite) return use([=](std::size_t i) { return L::load_e3m0(encoded + 4 + i / 2, levels); });
    use([](std::size_t) { return L::all(__builtin_bit_cast(float, kNaN)); });
  }
  // By its bytes: no ring adds in this format.
  template <class Values, class Use>
  static void round(Values values, std::uint32_t largest, Use use) {
    std::byte bytes[kBytes];
    encode(values, largest, bytes);
    read(bytes, use);
  }
};

}  // namespace
}  // namespace atl
