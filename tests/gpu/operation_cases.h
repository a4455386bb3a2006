// Every operation of a step on one GPU, with what it is compared with and what it moves or computes: for
// gpu_operations.cpp.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "net/step/operation.h"
#include "net/step/program.h"

namespace atl::gpu {

struct Sizes {
  std::int64_t sequences = 1, length = 64;
  std::int64_t hidden = 64, inner = 96, vocab = 97;
  std::int64_t heads = 4, key_value_heads = 2, head_dim = 16;
  std::int64_t parameters = 1000;  // of one flat array, as the optimiser sees them
  std::int64_t rows() const { return sequences * length; }
};

// What a kept buffer holds before an operation.
enum class Contents : std::uint8_t {
  kNormal,
  kPositive,
  kZero,
  kOne,
  kTokens,
  kOrder,
  kStarts,
  kScalars,
  kSlots,      // a row of the tensor is of one slot; the last of all is not there
  kPositions,  // a row of the tensor goes on from `first`
};

struct Buffer {
  Tensor tensor;
  Contents contents = Contents::kNormal;
  std::int64_t first = 0;
};

struct OperationCase {
  std::string name;
  KeptBuffers kept;
  std::vector<Buffer> buffers;
  std::vector<Operation> before;  // what the operation reads is computed by these
  Operation operation;
  std::vector<Tensor> results;
  double bytes = 0;   // that it must move
  double flops = 0;   // that it must compute; 0: it is measured by its bytes
  int roundings = 1;  // to bf16 between its inputs and results
};

// All of them, in one type.
std::vector<OperationCase> operation_cases(const Sizes& sizes, DType dtype);

}  // namespace atl::gpu
