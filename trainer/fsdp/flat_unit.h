// One flat parameter: the embedding, a transformer block or the head. Each local rank keeps a shard of it; the whole is
// there only between gather() and release, in storage that this class fills and empties itself, so that views which
// autograd still holds keep no memory alive. Owned and used by one rank's thread.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <span>

#include "trainer/fsdp/communicator.h"

namespace atl {

// Counts the bytes of whole units, gathered parameters and full gradients alike. One a rank.
class UnshardedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* destination, const void* source, std::size_t count) const override;

  std::int64_t current_bytes() const { return current_; }
  std::int64_t peak_bytes() const { return peak_; }
  void reset_peak() { peak_ = current_; }

 private:
  struct Block;
  static void release(void* block);

  std::int64_t current_ = 0;
  std::int64_t peak_ = 0;
};

// One tensor of a unit: its value while gathered, and where its gradient is added up while gradients are open.
struct ParameterView {
  at::Tensor value;
  at::Tensor gradient;
};

class FlatUnit {
 public:
  // `shard` and `shard_gradient` have shard_numel(numel, world_size) elements, padding included, and outlive the unit,
  // as do the communicator and the allocator. With one rank the shard is the whole: views alias it and nothing is
  // copied.
  FlatUnit(std::int64_t numel, std::span<float> shard, std::span<float> shard_gradient, Communicator& communicator,
           UnshardedAllocator& allocator);

  static std::int64_t shard_numel(std::int64_t numel, int world_size) { return (numel + world_size - 1) / world_size; }

  ParameterView view(std::int64_t offset, at::IntArrayRef sizes) const;

  void gather();  // collective
  void release_parameters();
  void open_gradients();    // zeros; with one rank the shard's gradient, as it is
  void reduce_gradients();  // collective: added to the shard's gradient over ranks, and freed
  void release();           // whatever is still there, after a failure

 private:
  std::span<float> elements(const c10::Storage& storage) const;
  void fill(const c10::Storage& storage) const;
  void empty(const c10::Storage& storage) const;

  const std::size_t padded_numel_;
  const std::span<float> shard_;
  const std::span<float> shard_gradient_;
  Communicator& communicator_;
  UnshardedAllocator& allocator_;
  const bool sharded_;
  c10::Storage parameters_;
  c10::Storage gradients_;
};

}  // namespace atl
