#include "net/data/verified_fetch.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>

namespace atl {
namespace {

constexpr int kAsideForLies = 20;  // times as long as for a broken connection

Result<Bytes> read(DataOrigin& origin, const std::vector<FilePiece>& pieces, const AbortSignal& abort) {
  Bytes all;
  for (const FilePiece& piece : pieces) {
    ATOLL_ASSIGN_OR_RETURN(Bytes bytes, origin.read(piece.file, piece.offset, piece.bytes, abort));
    if (bytes.size() != piece.bytes) return Error{ErrorCode::kProtocol, "it gives another number of bytes"};
    if (pieces.size() == 1) return bytes;
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

}  // namespace

Result<FetchedData> VerifiedFetch::fetch(std::uint32_t tree, const std::vector<FilePiece>& pieces,
                                         const std::function<Status(ByteView)>& verify, const DataOrigins& origins,
                                         const AskPeers& peers, const AbortSignal& abort) {
  std::string why;
  const auto note = [&](std::string_view who, const Error& error) {
    why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", who, error.message);
  };
  const auto ask_peers = [&](PeerChoice choice) -> std::optional<FetchedData> {
    Result<Bytes> bytes = peers(choice);
    if (bytes.ok()) return FetchedData{std::move(bytes).value(), DataFrom::kIsland};
    note("other islands", bytes.error());
    return std::nullopt;
  };
  const Order order = order_of(tree, origins.size());
  bool peers_are_due = peers != nullptr;
  for (std::size_t turn = 0; turn < order.origins.size(); ++turn) {
    const std::size_t i = order.origins[turn];
    const bool is_hub = i + 1 == origins.size();
    if (peers_are_due && (is_hub || turn >= order.in_good_standing)) {
      peers_are_due = false;
      if (auto fetched = ask_peers(PeerChoice::kLikely)) return std::move(*fetched);
      if (abort.raised()) return Error{ErrorCode::kAborted, abort.reason()};
    }
    Result<Bytes> bytes = read(*origins[i], pieces, abort);
    const Status good = bytes.ok() ? verify(*bytes) : Status(bytes.error());
    if (good.ok()) return FetchedData{std::move(bytes).value(), is_hub ? DataFrom::kHub : DataFrom::kMirror};
    if (abort.raised()) return Error{ErrorCode::kAborted, abort.reason()};
    // The hub's own word: this island was removed from the run.
    if (good.error().code == ErrorCode::kPermissionDenied && origins.size() == 1) return good.error();
    if (bytes.ok()) spdlog::warn("data origin={} wrong_bytes_of={}", origins[i]->name(), pieces.front().file);
    put_aside(tree, i, bytes.ok());
    note(origins[i]->name(), good.error());
  }
  if (peers) {
    if (auto fetched = ask_peers(PeerChoice::kAllThereAre)) return std::move(*fetched);
    if (abort.raised()) return Error{ErrorCode::kAborted, abort.reason()};
  }
  return Error{ErrorCode::kUnreachable, why.empty() ? "nobody has it" : why};
}

VerifiedFetch::Order VerifiedFetch::order_of(std::uint32_t tree, std::size_t origins) {
  Order order;
  const MutexLock lock(mutex_);
  until_[tree].resize(std::max(until_[tree].size(), origins));
  const auto now = Clock::now();
  for (const bool aside : {false, true}) {
    for (std::size_t i = 0; i < origins; ++i) {
      if ((now < until_[tree][i]) == aside) order.origins.push_back(i);
    }
    if (!aside) order.in_good_standing = order.origins.size();
  }
  return order;
}

void VerifiedFetch::put_aside(std::uint32_t tree, std::size_t origin, bool lied) {
  const MutexLock lock(mutex_);
  until_[tree][origin] = Clock::now() + (lied ? kAsideForLies * aside_ : aside_);
}

}  // namespace atl
