#include "net/recovery/incoming_state.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace atl {
namespace {

constexpr std::size_t kChunksWaiting = 16;         // 256 MiB of copies
constexpr std::uint64_t kFlushBytes = 256u << 20;  // or
constexpr std::chrono::seconds kFlushAfter{5};     // later: what a crash costs
constexpr std::uint64_t kWrittenAtEnd = 1u << 30;  // at most, or
constexpr std::uint64_t kWrittenShare = 8;         // the state's eighth

Bytes bytes_of(const PartialState& state, std::uint64_t index) {
  const ByteView parameters = std::as_bytes(state.parameters(index)), momentum = std::as_bytes(state.momentum(index));
  Bytes bytes;
  bytes.reserve(parameters.size() + momentum.size());
  bytes.insert(bytes.end(), parameters.begin(), parameters.end());
  bytes.insert(bytes.end(), momentum.begin(), momentum.end());
  return bytes;
}

void remove_with_all(const std::filesystem::path& directory) {
  std::error_code failed;
  std::filesystem::remove_all(directory, failed);
  if (failed) spdlog::warn("recovery directory={} error=\"{}\"", directory.string(), failed.message());
}

}  // namespace

IncomingState::IncomingState(std::filesystem::path directory, std::uint64_t numel,
                             std::function<void(const std::string&)> trouble)
    : directory_(std::move(directory)), numel_(numel), trouble_(std::move(trouble)), items_(kChunksWaiting) {}

IncomingState::~IncomingState() { end_writing(); }

bool IncomingState::open() {
  if (writer_) return true;
  if (failed_) return false;
  Result<SnapshotWriter> writer = SnapshotWriter::open(directory_, numel_);
  if (!writer.ok()) {
    fail(writer.error());
    return false;
  }
  writer_.emplace(std::move(*writer));
  return true;
}

// Said once: the fetch goes on.
void IncomingState::fail(const Error& error) {
  if (failed_.exchange(true)) return;
  spdlog::warn("recovery directory={} error=\"{}\"", directory_.string(), error.message);
  trouble_(fmt::format("what is fetched is kept in memory alone: {}. The fetch goes on, but a crash loses it",
                       error.message));
}

void IncomingState::read_into(PartialState& state) {
  std::error_code ignored;
  if (!std::filesystem::exists(directory_, ignored) || !open()) return;
  const std::vector<std::optional<StoredChunk>> found = writer_->chunks();
  std::uint64_t read = 0;
  for (std::uint64_t index = 0; index < found.size(); ++index) {
    const std::optional<StoredChunk>& here = state.chunk(index);
    if (!found[index] || (here && here->step >= found[index]->step)) continue;
    const Result<Bytes> bytes = writer_->read(index);
    if (!bytes.ok() || bytes->size() != state.chunk_bytes(index)) continue;
    state.put(index, *found[index], *bytes);
    ++read;
  }
  spdlog::info("recovery from=disk chunks={}", read);
}

void IncomingState::put(std::uint64_t index, const PartialState& state) {
  if (failed_) return;
  if (!thread_.joinable()) thread_ = std::jthread([this] { write_what_comes(); });
  (void)items_.push({index, *state.chunk(index), bytes_of(state, index)});
}

void IncomingState::write_what_comes() {
  std::uint64_t unflushed = 0;
  auto flushed = Clock::now();
  for (;;) {
    const std::optional<Item> item = items_.pop(Deadline::at(flushed + kFlushAfter));
    if (!item && items_.closed()) return;
    if (item && !failed_ && open()) {
      if (const Status put = writer_->put(item->index, item->chunk, item->bytes); !put.ok()) fail(put.error());
      unflushed += item->bytes.size();
    }
    const auto now = Clock::now();
    if (unflushed < kFlushBytes && now - flushed < kFlushAfter) continue;
    flushed = now;
    if (unflushed == 0 || failed_ || !writer_) continue;
    if (const Status done = writer_->flush(); !done.ok()) fail(done.error());
    unflushed = 0;
  }
}

void IncomingState::end_writing() {
  items_.close();
  if (thread_.joinable()) thread_.join();
  if (writer_ && !failed_) {
    if (const Status done = writer_->flush(); !done.ok()) fail(done.error());
  }
}

Result<bool> IncomingState::finish(const PartialState& state, const HeldState& held,
                                   const std::filesystem::path& place) && {
  end_writing();
  const auto is_missing = [&](std::uint64_t index) {
    return !writer_ || writer_->chunks()[index] != state.chunk(index);
  };
  std::uint64_t missing = 0;
  for (std::uint64_t index = 0; index < state.chunks(); ++index) {
    if (is_missing(index)) missing += state.chunk_bytes(index);
  }
  const bool too_much = missing > std::max(kWrittenAtEnd, state.state_bytes() / kWrittenShare);
  if (failed_ || too_much || !open()) {
    std::move(*this).remove();
    return false;
  }
  for (std::uint64_t index = 0; index < state.chunks(); ++index) {
    if (!is_missing(index)) continue;
    ATOLL_RETURN_IF_ERROR(writer_->put(index, *state.chunk(index), bytes_of(state, index)));
  }
  SnapshotWriter whole = std::move(*writer_);
  writer_.reset();
  ATOLL_RETURN_IF_ERROR(std::move(whole).finish(held, place));
  return true;
}

void IncomingState::remove() && {
  failed_ = true;  // nothing is flushed any more
  end_writing();
  writer_.reset();
  remove_with_all(directory_);
}

}  // namespace atl
