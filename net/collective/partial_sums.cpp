#include "net/collective/partial_sums.h"

#include <algorithm>

#include "kernels/reduce.h"
#include "kernels/wire_codec.h"

namespace atl {

PartialSums::PartialSums(WireFormat wire, std::span<const float> values, float share, std::span<std::byte> canonical)
    : wire_(wire), values_(values), share_(share), canonical_(canonical) {}

std::span<float> PartialSums::weighted(const RingSubChunk& sub_chunk) {
  const auto numel = static_cast<std::size_t>(sub_chunk.numel);
  sum_.resize(std::max(sum_.size(), numel));
  const std::span<float> out = std::span(sum_).first(numel);
  if (share_ == 0.0f) {
    std::ranges::fill(out, 0.0f);
  } else {
    scaled_copy(values_.subspan(static_cast<std::size_t>(sub_chunk.first_value), numel), share_, out);
  }
  return out;
}

std::span<std::byte> PartialSums::encoded(const RingSubChunk& sub_chunk) const {
  return canonical_.subspan(sub_chunk.first_byte, sub_chunk.bytes);
}

void PartialSums::encode_own(const RingSubChunk& sub_chunk) {
  encode_values(wire_, weighted(sub_chunk), encoded(sub_chunk));
}

void PartialSums::add_own(const RingSubChunk& sub_chunk) {
  if (share_ == 0.0f) return;  // nothing to add: the bytes travel on as they came, without another rounding
  const std::span<float> sum = weighted(sub_chunk);
  const std::span<std::byte> bytes = encoded(sub_chunk);
  decode_add_values(wire_, bytes, sum);
  encode_values(wire_, sum, bytes);
}

}  // namespace atl
