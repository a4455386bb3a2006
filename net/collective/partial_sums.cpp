#include "net/collective/partial_sums.h"

#include "kernels/wire_codec.h"

namespace atl {

PartialSums::PartialSums(WireFormat wire, std::span<const float> values, float share, std::span<std::byte> canonical)
    : wire_(wire), values_(values), share_(share), canonical_(canonical) {}

void PartialSums::encode_own(const RingSubChunk& sub_chunk) const {
  encode_weighted(wire_, own(sub_chunk), share_, encoded(sub_chunk));
}

// At share 0 the bytes travel on as they came, without another rounding.
void PartialSums::add_own(const RingSubChunk& sub_chunk) const {
  const std::span<std::byte> sum = encoded(sub_chunk);
  add_weighted(wire_, sum, own(sub_chunk), share_, sum);
}

std::span<const float> PartialSums::own(const RingSubChunk& sub_chunk) const {
  return values_.subspan(static_cast<std::size_t>(sub_chunk.first_value), static_cast<std::size_t>(sub_chunk.numel));
}

std::span<std::byte> PartialSums::encoded(const RingSubChunk& sub_chunk) const {
  return canonical_.subspan(sub_chunk.first_byte, sub_chunk.bytes);
}

}  // namespace atl
