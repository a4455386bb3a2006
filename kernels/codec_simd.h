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

// Below, values(i) gives values i .. i + kCount - 1 of a block, in registers.

// Bits of the largest magnitude, if the format asks for them.
template <class L, class Format, class Values>
std::uint32_t largest_of(Values values) {
  if constexpr (!Format::kScaled) return 0;
  auto largest = L::magnitudes(values(0));
  for (std::size_t i = L::kCount; i < Format::kBlock; i += L::kCount) {
    largest = L::max(largest, L::magnitudes(values(i)));
  }
  return L::largest(largest);
}

// v <- values, on the way
template <class L, class Format, class Values>
std::uint32_t store_block(float* v, Values values) {
  return largest_of<L, Format>([=](std::size_t i) {
    const auto computed = values(i);
    L::store(v + i, computed);
    return computed;
  });
}

// What an EncodeJob encodes, share * (x + residual), block by block.
template <class L, class Format>
class OwnValues {
 public:
  explicit OwnValues(const EncodeJob& job) : job_(job), as_they_are_(job.share == 1.0f && job.residual_in == nullptr) {}

  // For each block in order, before use; the block before it may still be used. Bits of the largest magnitude, if the
  // format asks for them: then the values are stored, so that they are weighed once.
  std::uint32_t look_at(std::size_t block) {
    prefetch_ahead<L, kBlock>(job_.x + block * kBlock);
    if constexpr (!Format::kScaled) return 0;
    const float* const x = job_.x + block * kBlock;
    if (as_they_are_) return largest_of<L, Format>([=](std::size_t i) { return L::load(x + i); });
    std::uint32_t largest = 0;
    weighed(block, [&](auto own) { largest = store_block<L, Format>(stored_[block % 2], own); });
    return largest;
  }
  // Calls use(own).
  template <class Use>
  void with(std::size_t block, Use use) const {
    if constexpr (!Format::kScaled) return weighed(block, use);
    const float* const v = as_they_are_ ? job_.x + block * kBlock : stored_[block % 2];
    use([=](std::size_t i) { return L::load(v + i); });
  }

 private:
  static constexpr std::size_t kBlock = Format::kBlock;

  template <class Use>
  void weighed(std::size_t block, Use use) const {
    const auto share = L::all(job_.share);
    const float* const x = job_.x + block * kBlock;
    if (job_.residual_in == nullptr) return use([=](std::size_t i) { return share * L::load(x + i); });
    const float* const residual = job_.residual_in + block * kBlock;
    use([=](std::size_t i) { return share * (L::load(x + i) + L::load(residual + i)); });
  }

  const EncodeJob& job_;
  const bool as_they_are_;
  alignas(64) float stored_[Format::kScaled ? 2 : 1][kBlock];
};

// residual <- (own - decoded) / own_share, where there is a residual_out
template <class L, class Format, class Own, class Decoded>
void keep_residual(const EncodeJob& job, std::size_t block, Own own, Decoded decoded) {
  if (job.residual_out == nullptr) return;
  float* const residual = job.residual_out + block * Format::kBlock;
  const auto share = L::all(job.own_share);
  for (std::size_t i = 0; i < Format::kBlock; i += L::kCount) {
    L::store(residual + i, L::finite_or_zero((own(i) - decoded(i)) / share));
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

// Calls encode(block, its largest, where its bytes belong) for each block, of which largest_of_block, called in their
// order, says the bits of the largest magnitude. Until then nothing is written over it.
template <class L, class Format, class Largest, class Encode>
void encode_each(std::byte* encoded, std::size_t blocks, Largest largest_of_block, Encode encode) {
  constexpr std::size_t kGroup = 32;  // of any format: whole cache lines
  alignas(64) std::byte staged[kGroup * Format::kBytes];
  const bool streamed = blocks * Format::kBytes >= kStreamedBytes;
  std::uint32_t largest = blocks == 0 ? 0 : largest_of_block(0);
  for (std::size_t block = 0; block < blocks; ++block) {
    // One block ahead, so that the processor does not wait for the scale: a maximum, then two divisions.
    const std::uint32_t next_largest = block + 1 < blocks ? largest_of_block(block + 1) : 0;
    std::byte* const at = encoded + block * Format::kBytes;
    const std::size_t in_group = block % kGroup;
    encode(block, largest, streamed ? staged + in_group * Format::kBytes : at);
    if (streamed && (in_group == kGroup - 1 || block == blocks - 1)) {
      stream_copy<L>(at - in_group * Format::kBytes, staged, (in_group + 1) * Format::kBytes);
    }
    largest = next_largest;
  }
  if (streamed) L::fence();
}

template <class L, class Format>
void encode_blocks(const EncodeJob& job, std::size_t blocks) {
  OwnValues<L, Format> own_values(job);
  encode_each<L, Format>(
      job.encoded, blocks, [&](std::size_t block) { return own_values.look_at(block); },
      [&](std::size_t block, std::uint32_t largest, std::byte* out) {
        own_values.with(block, [&](auto own) {
          Format::encode(own, largest, out);
          Format::read(out, [&](auto at) { keep_residual<L, Format>(job, block, own, at); });
        });
      });
}

// Encodes sums of decoded values, of which with_sum(block, use) calls use(sum), for each block in order, once.
template <class L, class Format, class WithSum>
void encode_sums(std::byte* encoded, std::size_t blocks, WithSum with_sum) {
  if constexpr (Format::kScaled) {
    alignas(64) float sums[2][Format::kBlock];
    const auto store_sum = [&](std::size_t block) {
      std::uint32_t largest = 0;
      with_sum(block, [&](auto sum) { largest = store_block<L, Format>(sums[block % 2], sum); });
      return largest;
    };
    encode_each<L, Format>(encoded, blocks, store_sum, [&](std::size_t block, std::uint32_t largest, std::byte* out) {
      const float* const v = sums[block % 2];
      Format::encode([=](std::size_t i) { return L::load(v + i); }, largest, out);
    });
  } else {
    encode_each<L, Format>(
        encoded, blocks, [](std::size_t) { return 0u; },
        [&](std::size_t block, std::uint32_t, std::byte* out) {
          with_sum(block, [&](auto sum) { Format::encode(sum, 0, out); });
        });
  }
}

// Own values are rounded in registers: no bytes are made of them.
template <class L, class Format>
void add_own_blocks(const EncodeJob& job, std::size_t blocks) {
  OwnValues<L, Format> own_values(job);
  std::uint32_t next_largest = blocks == 0 ? 0 : own_values.look_at(0);
  encode_sums<L, Format>(job.encoded, blocks, [&](std::size_t block, auto use) {
    const std::uint32_t largest = next_largest;
    if (block + 1 < blocks) next_largest = own_values.look_at(block + 1);  // for their scale a block ahead, too
    own_values.with(block, [&](auto own) {
      Format::round(own, largest, [&](auto rounded) {
        Format::read(job.partial + block * Format::kBytes,
                     [&](auto at) { use([=](std::size_t i) { return at(i) + rounded(i); }); });
        keep_residual<L, Format>(job, block, own, rounded);
      });
    });
  });
}

template <class L, class Format>
void add_blocks(const AddJob& job, std::size_t blocks) {
  encode_sums<L, Format>(job.encoded, blocks, [&](std::size_t block, auto use) {
    Format::read(job.partial + block * Format::kBytes, [&](auto at) {
      Format::read(job.contribution + block * Format::kBytes,
                   [&](auto added) { use([=](std::size_t i) { return at(i) + added(i); }); });
    });
  });
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

// Calls on_format(format of whole blocks) unless there is none; false then.
template <class L, class OnFormat>
bool with_format(WireFormat format, OnFormat on_format) {
  switch (format) {
    case WireFormat::kFp32: on_format(Fp32<L>{}); return true;
    case WireFormat::kInt8Block: on_format(Int8Block<L>{}); return true;
    case WireFormat::kBf16: on_format(Bf16<L>{}); return true;
    case WireFormat::kInt4E3m0: on_format(Int4E3m0<L>{}); return true;
    case WireFormat::kInt8Codebook: return false;
  }
  return false;
}

template <class L>
void encode_job(const EncodeJob& job) {
  const auto block = static_cast<std::size_t>(block_numel(job.format));
  const std::size_t blocks = job.numel / block;
  const bool known = with_format<L>(job.format, [&]<class Format>(Format) {
    job.partial == nullptr ? encode_blocks<L, Format>(job, blocks) : add_own_blocks<L, Format>(job, blocks);
  });
  if (!known) return plain::encode(job);
  if (job.numel % block > 0) plain::encode(rest_of(job, blocks * block));
}

template <class L>
void add_job(const AddJob& job) {
  const auto block = static_cast<std::size_t>(block_numel(job.format));
  const std::size_t blocks = job.numel / block;
  const bool known = with_format<L>(job.format, [&]<class Format>(Format) { add_blocks<L, Format>(job, blocks); });
  if (!known) return plain::add(job);
  if (job.numel % block > 0) plain::add(rest_of(job, blocks * block));
}

template <class L>
void decode_job(const DecodeJob& job) {
  const auto block = static_cast<std::size_t>(block_numel(job.format));
  const std::size_t blocks = job.numel / block;
  const bool known = with_format<L>(job.format, [&]<class Format>(Format) { decode_blocks<L, Format>(job, blocks); });
  if (!known) return plain::decode(job);
  if (job.numel % block > 0) plain::decode(rest_of(job, blocks * block));
}

}  // namespace
}  // namespace atl
