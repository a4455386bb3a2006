#include "net/recovery/work_sketch.h"

#include <algorithm>
#include <array>

#include "net/base/sha256.h"

namespace atl {
namespace {

constexpr std::int64_t kRunNumel = 256;  // whole blocks of every format of runs
constexpr std::int64_t kMostRuns = 1 << 16;
constexpr std::size_t kLanes = kSketchNumel / kRunNumel;  // a run is added to one of them

// SplitMix64: from a counter to 64 random bits.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t seed_of(std::string_view digest) {
  std::uint64_t seed = 0;
  const Digest hash = sha256(as_bytes(digest));
  for (std::size_t i = 0; i < 8; ++i) seed = seed << 8 | std::to_integer<std::uint64_t>(hash[i]);
  return seed;
}

// `read`(begin, count): these values, until the next call.
template <class Read>
WorkSketch sketch(std::string_view digest, std::int64_t numel, Read read) {
  WorkSketch sums(kSketchNumel);
  const std::uint64_t seed = seed_of(digest);
  const std::int64_t runs = (numel + kRunNumel - 1) / kRunNumel, stretches = std::min(runs, kMostRuns);
  for (std::int64_t i = 0; i < stretches; ++i) {
    const std::int64_t first = i * runs / stretches, end = (i + 1) * runs / stretches;
    const auto draw = [&](std::uint64_t k) { return mixed(seed ^ mixed(static_cast<std::uint64_t>(i) * 8 + k)); };
    const std::uint64_t place = draw(0);
    const std::int64_t run = first + static_cast<std::int64_t>((place >> 8) % static_cast<std::uint64_t>(end - first));
    const std::span<const float> values = read(run * kRunNumel, std::min(kRunNumel, numel - run * kRunNumel));
    const std::span<double> sum = std::span(sums).subspan(place % kLanes * kRunNumel, kRunNumel);
    for (std::size_t at = 0; at < values.size();) {
      std::uint64_t signs = draw(1 + at / 64);
      for (const std::size_t word = std::min(values.size(), at + 64); at < word; ++at, signs >>= 1) {
        const double value = values[at];
        sum[at] += (signs & 1) != 0 ? value : -value;
      }
    }
  }
  return sums;
}

}  // namespace

WorkSketch sketch_of_work(std::string_view digest, std::span<const float> values, std::span<const float> residual_in,
                          std::span<const float> residual_out) {
  std::array<float, kRunNumel> room;
  return sketch(digest, std::ssize(values), [&](std::int64_t begin, std::int64_t count) -> std::span<const float> {
    const auto from = static_cast<std::size_t>(begin), numel = static_cast<std::size_t>(count);
    const std::span<const float> own = values.subspan(from, numel);
    if (residual_out.empty()) return own;
    for (std::size_t i = 0; i < numel; ++i) room[i] = own[i] + residual_in[from + i] - residual_out[from + i];
    return std::span(room).first(numel);
  });
}

std::optional<WorkSketch> sketch_of_average(std::string_view digest, WireFormat wire, ByteView canonical,
                                            std::int64_t numel) {
  if (kRunNumel % block_numel(wire) != 0) return std::nullopt;
  std::array<float, kRunNumel> room;
  return sketch(digest, numel, [&](std::int64_t begin, std::int64_t count) -> std::span<const float> {
    const std::span<float> values = std::span(room).first(static_cast<std::size_t>(count));
    decode_values(wire,
                  canonical.subspan(static_cast<std::size_t>(encoded_bytes(wire, begin)),
                                    static_cast<std::size_t>(encoded_bytes(wire, count))),
                  values);
    return values;
  });
}

}  // namespace atl
