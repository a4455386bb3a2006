#include "trainer/island/outer_state_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "net/disk/outer_state_file.h"
#include "net/recovery/outer_step.h"

namespace atl {

// Hashed before it takes the place of what is served.
void OuterStateStore::hold(FetchedState state) {
  StateManifest manifest = make_state_manifest(state.version, state.parameters, state.momentum);
  std::string hash = to_hex(manifest.tree_hash());
  MutexLock lock(mutex_);
  version_ = state.version;
  parameters_ = std::move(state.parameters);
  momentum_ = std::move(state.momentum);
  manifest_ = std::move(manifest);
  tree_hash_ = std::move(hash);
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

HeldState OuterStateStore::apply(std::span<const ParameterRange> ranges, WireFormat wire, ByteView canonical,
                                 float learning_rate, float momentum) {
  MutexLock change(changing_);
  {
    MutexLock lock(mutex_);
    steps_ = true;
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

FetchedState OuterStateStore::release() {
  MutexLock change(changing_);
  MutexLock lock(mutex_);
  tree_hash_.clear();
  manifest_ = {};
  return {version_, std::exchange(parameters_, {}), std::exchange(momentum_, {})};
}

Status OuterStateStore::save(const std::filesystem::path& file) const {
  if (!holds_state()) return ok_status();
  return write_outer_state(file, version_, parameters_, momentum_, tree_hash_);
}

Status OuterStateStore::load(const std::filesystem::path& file) {
  ATOLL_ASSIGN_OR_RETURN(FetchedState state, read_outer_state(file, static_cast<std::uint64_t>(numel_)));
  replace(std::move(state));
  return ok_status();
}

OuterStep OuterStateStore::current_version() const {
  MutexLock lock(mutex_);
  return version_;
}

Result<StateManifest> OuterStateStore::manifest() const {
  MutexLock lock(mutex_);
  if (!holds_state()) return Error{ErrorCode::kNotFound, "this island holds no outer state yet"};
  return manifest_;
}

Result<Bytes> OuterStateStore::copy_chunk(OuterStep version, std::uint64_t index) const {
  MutexLock lock(mutex_);
  if (!holds_state() || version != version_ || steps_) {
    return Error{ErrorCode::kNotFound, fmt::format("outer step {} is not held here, but {}", version.value,
                                                   steps_ ? version_.value + 1 : version_.value)};
  }
  if (index >= manifest_.chunk_sha256.size()) return Error{ErrorCode::kInvalidArgument, "no such chunk"};
  Bytes chunk(manifest_.chunk_bytes(index));
  const ByteView parameters = std::as_bytes(of_chunk(std::span(parameters_), index));
  const ByteView momentum = std::as_bytes(of_chunk(std::span(momentum_), index));
  std::ranges::copy(momentum, std::ranges::copy(parameters, chunk.begin()).out);
  return chunk;
}

Result<std::pair<OuterStep, std::vector<float>>> OuterStateStore::snapshot() const {
  MutexLock lock(mutex_);
  stepped_.wait(lock, [&]() ATOLL_REQUIRES(mutex_) { return !steps_; });
  if (!holds_state())
    return Error{ErrorCode::kNotFound, "this island holds no outer state yet; try again after the first round"};
  return std::pair{version_, parameters_};
}

}  // namespace atl
