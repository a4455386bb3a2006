#include "trainer/fsdp/shared_memory_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kernels/model/model_kernels.h"
#include "net/base/deadline.h"
#include "net/base/mutex.h"

namespace atl {
class SharedMemoryCommunicator final : public Communicator {
 public:
  SharedMemoryCommunicator(SharedMemoryGroup& group, LocalRank rank) : group_(group), rank_(rank) {}

  LocalRank rank() const override { return rank_; }
  int world_size() const override { return group_.world_size(); }

  void all_gather(std::span<const std::byte> shard, std::span<std::byte> full) override {
    check_sizes(shard.size(), full.size());
    group_.publish_and_wait(rank_, {shard.data(), shard.size()});
    for (std::size_t peer = 0; peer < group_.slots_.size(); ++peer) {
      check_same(shard.size(), group_.slots_[peer].count);
      std::memcpy(full.data() + peer * shard.size(), group_.slots_[peer].data, shard.size());
    }
    group_.wait_for_all();
  }

  void reduce_scatter(std::span<const float> full, std::span<float> shard, bool accumulate) override {
    check_sizes(shard.size(), full.size());
    group_.publish_and_wait(rank_, {full.data(), full.size()});
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
    group_.wait_for_all();
  }

  void all_reduce_sum(std::span<double> values) override {
    group_.publish_and_wait(rank_, {values.data(), values.size()});
    std::vector<double> sums(values.size(), 0.0);
    for (const SharedMemoryGroup::Slot& slot : group_.slots_) {
      check_same(values.size(), slot.count);
      const auto* source = static_cast<const double*>(slot.data);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += source[i];
    }
    group_.wait_for_all();
    std::copy(sums.begin(), sums.end(), values.begin());
  }

  void abort(const std::string& reason) noexcept override { group_.abort(reason); }

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
    : timeout_(timeout), slots_(static_cast<std::size_t>(world_size)) {}

std::unique_ptr<Communicator> SharedMemoryGroup::communicator(LocalRank rank) {
  return std::make_unique<SharedMemoryCommunicator>(*this, rank);
}

void SharedMemoryGroup::reset() {
  const MutexLock lock(mutex_);
  aborted_.reset();
  arrived_ = 0;
}

void SharedMemoryGroup::publish_and_wait(LocalRank rank, Slot slot) {
  slots_[static_cast<std::size_t>(rank.value)] = slot;
  wait_for_all();
}

void SharedMemoryGroup::wait_for_all() {
  {
    MutexLock lock(mutex_);
    if (!arrive(lock)) return;
  }
  all_arrived_.notify_all();
}

bool SharedMemoryGroup::arrive(MutexLock& lock) {
  if (aborted_) throw CollectiveAborted(*aborted_);
  if (++arrived_ == world_size()) {
    arrived_ = 0;
    ++generation_;
    return true;
  }
  const std::uint64_t mine = generation_;
  const auto passed = [&]() ATOLL_REQUIRES(mutex_) { return generation_ != mine || aborted_.has_value(); };
  if (!all_arrived_.wait(lock, Deadline::after(timeout_), passed)) {
    aborted_ = fmt::format("a local rank did not reach the collective within {} s",
                           std::chrono::duration_cast<std::chrono::seconds>(timeout_).count());
    all_arrived_.notify_all();
  }
  // A rank that passed may find an abort of a later collective; it learns of it there.
  if (generation_ == mine) throw CollectiveAborted(*aborted_);
  return false;
}

void SharedMemoryGroup::abort(const std::string& reason) noexcept {
  {
    const MutexLock lock(mutex_);
    if (!aborted_) aborted_ = reason;
  }
  all_arrived_.notify_all();
}

}  // namespace atl
