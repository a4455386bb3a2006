#include "net/collective/partial_sums.h"

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/reduce.h"
#include "kernels/wire_codec.h"

namespace atl {
namespace {

// Values that are scaled, added and encoded while they are in the first-level cache: whole blocks.
constexpr std::int64_t kCachedNumel = 16 * kBlockNumel;

// Calls on_slice(x, bytes) for parts of a span of values and of their encoded bytes.
template <class OnSlice>
void for_each_slice(WireFormat wire, std::span<const float> x, std::span<std::byte> encoded, OnSlice on_slice) {
  const auto numel = static_cast<std::int64_t>(x.size());
  for (std::int64_t first = 0; first < numel; first += kCachedNumel) {
    const std::int64_t count = std::min(kCachedNumel, numel - first);
    on_slice(x.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
             encoded.subspan(static_cast<std::size_t>(encoded_bytes(wire, first)),
                             static_cast<std::size_t>(encoded_bytes(wire, count))));
  }
}

// encoded <- encode(share * x)
void encode_weighted(WireFormat wire, std::span<const float> x, float share, std::span<std::byte> encoded) {
  std::array<float, kCachedNumel> cached;
  for_each_slice(wire, x, encoded, [&](std::span<const float> values, std::span<std::byte> bytes) {
    const std::span<float> sum = std::span(cached).first(values.size());
    scaled_copy(values, share, sum);
    encode_values(wire, sum, bytes);
  });
}

// encoded <- encode(share * x + decode(encoded))
void add_weighted(WireFormat wire, std::span<const float> x, float share, std::span<std::byte> encoded) {
  std::array<float, kCachedNumel> cached;
  for_each_slice(wire, x, encoded, [&](std::span<const float> values, std::span<std::byte> bytes) {
    const std::span<float> sum = std::span(cached).first(values.size());
    scaled_copy(values, share, sum);
    decode_add_values(wire, bytes, sum);
    encode_values(wire, sum, bytes);
  });
}

}  // namespace

PartialSums::PartialSums(WireFormat wire, std::span<const float> values, float share, std::span<std::byte> canonical)
    : wire_(wire), values_(values), share_(share), canonical_(canonical) {}

void PartialSums::encode_own(const RingSubChunk& sub_chunk) const {
  const auto bytes = canonical_.subspan(sub_chunk.first_byte, sub_chunk.bytes);
  if (share_ == 0.0f) {
    const std::vector<float> zeros(static_cast<std::size_t>(sub_chunk.numel), 0.0f);
    return encode_values(wire_, zeros, bytes);
  }
  const auto values =
      values_.subspan(static_cast<std::size_t>(sub_chunk.first_value), static_cast<std::size_t>(sub_chunk.numel));
  encode_weighted(wire_, values, share_, bytes);
}

void PartialSums::add_own(const RingSubChunk& sub_chunk) const {
  if (share_ == 0.0f) return;  // nothing to add: the bytes travel on as they came, without another rounding
  const auto values =
      values_.subspan(static_cast<std::size_t>(sub_chunk.first_value), static_cast<std::size_t>(sub_chunk.numel));
  add_weighted(wire_, values, share_, canonical_.subspan(sub_chunk.first_byte, sub_chunk.bytes));
}

}  // namespace atl
