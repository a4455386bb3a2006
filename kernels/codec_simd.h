// The codecs in vectors: a template over `Lanes`, a processor's vectors of floats and what the formats ask of them.
// Included by codec_avx2.cpp and codec_avx512.cpp alone, each with a Lanes of its own in an unnamed namespace: so all that
// is instantiated here has internal linkage, and no other file can be linked with instructions that it must not have. For
// the same reason nothing here calls an inline function of the standard library.
//
// Whole blocks of kBlockNumel values pass through a buffer in the first-level cache; the last short block is left to the
// reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/codec_job.h"
#include "kernels/int4_e3m0.h"
#include "kernels/int8_block.h"

namespace atl {
namespace {

constexpr std::size_t kBlock = kBlockNumel;
constexpr std::uint32_t kNaN = 0x7fc00000u;
constexpr std::uint32_t kInfinity = 0x7f800000u;

// From here on (bytes written) results will not fit the caches anyhow: they are stored past them, which saves reading
// the lines before writing them.
constexpr std::size_t kStreamedBytes = std::size_t{16} << 20;

template <class L>
std::uint32_t largest_magnitude(const float* v) {
  auto largest = L::magnitudes(L::load(v));
  for (std::size_t i = L::kCount; i < kBlock; i += L::kCount) {
    largest = L::max(largest, L::magnitudes(L::load(v + i)));
  }
  return L::largest(largest);
}

template <class L>
void fill(float* v, float value) {
  for (std::size_t i = 0; i < kBlock; i += L::kCount) L::store(v + i, L::all(value));
}

// The scale of a block, as its codec writes it, and whether values follow that are not all zero.
inline bool write_scale(float scale, bool poisoned, float least, std::byte* encoded) {
  if (poisoned) scale = __builtin_bit_cast(float, kNaN);
  if (scale < least) scale = 0.0f;
  __builtin_memcpy(encoded, &scale, sizeof scale);
  return !poisoned && scale != 0.0f;
}

// Reads a block's scale; false when it is not finite.
inline bool read_scale(const std::byte* encoded, float& scale) {
  __builtin_memcpy(&scale, encoded, sizeof scale);
  return (__builtin_bit_cast(std::uint32_t, scale) & ~0x80000000u) < kInfinity;
}

template <class L>
struct Fp32 {
  static constexpr std::size_t kBytes = 4 * kBlock;
  static void encode(const float* v, std::byte* encoded) {
    auto* const out = reinterpret_cast<float*>(encoded);  // unaligned stores
    for (std::size_t i = 0; i < kBlock; i += L::kCount) L::store(out + i, L::without_payload(L::load(v + i)));
  }
  static void decode(const std::byte* encoded, float* v) { __builtin_memcpy(v, encoded, kBytes); }
};

template <class L>
struct Bf16 {
  static constexpr std::size_t kBytes = 2 * kBlock;
  static void encode(const float* v, std::byte* encoded) {
    for (std::size_t i = 0; i < kBlock; i += L::kCount) {
      L::store_bf16(encoded + 2 * i, L::without_payload(L::load(v + i)));
    }
  }
  static void decode(const std::byte* encoded, float* v) {
    for (std::size_t i = 0; i < kBlock; i += L::kCount) {
      L::store(v + i, L::without_payload(L::load_bf16(encoded + 2 * i)));
    }
  }
};

template <class L>
struct Int8Block {
  static constexpr std::size_t kBytes = 4 + kBlock;
  static void encode(const float* v, std::byte* encoded) {
    const std::uint32_t largest = largest_magnitude<L>(v);
    const float scale = __builtin_bit_cast(float, largest) / 127.0f;
    std::byte* const q = encoded + 4;
    if (!write_scale(scale, largest >= kInfinity, kMinInt8Scale, encoded)) {
      __builtin_memset(q, 0, kBlock);
      return;
    }
    const auto scales = L::all(scale);
    for (std::size_t i = 0; i < kBlock; i += L::kCount) L::store_int8(q + i, L::load(v + i) / scales);
  }
  static void decode(const std::byte* encoded, float* v) {
    float scale = 0;
    if (!read_scale(encoded, scale)) return fill<L>(v, __builtin_bit_cast(float, kNaN));
    const auto scales = L::all(scale);
    for (std::size_t i = 0; i < kBlock; i += L::kCount) L::store(v + i, scales * L::load_int8(encoded + 4 + i));
  }
};

template <class L>
struct Int4E3m0 {
  static constexpr std::size_t kBytes = 4 + kBlock / 2;
  static void encode(const float* v, std::byte* encoded) {
    const std::uint32_t largest = largest_magnitude<L>(v);
    const float scale = __builtin_bit_cast(float, largest);
    std::byte* const pairs = encoded + 4;
    if (!write_scale(scale, largest >= kInfinity, kMinInt4Scale, encoded)) {
      __builtin_memset(pairs, 0, kBlock / 2);
      return;
    }
    const auto scales = L::all(scale);
    for (std::size_t i = 0; i < kBlock; i += L::kCount) L::store_e3m0(pairs + i / 2, L::load(v + i) / scales);
  }
  static void decode(const std::byte* encoded, float* v) {
    float scale = 0;
    if (!read_scale(encoded, scale)) return fill<L>(v, __builtin_bit_cast(float, kNaN));
    const auto levels = L::e3m0_levels(scale);
    for (std::size_t i = 0; i < kBlock; i += L::kCount) L::store(v + i, L::load_e3m0(encoded + 4 + i / 2, levels));
  }
};

// v <- decode(partial) + share * (x + residual), x from value `first` on
template <class L, class Format>
void combine(const EncodeJob& job, std::size_t first, const std::byte* partial, float* v) {
  const auto share = L::all(job.share);
  const float* const x = job.x + first;
  if (job.residual_in != nullptr) {
    const float* const residual = job.residual_in + first;
    for (std::size_t i = 0; i < kBlock; i += L::kCount) {
      L::store(v + i, share * (L::load(x + i) + L::load(residual + i)));
    }
  } else {
    for (std::size_t i = 0; i < kBlock; i += L::kCount) L::store(v + i, share * L::load(x + i));
  }
  if (partial == nullptr) return;
  alignas(64) float decoded[kBlock];
  Format::decode(partial, decoded);
  for (std::size_t i = 0; i < kBlock; i += L::kCount) L::store(v + i, L::load(decoded + i) + L::load(v + i));
}

template <class L, class Format>
void lose(const float* v, const std::byte* encoded, float own_share, float* residual) {
  alignas(64) float decoded[kBlock];
  Format::decode(encoded, decoded);
  const auto share = L::all(own_share);
  for (std::size_t i = 0; i < kBlock; i += L::kCount) {
    L::store(residual + i, L::finite_or_zero((L::load(v + i) - L::load(decoded + i)) / share));
  }
}

// Bytes from the first-level cache past the caches, whole lines where they are whole.
template <class L>
void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(to) % 64;
  std::size_t head = misaligned == 0 ? 0 : 64 - misaligned;
  if (head > bytes) head = bytes;
  __builtin_memcpy(to, from, head);
  std::size_t at = head;
  for (; at + 64 <= bytes; at += 64) L::stream_line(to + at, from + at);
  __builtin_memcpy(to + at, from + at, bytes - at);
}

template <class L, class Format>
void encode_blocks(const EncodeJob& job, std::size_t blocks) {
  constexpr std::size_t kGroup = 16;  // of any format: whole cache lines
  alignas(64) float v[kBlock];
  alignas(64) std::byte staged[kGroup * Format::kBytes];
  const bool streamed = blocks * Format::kBytes >= kStreamedBytes && job.partial == nullptr;
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::byte* const partial = job.partial == nullptr ? nullptr : job.partial + block * Format::kBytes;
    std::byte* const encoded = job.encoded + block * Format::kBytes;
    const std::size_t in_group = block % kGroup;
    std::byte* const out = streamed ? staged + in_group * Format::kBytes : encoded;
    L::prefetch_blocks_ahead(job.x + block * kBlock);
    combine<L, Format>(job, block * kBlock, partial, v);
    Format::encode(v, out);
    if (job.residual_out != nullptr) lose<L, Format>(v, out, job.own_share, job.residual_out + block * kBlock);
    if (streamed && (in_group == kGroup - 1 || block == blocks - 1)) {
      stream_copy<L>(encoded - in_group * Format::kBytes, staged, (in_group + 1) * Format::kBytes);
    }
  }
  if (streamed) L::fence();
}

template <class L, class Format>
void decode_blocks(const DecodeJob& job, std::size_t blocks) {
  alignas(64) float v[kBlock];
  const bool streamed = !job.add && blocks * kBlock * sizeof(float) >= kStreamedBytes;
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::byte* const encoded = job.encoded + block * Format::kBytes;
    float* const values = job.values + block * kBlock;
    if (job.add) {
      L::prefetch_blocks_ahead(values);
      Format::decode(encoded, v);
      for (std::size_t i = 0; i < kBlock; i += L::kCount) {
        L::store(values + i, L::without_payload(L::load(values + i) + L::load(v + i)));
      }
    } else if (streamed) {
      Format::decode(encoded, v);
      stream_copy<L>(reinterpret_cast<std::byte*>(values), reinterpret_cast<const std::byte*>(v), sizeof v);
    } else {
      Format::decode(encoded, values);
    }
  }
  if (streamed) L::fence();
}

template <class L>
void encode_job(const EncodeJob& job) {
  const std::size_t blocks = job.numel / kBlock;
  switch (job.format) {
    case WireFormat::kFp32: encode_blocks<L, Fp32<L>>(job, blocks); break;
    case WireFormat::kInt8Block: encode_blocks<L, Int8Block<L>>(job, blocks); break;
    case WireFormat::kBf16: encode_blocks<L, Bf16<L>>(job, blocks); break;
    case WireFormat::kInt4E3m0: encode_blocks<L, Int4E3m0<L>>(job, blocks); break;
    case WireFormat::kInt8Codebook: return plain::encode(job);
  }
  if (job.numel % kBlock > 0) plain::encode(rest_of(job, blocks * kBlock));
}

template <class L>
void decode_job(const DecodeJob& job) {
  const std::size_t blocks = job.numel / kBlock;
  switch (job.format) {
    case WireFormat::kFp32: decode_blocks<L, Fp32<L>>(job, blocks); break;
    case WireFormat::kInt8Block: decode_blocks<L, Int8Block<L>>(job, blocks); break;
    case WireFormat::kBf16: decode_blocks<L, Bf16<L>>(job, blocks); break;
    case WireFormat::kInt4E3m0: decode_blocks<L, Int4E3m0<L>>(job, blocks); break;
    case WireFormat::kInt8Codebook: return plain::decode(job);
  }
  if (job.numel % kBlock > 0) plain::decode(rest_of(job, blocks * kBlock));
}

}  // namespace
}  // namespace atl
