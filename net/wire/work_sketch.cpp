#include "net/wire/work_sketch.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "net/base/encoding.h"

namespace atl {

std::string encode_sketch(const WorkSketch& sketch) {
  Bytes bytes;
  bytes.reserve(sketch.size() * 4);
  for (const double value : sketch) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::byte>(bits >> shift));
  }
  return base64url_encode(bytes);
}

std::optional<WorkSketch> decode_sketch(std::string_view text) {
  if (text.size() != kSketchText) return std::nullopt;
  const Result<Bytes> bytes = base64url_decode(text);
  if (!bytes.ok() || bytes->size() != kSketchNumel * 4) return std::nullopt;
  WorkSketch sketch;
  sketch.reserve(kSketchNumel);
  for (std::size_t i = 0; i < bytes->size(); i += 4) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 4; ++k) bits |= std::to_integer<std::uint32_t>((*bytes)[i + k]) << (8 * k);
    const double value = std::bit_cast<float>(bits);
    if (!std::isfinite(value)) return std::nullopt;
    sketch.push_back(value);
  }
  return sketch;
}

}  // namespace atl
