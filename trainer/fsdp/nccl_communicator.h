// Collectives among the GPUs of one island, over NCCL: a thread a rank, a GPU each. What is called is enqueued on the
// stream that is given, and done in its order; the host does not wait for it. No CUDA header: a stream is an opaque
// pointer.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "net/base/id.h"
#include "trainer/fsdp/nccl_api.h"
#include "trainer/fsdp/nccl_sequence.h"
#include "trainer/fsdp/nccl_watch.h"

namespace atl {

class NcclCommunicator;

// Where the ranks meet. Owned by whoever owns the rank threads; outlives the communicators made from it. When it goes,
// every rank has waited for what it enqueued. After an abort it is of no more use: ranks that go on make a new one.
class NcclGroup {
 public:
  // Throws std::runtime_error when NCCL does not start.
  NcclGroup(const NcclApi& api, int world_size, NcclTimeouts timeouts = {});
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  int world_size() const { return world_size_; }
  // On the rank's thread, with its GPU current; every rank's at once. Returns when all are connected; throws as a
  // collective.
  std::unique_ptr<NcclCommunicator> communicator(LocalRank rank);
  // Any thread; also while ranks connect. What the ranks block on comes free a little later.
  void abort(const std::string& reason) noexcept { (void)watch_.fail(reason); }

 private:
  friend class NcclCommunicator;

  const NcclApi api_;
  const int world_size_;
  NcclUniqueId id_{};
  CollectiveSequence sequence_;
  NcclWatch watch_;
};

// One rank's; used by its thread alone, but for abort(). All functions throw CollectiveAborted where it was another
// rank that failed, or the watch that ended it, and std::runtime_error where it was this rank; all say the first cause.
class NcclCommunicator {
 public:
  LocalRank rank() const { return rank_; }
  int world_size() const { return group_.world_size(); }

  // full: the shards of all ranks in rank order. shard may be its own place in full.
  void all_gather(DType dtype, const void* shard, void* full, std::size_t shard_elements, GpuStream stream);
  // shard = this rank's part of the sum of all ranks' `full`, in NCCL's order. fp32.
  void reduce_scatter(const float* full, float* shard, std::size_t shard_elements, GpuStream stream);
  // In place: each value becomes its sum over ranks, the same bits everywhere. fp64.
  void all_reduce_sum(double* values, std::size_t count, GpuStream stream);

  // The collectives that `enqueue` calls start as one operation, which is cheaper than each alone.
  void together(const std::function<void()>& enqueue);

  // Everything that the host does and that can block on collectives goes through here: waiting for a stream, and
  // enqueuing a program, because launches block behind a GPU's full queue. `work` comes free when the ranks are
  // aborted, after which this throws: what was waited for is not there. `what`: a literal, for the error.
  void watched(const char* what, const std::function<void()>& work);

  void throw_if_aborted() const { group_.watch_.throw_if_aborted(); }
  void abort(const std::string& reason) noexcept { group_.abort(reason); }

 private:
  friend class NcclGroup;
  using Enqueue = std::function<NcclResult(NcclComm)>;

  NcclCommunicator(NcclGroup& group, LocalRank rank);
  void connect();
  void issue(const CollectiveCall& call, const Enqueue& enqueue);
  void settle(NcclResult result, const std::string& what);
  void check(NcclResult result, const std::string& what);
  [[noreturn]] void fail(const std::string& cause);

  NcclGroup& group_;
  const LocalRank rank_;
  NcclComm open_group_ = nullptr;  // inside together()
  bool failed_ = false;            // it was this rank that failed first
};

}  // namespace atl
