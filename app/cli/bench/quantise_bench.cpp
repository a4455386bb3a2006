#include "app/cli/bench/quantise_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <thread>

#include "app/cli/bench/bench_figures.h"
#include "kernels/codec_job.h"
#include "kernels/instruction_set.h"
#include "kernels/wire_codec.h"

namespace atl {
namespace {

constexpr int kMaxThreads = 64;
constexpr int kMaxRepeats = 1000;
constexpr std::int64_t kMaxPayloadBytes = std::int64_t{16} << 30;
constexpr float kShare = 0.25f;

struct Slice {
  std::size_t first_value;
  std::size_t numel;
  std::size_t first_byte;
  std::size_t bytes;
};

struct Arrays {
  std::vector<float> x;
  std::vector<float> sum;
  std::vector<std::byte> encoded;
  std::vector<std::byte> partial;
  std::vector<std::byte> contribution;

  std::span<const float> x_of(const Slice& s) const { return std::span(x).subspan(s.first_value, s.numel); }
  std::span<float> sum_of(const Slice& s) { return std::span(sum).subspan(s.first_value, s.numel); }
  std::span<std::byte> encoded_of(const Slice& s) { return std::span(encoded).subspan(s.first_byte, s.bytes); }
  std::span<const std::byte> partial_of(const Slice& s) const {
    return std::span(partial).subspan(s.first_byte, s.bytes);
  }
  std::span<const std::byte> contribution_of(const Slice& s) const {
    return std::span(contribution).subspan(s.first_byte, s.bytes);
  }
};

// Heavy tails, so that every code occurs. A block of random values, repeated with another sign and size each time.
std::vector<float> test_values(std::size_t numel) {
  std::mt19937 random(1);
  std::student_t_distribution<float> heavy_tails(3.0f);
  std::vector<float> pattern(std::min<std::size_t>(numel, 65'521));
  for (float& value : pattern) value = 1e-3f * heavy_tails(random);
  std::vector<float> x(numel);
  float factor = 1;
  for (std::size_t i = 0; i < numel; ++i) {
    const std::size_t at = i % pattern.size();
    if (at == 0) factor *= -0.99f;
    x[i] = factor * pattern[at];
  }
  return x;
}

std::vector<Slice> slices_of(WireFormat wire, std::int64_t numel, int threads) {
  std::vector<Slice> slices;
  for (int i = 0; i < threads; ++i) {
    const std::int64_t begin = part_begin(wire, numel, threads, i);
    const std::int64_t count = part_begin(wire, numel, threads, i + 1) - begin;
    slices.push_back({static_cast<std::size_t>(begin), static_cast<std::size_t>(count),
                      static_cast<std::size_t>(encoded_bytes(wire, begin)),
                      static_cast<std::size_t>(encoded_bytes(wire, count))});
  }
  return slices;
}

struct Operation {
  const char* name;
  std::int64_t bytes;
  std::function<void(Arrays&, const Slice&)> run;
};

std::vector<Operation> operations_on(WireFormat wire, std::int64_t numel) {
  const std::int64_t coded = encoded_bytes(wire, numel);
  const std::int64_t plain = numel * 4;
  const auto quantise = [wire](Arrays& a, const Slice& s) { encode_values(wire, a.x_of(s), a.encoded_of(s)); };
  const auto dequantise = [wire](Arrays& a, const Slice& s) { decode_values(wire, a.partial_of(s), a.sum_of(s)); };
  const auto add = [wire](Arrays& a, const Slice& s) { decode_add_values(wire, a.partial_of(s), a.sum_of(s)); };
  const auto weighted = [wire](Arrays& a, const Slice& s) {
    add_weighted(wire, a.partial_of(s), a.x_of(s), kShare, a.encoded_of(s));
  };
  const auto chained = [wire](Arrays& a, const Slice& s) {
    add_encoded(wire, static_cast<std::int64_t>(s.numel), a.partial_of(s), a.contribution_of(s), a.encoded_of(s));
  };
  return {{"quantise", plain + coded, quantise},
          {"dequantise", coded + plain, dequantise},
          {"dequantise-and-add", coded + 2 * plain, add},
          {"weighted add", plain + 2 * coded, weighted},
          {"encoded add", 3 * coded, chained}};
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// Runs each operation once, on its threads, and compares with the reference.
std::optional<std::string> difference(WireFormat wire, const std::vector<Operation>& operations,
                                      const std::vector<Slice>& slices, Arrays& arrays) {
  const auto run = [&](std::size_t operation) {
    seconds_on_threads(static_cast<int>(slices.size()),
                       [&](std::size_t i) { operations[operation].run(arrays, slices[i]); });
  };
  const std::size_t numel = arrays.x.size();
  std::vector<std::byte> encoded(arrays.encoded.size());
  std::vector<float> values(numel);
  EncodeJob job{.format = wire, .x = arrays.x.data(), .encoded = encoded.data(), .numel = numel};

  plain::encode(job);
  run(0);
  if (!same_bits(encoded, arrays.encoded)) return operations[0].name;
  arrays.partial = arrays.encoded;
  plain::decode({.format = wire, .encoded = encoded.data(), .values = values.data(), .numel = numel});
  run(1);
  if (!same_bits(values, arrays.sum)) return operations[1].name;
  plain::decode({.format = wire, .encoded = encoded.data(), .add = true, .values = values.data(), .numel = numel});
  run(2);
  if (!same_bits(values, arrays.sum)) return operations[2].name;
  job.partial = arrays.partial.data();
  job.share = kShare;
  plain::encode(job);
  run(3);
  if (!same_bits(encoded, arrays.encoded)) return operations[3].name;
  arrays.contribution = arrays.encoded;
  plain::add({.format = wire,
              .partial = arrays.partial.data(),
              .contribution = arrays.contribution.data(),
              .encoded = encoded.data(),
              .numel = numel});
  run(4);
  if (!same_bits(encoded, arrays.encoded)) return operations[4].name;
  return std::nullopt;
}

// The operation and the copy take turns, so that what else the machine does falls on both.
OperationFigures timed(const Operation& operation, const std::vector<Slice>& slices, int repeats, Arrays& arrays,
                       std::vector<std::byte>& copy_from, std::vector<std::byte>& copy_to) {
  const int threads = static_cast<int>(slices.size());
  const auto copied = static_cast<std::size_t>(operation.bytes) / 2;
  std::vector<double> seconds;
  std::vector<double> memcpy_seconds;
  for (int repeat = 0; repeat <= repeats; ++repeat) {
    const double took = seconds_on_threads(threads, [&](std::size_t i) { operation.run(arrays, slices[i]); });
    const double copy_took = seconds_on_threads(threads, [&](std::size_t i) {
      const std::size_t begin = copied / 64 * i / slices.size() * 64;
      const std::size_t end = i + 1 == slices.size() ? copied : copied / 64 * (i + 1) / slices.size() * 64;
      std::memcpy(copy_to.data() + begin, copy_from.data() + begin, end - begin);
    });
    if (repeat == 0) continue;
    seconds.push_back(took);
    memcpy_seconds.push_back(copy_took);
  }
  return {operation.name, operation.bytes, seconds, median(seconds), median(memcpy_seconds)};
}

std::optional<Error> refused(const QuantiseBenchOptions& options) {
  if (options.payload_bytes < 4 || options.payload_bytes > kMaxPayloadBytes) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a payload of {} bytes cannot be measured: choose from 4 to {}", options.payload_bytes,
                             kMaxPayloadBytes)};
  }
  if (options.threads < 1 || options.threads > kMaxThreads) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} threads cannot be measured: choose from 1 to {}", options.threads, kMaxThreads)};
  }
  if (options.repeats < 1 || options.repeats > kMaxRepeats) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} repeats cannot be measured: choose from 1 to {}", options.repeats, kMaxRepeats)};
  }
  return std::nullopt;
}

}  // namespace

Result<QuantiseBenchResult> run_quantise_bench(const QuantiseBenchOptions& options, const AbortSignal& interrupt) {
  if (auto error = refused(options)) return *error;
  const std::int64_t numel = options.payload_bytes / 4;
  const auto bytes = static_cast<std::size_t>(encoded_bytes(options.wire, numel));
  Arrays arrays{test_values(static_cast<std::size_t>(numel)), std::vector<float>(static_cast<std::size_t>(numel)),
                std::vector<std::byte>(bytes), std::vector<std::byte>(bytes), std::vector<std::byte>(bytes)};
  const auto operations = operations_on(options.wire, numel);
  const auto slices = slices_of(options.wire, numel, options.threads);
  if (const auto wrong = difference(options.wire, operations, slices, arrays)) {
    return Error{ErrorCode::kInternal,
                 fmt::format("{} {} by {} gives other bytes than the reference: do not use this machine for training, "
                             "and report its processor",
                             wire_format_name(options.wire), *wrong, instruction_set_name(chosen_instruction_set()))};
  }
  QuantiseBenchResult result{std::string(instruction_set_name(chosen_instruction_set())), {}};
  std::int64_t most = 0;
  for (const Operation& operation : operations) most = std::max(most, operation.bytes);
  std::vector<std::byte> copy_from(static_cast<std::size_t>(most) / 2, std::byte{1});
  std::vector<std::byte> copy_to(copy_from.size());
  for (const Operation& operation : operations) {
    if (interrupt.raised()) return Error{ErrorCode::kAborted, interrupt.reason()};
    result.operations.push_back(timed(operation, slices, options.repeats, arrays, copy_from, copy_to));
  }
  return result;
}

}  // namespace atl
