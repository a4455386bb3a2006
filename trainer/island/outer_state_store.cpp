#include "trainer/island/outer_state_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "kernels/outer_nesterov.h"
#include "net/base/mutex.h"
#include "net/disk/outer_state_file.h"

namespace atl {
namespace {

// The values of ranges, end to end, as places in the canonical order.
class RangeCursor {
 public:
  explicit RangeCursor(std::span<const ParameterRange> ranges) : ranges_(ranges) {}
  std::size_t place() const { return static_cast<std::size_t>(ranges_.front().offset + done_); }
  std::int64_t left_in_range() const { return ranges_.front().numel - done_; }
  bool in_last_range() const { return ranges_.size() == 1; }
  bool at_end() const { return ranges_.empty(); }
  void advance(std::int64_t count) {
    done_ += count;
    if (done_ < ranges_.front().numel) return;
    ranges_ = ranges_.subspan(1);
    done_ = 0;
  }

 private:
  std::span<const ParameterRange> ranges_;
  std::int64_t done_ = 0;  // values of the first
};

// The outer step on the ranges' values where they lie. A block of the average that goes over a range's end is stepped
// beside them: bit for bit the same, for values are stepped one by one.
void step_ranges(std::span<float> theta, std::span<float> velocity, std::span<const ParameterRange> ranges,
                 WireFormat wire, ByteView canonical, OuterSgd hyper) {
  const std::int64_t block = block_numel(wire);
  std::int64_t total = 0;
  for (const ParameterRange& range : ranges) total += range.numel;
  const auto bytes_of = [&](std::int64_t begin, std::int64_t count) {
    return canonical.subspan(static_cast<std::size_t>(encoded_bytes(wire, begin)),
                             static_cast<std::size_t>(encoded_bytes(wire, count)));
  };
  std::vector<float> theta_block(static_cast<std::size_t>(block)), velocity_block(theta_block.size());
  RangeCursor cursor(ranges);
  for (std::int64_t at = 0; at < total;) {  // a multiple of `block`
    const std::int64_t here = cursor.left_in_range();
    const std::int64_t in_place = cursor.in_last_range() ? here : here / block * block;
    if (in_place > 0) {
      const auto count = static_cast<std::size_t>(in_place);
      outer_nesterov(theta.subspan(cursor.place(), count), velocity.subspan(cursor.place(), count), wire,
                     bytes_of(at, in_place), hyper);
      cursor.advance(in_place);
      at += in_place;
      continue;
    }
    const std::int64_t count = std::min(block, total - at);
    const RangeCursor begin = cursor;
    const auto for_each_part = [&](auto&& part) {
      cursor = begin;
      for (std::int64_t done = 0; done < count;) {
        const std::int64_t size = std::min(count - done, cursor.left_in_range());
        part(cursor.place(), static_cast<std::size_t>(done), static_cast<std::size_t>(size));
        cursor.advance(size);
        done += size;
      }
    };
    for_each_part([&](std::size_t place, std::size_t in_block, std::size_t size) {
      std::copy_n(theta.data() + place, size, theta_block.data() + in_block);
      std::copy_n(velocity.data() + place, size, velocity_block.data() + in_block);
    });
    outer_nesterov(std::span(theta_block).first(static_cast<std::size_t>(count)),
                   std::span(velocity_block).first(static_cast<std::size_t>(count)), wire, bytes_of(at, count), hyper);
    for_each_part([&](std::size_t place, std::size_t in_block, std::size_t size) {
      std::copy_n(theta_block.data() + in_block, size, theta.data() + place);
      std::copy_n(velocity_block.data() + in_block, size, velocity.data() + place);
    });
    at += count;
  }
}

}  // namespace

void OuterStateStore::hold() {
  manifest_ = make_state_manifest(version_, parameters_, momentum_);
  tree_hash_ = to_hex(manifest_.tree_hash());
}

void OuterStateStore::initialise(std::vector<float> parameters) {
  MutexLock change(changing_);
  MutexLock lock(mutex_);
  version_ = OuterStep{0};
  parameters_ = std::move(parameters);
  momentum_.assign(parameters_.size(), 0.0f);
  hold();
}

void OuterStateStore::replace(FetchedState state) {
  MutexLock change(changing_);
  MutexLock lock(mutex_);
  version_ = state.version;
  parameters_ = std::move(state.parameters);
  momentum_ = std::move(state.momentum);
  hold();
}

HeldState OuterStateStore::apply(std::span<const ParameterRange> ranges, WireFormat wire, ByteView canonical,
                                 float learning_rate, float momentum) {
  MutexLock change(changing_);
  MutexLock lock(mutex_);
  step_ranges(parameters_, momentum_, ranges, wire, canonical, OuterSgd{learning_rate, momentum});
  ++version_.value;
  manifest_.version = version_;
  hash_again(ranges);
  tree_hash_ = to_hex(manifest_.tree_hash());
  return {version_, tree_hash_};
}

void OuterStateStore::hash_again(std::span<const ParameterRange> ranges) {
  std::set<std::uint64_t> touched;
  const std::uint64_t half = parameters_.size() * sizeof(float);
  for (const ParameterRange& range : ranges) {
    for (const std::uint64_t part : {std::uint64_t{0}, half}) {
      const std::uint64_t begin = part + static_cast<std::uint64_t>(range.offset) * sizeof(float);
      const std::uint64_t end = begin + static_cast<std::uint64_t>(range.numel) * sizeof(float);
      for (std::uint64_t chunk = begin / kStateChunkBytes; chunk * kStateChunkBytes < end; ++chunk) {
        touched.insert(chunk);
      }
    }
  }
  for (const std::uint64_t chunk : touched) manifest_.chunk_sha256[chunk] = chunk_digest(chunk);
}

Digest OuterStateStore::chunk_digest(std::uint64_t index) const {
  const std::uint64_t begin = index * kStateChunkBytes;
  const std::uint64_t end = begin + manifest_.chunk_bytes(index);
  const std::uint64_t half = parameters_.size() * sizeof(float);
  Sha256 hash;
  const auto add = [&](const std::vector<float>& part, std::uint64_t part_begin) {
    const std::uint64_t from = std::max(begin, part_begin);
    const std::uint64_t to = std::min(end, part_begin + half);
    if (from < to) hash.update(std::as_bytes(std::span(part)).subspan(from - part_begin, to - from));
  };
  add(parameters_, 0);
  add(momentum_, half);
  return hash.finish();
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
