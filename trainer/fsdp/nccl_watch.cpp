#include "trainer/fsdp/nccl_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "trainer/fsdp/communicator.h"

namespace atl {
namespace {

std::string seconds(std::chrono::nanoseconds duration) { return fmt::format("{:.3g} s", Seconds(duration).count()); }

}  // namespace

NcclWatch::NcclWatch(const NcclApi& api, const CollectiveSequence& sequence, int world_size, NcclTimeouts timeouts)
    : api_(api),
      sequence_(sequence),
      timeouts_(timeouts),
      world_size_(static_cast<std::size_t>(world_size)),
      slots_(world_size_),
      thread_([this](const std::stop_token& stop) { watch(stop); }) {}

NcclWatch::~NcclWatch() {
  thread_.request_stop();
  thread_.join();
  std::vector<NcclComm> comms;
  bool whole = true;
  {
    const MutexLock lock(mutex_);
    for (const Slot& slot : slots_) {
      if (slot.comm != nullptr) comms.push_back(slot.comm);
      whole = whole && slot.ready;
    }
    whole = whole && !cause_;
  }
  if (!whole || !finalize(comms)) {
    abort(comms);
    return;
  }
  for (NcclComm comm : comms) (void)api_.comm_destroy(comm);
}

// True: everything that was enqueued has passed, within the deadline.
bool NcclWatch::finalize(const std::vector<NcclComm>& comms) const {
  const Deadline deadline = Deadline::after(timeouts_.call);
  for (NcclComm comm : comms) {
    const NcclResult result = api_.comm_finalize(comm);
    if (result != NcclResult::kSuccess && result != NcclResult::kInProgress) return false;
  }
  for (NcclComm comm : comms) {
    for (NcclResult state = NcclResult::kInProgress; state != NcclResult::kSuccess;) {
      if (api_.comm_get_async_error(comm, &state) != NcclResult::kSuccess) return false;
      if (state != NcclResult::kSuccess && state != NcclResult::kInProgress) return false;
      if (state == NcclResult::kInProgress && deadline.expired()) return false;
      if (state == NcclResult::kInProgress) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  return true;
}

// In a group, so that the kernels of all are told to end before any is waited for.
void NcclWatch::abort(const std::vector<NcclComm>& comms) const {
  if (comms.empty()) return;
  (void)api_.group_start();
  for (NcclComm comm : comms) (void)api_.comm_abort(comm);
  (void)api_.group_end();
}

NcclWatch::Activity::Activity(NcclWatch& watch, LocalRank rank, Doing doing, const char* what,
                              std::optional<CollectiveCall> call)
    : watch_(watch), rank_(rank) {
  const MutexLock lock(watch_.mutex_);
  Slot& slot = watch_.slot(rank);
  outer_ = std::exchange(slot.deed, {doing, what, call, Clock::now()});
  slot.came = true;
}

NcclWatch::Activity::~Activity() {
  const MutexLock lock(watch_.mutex_);
  watch_.slot(rank_).deed = outer_;
}

NcclWatch::Access::Access(NcclWatch& watch, LocalRank rank) : watch_(watch), rank_(rank) {
  MutexLock lock(watch_.mutex_);
  const auto mine = [&]() ATOLL_REQUIRES(watch_.mutex_) {
    return watch_.cause_.has_value() || watch_.slot(rank).holder == Holder::kNobody;
  };
  const bool passed = watch_.released_.wait(lock, Deadline::after(watch_.timeouts_.call), mine);
  if (watch_.cause_) throw CollectiveAborted(*watch_.cause_);
  if (!passed) {
    throw std::runtime_error(fmt::format("local rank {}: NCCL has not said within {} whether there was an error",
                                         rank.value, seconds(watch_.timeouts_.call)));
  }
  watch_.slot(rank).holder = Holder::kRank;
  comm_ = watch_.slot(rank).comm;
}

NcclWatch::Access::~Access() {
  {
    const MutexLock lock(watch_.mutex_);
    watch_.slot(rank_).holder = Holder::kNobody;
  }
  watch_.released_.notify_all();
}

void NcclWatch::Access::adopt(NcclComm comm) {
  {
    const MutexLock lock(watch_.mutex_);
    if (!watch_.cause_) {
      watch_.slot(rank_).comm = comm_ = comm;
      return;
    }
  }
  (void)watch_.api_.comm_abort(comm);
  watch_.throw_if_aborted();
}

void NcclWatch::set_ready(LocalRank rank) {
  const MutexLock lock(mutex_);
  slot(rank).ready = true;
}

bool NcclWatch::fail(const std::string& cause) noexcept {
  {
    const MutexLock lock(mutex_);
    if (cause_) return false;
    cause_ = cause;
  }
  failed_.notify_all();
  released_.notify_all();
  return true;
}

void NcclWatch::throw_if_aborted() const {
  const MutexLock lock(mutex_);
  if (cause_) throw CollectiveAborted(*cause_);
}

void NcclWatch::watch(const std::stop_token& stop) {
  while (!wait_for_trouble(stop)) {
    if (stop.stop_requested()) return;
    look();
  }
  abort_all();
}

bool NcclWatch::wait_for_trouble(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  return failed_.wait(lock, stop, Deadline::after(timeouts_.poll),
                      [&]() ATOLL_REQUIRES(mutex_) { return cause_.has_value(); });
}

void NcclWatch::look() {
  if (const auto late = overdue()) {
    (void)fail(*late);
    return;
  }
  for (std::size_t rank = 0; rank < world_size_; ++rank) {
    NcclComm comm = lend(rank);
    if (comm == nullptr) continue;
    NcclResult state = NcclResult::kSuccess;
    const NcclResult asked = api_.comm_get_async_error(comm, &state);
    const NcclResult result = asked == NcclResult::kSuccess ? state : asked;
    if (result != NcclResult::kSuccess && result != NcclResult::kInProgress) {
      (void)fail(fmt::format("local rank {}: NCCL: {} ({})", rank, api_.get_error_string(result),
                             api_.get_last_error(nullptr)));
    }
    give_back(rank);
  }
}

// The watch has access to the communicator until give_back(). Null: there is none, or its rank has it.
NcclComm NcclWatch::lend(std::size_t rank) {
  const MutexLock lock(mutex_);
  Slot& slot = slots_[rank];
  if (slot.comm == nullptr || slot.holder != Holder::kNobody) return nullptr;
  slot.holder = Holder::kWatch;
  return slot.comm;
}

void NcclWatch::give_back(std::size_t rank) {
  {
    const MutexLock lock(mutex_);
    slots_[rank].holder = Holder::kNobody;
  }
  released_.notify_all();
}

std::chrono::nanoseconds NcclWatch::limit(Doing doing) const {
  switch (doing) {
    case Doing::kInit: return timeouts_.init;
    case Doing::kCall: return timeouts_.call;
    case Doing::kWait: return timeouts_.wait;
    case Doing::kNothing: break;
  }
  return std::chrono::nanoseconds::max();
}

std::optional<std::string> NcclWatch::overdue() const {
  const MutexLock lock(mutex_);
  const Clock::time_point now = Clock::now();
  for (std::size_t rank = 0; rank < world_size_; ++rank) {
    const Deed& deed = slots_[rank].deed;
    if (deed.doing != Doing::kNothing && now - deed.since > limit(deed.doing)) return describe(rank);
  }
  return std::nullopt;
}

std::string NcclWatch::describe(std::size_t rank) const {
  const Deed& deed = slots_[rank].deed;
  if (deed.doing == Doing::kInit) return describe_init();
  const std::string what = deed.call ? to_string(*deed.call) : deed.what;
  return deed.doing == Doing::kCall ? fmt::format("local rank {} has not come back from enqueuing {} within {}{}", rank,
                                                  what, seconds(timeouts_.call), describe_peers(rank))
                                    : fmt::format("local rank {} waited {} for {}{}", rank, seconds(timeouts_.wait),
                                                  what, describe_peers(rank));
}

std::string NcclWatch::describe_init() const {
  std::vector<std::size_t> absent, waiting;
  for (std::size_t rank = 0; rank < world_size_; ++rank) {
    if (!slots_[rank].came) absent.push_back(rank);
    if (!slots_[rank].ready) waiting.push_back(rank);
  }
  const std::string start = fmt::format("NCCL has not connected the local ranks within {}", seconds(timeouts_.init));
  if (!absent.empty()) return fmt::format("{}: rank {} never came", start, fmt::join(absent, ", "));
  return fmt::format("{}: rank {} is not ready", start, fmt::join(waiting, ", "));
}

// Who has issued fewer collectives than another is who the others wait for.
std::string NcclWatch::describe_peers(std::size_t rank) const {
  const CollectiveSequence::Progress progress = sequence_.progress();
  std::vector<std::size_t> behind;
  for (std::size_t peer = 0; peer < world_size_; ++peer) {
    if (peer != rank && progress.issued[peer] < progress.most) behind.push_back(peer);
  }
  if (!behind.empty()) {
    return fmt::format(": local rank {} did not come to collective {}, {}", fmt::join(behind, ", "), progress.most,
                       to_string(progress.last));
  }
  return fmt::format(": all local ranks have come to collective {}, so a GPU or a link between GPUs stands still",
                     progress.most);
}

// The communicator is no rank's from now on. Null: there is none, or with no grace its rank has it.
NcclComm NcclWatch::take(std::size_t rank, std::chrono::nanoseconds grace) {
  MutexLock lock(mutex_);
  Slot& slot = slots_[rank];
  const bool free = released_.wait(lock, Deadline::after(grace),
                                   [&]() ATOLL_REQUIRES(mutex_) { return slot.holder == Holder::kNobody; });
  if (!free && grace == std::chrono::nanoseconds::zero()) return nullptr;
  return std::exchange(slot.comm, nullptr);
}

// A rank that does not come back from NCCL waits for peers that are aborted by then, or hangs: then nothing but the
// abort can free it.
void NcclWatch::abort_all() {
  for (const auto grace : {std::chrono::nanoseconds::zero(), timeouts_.grace}) {
    std::vector<NcclComm> comms;
    for (std::size_t rank = 0; rank < world_size_; ++rank) {
      if (NcclComm comm = take(rank, grace)) comms.push_back(comm);
    }
    abort(comms);
  }
}

}  // namespace atl
