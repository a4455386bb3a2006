#include "net/collective/partial_sums.h"

#include <algorithm>

#include "kernels/reduce.h"

namespace atl {

// Two readings of the clock for some 128 KiB of frames.
class PartialSums::Stopwatch {
 public:
  explicit Stopwatch(const PartialSums& sums) : sums_(sums) {}
  ~Stopwatch() {
    const auto end = Clock::now();
    sums_.spent_nanoseconds_ += std::chrono::nanoseconds(end - begin_).count();
    // Of two threads that end at once either may be the last: the figure is for people.
    sums_.last_ended_ = end.time_since_epoch().count();
  }

 private:
  const PartialSums& sums_;
  const Clock::time_point begin_ = Clock::now();
};

PartialSums::PartialSums(WireFormat wire, std::span<const float> values, float share, ErrorFeedback feedback,
                         std::span<std::byte> canonical)
    : wire_(wire), values_(values), share_(share), feedback_(feedback), canonical_(canonical) {}

void PartialSums::encode_own(const RingSubChunk& sub_chunk) const {
  encode_contribution(sub_chunk, encoded(sub_chunk));
}

// At share 0 the bytes travel on as they came, without another rounding.
void PartialSums::add_own(const RingSubChunk& sub_chunk) const {
  const Stopwatch stopwatch(*this);
  const std::span<std::byte> sum = encoded(sub_chunk);
  if (feedback_.residual_out.empty()) return add_weighted(wire_, sum, own(sub_chunk), share_, sum);
  add_weighted(wire_, sum, own(sub_chunk), share_, feedback(sub_chunk), sum);
}

void PartialSums::encode_contribution(const RingSubChunk& sub_chunk, std::span<std::byte> contribution) const {
  const Stopwatch stopwatch(*this);
  if (feedback_.residual_out.empty()) return encode_weighted(wire_, own(sub_chunk), share_, contribution);
  encode_weighted(wire_, own(sub_chunk), share_, feedback(sub_chunk), contribution);
}

void PartialSums::begin_with_zeros(const RingSubChunk& sub_chunk) const {
  const Stopwatch stopwatch(*this);
  encode_weighted(wire_, own(sub_chunk), 0.0f, encoded(sub_chunk));
}

void PartialSums::add_contribution(const RingSubChunk& sub_chunk, std::span<const std::byte> contribution) const {
  const Stopwatch stopwatch(*this);
  const std::span<std::byte> sum = encoded(sub_chunk);
  add_encoded(wire_, sub_chunk.numel, sum, contribution, sum);
}

void PartialSums::owe_nothing_without_share(const RingPayload& payload) const {
  if (share_ != 0.0f || feedback_.residual_out.empty()) return;
  for (std::int64_t bucket = 0; bucket < payload.buckets(); ++bucket) {
    const auto first = static_cast<std::size_t>(payload.bucket_begin(bucket));
    const auto end = static_cast<std::size_t>(payload.bucket_begin(bucket + 1));
    if (!payload.is_final(bucket)) std::ranges::fill(feedback_.residual_out.subspan(first, end - first), 0.0f);
  }
}

void PartialSums::sum_contributions(const RingSubChunk& sub_chunk,
                                    std::span<const std::span<const std::byte>> contributions,
                                    std::span<float> sum) const {
  const Stopwatch stopwatch(*this);
  if (share_ == 0.0f) {
    std::ranges::fill(sum, 0.0f);
  } else if (feedback_.residual_out.empty()) {
    scaled_copy(own(sub_chunk), share_, sum);
  } else {
    scaled_sum_copy(own(sub_chunk), feedback(sub_chunk).residual_in, share_, sum);
  }
  for (const std::span<const std::byte> contribution : contributions) decode_add_values(wire_, contribution, sum);
  if (feedback_.residual_out.empty()) return encode_values(wire_, sum, encoded(sub_chunk));
  encode_sum(wire_, sum, share_, feedback(sub_chunk).residual_out, encoded(sub_chunk));
}

ErrorFeedback PartialSums::feedback(const RingSubChunk& sub_chunk) const {
  const auto first = static_cast<std::size_t>(sub_chunk.first_value);
  const auto numel = static_cast<std::size_t>(sub_chunk.numel);
  return {feedback_.residual_in.subspan(first, numel), feedback_.residual_out.subspan(first, numel)};
}

std::span<const float> PartialSums::own(const RingSubChunk& sub_chunk) const {
  return values_.subspan(static_cast<std::size_t>(sub_chunk.first_value), static_cast<std::size_t>(sub_chunk.numel));
}

std::span<std::byte> PartialSums::encoded(const RingSubChunk& sub_chunk) const {
  return canonical_.subspan(sub_chunk.first_byte, sub_chunk.bytes);
}

}  // namespace atl
