#include "net/recovery/fetched_rounds.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "net/recovery/outer_state.h"

namespace atl {
namespace {

constexpr std::size_t kPiecesWaiting = 512;  // 128 MiB of copies
constexpr std::chrono::seconds kLongestIdle{60};

}  // namespace

FetchedRounds::FetchedRounds(RoundLog log, std::uint64_t numel, std::uint32_t fragments)
    : log_(std::move(log)), numel_(numel), fragments_(fragments), items_(kPiecesWaiting) {}

FetchedRounds::~FetchedRounds() { end_writing(); }

// ---- what comes

void FetchedRounds::piece_came(const RoundManifest& round, std::size_t piece, ByteView bytes) {
  std::shared_ptr<const Average>& average = averages_[round.record.commit.round];
  if (!average || average->record.commit.digest != round.record.commit.digest) {
    average = std::make_shared<const Average>(Average{round.record, round.wire, round.bytes, round.pieces.size()});
  }
  if (!thread_.joinable()) thread_ = std::jthread([this] { write_what_comes(); });
  (void)items_.push({average, piece, Bytes(bytes.begin(), bytes.end())});
}

void FetchedRounds::chunk_was(std::uint64_t chunk, OuterStep from, std::span<const Digest> digests) {
  for (const Digest& digest : digests) {
    std::vector<std::optional<Digest>>& chunks = digests_[from];
    chunks.resize(state_chunks(numel_));
    chunks[chunk] = digest;
    ++from.value;
  }
}

void FetchedRounds::begin_anew() {
  averages_.clear();
  digests_.clear();
}

// ---- its thread

void FetchedRounds::write_what_comes() {
  for (;;) {
    const std::optional<Item> item = items_.pop(Deadline::after(kLongestIdle));
    if (item) write(*item);
    if (!item && items_.closed()) return;
  }
}

void FetchedRounds::write(const Item& item) {
  const OuterStep round = item.of->record.commit.round;
  Written& written = written_[round];
  Status status = ok_status();
  if (written.of != item.of) {
    written.of = item.of;
    written.file.reset();
    written.pieces.assign(item.of->pieces, false);
    written.missing = item.of->pieces;
    Result<AverageWriter> file = log_.begin_average(round, item.of->wire, item.of->bytes);
    file.ok() ? void(written.file.emplace(std::move(*file))) : void(status = file.error());
  }
  if (written.file && !written.pieces[item.piece]) {
    status = written.file->write(item.piece * kDigestPieceBytes, item.bytes);
    written.pieces[item.piece] = true;
    --written.missing;
  }
  if (status.ok()) return;
  spdlog::warn("recovery round={} kept=false error=\"{}\"", round.value, status.error().message);
  written.file.reset();
}

void FetchedRounds::end_writing() {
  items_.close();
  if (thread_.joinable()) thread_.join();
}

// ---- the log

std::optional<std::string> FetchedRounds::hash_at(OuterStep step) const {
  const auto found = digests_.find(step);
  if (found == digests_.end()) return std::nullopt;
  StateManifest manifest{step, 2 * sizeof(float) * numel_, {}};
  for (const std::optional<Digest>& digest : found->second) {
    if (!digest) return std::nullopt;
    manifest.chunk_sha256.push_back(*digest);
  }
  return to_hex(manifest.tree_hash());
}

std::size_t FetchedRounds::log() && {
  end_writing();
  std::size_t logged = 0;
  for (auto& [round, written] : written_) {
    const auto average = averages_.find(round);
    const bool is_whole = written.file && written.missing == 0;
    if (!is_whole || average == averages_.end() || average->second != written.of) continue;
    const auto from = hash_at(round), made = hash_at(OuterStep{round.value + 1});
    if (!from || !made) continue;
    const LoggedRound whole{.record = written.of->record, .from = *from, .made = *made, .fragments = fragments_};
    const Status kept = log_.keep(whole, std::move(*written.file));
    written.file.reset();
    if (kept.ok()) ++logged;
    if (!kept.ok()) spdlog::warn("recovery round={} kept=false error=\"{}\"", round.value, kept.error().message);
  }
  written_.clear();  // what is not whole takes no room any more
  if (logged > 0) spdlog::info("recovery rounds_logged={}", logged);
  return logged;
}

}  // namespace atl
