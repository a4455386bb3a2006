// Fresh parameters: normal(0, initializer_range), norms 1. The same bits on every machine and for any sharding. No
// torch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "net/model/layout.h"

namespace atl {

// The fresh values of parameter number `index` of a model, in pieces of any size: for who hashes what it has no room
// for.
class ParameterStream {
 public:
  ParameterStream(const ModelConfig& config, const ParameterInfo& parameter, std::size_t index, std::uint64_t seed);
  void next(std::span<float> values);  // the next values.size() of them

 private:
  std::uint64_t state_;  // of the random numbers
  Beginning beginning_;
  double deviation_;
};

// Fills `values` (parameter.numel) with parameter number `index` of a model.
void initialise_parameter(const ModelConfig& config, const ParameterInfo& parameter, std::size_t index,
                          std::uint64_t seed, std::span<float> values);

// All of them, [numel] in the canonical order, drawn on all processors. A value takes some 22 ns of one: 10 billion
// take 225 s of processor time, and no less than the largest table.
std::vector<float> fresh_parameters(const ModelConfig& model, std::uint64_t seed);

}  // namespace atl
