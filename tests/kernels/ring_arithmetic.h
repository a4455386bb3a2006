// What an all-reduce in each format costs in accuracy: the ring's arithmetic, without the ring. Errors are relative:
// root mean square of (result - exact mean) over that of the exact mean.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "kernels/reduce.h"
#include "kernels/wire_codec.h"
#include "tests/kernels/codec_values.h"

namespace atl {

using Values = std::vector<float>;

// Variances of a ring's mean over that of one encoding, if errors are independent and as large as what is encoded:
// each of N members rounds its own, and N - 1 times a sum, of 2 .. N members, is rounded.
struct Roundings {
  double of_own = 0;
  double of_sums = 0;
  double all() const { return of_own + of_sums; }
};

inline Roundings roundings_of_a_ring(unsigned members) {
  const double n = members;
  return {1, (n + 1) / 2 - 1 / n};  // N / N; (2 + .. + N) / N
}

inline Values decoded(WireFormat wire, const std::vector<std::byte>& bytes, std::size_t numel) {
  Values x(numel);
  decode_values(wire, bytes, x);
  return x;
}

// What the members of a ring leave behind for one chunk, whose owner is the last of them. Equal weights. Residuals are
// fed back where there are any, one a member.
inline Values all_reduced(WireFormat wire, const std::vector<Values>& inputs, std::vector<Values>& residuals) {
  const float share = 1.0f / static_cast<float>(inputs.size());
  const std::size_t numel = inputs[0].size();
  Values none(numel, 0.0f);
  Values ignored(numel);
  const auto feedback = [&](std::size_t member) {
    return residuals.empty() ? ErrorFeedback{none, ignored} : ErrorFeedback{residuals[member], residuals[member]};
  };
  std::vector<std::byte> bytes(encoded_size(wire, numel));
  if (sums_hop_by_hop(wire)) {
    encode_weighted(wire, inputs[0], share, feedback(0), bytes);
    for (std::size_t m = 1; m < inputs.size(); ++m) add_weighted(wire, bytes, inputs[m], share, feedback(m), bytes);
    return decoded(wire, bytes, numel);
  }
  const std::size_t owner = inputs.size() - 1;
  Values sum(numel);
  scaled_sum_copy(inputs[owner], feedback(owner).residual_in, share, sum);
  for (std::size_t m = 0; m < owner; ++m) {
    encode_weighted(wire, inputs[m], share, feedback(m), bytes);
    decode_add_values(wire, bytes, sum);
  }
  encode_sum(wire, sum, share, feedback(owner).residual_out, bytes);
  return decoded(wire, bytes, numel);
}

inline std::vector<double> exact_mean(const std::vector<Values>& inputs) {
  std::vector<double> mean(inputs[0].size(), 0.0);
  for (const Values& input : inputs) {
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += input[i] / static_cast<double>(inputs.size());
  }
  return mean;
}

inline double rms(const std::vector<double>& x) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  return std::sqrt(squares / static_cast<double>(x.size()));
}

struct Measured {
  double relative_rms = 0;
  double bias = 0;  // mean error over its standard error
};

inline Measured measure(WireFormat wire, bool heavy, unsigned members) {
  constexpr std::size_t kNumel = 1 << 18;
  std::vector<Values> inputs;
  for (unsigned m = 0; m < members; ++m) {
    inputs.push_back(heavy ? heavy_tails(kNumel, 100 + m) : normal_values(kNumel, 200 + m));
  }
  std::vector<Values> no_residuals;
  const Values result = all_reduced(wire, inputs, no_residuals);
  const auto mean = exact_mean(inputs);
  std::vector<double> error(kNumel);
  double sum = 0;
  for (std::size_t i = 0; i < kNumel; ++i) {
    error[i] = result[i] - mean[i];
    sum += error[i];
  }
  return {rms(error) / rms(mean), sum / (rms(error) * std::sqrt(kNumel))};
}

// Of the sum of `rounds` all-reduces over that of one, with error feedback and without.
struct SummedError {
  double fed_back = 0;
  double forgotten = 0;
};

inline SummedError error_of_rounds(WireFormat wire, unsigned members, unsigned rounds) {
  constexpr std::size_t kNumel = 1 << 14;
  std::vector<Values> residuals(members, Values(kNumel, 0.0f));
  std::vector<Values> no_residuals;
  std::vector<double> fed_back(kNumel, 0.0);
  std::vector<double> forgotten(kNumel, 0.0);
  double first = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    std::vector<Values> inputs;
    for (unsigned m = 0; m < members; ++m) inputs.push_back(normal_values(kNumel, 1000 + round * members + m));
    const auto mean = exact_mean(inputs);
    const Values with = all_reduced(wire, inputs, residuals);
    const Values without = all_reduced(wire, inputs, no_residuals);
    for (std::size_t i = 0; i < kNumel; ++i) {
      fed_back[i] += with[i] - mean[i];
      forgotten[i] += without[i] - mean[i];
    }
    if (round == 0) first = rms(forgotten);
  }
  return {rms(fed_back) / first, rms(forgotten) / first};
}

}  // namespace atl
