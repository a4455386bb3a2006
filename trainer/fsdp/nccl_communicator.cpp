#include "trainer/fsdp/nccl_communicator.h"

#include <fmt/format.h>

#include <stdexcept>
#include <thread>

#include "trainer/fsdp/communicator.h"

namespace atl {
namespace {

NcclDataType nccl_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return NcclDataType::kFloat32;
    case DType::kBfloat16: return NcclDataType::kBfloat16;
    case DType::kInt32: return NcclDataType::kInt32;
    case DType::kFloat64: return NcclDataType::kFloat64;
  }
  throw std::logic_error("a collective of a type that NCCL does not have");
}

std::string words_of(const NcclApi& api, NcclResult result) {
  return fmt::format("NCCL: {} ({})", api.get_error_string(result), api.get_last_error(nullptr));
}

// Open from construction until end() or, when something is thrown in between, its destruction: groups nest, and one
// that stays open swallows everything that its thread calls later.
class OpenGroup {
 public:
  explicit OpenGroup(const NcclApi& api) : api_(api), open_(api.group_start() == NcclResult::kSuccess) {}
  ~OpenGroup() {
    if (open_) (void)api_.group_end();
  }
  OpenGroup(const OpenGroup&) = delete;
  OpenGroup& operator=(const OpenGroup&) = delete;

  bool open() const { return open_; }
  NcclResult end() {
    open_ = false;
    return api_.group_end();
  }

 private:
  const NcclApi& api_;
  bool open_;
};

}  // namespace

NcclGroup::NcclGroup(const NcclApi& api, int world_size, NcclTimeouts timeouts)
    : api_(api), world_size_(world_size), sequence_(world_size), watch_(api_, sequence_, world_size, timeouts) {
  if (const NcclResult result = api_.get_unique_id(&id_); result != NcclResult::kSuccess) {
    throw std::runtime_error("start NCCL: " + words_of(api_, result));
  }
}

std::unique_ptr<NcclCommunicator> NcclGroup::communicator(LocalRank rank) {
  std::unique_ptr<NcclCommunicator> communicator(new NcclCommunicator(*this, rank));
  communicator->connect();
  return communicator;
}

NcclCommunicator::NcclCommunicator(NcclGroup& group, LocalRank rank) : group_(group), rank_(rank) {}

void NcclCommunicator::connect() {
  const NcclWatch::Activity activity(group_.watch_, rank_, NcclWatch::Doing::kInit, "NCCL's start");
  NcclConfig config;
  NcclResult result = NcclResult::kSuccess;
  {
    NcclWatch::Access access(group_.watch_, rank_);
    NcclComm comm = nullptr;
    result = group_.api_.comm_init_rank_config(&comm, world_size(), group_.id_, rank_.value, &config);
    if (comm != nullptr) access.adopt(comm);
  }
  settle(result, "connect NCCL");
  group_.watch_.set_ready(rank_);
}

void NcclCommunicator::all_gather(DType dtype, const void* shard, void* full, std::size_t shard_elements,
                                  GpuStream stream) {
  issue({CollectiveKind::kAllGather, dtype, shard_elements}, [&](NcclComm comm) {
    return group_.api_.all_gather(shard, full, shard_elements, nccl_type(dtype), comm, stream);
  });
}

void NcclCommunicator::reduce_scatter(const float* full, float* shard, std::size_t shard_elements, GpuStream stream) {
  issue({CollectiveKind::kReduceScatter, DType::kFloat32, shard_elements}, [&](NcclComm comm) {
    return group_.api_.reduce_scatter(full, shard, shard_elements, NcclDataType::kFloat32, NcclRedOp::kSum, comm,
                                      stream);
  });
}

void NcclCommunicator::all_reduce_sum(double* values, std::size_t count, GpuStream stream) {
  issue({CollectiveKind::kAllReduce, DType::kFloat64, count}, [&](NcclComm comm) {
    return group_.api_.all_reduce(values, values, count, NcclDataType::kFloat64, NcclRedOp::kSum, comm, stream);
  });
}

void NcclCommunicator::issue(const CollectiveCall& call, const Enqueue& enqueue) {
  throw_if_aborted();
  if (const auto mismatch = group_.sequence_.note(rank_, call)) fail(*mismatch);
  if (open_group_ != nullptr) {
    const NcclResult result = enqueue(open_group_);
    if (result != NcclResult::kInProgress) check(result, to_string(call));
    return;
  }
  const NcclWatch::Activity activity(group_.watch_, rank_, NcclWatch::Doing::kCall, "", call);
  NcclResult result = NcclResult::kSuccess;
  {
    const NcclWatch::Access access(group_.watch_, rank_);
    result = enqueue(access.comm());
  }
  if (result != NcclResult::kSuccess) settle(result, to_string(call));
}

void NcclCommunicator::together(const std::function<void()>& enqueue) {
  const NcclWatch::Activity activity(group_.watch_, rank_, NcclWatch::Doing::kCall, "a group of collectives");
  NcclResult result = NcclResult::kSuccess;
  {
    // Also between the calls: the group refers to the communicator until it is closed.
    const NcclWatch::Access access(group_.watch_, rank_);
    OpenGroup group(group_.api_);
    if (!group.open()) fail(fmt::format("local rank {}: NCCL does not open a group", rank_.value));
    open_group_ = access.comm();
    try {
      enqueue();
    } catch (...) {
      open_group_ = nullptr;
      throw;
    }
    open_group_ = nullptr;
    result = group.end();
  }
  settle(result, "a group of collectives");
}

// NCCL does the rest of a call on a thread of its own. How long that may take is the watch's to say.
void NcclCommunicator::settle(NcclResult result, const std::string& what) {
  for (auto pause = std::chrono::microseconds(10); result == NcclResult::kInProgress;
       pause = std::min(2 * pause, std::chrono::microseconds(1000))) {
    std::this_thread::sleep_for(pause);
    const NcclWatch::Access access(group_.watch_, rank_);
    check(group_.api_.comm_get_async_error(access.comm(), &result), what);
  }
  check(result, what);
}

void NcclCommunicator::check(NcclResult result, const std::string& what) {
  if (result != NcclResult::kSuccess) {
    fail(fmt::format("local rank {}: {}: {}", rank_.value, what, words_of(group_.api_, result)));
  }
}

void NcclCommunicator::fail(const std::string& cause) {
  failed_ = group_.watch_.fail(cause);
  if (!failed_) throw_if_aborted();
  throw std::runtime_error(cause);
}

void NcclCommunicator::watched(const char* what, const std::function<void()>& work) {
  throw_if_aborted();
  try {
    const NcclWatch::Activity activity(group_.watch_, rank_, NcclWatch::Doing::kWait, what);
    work();
  } catch (...) {
    if (!failed_) throw_if_aborted();  // an aborted GPU fails in ways that say nothing
    throw;
  }
  throw_if_aborted();
}

}  // namespace atl
