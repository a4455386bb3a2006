#include "net/recovery/served_rounds.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <utility>

#include "net/recovery/round_manifest.h"

namespace atl {
namespace {

Error no_such_round(OuterStep round) {
  return Error{ErrorCode::kNotFound, fmt::format("this island has not logged round {}", round.value)};
}

}  // namespace

// Of an average, made from its first piece on.
struct ServedRounds::Manifest::Hashes {
  std::string digest;  // of the average
  std::size_t pieces = 0;

  Mutex mutex;  // held while more are made: who asks for the same waits for them
  std::vector<PieceHash> made ATOLL_GUARDED_BY(mutex);
  bool is_wrong ATOLL_GUARDED_BY(mutex) = false;
};

ServedRounds::Manifest::Manifest(AverageFile file, const SignedCommit& record, std::shared_ptr<Hashes> hashes)
    : file_(std::move(file)),
      head_(round_manifest_head(record, file_.info().wire, file_.info().bytes)),
      hashes_(std::move(hashes)) {}

Status ServedRounds::Manifest::read(std::uint64_t offset, std::span<std::byte> part) const {
  if (offset < head_.size()) {
    const auto at = static_cast<std::size_t>(offset);
    const std::size_t count = std::min(part.size(), head_.size() - at);
    std::ranges::copy(ByteView(head_).subspan(at, count), part.begin());
    offset += count;
    part = part.subspan(count);
  }
  if (part.empty()) return ok_status();
  const auto from = static_cast<std::size_t>(offset) - head_.size();
  const std::size_t needed = (from + part.size() + sizeof(PieceHash) - 1) / sizeof(PieceHash);
  MutexLock lock(hashes_->mutex);
  Bytes room;
  while (hashes_->made.size() < needed) {
    const std::size_t begin = hashes_->made.size() * kDigestPieceBytes;
    room.resize(std::min(kDigestPieceBytes, average_bytes() - begin));
    ATOLL_RETURN_IF_ERROR(file_.read(begin, room));
    hashes_->made.push_back(hash_of_piece(room, 0));
    if (hashes_->made.size() < hashes_->pieces) continue;
    hashes_->is_wrong = to_hex(digest_of_pieces(hashes_->made)) != hashes_->digest;
    if (hashes_->is_wrong) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("the average of round {} is damaged on this disk", file_.info().round.value)};
    }
  }
  const ByteView all(reinterpret_cast<const std::byte*>(hashes_->made.data()),
                     hashes_->made.size() * sizeof(PieceHash));
  std::ranges::copy(all.subspan(from, part.size()), part.begin());
  return ok_status();
}

Result<std::shared_ptr<const ServedRounds::Manifest>> ServedRounds::manifest(OuterStep round) {
  const Result<LoggedRound> logged = log_.round(round);
  if (!logged.ok()) return no_such_round(round);
  auto file = AverageFile::open(log_.average_file(round));
  if (!file.ok() || file->info().digest != logged->record.commit.digest) return no_such_round(round);
  const auto hashes = hashes_of(file->info().digest, file->info().bytes);
  {
    MutexLock lock(hashes->mutex);
    if (hashes->is_wrong) return no_such_round(round);
  }
  return std::shared_ptr<const Manifest>(new Manifest(std::move(*file), logged->record, hashes));
}

// By digest: what another epoch left under the round's name is another average.
std::shared_ptr<ServedRounds::Manifest::Hashes> ServedRounds::hashes_of(const std::string& digest,
                                                                        std::uint64_t average_bytes) {
  MutexLock lock(mutex_);
  const auto found = std::ranges::find_if(hashes_, [&](const auto& hashes) { return hashes->digest == digest; });
  if (found != hashes_.end()) {
    hashes_.splice(hashes_.begin(), hashes_, found);
    return hashes_.front();
  }
  auto hashes = std::make_shared<Manifest::Hashes>();
  hashes->digest = digest;
  hashes->pieces = digest_pieces(static_cast<std::size_t>(average_bytes));
  hashes_.push_front(hashes);
  std::uint64_t bytes = 0;
  std::erase_if(hashes_, [&](const auto& kept) {
    bytes += kept->pieces * sizeof(PieceHash);
    return kept != hashes && bytes > kMostBytes;
  });
  return hashes;
}

}  // namespace atl
