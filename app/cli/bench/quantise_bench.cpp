#include "app/cli/bench/quantise_bench.h"

#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <span>
#include <thread>

#include "app/cli/bench/bench_figures.h"
#include "app/cli/bench/bench_values.h"
#include "kernels/wire_codec.h"
#include "net/base/bytes.h"
#include "net/base/deadline.h"

namespace atl {
namespace {

struct Share {  // of one thread
  std::span<float> values;
  std::span<std::byte> encoded;
};

// Whole blocks each.
std::vector<Share> shares_of(WireFormat wire, std::span<float> values, std::span<std::byte> encoded, int threads) {
  const std::int64_t blocks = (std::ssize(values) + kBlockNumel - 1) / kBlockNumel;
  const auto value_at = [&](int thread) {
    return std::min(std::ssize(values), blocks * thread / threads * kBlockNumel);
  };
  std::vector<Share> shares;
  for (int i = 0; i < threads; ++i) {
    const std::int64_t begin = value_at(i), end = value_at(i + 1);
    const auto first_byte = static_cast<std::size_t>(encoded_bytes(wire, begin));
    shares.push_back({values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)),
                      encoded.subspan(first_byte, static_cast<std::size_t>(encoded_bytes(wire, end)) - first_byte)});
  }
  return shares;
}

double timed(const std::vector<Share>& shares, const std::function<void(const Share&)>& work) {
  const auto begin = Clock::now();
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < shares.size(); ++i) others.emplace_back([&, i] { work(shares[i]); });
    work(shares[0]);
  }
  return Seconds(Clock::now() - begin).count();
}

// memcpy of half of `bytes`: as many bytes read and written as the kernel moves.
double copy_seconds(std::uint64_t bytes, int threads, int repeat) {
  Bytes source(bytes / 2), target(bytes / 2, std::byte{1});
  std::vector<double> seconds;
  for (int i = 0; i < repeat; ++i) {
    const std::size_t part = source.size() / static_cast<std::size_t>(threads);
    const auto begin = Clock::now();
    {
      std::vector<std::jthread> others;
      const auto copy = [&](int thread) {
        const std::size_t at = part * static_cast<std::size_t>(thread);
        std::memcpy(target.data() + at, source.data() + at, part);
      };
      for (int thread = 1; thread < threads; ++thread) others.emplace_back(copy, thread);
      copy(0);
    }
    seconds.push_back(Seconds(Clock::now() - begin).count());
  }
  return median(seconds);
}

}  // namespace

Result<QuantiseBenchResult> run_quantise_bench(const QuantiseBenchOptions& options, const AbortSignal& interrupt) {
  const std::size_t numel = options.payload_bytes / sizeof(float);
  std::vector<float> values(numel), sum(numel, 0.0f);
  Bytes encoded(static_cast<std::size_t>(encoded_bytes(options.wire, static_cast<std::int64_t>(numel))));
  fill_bench_values(0, values);
  const auto input = shares_of(options.wire, values, encoded, options.threads);
  const auto output = shares_of(options.wire, sum, encoded, options.threads);
  const auto quantise = [&](const Share& share) { encode_values(options.wire, share.values, share.encoded); };
  const auto add = [&](const Share& share) { decode_add_values(options.wire, share.encoded, share.values); };

  QuantiseBenchResult result;
  timed(input, quantise);
  result.relative_error = sampled_error(options.wire, encoded, static_cast<std::int64_t>(numel), 1);
  if (!(result.relative_error <= tolerated_error(options.wire, 1))) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("what was encoded is not what went in: relative error {:.3g}", result.relative_error)};
  }
  for (int i = 0; i < options.repeat; ++i) {
    if (interrupt.raised()) return Error{ErrorCode::kAborted, interrupt.reason()};
    result.quantise.seconds.push_back(timed(input, quantise));
    result.dequantise_add.seconds.push_back(timed(output, add));
  }
  const std::uint64_t payload = numel * sizeof(float);
  result.quantise.memcpy_seconds = copy_seconds(payload + encoded.size(), options.threads, options.repeat);
  result.dequantise_add.memcpy_seconds = copy_seconds(2 * payload + encoded.size(), options.threads, options.repeat);
  return result;
}

}  // namespace atl
