// How fast this machine encodes and decodes a wire format, beside how fast it copies the same bytes. Results are
// checked against the plain reference before anything is timed. Owns its threads while it runs; any thread may call it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/wire_format.h"
#include "net/base/abort_signal.h"
#include "net/base/result.h"

namespace atl {

struct QuantiseBenchOptions {
  WireFormat wire = WireFormat::kInt8Block;
  std::int64_t payload_bytes = std::int64_t{256} << 20;  // of fp32
  int threads = 1;                                       // the payload is cut between them at blocks
  int repeats = 7;                                       // medians are taken; the first, untimed, comes on top
};

struct OperationFigures {
  std::string operation;   // quantise, dequantise, dequantise-and-add, weighted add, encoded add
  std::int64_t bytes = 0;  // read and written: input + output
  std::vector<double> all_seconds;
  double seconds = 0;         // median
  double memcpy_seconds = 0;  // median of copying bytes / 2, which reads and writes `bytes`, on as many threads
  double gb_per_second() const { return static_cast<double>(bytes) / seconds / 1e9; }
  double of_memcpy() const { return memcpy_seconds / seconds; }  // 1: as fast as memory
};

struct QuantiseBenchResult {
  std::string implementation;  // plain, avx2, avx512
  std::vector<OperationFigures> operations;
};

// Fails with kInvalidArgument on options out of range, with kInternal when a result differs from the reference's, with
// kAborted when interrupted.
Result<QuantiseBenchResult> run_quantise_bench(const QuantiseBenchOptions& options, const AbortSignal& interrupt);

}  // namespace atl
