#include "app/cli/bench/bench_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernels/wire_codec.h"

namespace atl {
namespace {

constexpr std::array kFormats{WireFormat::kFp32, WireFormat::kInt8Block};
constexpr std::int64_t kSampledBlocks = 2048;

// SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

float bench_value(int island, std::uint64_t index) {
  const std::uint64_t bits = mix(index + (static_cast<std::uint64_t>(island) << 40));
  // The sum of four uniform values has the shape of a bell; its variance is 4/12 of a step squared.
  const auto sum =
      static_cast<std::int32_t>((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48)) -
      2 * 0xffff;
  return static_cast<float>(sum) * (1e-3f / (65536.0f * 0.57735f));
}

void fill_bench_values(int island, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = bench_value(island, i);
}

double sampled_error(WireFormat wire, std::span<const std::byte> canonical, std::int64_t numel, int islands) {
  const std::int64_t blocks = (numel + kBlockNumel - 1) / kBlockNumel;
  const std::int64_t step = std::max<std::int64_t>(1, blocks / kSampledBlocks);
  std::vector<float> decoded(static_cast<std::size_t>(kBlockNumel));
  double error = 0;
  double norm = 0;
  for (std::int64_t block = 0; block < blocks; block += step) {
    const std::int64_t first = block * kBlockNumel;
    const std::int64_t count = std::min(kBlockNumel, numel - first);
    const auto begin = static_cast<std::size_t>(encoded_bytes(wire, first));
    const auto bytes = static_cast<std::size_t>(encoded_bytes(wire, first + count)) - begin;
    decode_values(wire, canonical.subspan(begin, bytes), std::span(decoded).first(static_cast<std::size_t>(count)));
    for (std::int64_t i = 0; i < count; ++i) {
      double mean = 0;
      for (int island = 0; island < islands; ++island) {
        mean += static_cast<double>(bench_value(island, static_cast<std::uint64_t>(first + i)));
      }
      mean /= islands;
      const double difference = static_cast<double>(decoded[static_cast<std::size_t>(i)]) - mean;
      error += difference * difference;
      norm += mean * mean;
    }
  }
  return std::sqrt(error / norm);
}

double tolerated_error(WireFormat wire, int islands) {
  if (wire == WireFormat::kFp32) return 1e-5;
  return 0.012 * std::sqrt((islands + 1) / 2.0);  // each hop of int8-block adds about 0.7 % of the sum so far
}

Result<WireFormat> parse_wire_format(std::string_view name) {
  for (const WireFormat wire : kFormats) {
    if (name == wire_name(wire)) return wire;
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("'{}' is no wire format; choose one of fp32, int8-block", name)};
}

std::string_view wire_name(WireFormat wire) { return wire == WireFormat::kFp32 ? "fp32" : "int8-block"; }

}  // namespace atl
