// The codecs in vectors: templates over a processor's vectors of floats and what the formats ask of them (`Lanes`, L).
// Included by codec_avx2.cpp and codec_avx512.cpp alone, each with a Lanes of its own in an unnamed namespace: so all
// that is instantiated here has internal linkage, and no other file can be linked with instructions that it must not
// have. For the same reason nothing here calls an inline function of the standard library.
//
// Whole blocks of a format (codec_simd_formats.h) pass through a buffer in the first-level cache; the last
// short block is left to the reference.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/codec_job.h"
#include "kernels/codec_simd_formats.h"

namespace atl {
namespace {

// From here on (bytes written) results will not fit the caches anyhow: they are stored past them, which saves reading
// the lines before writing them.
constexpr std::size_t kStreamedBytes = std::size_t{16} << 20;

// How far ahead of the block at hand floats are asked for, into the second-level cache. The processor's own prefetching
// ends at each page: without this, encoding 256 MiB took a third longer on Intel's Sapphire Rapids. Into the first
// level it waits for that one's few line buffers: on AMD's Zen 4 a quarter slower than this at the best distance (2
// KiB).
constexpr std::size_t kPrefetchBytes = 8192;
// Sums are written back where they were read: nearer, and into all caches, was 8 % faster than the above.
constexpr std::size_t kPrefetchSumBytes = 2048;

template <class L, std::size_t kBlock>
void prefetch_ahead(const float* block) {
  const auto* const at = reinterpret_cast<const std::byte*>(block) + kPrefetchBytes;
  for (std::size_t line = 0; line < kBlock * sizeof(float); line += 64) L::prefetch(at + line);
}

template <class L, std::size_t kBlock>
void prefetch_sums_ahead(const float* block) {
  const auto* const at = reinterpret_cast<const std::byte*>(block) + kPrefetchSumBytes;
  for (std::size_t line = 0; line < kBlock * sizeof(float); line += 64) L::prefetch_to_all(at + line);
}

// v[i] <- value(i) for a block; the bits of its largest magnitude, if the format asks for them.
template <class L, class Format, class Value>
std::uint32_t compute_block(float* v, Value value) {
  auto largest = L::magnitudes(L::all(0.0f));
  for (std::size_t i = 0; i < Format::kBlock; i += L::kCount) {
    const auto computed = value(i);
    L::store(v + i, computed);
    if constexpr (Format::kScaled) largest = L::max(largest, L::magnitudes(computed));
  }
  return Format::kScaled ? L::largest(largest) : 0;
}

template <class L, class Format>
std::uint32_t largest_of_block(const float* v) {
  auto largest = L::magnitudes(L::load(v));
  for (std::size_t i = L::kCount; i < Format::kBlock; i += L::kCount) {
    largest = L::max(largest, L::magnitudes(L::load(v + i)));
  }
  return L::largest(largest);
}

// v <- decode(partial) + share * (x + residual), from value `first` on
template <class L, class Format>
std::uint32_t combine(const EncodeJob& job, std::size_t first, const std::byte* partial, float* v) {
  const auto share = L::all(job.share);
  const float* const x = job.x + first;
  const float* const residual = job.residual_in == nullptr ? nullptr : job.residual_in + first;
  const auto own = [=](std::size_t i) { return share * L::load(x + i); };
  const auto own_and_owed = [=](std::size_t i) { return share * (L::load(x + i) + L::load(residual + i)); };
  if (partial == nullptr) {
    return residual == nullptr ? compute_block<L, Format>(v, own) : compute_block<L, Format>(v, own_and_owed);
  }
  std::uint32_t largest = 0;
  Format::read(partial, [&](auto at) {
    if (residual == nullptr) {
      largest = compute_block<L, Format>(v, [=](std::size_t i) { return at(i) + own(i); });
    } else {
      largest = compute_block<L, Format>(v, [=](std::size_t i) { return at(i) + own_and_owed(i); });
    }
  });
  return largest;
}

// residual <- (v - decode(encoded)) / own_share
template <class L, class Format>
void keep_residual(const float* v, const std::byte* encoded, float own_share, float* residual) {
  const auto share = L::all(own_share);
  Format::read(encoded, [=](auto at) {
    for (std::size_t i = 0; i < Format::kBlock; i += L::kCount) {
      L::store(residual + i, L::finite_or_zero((L::load(v + i) - at(i)) / share));
    }
  });
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
  constexpr std::size_t kBlock = Format::kBlock;
  constexpr std::size_t kGroup = 32;  // of any format: whole cache lines
  alignas(64) float buffers[2][kBlock];
  alignas(64) std::byte staged[kGroup * Format::kBytes];
  const bool streamed = blocks * Format::kBytes >= kStreamedBytes;
  const bool as_it_is = job.share == 1.0f && job.partial == nullptr && job.residual_in == nullptr;
  const auto values_of = [&](std::size_t block) { return as_it_is ? job.x + block * kBlock : buffers[block % 2]; };
  const auto combined = [&](std::size_t block) {
    const std::byte* const partial = job.partial == nullptr ? nullptr : job.partial + block * Format::kBytes;
    prefetch_ahead<L, kBlock>(job.x + block * kBlock);
    if (as_it_is) return Format::kScaled ? largest_of_block<L, Format>(values_of(block)) : 0;
    return combine<L, Format>(job, block * kBlock, partial, buffers[block % 2]);
  };
  std::uint32_t largest = blocks == 0 ? 0 : combined(0);
  for (std::size_t block = 0; block < blocks; ++block) {
    // One block ahead, so that the processor does not wait for the scale: a maximum, then two divisions.
    const std::uint32_t next_largest = block + 1 < blocks ? combined(block + 1) : 0;
    const float* const v = values_of(block);
    std::byte* const encoded = job.encoded + block * Format::kBytes;
    const std::size_t in_group = block % kGroup;
    std::byte* const out = streamed ? staged + in_group * Format::kBytes : encoded;
    Format::encode(v, largest, out);
    if (job.residual_out != nullptr) keep_residual<L, Format>(v, out, job.own_share, job.residual_out + block * kBlock);
    if (streamed && (in_group == kGroup - 1 || block == blocks - 1)) {
      stream_copy<L>(encoded - in_group * Format::kBytes, staged, (in_group + 1) * Format::kBytes);
    }
    largest = next_largest;
  }
  if (streamed) L::fence();
}

template <class L, class Format>
void decode_blocks(const DecodeJob& job, std::size_t blocks) {
  constexpr std::size_t kBlock = Format::kBlock;
  alignas(64) float staged[kBlock];
  const bool streamed = !job.add && blocks * sizeof staged >= kStreamedBytes;
  for (std::size_t block = 0; block < blocks; ++block) {
    float* const values = job.values + block * kBlock;
    if (job.add) prefetch_sums_ahead<L, kBlock>(values);
    Format::read(job.encoded + block * Format::kBytes, [&](auto at) {
      if (job.add) {
        for (std::size_t i = 0; i < kBlock; i += L::kCount) {
          L::store(values + i, L::without_payload(L::load(values + i) + at(i)));
        }
      } else {
        float* const out = streamed ? staged : values;
        for (std::size_t i = 0; i < kBlock; i += L::kCount) L::store(out + i, at(i));
      }
    });
    if (streamed) {
      stream_copy<L>(reinterpret_cast<std::byte*>(values), reinterpret_cast<const std::byte*>(staged), sizeof staged);
    }
  }
  if (streamed) L::fence();
}

template <class L>
void encode_job(const EncodeJob& job) {
  const auto block = static_cast<std::size_t>(block_numel(job.format));
  const std::size_t blocks = job.numel / block;
  switch (job.format) {
    case WireFormat::kFp32: encode_blocks<L, Fp32<L>>(job, blocks); break;
    case WireFormat::kInt8Block: encode_blocks<L, Int8Block<L>>(job, blocks); break;
    case WireFormat::kBf16: encode_blocks<L, Bf16<L>>(job, blocks); break;
    case WireFormat::kInt4E3m0: encode_blocks<L, Int4E3m0<L>>(job, blocks); break;
    case WireFormat::kInt8Codebook: return plain::encode(job);
  }
  if (job.numel % block > 0) plain::encode(rest_of(job, blocks * block));
}

template <class L>
void decode_job(const DecodeJob& job) {
  const auto block = static_cast<std::size_t>(block_numel(job.format));
  const std::size_t blocks = job.numel / block;
  switch (job.format) {
    case WireFormat::kFp32: decode_blocks<L, Fp32<L>>(job, blocks); break;
    case WireFormat::kInt8Block: decode_blocks<L, Int8Block<L>>(job, blocks); break;
    case WireFormat::kBf16: decode_blocks<L, Bf16<L>>(job, blocks); break;
    case WireFormat::kInt4E3m0: decode_blocks<L, Int4E3m0<L>>(job, blocks); break;
    case WireFormat::kInt8Codebook: return plain::decode(job);
  }
  if (job.numel % block > 0) plain::decode(rest_of(job, blocks * block));
}

}  // namespace
}  // namespace atl
