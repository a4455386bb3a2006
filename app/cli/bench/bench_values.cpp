#include "app/cli/bench/bench_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/wire_codec.h"

namespace atl {
namespace {

constexpr std::int64_t kSampledValues = 2048 * 256;

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
  const std::int64_t block_size = block_numel(wire);
  const std::int64_t blocks = (numel + block_size - 1) / block_size;
  const std::int64_t step = std::max<std::int64_t>(1, blocks * block_size / kSampledValues);
  std::vector<float> decoded(static_cast<std::size_t>(block_size));
  double error = 0;
  double norm = 0;
  for (std::int64_t block = 0; block < blocks; block += step) {
    const std::int64_t first = block * block_size;
    const std::int64_t count = std::min(block_size, numel - first);
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
  const WireFormatTraits& traits = traits_of(wire);
  if (!traits.error_grows) return traits.error;
  // Variances, over that of one encoding: each of N islands rounds its own values, and N - 1 times a sum is rounded, of
  // 2 .. N islands.
  const double n = islands;
  return traits.error * std::sqrt(1 + (n + 1) / 2 - 1 / n);
}

Result<WireFormat> parse_wire_format(std::string_view name) {
  if (const auto wire = wire_format_named(name)) return *wire;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("'{}' is no wire format; choose one of {}", name, fmt::join(kWireFormatNames, ", "))};
}

Result<Schedule> parse_schedule(std::string_view name) {
  if (const auto schedule = schedule_named(name)) return *schedule;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("'{}' is no schedule; choose one of {}", name, fmt::join(kScheduleNames, ", "))};
}

}  // namespace atl
