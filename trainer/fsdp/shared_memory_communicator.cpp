#include "trainer/fsdp/shared_memory_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kernels/model/model_kernels.h"

namespace atl {
class SharedMemoryCommunicator final : public Communicator {
 public:
  SharedMemoryCommunicator(SharedMemoryGroup& group, LocalRank rank) : group_(group), rank_(rank) {}

  LocalRank rank() const override { return rank_; }
  int world_size() const override { return group_.world_size(); }

  void all_gather(std::span<const std::byte> shard, std::span<std::byte> full) override {
    check_sizes(shard.size(), full.size());
    group_.publish_and_meet(rank_, {"all_gather", shard.data(), shard.size()});
    for (std::size_t peer = 0; peer < group_.slots_.size(); ++peer) {
      check_same(shard.size(), group_.slots_[peer].count);
      std::memcpy(full.data() + peer * shard.size(), group_.slots_[peer].data, shard.size());
    }
    group_.meet(rank_);
  }

  void reduce_scatter(std::span<const float> full, std::span<float> shard, bool accumulate) override {
    check_sizes(shard.size(), full.size());
    group_.publish_and_meet(rank_, {"reduce_scatter", full.data(), full.size()});
    for (const SharedMemoryGroup::Slot& slot : group_.slots_) {
      check_same(full.size(), slot.count);
      const auto* source = static_cast<const float*>(slot.data) + static_cast<std::size_t>(rank_.value) * shard.size();
      if (accumulate) {
        value_kernels().add(shard.data(), source, static_cast<std::int64_t>(shard.size()));
      } else {
        std::copy_n(source, shard.size(), shard.data());
        accumulate = true;
      }
    }
    group_.meet(rank_);
  }

  void all_reduce_sum(std::span<double> values) override {
    group_.publish_and_meet(rank_, {"all_reduce", values.data(), values.size()});
    std::vector<double> sums(values.size(), 0.0);
    for (const SharedMemoryGroup::Slot& slot : group_.slots_) {
      check_same(values.size(), slot.count);
      const auto* source = static_cast<const double*>(slot.data);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += source[i];
    }
    group_.meet(rank_);
    std::copy(sums.begin(), sums.end(), values.begin());
  }

  void abort(const std::string& reason) noexcept override { (void)group_.meeting_.fail(reason); }

 private:
  void check_sizes(std::size_t shard, std::size_t full) const {
    if (shard * group_.slots_.size() != full) {
      throw std::logic_error(fmt::format("collective of local rank {}: {} elements in shards of {} for {} ranks",
                                         rank_.value, full, shard, group_.slots_.size()));
    }
  }
  void check_same(std::size_t mine, std::size_t theirs) const {
    if (mine != theirs) {
      throw std::logic_error(
          fmt::format("collective of local rank {}: {} elements here, {} on another rank", rank_.value, mine, theirs));
    }
  }

  SharedMemoryGroup& group_;
  const LocalRank rank_;
};

SharedMemoryGroup::SharedMemoryGroup(int world_size, std::chrono::nanoseconds timeout)
    : slots_(static_cast<std::size_t>(world_size)), meeting_(world_size, timeout) {}

std::unique_ptr<Communicator> SharedMemoryGroup::communicator(LocalRank rank) {
  return std::make_unique<SharedMemoryCommunicator>(*this, rank);
}

void SharedMemoryGroup::publish_and_meet(LocalRank rank, Slot slot) {
  slots_[static_cast<std::size_t>(rank.value)] = slot;
  meet(rank);
}

void SharedMemoryGroup::meet(LocalRank rank) {
  meeting_.meet(rank, [this, rank] {
    const Slot& slot = slots_[static_cast<std::size_t>(rank.value)];
    return fmt::format("{} of {}", slot.collective, slot.count);
  });
}

}  // namespace atl
