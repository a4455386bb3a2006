#include "trainer/island/outer_state_store.h"

#include <fmt/format.h>

#include <cstring>

#include "kernels/outer_nesterov.h"
#include "net/base/mutex.h"
#include "net/disk/outer_state_file.h"

namespace atl {
void OuterStateStore::hold() {
  manifest_ = make_state_manifest(version_, parameters_, momentum_);
  tree_hash_ = to_hex(manifest_.tree_hash());
}

void OuterStateStore::initialise(std::vector<float> parameters) {
  MutexLock lock(mutex_);
  version_ = OuterStep{0};
  parameters_ = std::move(parameters);
  momentum_.assign(parameters_.size(), 0.0f);
  hold();
}

void OuterStateStore::replace(FetchedState state) {
  MutexLock lock(mutex_);
  version_ = state.version;
  parameters_ = std::move(state.parameters);
  momentum_ = std::move(state.momentum);
  hold();
}

void OuterStateStore::apply(WireFormat wire, ByteView canonical, float learning_rate, float momentum) {
  MutexLock lock(mutex_);
  outer_nesterov(parameters_, momentum_, wire, canonical, OuterSgd{learning_rate, momentum});
  ++version_.value;
  hold();
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

Result<StateManifest> OuterStateStore::manifest() const {
  MutexLock lock(mutex_);
  if (!holds_state()) return Error{ErrorCode::kNotFound, "this island holds no outer state yet"};
  return manifest_;
}

Result<Bytes> OuterStateStore::copy_chunk(OuterStep version, std::uint64_t index) const {
  MutexLock lock(mutex_);
  if (!holds_state() || version != version_) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("outer step {} is not held here, but {}", version.value, version_.value)};
  }
  if (index >= manifest_.chunk_sha256.size()) return Error{ErrorCode::kInvalidArgument, "no such chunk"};
  const std::uint64_t begin = index * kStateChunkBytes;
  Bytes chunk(std::min<std::uint64_t>(kStateChunkBytes, manifest_.state_bytes - begin));
  // The state is parameters, then momentum; a chunk may span both.
  const std::uint64_t half = parameters_.size() * sizeof(float);
  const auto copy = [&](const std::vector<float>& part, std::uint64_t part_begin) {
    const std::uint64_t from = std::max(begin, part_begin);
    const std::uint64_t to = std::min(begin + chunk.size(), part_begin + half);
    if (from >= to) return;
    std::memcpy(chunk.data() + (from - begin), reinterpret_cast<const std::byte*>(part.data()) + (from - part_begin),
                to - from);
  };
  copy(parameters_, 0);
  copy(momentum_, half);
  return chunk;
}

Result<std::pair<OuterStep, std::vector<float>>> OuterStateStore::snapshot() const {
  MutexLock lock(mutex_);
  if (!holds_state())
    return Error{ErrorCode::kNotFound, "this island holds no outer state yet; try again after the first round"};
  return std::pair{version_, parameters_};
}

}  // namespace atl
