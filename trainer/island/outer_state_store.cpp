#include "trainer/island/outer_state_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "net/recovery/outer_step.h"

namespace atl {
namespace {

Error holds_none() { return Error{ErrorCode::kNotFound, "this island holds no outer state yet"}; }

}  // namespace

// Of who copies values: made under the mutex, used without it.
class OuterStateStore::Reading {
 public:
  explicit Reading(const OuterStateStore& store) ATOLL_REQUIRES(store.mutex_) : store_(store) { ++store.readers_; }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading() {
    MutexLock lock(store_.mutex_);
    if (--store_.readers_ == 0) store_.unread_.notify_all();
  }

 private:
  const OuterStateStore& store_;
};

// Whoever comes now waits, or is refused.
void OuterStateStore::await_readers(MutexLock& lock) {
  steps_ = true;
  unread_.wait(lock, [&]() ATOLL_REQUIRES(mutex_) { return readers_ == 0; });
}

// Hashed before it takes the place of what is served.
void OuterStateStore::hold(FetchedState state) {
  StateManifest manifest = make_state_manifest(state.version, state.parameters, state.momentum);
  std::string hash = to_hex(manifest.tree_hash());
  MutexLock lock(mutex_);
  await_readers(lock);
  version_ = state.version;
  parameters_ = std::move(state.parameters);
  momentum_ = std::move(state.momentum);
  manifest_ = std::move(manifest);
  tree_hash_ = std::move(hash);
  ++generation_;
  steps_ = false;
  stepped_.notify_all();
}

void OuterStateStore::initialise(std::vector<float> parameters) {
  MutexLock change(changing_);
  std::vector<float> momentum(parameters.size());
  hold({OuterStep{0}, std::move(parameters), std::move(momentum)});
}

void OuterStateStore::replace(FetchedState state) {
  MutexLock change(changing_);
  hold(std::move(state));
}

FetchedState OuterStateStore::release() {
  MutexLock change(changing_);
  MutexLock lock(mutex_);
  await_readers(lock);
  FetchedState state{std::exchange(version_, {}), std::exchange(parameters_, {}), std::exchange(momentum_, {})};
  manifest_ = {};
  tree_hash_.clear();
  ++generation_;
  steps_ = false;
  stepped_.notify_all();
  return state;
}

HeldState OuterStateStore::apply(std::span<const ParameterRange> ranges, WireFormat wire, ByteView canonical,
                                 float learning_rate, float momentum) {
  MutexLock change(changing_);
  {
    MutexLock lock(mutex_);
    await_readers(lock);
  }
  StateManifest next{OuterStep{version_.value + 1}, manifest_.state_bytes, manifest_.chunk_sha256};
  outer_step(parameters_, momentum_, ranges, wire, canonical, OuterSgd{learning_rate, momentum}, next.chunk_sha256);
  HeldState held{next.version, to_hex(next.tree_hash())};
  MutexLock lock(mutex_);
  version_ = next.version;
  manifest_ = std::move(next);
  tree_hash_ = held.state_hash;
  steps_ = false;
  stepped_.notify_all();
  return held;
}

OuterStep OuterStateStore::current_version() const {
  MutexLock lock(mutex_);
  return version_;
}

Result<StateManifest> OuterStateStore::manifest() const {
  MutexLock lock(mutex_);
  if (!holds_state()) return holds_none();
  return manifest_;
}

Result<HeldState> OuterStateStore::held() const {
  MutexLock lock(mutex_);
  if (!holds_state()) return holds_none();
  return HeldState{version_, tree_hash_};
}

Result<std::uint64_t> OuterStateStore::held_numel() const {
  MutexLock lock(mutex_);
  if (!holds_state()) return holds_none();
  return parameters_.size();
}

void OuterStateStore::copy_values(std::uint64_t index, Bytes& bytes) const {
  bytes.resize(manifest_.chunk_bytes(index));
  const ByteView parameters = std::as_bytes(of_chunk(std::span(parameters_), index));
  const ByteView momentum = std::as_bytes(of_chunk(std::span(momentum_), index));
  std::ranges::copy(momentum, std::ranges::copy(parameters, bytes.begin()).out);
}

Result<CopiedChunk> OuterStateStore::copy_chunk(std::uint64_t index, Bytes& bytes) const {
  MutexLock lock(mutex_);
  stepped_.wait(lock, [&]() ATOLL_REQUIRES(mutex_) { return !steps_; });
  if (!holds_state()) return holds_none();
  if (index >= manifest_.chunk_sha256.size()) return Error{ErrorCode::kInvalidArgument, "no such chunk"};
  CopiedChunk copied{{version_, tree_hash_}, manifest_.chunk_sha256[index], generation_};
  const Reading reading(*this);
  lock.unlock();
  copy_values(index, bytes);
  return copied;
}

Result<Bytes> OuterStateStore::copy_chunk(OuterStep version, std::uint64_t index) const {
  MutexLock lock(mutex_);
  if (!holds_state() || version != version_ || steps_) {
    return Error{ErrorCode::kNotFound, fmt::format("outer step {} is not held here, but {}", version.value,
                                                   steps_ ? version_.value + 1 : version_.value)};
  }
  if (index >= manifest_.chunk_sha256.size()) return Error{ErrorCode::kInvalidArgument, "no such chunk"};
  const Reading reading(*this);
  lock.unlock();
  Bytes chunk;
  copy_values(index, chunk);
  return chunk;
}

Result<std::pair<OuterStep, std::vector<float>>> OuterStateStore::snapshot() const {
  MutexLock lock(mutex_);
  stepped_.wait(lock, [&]() ATOLL_REQUIRES(mutex_) { return !steps_; });
  if (!holds_state())
    return Error{ErrorCode::kNotFound, "this island holds no outer state yet; try again after the first round"};
  const Reading reading(*this);
  const OuterStep version = version_;
  lock.unlock();
  return std::pair{version, parameters_};
}

Result<StateManifest> ServedOuterState::manifest() const {
  const auto outer = newest_();
  return outer ? outer->manifest() : holds_none();
}

Result<Bytes> ServedOuterState::copy_chunk(OuterStep version, std::uint64_t index) const {
  const auto outer = newest_();
  return outer ? outer->copy_chunk(version, index) : holds_none();
}

}  // namespace atl
