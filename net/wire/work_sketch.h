// What an island says of the values that it gave to an average, and of that average: a linear sketch of each, so that
// the weighted sum of what all gave must be the sketch of the average. Which values it is of, and with which signs, is
// drawn from the average's digest (net/recovery/work_sketch.h): nobody knows it before all have given theirs.
// Plain values, any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace atl {

// Two sketches' cosine is that of what they are of, but for about 1 / sqrt(kSketchNumel) = 0.03.
inline constexpr std::size_t kSketchNumel = 1024;
using WorkSketch = std::vector<double>;  // [kSketchNumel]

// fp32, little-endian, base64url.
inline constexpr std::size_t kSketchText = (kSketchNumel * 4 * 4 + 2) / 3;
std::string encode_sketch(const WorkSketch& sketch);
std::optional<WorkSketch> decode_sketch(std::string_view text);  // nothing: it is none, or not finite

}  // namespace atl
