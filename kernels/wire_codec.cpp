#include "kernels/wire_codec.h"

#include <algorithm>
#include <cstring>

#include "kernels/codec_job.h"
#include "kernels/float_mode.h"
#include "kernels/instruction_set.h"

namespace atl {
namespace {

void encode(const EncodeJob& job) {
  const DefaultFloatMode mode;
  switch (chosen_instruction_set()) {
#if defined(__x86_64__)
    case InstructionSet::kAvx512: return avx512::encode(job);
    case InstructionSet::kAvx2: return avx2::encode(job);
#endif
    default: return plain::encode(job);
  }
}

void add(const AddJob& job) {
  const DefaultFloatMode mode;
  switch (chosen_instruction_set()) {
#if defined(__x86_64__)
    case InstructionSet::kAvx512: return avx512::add(job);
    case InstructionSet::kAvx2: return avx2::add(job);
#endif
    default: return plain::add(job);
  }
}

void decode(const DecodeJob& job) {
  const DefaultFloatMode mode;
  switch (chosen_instruction_set()) {
#if defined(__x86_64__)
    case InstructionSet::kAvx512: return avx512::decode(job);
    case InstructionSet::kAvx2: return avx2::decode(job);
#endif
    default: return plain::decode(job);
  }
}

EncodeJob weighted_job(WireFormat format, std::span<const float> x, float share, std::span<std::byte> encoded) {
  return {.format = format, .x = x.data(), .share = share, .encoded = encoded.data(), .numel = x.size()};
}

void with_feedback(EncodeJob& job, ErrorFeedback feedback) {
  job.residual_in = feedback.residual_in.data();
  job.own_share = job.share;
  job.residual_out = feedback.residual_out.data();
}

void fill_zero(std::span<std::byte> encoded) { std::ranges::fill(encoded, std::byte{0}); }

void pass_on(std::span<const std::byte> partial, std::span<std::byte> encoded) {
  if (!encoded.empty()) std::memmove(encoded.data(), partial.data(), encoded.size());
}

}  // namespace

void encode_values(WireFormat format, std::span<const float> x, std::span<std::byte> encoded) {
  if (x.empty()) return;
  if (format == WireFormat::kFp32) {
    std::memcpy(encoded.data(), x.data(), x.size_bytes());
    return;
  }
  encode(weighted_job(format, x, 1.0f, encoded));
}

void decode_values(WireFormat format, std::span<const std::byte> encoded, std::span<float> x) {
  if (x.empty()) return;
  if (format == WireFormat::kFp32) {
    std::memcpy(x.data(), encoded.data(), x.size_bytes());
    return;
  }
  decode({.format = format, .encoded = encoded.data(), .values = x.data(), .numel = x.size()});
}

void decode_add_values(WireFormat format, std::span<const std::byte> encoded, std::span<float> sum) {
  decode({.format = format, .encoded = encoded.data(), .add = true, .values = sum.data(), .numel = sum.size()});
}

void encode_weighted(WireFormat format, std::span<const float> x, float share, std::span<std::byte> encoded) {
  if (share == 0.0f) return fill_zero(encoded);
  encode(weighted_job(format, x, share, encoded));
}

void add_weighted(WireFormat format, std::span<const std::byte> partial, std::span<const float> x, float share,
                  std::span<std::byte> encoded) {
  if (share == 0.0f) return pass_on(partial, encoded);
  EncodeJob job = weighted_job(format, x, share, encoded);
  job.partial = partial.data();
  encode(job);
}

void add_encoded(WireFormat format, std::int64_t numel, std::span<const std::byte> partial,
                 std::span<const std::byte> contribution, std::span<std::byte> encoded) {
  add({.format = format,
       .partial = partial.data(),
       .contribution = contribution.data(),
       .encoded = encoded.data(),
       .numel = static_cast<std::size_t>(numel)});
}

void encode_weighted(WireFormat format, std::span<const float> x, float share, ErrorFeedback feedback,
                     std::span<std::byte> encoded) {
  if (share == 0.0f) {
    std::ranges::fill(feedback.residual_out, 0.0f);
    return fill_zero(encoded);
  }
  EncodeJob job = weighted_job(format, x, share, encoded);
  with_feedback(job, feedback);
  encode(job);
}

void add_weighted(WireFormat format, std::span<const std::byte> partial, std::span<const float> x, float share,
                  ErrorFeedback feedback, std::span<std::byte> encoded) {
  if (share == 0.0f) {
    std::ranges::fill(feedback.residual_out, 0.0f);
    return pass_on(partial, encoded);
  }
  EncodeJob job = weighted_job(format, x, share, encoded);
  job.partial = partial.data();
  with_feedback(job, feedback);
  encode(job);
}

void encode_sum(WireFormat format, std::span<const float> sum, float share, std::span<float> residual_out,
                std::span<std::byte> encoded) {
  EncodeJob job = weighted_job(format, sum, 1.0f, encoded);
  job.own_share = share;
  job.residual_out = residual_out.data();
  encode(job);
  // At share 0 the quotients are not finite, so that the residual is 0.
}

}  // namespace atl
