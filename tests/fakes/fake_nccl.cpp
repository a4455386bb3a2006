#include "tests/fakes/fake_nccl.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

namespace atl::test {
namespace {

enum Kind { kAllGather, kReduceScatter, kAllReduce };

std::size_t size_of(NcclDataType type) {
  return type == NcclDataType::kBfloat16 ? 2 : type == NcclDataType::kFloat64 ? 8 : 4;
}

std::size_t bytes_sent(int kind, std::size_t elements, NcclDataType type, int ranks) {
  return elements * size_of(type) * (kind == kReduceScatter ? static_cast<std::size_t>(ranks) : 1);
}

// receive[i] = the sum over ranks, in rank order, of sent[first + i].
template <class T>
void sum(const std::map<int, std::vector<std::byte>>& sent, std::size_t first, std::size_t count, void* receive) {
  for (std::size_t i = 0; i < count; ++i) {
    T total = 0;
    for (const auto& [rank, bytes] : sent) {
      T value = 0;
      std::memcpy(&value, bytes.data() + (first + i) * sizeof(T), sizeof(T));
      total += value;
    }
    std::memcpy(static_cast<std::byte*>(receive) + i * sizeof(T), &total, sizeof(T));
  }
}

}  // namespace

// What a communicator points to. Touched with the fake's lock held alone.
struct FakeNccl::Comm {
  FakeNccl& owner;
  const std::uint64_t clique;
  const int rank;
  const int ranks;
  std::uint64_t issued = 0;
  int flying = 0;             // collectives enqueued and not done
  std::uint64_t pending = 0;  // how often it will still say that it is in progress
  bool failed = false;        // asynchronously
  bool gone = false;          // destroyed or aborted
  bool blocked = false;       // a call waits inside for the abort
  bool grouped = false;       // in a group that is open
  bool in_use = false;
};

namespace {

std::atomic<FakeNccl*> current = nullptr;

FakeNccl::Comm& comm_of(NcclComm comm) { return *reinterpret_cast<FakeNccl::Comm*>(comm); }

}  // namespace

// A call's use of a communicator: one at a time, and none when it is gone.
class FakeNccl::Use {
 public:
  explicit Use(Comm& comm) : comm_(comm) {
    const MutexLock lock(comm.owner.mutex_);
    ok_ = !comm.gone;
    if (comm.gone || comm.in_use) ++comm.owner.counts_.misuses;
    comm.in_use = true;
  }
  ~Use() {
    const MutexLock lock(comm_.owner.mutex_);
    comm_.in_use = false;
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  bool ok() const { return ok_; }

 private:
  Comm& comm_;
  bool ok_ = false;
};

struct FakeNccl::Functions {
  struct Group {
    int depth = 0;
    std::vector<std::pair<Comm*, Call>> calls;
  };
  static Group& group() {
    thread_local Group group;
    return group;
  }
  struct Id {
    FakeNccl* fake;
    std::uint64_t clique;
  };

  static NcclResult get_version(int* version) {
    *version = kOldestNccl;
    return NcclResult::kSuccess;
  }
  static NcclResult get_unique_id(NcclUniqueId* id) {
    FakeNccl* fake = current;
    const MutexLock lock(fake->mutex_);
    const Id own{fake, ++fake->cliques_};
    std::memcpy(id->internal, &own, sizeof(own));
    return NcclResult::kSuccess;
  }
  static NcclResult comm_init_rank_config(NcclComm* comm, int ranks, NcclUniqueId id, int rank, NcclConfig* config) {
    Id own{};
    std::memcpy(&own, id.internal, sizeof(own));
    return own.fake->connect(comm, ranks, own.clique, rank, *config);
  }
  static NcclResult comm_get_async_error(NcclComm comm, NcclResult* error) {
    const Use use(comm_of(comm));
    if (!use.ok()) return NcclResult::kInvalidArgument;
    *error = comm_of(comm).owner.state(comm_of(comm));
    return NcclResult::kSuccess;
  }
  static NcclResult comm_abort(NcclComm comm) { return comm_of(comm).owner.retire(comm_of(comm), true); }
  static NcclResult comm_destroy(NcclComm comm) { return comm_of(comm).owner.retire(comm_of(comm), false); }
  static NcclResult comm_finalize(NcclComm comm) {
    const Use use(comm_of(comm));
    return use.ok() ? NcclResult::kInProgress : NcclResult::kInvalidArgument;
  }

  static NcclResult group_start() {
    ++group().depth;
    FakeNccl* fake = current;
    const MutexLock lock(fake->mutex_);
    ++fake->counts_.groups;
    ++fake->counts_.open_groups;
    return NcclResult::kSuccess;
  }
  static NcclResult group_end() {
    {
      FakeNccl* fake = current;
      const MutexLock lock(fake->mutex_);
      --fake->counts_.open_groups;
    }
    if (--group().depth > 0) return NcclResult::kSuccess;
    NcclResult result = NcclResult::kSuccess;
    for (const auto& [comm, call] : std::exchange(group().calls, {})) {
      {
        const MutexLock lock(comm->owner.mutex_);
        comm->grouped = false;
      }
      const Use use(*comm);
      if (!use.ok()) return NcclResult::kInvalidArgument;
      const NcclResult one = comm->owner.launch(*comm, call);
      if (one != NcclResult::kSuccess && result != NcclResult::kInvalidUsage) result = one;
    }
    return result;
  }

  static NcclResult issue(NcclComm comm, const Call& call) {
    const Use use(comm_of(comm));
    if (!use.ok()) return NcclResult::kInvalidArgument;
    if (group().depth == 0) return comm_of(comm).owner.launch(comm_of(comm), call);
    const MutexLock lock(comm_of(comm).owner.mutex_);
    comm_of(comm).grouped = true;
    group().calls.emplace_back(&comm_of(comm), call);
    return NcclResult::kSuccess;
  }
  static NcclResult all_gather(const void* send, void* receive, std::size_t count, NcclDataType type, NcclComm comm,
                               GpuStream stream) {
    return issue(comm, {kAllGather, count, type, send, receive, stream});
  }
  static NcclResult reduce_scatter(const void* send, void* receive, std::size_t count, NcclDataType type, NcclRedOp,
                                   NcclComm comm, GpuStream stream) {
    return issue(comm, {kReduceScatter, count, type, send, receive, stream});
  }
  static NcclResult all_reduce(const void* send, void* receive, std::size_t count, NcclDataType type, NcclRedOp,
                               NcclComm comm, GpuStream stream) {
    return issue(comm, {kAllReduce, count, type, send, receive, stream});
  }

  static const char* get_error_string(NcclResult result) {
    return result == NcclResult::kRemoteError ? "remote process exited or there was a network error"
                                              : "unhandled error";
  }
  static const char* get_last_error(NcclComm) { return "the fake was told to"; }
};

FakeNccl::FakeNccl(std::uint64_t seed) : random_(seed) {
  if (current.exchange(this) != nullptr) std::abort();  // one at a time
}
FakeNccl::~FakeNccl() { current = nullptr; }

NcclApi FakeNccl::api() {
  NcclApi api;
  api.get_version = Functions::get_version;
  api.get_unique_id = Functions::get_unique_id;
  api.comm_init_rank_config = Functions::comm_init_rank_config;
  api.comm_get_async_error = Functions::comm_get_async_error;
  api.comm_abort = Functions::comm_abort;
  api.comm_finalize = Functions::comm_finalize;
  api.comm_destroy = Functions::comm_destroy;
  api.group_start = Functions::group_start;
  api.group_end = Functions::group_end;
  api.all_gather = Functions::all_gather;
  api.reduce_scatter = Functions::reduce_scatter;
  api.all_reduce = Functions::all_reduce;
  api.get_error_string = Functions::get_error_string;
  api.get_last_error = Functions::get_last_error;
  return api;
}

void FakeNccl::break_rank(int rank, NcclFault fault, int collective) {
  const MutexLock lock(mutex_);
  faults_[rank] = {fault, static_cast<std::uint64_t>(collective)};
}

FakeNccl::Counts FakeNccl::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

bool FakeNccl::broken(const Comm& comm, NcclFault fault, std::uint64_t collective) const {
  const auto found = faults_.find(comm.rank);
  return found != faults_.end() && found->second.first == fault && collective >= found->second.second;
}

NcclResult FakeNccl::connect(NcclComm* comm, int ranks, std::uint64_t clique, int rank, const NcclConfig& config) {
  if (config.blocking != 0 || config.size != sizeof(NcclConfig) || config.magic != 0xcafebeef) {
    return NcclResult::kInvalidArgument;
  }
  const MutexLock lock(mutex_);
  comms_.push_back(std::unique_ptr<Comm>(new Comm{*this, clique, rank, ranks}));
  comms_.back()->pending = random_() % 4;
  ++counts_.open_comms;
  *comm = reinterpret_cast<NcclComm>(comms_.back().get());
  return NcclResult::kInProgress;
}

bool FakeNccl::connected(std::uint64_t clique) const {
  int came = 0, ranks = 0;
  for (const auto& comm : comms_) {
    if (comm->clique != clique) continue;
    ++came;
    ranks = comm->ranks;
    if (broken(*comm, NcclFault::kInitNeverCompletes, 1)) return false;
  }
  return came == ranks;
}

NcclResult FakeNccl::state(Comm& comm) {
  const MutexLock lock(mutex_);
  if (comm.failed) return NcclResult::kRemoteError;
  if (!connected(comm.clique)) return NcclResult::kInProgress;
  if (comm.pending > 0) {
    --comm.pending;
    return NcclResult::kInProgress;
  }
  return NcclResult::kSuccess;
}

NcclResult FakeNccl::launch(Comm& comm, const Call& call) {
  MutexLock lock(mutex_);
  const std::uint64_t number = ++comm.issued;
  if (broken(comm, NcclFault::kCallFails, number)) return NcclResult::kInvalidUsage;
  if (broken(comm, NcclFault::kCallBlocks, number)) {
    comm.blocked = true;
    changed_.wait(lock, [&]() ATOLL_REQUIRES(mutex_) { return comm.gone; });
    return NcclResult::kInternalError;
  }
  comm.pending = random_() % 4;
  if (broken(comm, NcclFault::kCallNeverCompletes, number)) {
    comm.pending = std::numeric_limits<std::uint64_t>::max();
    return NcclResult::kInProgress;
  }
  const bool fails = broken(comm, NcclFault::kAsynchronousError, number);
  const bool hangs = fails || broken(comm, NcclFault::kCollectiveHangs, number);
  ++comm.flying;
  static_cast<FakeStream*>(call.stream)->enqueue([this, &comm, number, fails, hangs, call] {
    {
      const MutexLock inner(mutex_);
      comm.failed = comm.failed || fails;
    }
    meet(comm, number, hangs, call);
  });
  return comm.pending > 0 ? NcclResult::kInProgress : NcclResult::kSuccess;
}

// On the stream's thread.
void FakeNccl::meet(Comm& comm, std::uint64_t number, bool hangs, const Call& call) {
  MutexLock lock(mutex_);
  if (hangs) {
    changed_.wait(lock, [&]() ATOLL_REQUIRES(mutex_) { return comm.gone; });
    return;
  }
  Meeting& meeting = meetings_[{comm.clique, number}];
  const auto* bytes = static_cast<const std::byte*>(call.send);
  if (meeting.sent.empty()) meeting.first = call;
  const Call& first = meeting.first;
  meeting.agree =
      meeting.agree && first.kind == call.kind && first.elements == call.elements && first.type == call.type;
  meeting.sent[comm.rank].assign(bytes, bytes + bytes_sent(call.kind, call.elements, call.type, comm.ranks));
  changed_.notify_all();
  changed_.wait(lock, [&]() ATOLL_REQUIRES(mutex_) {
    return comm.gone || (meeting.agree && meeting.sent.size() == static_cast<std::size_t>(comm.ranks));
  });
  if (comm.gone) return;
  const std::size_t first_element =
      call.kind == kReduceScatter ? static_cast<std::size_t>(comm.rank) * call.elements : 0;
  if (call.kind == kAllGather) {
    auto* to = static_cast<std::byte*>(call.receive);
    for (const auto& [rank, sent] : meeting.sent) to = std::copy(sent.begin(), sent.end(), to);
  } else if (call.type == NcclDataType::kFloat64) {
    sum<double>(meeting.sent, first_element, call.elements, call.receive);
  } else {
    sum<float>(meeting.sent, first_element, call.elements, call.receive);
  }
  --comm.flying;
  if (++meeting.left == comm.ranks) meetings_.erase({comm.clique, number});
}

NcclResult FakeNccl::retire(Comm& comm, bool aborted) {
  const MutexLock lock(mutex_);
  // Work under way may be aborted; it may not be destroyed. A call may be aborted from outside only when it is stuck.
  const bool busy = comm.grouped || (comm.in_use && !comm.blocked) || (!aborted && comm.flying > 0);
  if (comm.gone || busy) ++counts_.misuses;
  if (comm.gone) return NcclResult::kInvalidArgument;
  comm.gone = true;
  --counts_.open_comms;
  ++(aborted ? counts_.aborted : counts_.destroyed);
  changed_.notify_all();
  return NcclResult::kSuccess;
}

}  // namespace atl::test
