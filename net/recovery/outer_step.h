// The passes over a fragment's parameters that end a round, each once over memory and on all processors: the
// pseudo-gradient with its norm, the norm of an average, the outer step with the hashes of what it changed. The results
// do not depend on the number of threads. Ten billion parameters: 12 bytes each are moved by the first, 1 by the second
// (int8), 17 by the third, which hashes 8.
//
// Any thread, one at a time for the same memory. `ranges`: of the canonical order, ascending; an average and a
// pseudo-gradient hold their values end to end.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/outer_nesterov.h"
#include "kernels/wire_format.h"
#include "net/base/bytes.h"
#include "net/base/result.h"
#include "net/base/sha256.h"
#include "net/model/fragments.h"

namespace atl {

// local[i] <- outer[i] - local[i], the pseudo-gradient; and the sum of its squares, added in the order of
// kernels/reduce.h. Nothing where one is not finite. outer: [numel of the model]; local: [numel of the ranges].
std::optional<double> pseudo_gradient(std::span<const float> outer, std::span<const ParameterRange> ranges,
                                      std::span<float> local);

// The sum of the squares of an average's `numel` values. Nothing where one is not finite.
std::optional<double> average_squared_norm(WireFormat wire, ByteView canonical, std::int64_t numel);

// kernels/outer_nesterov.h on the values of the ranges, bit for bit as on all of them at once, and the digests of the
// chunks (net/recovery/outer_state.h) in which these lie. theta, velocity: [numel of the model]; chunks: of all of it.
void outer_step(std::span<float> theta, std::span<float> velocity, std::span<const ParameterRange> ranges,
                WireFormat wire, ByteView canonical, OuterSgd hyper, std::span<Digest> chunks);

// The canonical bytes of an average, in memory or in a file. Several threads at once.
class AverageSource {
 public:
  virtual ~AverageSource() = default;
  // `bytes` of them, from `offset`: in `room`, or where they are; valid until `room` changes.
  virtual Result<ByteView> read(std::uint64_t offset, std::size_t bytes, Bytes& room) const = 0;
};

class AverageInMemory final : public AverageSource {
 public:
  explicit AverageInMemory(ByteView canonical) : canonical_(canonical) {}
  Result<ByteView> read(std::uint64_t offset, std::size_t bytes, Bytes&) const override {
    return canonical_.subspan(static_cast<std::size_t>(offset), bytes);
  }

 private:
  const ByteView canonical_;
};

// Whether an outer step on the ranges changes the chunk.
bool touches_chunk(std::span<const ParameterRange> ranges, std::uint64_t index);

// What outer_step() does to one chunk, on one thread: its parameters and momentum, in place, to the same bits. They are
// of no step any more where the average cannot be read.
Status step_chunk(std::uint64_t index, std::span<float> parameters, std::span<float> momentum,
                  std::span<const ParameterRange> ranges, WireFormat wire, const AverageSource& average,
                  OuterSgd hyper);

}  // namespace atl
