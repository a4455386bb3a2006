#include "net/data/chunk_exchange.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>

#include "net/https/http_status.h"
#include "net/https/https_fetcher.h"

namespace atl {
namespace {

constexpr std::size_t kHomesAsked = 2;    // the second was the first before a newcomer came
constexpr std::size_t kHoldersAsked = 3;  // of those who are said to have it
constexpr std::size_t kMostAsked = 16;    // where it cannot be had elsewhere
constexpr int kMissesAllowed = 3;         // in a row

}  // namespace

// ---- asking

class ChunkExchange::Asking final : public ChunkPeers {
 public:
  Asking(ChunkExchange& all, HttpsFetcher fetcher) : all_(all), fetcher_(std::move(fetcher)) {}

  Result<Bytes> fetch(const WantedChunk& wanted, PeerChoice choice, const AbortSignal& abort) override {
    const std::vector<ChunkPeer> peers = all_.others();
    std::string why;
    for (const Candidate& candidate :
         choice == PeerChoice::kLikely ? likely(wanted.id, peers, abort) : all(wanted.id, peers)) {
      if (abort.raised()) return Error{ErrorCode::kAborted, abort.reason()};
      Result<Bytes> bytes = chunk_of(candidate, wanted, abort);
      if (bytes.ok()) return bytes;
      why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", candidate.peer.id.value, bytes.error().message);
    }
    if (abort.raised()) return Error{ErrorCode::kAborted, abort.reason()};
    return Error{ErrorCode::kNotFound, why.empty() ? "none of them is known to have it" : why};
  }

 private:
  struct Candidate {
    ChunkPeer peer;
    std::optional<IslandId> said_by;  // that it has it: itself, where it asked this island about it
  };

  // Those who are said to have it, by their having asked this island, else by the chunk's homes.
  std::vector<Candidate> likely(ChunkId id, const std::vector<ChunkPeer>& peers, const AbortSignal& abort) {
    std::vector<Candidate> found;
    const auto add = [&](const IslandId& holder, const IslandId& said_by) {
      const auto peer = std::ranges::find(peers, holder, &ChunkPeer::id);
      const bool known = std::ranges::any_of(found, [&](const Candidate& other) { return other.peer.id == holder; });
      if (peer == peers.end() || known || found.size() == kHoldersAsked || !all_.may_ask(holder)) return;
      found.push_back({*peer, said_by});
    };
    for (const IslandId& holder : all_.book_.holders(id, all_.self_.name)) add(holder, holder);
    std::size_t homes = 0;
    for (const ChunkPeer& home : in_order(id, peers)) {
      if (homes == kHomesAsked || !found.empty() || abort.raised()) break;
      if (!all_.may_ask(home.id)) continue;
      ++homes;
      const auto holders = holders_of(home, id, abort);
      for (std::size_t i = 0; holders.ok() && i < holders->size(); ++i) add((*holders)[i], home.id);
    }
    return found;
  }

  // Those first who gave no reason to be asked last.
  std::vector<Candidate> all(ChunkId id, const std::vector<ChunkPeer>& peers) {
    std::vector<Candidate> ordered;
    for (const bool good : {true, false}) {
      for (const ChunkPeer& peer : in_order(id, peers)) {
        if (all_.may_ask(peer.id) == good && ordered.size() < kMostAsked) ordered.push_back({peer, std::nullopt});
      }
    }
    return ordered;
  }

  static std::vector<ChunkPeer> in_order(ChunkId id, const std::vector<ChunkPeer>& peers) {
    std::vector<IslandId> names;
    for (const ChunkPeer& peer : peers) names.push_back(peer.id);
    std::vector<ChunkPeer> ordered;
    for (const IslandId& name : homes_of(id, std::move(names))) {
      ordered.push_back(*std::ranges::find(peers, name, &ChunkPeer::id));
    }
    return ordered;
  }

  Result<std::vector<IslandId>> holders_of(const ChunkPeer& home, ChunkId id, const AbortSignal& abort) {
    const Result<Bytes> answer = get(home, to_target({id, true}), kMaxHoldersBytes, all_.options_.connect, abort);
    auto holders =
        answer.ok() ? decode_holders(to_string(ByteView(*answer))) : Result<std::vector<IslandId>>(answer.error());
    if (!holders.ok() && !abort.raised()) all_.failed(home.id, holders.error());
    return holders;
  }

  Result<Bytes> chunk_of(const Candidate& candidate, const WantedChunk& wanted, const AbortSignal& abort) {
    const IslandId& id = candidate.peer.id;
    const ChunkExchangeOptions& options = all_.options_;
    const std::chrono::milliseconds moves(1000 * wanted.bytes / options.least_rate);
    Result<Bytes> bytes = get(candidate.peer, to_target({wanted.id}), wanted.bytes, options.silence + moves, abort);
    if (!bytes.ok() && bytes.error().code == ErrorCode::kNotFound) {
      all_.book_.forget(id, wanted.id);
      // It was given away, or comes yet; or one of the two does not say the truth.
      if (candidate.said_by) all_.missed(id);
      if (candidate.said_by && *candidate.said_by != id) all_.missed(*candidate.said_by);
    } else if (!bytes.ok()) {
      if (!abort.raised()) all_.failed(id, bytes.error());
    } else if (const Status right = wanted.verify(*bytes); !right.ok()) {
      all_.lied(id, wanted.id);
      return right.error();
    } else {
      all_.gave(id);
      if (candidate.said_by) all_.gave(*candidate.said_by);
    }
    return bytes;
  }

  // One request, on a connection of its own: places at an island's port are few, and states are fetched there.
  Result<Bytes> get(const ChunkPeer& peer, std::string path, std::uint64_t max_bytes, Clock::duration patience,
                    const AbortSignal& abort) {
    Bytes body;
    HttpsRequest request;
    request.peer = peer.id;
    request.address = peer.address;
    request.path = std::move(path);
    request.max_bytes = max_bytes;
    request.connect = all_.options_.connect;
    request.close_after = true;
    request.on_body = [&](ByteView piece, bool) -> Status {
      body.insert(body.end(), piece.begin(), piece.end());
      return ok_status();
    };
    const TransferId id = fetcher_.start(std::move(request));
    const auto outcomes = fetcher_.wait_for_peer(patience, abort);
    if (outcomes.ok() && !outcomes->empty()) return judged(outcomes->front(), std::move(body));
    fetcher_.cancel(id);
    if (!outcomes.ok()) return outcomes.error();
    return Error{ErrorCode::kTimeout, fmt::format("{} of {} bytes came, too slowly", body.size(), max_bytes)};
  }

  static Result<Bytes> judged(const HttpsOutcome& outcome, Bytes body) {
    if (outcome.error) return *outcome.error;
    if (outcome.http_status == kStatusOk) return body;
    if (outcome.http_status == kStatusNotFound) return Error{ErrorCode::kNotFound, "it has not"};
    return Error{ErrorCode::kProtocol, fmt::format("it answers with HTTP status {}", outcome.http_status)};
  }

  ChunkExchange& all_;
  HttpsFetcher fetcher_;
};

ChunkExchange::ChunkExchange(const Identity& self, std::function<std::vector<ChunkPeer>()> peers,
                             const ChunkExchangeOptions& options)
    : self_(self), peers_(std::move(peers)), options_(options) {}

ChunkExchange::~ChunkExchange() = default;

Result<std::unique_ptr<ChunkPeers>> ChunkExchange::on_this_thread() {
  ATOLL_ASSIGN_OR_RETURN(HttpsFetcher fetcher, HttpsFetcher::create(self_, options_.silence, options_.download));
  return std::unique_ptr<ChunkPeers>(std::make_unique<Asking>(*this, std::move(fetcher)));
}

// ---- what is known of the others

std::vector<ChunkPeer> ChunkExchange::others() const {
  std::vector<ChunkPeer> peers = peers_();
  std::erase_if(peers, [&](const ChunkPeer& peer) { return peer.id == self_.name; });
  return peers;
}

bool ChunkExchange::may_ask(const IslandId& id) {
  const MutexLock lock(mutex_);
  const auto found = standings_.find(id);
  return found == standings_.end() || (!found->second.lied && Clock::now() >= found->second.not_before);
}

void ChunkExchange::gave(const IslandId& id) {
  const MutexLock lock(mutex_);
  const auto found = standings_.find(id);
  if (found == standings_.end()) return;
  found->second.misses = 0;
  found->second.pause.reset();
}

void ChunkExchange::missed(const IslandId& id) {
  const MutexLock lock(mutex_);
  Standing& standing = standings_.try_emplace(id, options_).first->second;
  if (++standing.misses <= kMissesAllowed) return;
  standing.misses = 0;
  standing.not_before = Clock::now() + standing.pause.next();
}

// It is away, slow, or says what it may not. Whoever is on the way can cause the first two: it is asked again later.
void ChunkExchange::failed(const IslandId& id, const Error& why) {
  spdlog::info("data island={} aside=1 error=\"{}\"", id.value, why.message);
  const MutexLock lock(mutex_);
  Standing& standing = standings_.try_emplace(id, options_).first->second;
  standing.not_before = Clock::now() + standing.pause.next();
}

void ChunkExchange::lied(const IslandId& id, ChunkId chunk) {
  spdlog::warn("data island={} wrong_bytes_of_chunk={} of_tree={}", id.value, chunk.chunk, chunk.tree);
  book_.forget(id, chunk);
  const MutexLock lock(mutex_);
  standings_.try_emplace(id, options_).first->second.lied = true;
}

// ---- answering

void ChunkExchange::serve(const std::shared_ptr<HeldChunks>& held) {
  const MutexLock lock(mutex_);
  held_ = held;
}

Result<MappedFile> ChunkExchange::chunk(ChunkId id, const AbortSignal& abort) {
  std::shared_ptr<HeldChunks> held;
  {
    const MutexLock lock(mutex_);
    held = held_.lock();
  }
  if (!held) return Error{ErrorCode::kNotFound, "this island has none of the run's data yet"};
  return held->held(id, abort);
}

std::vector<IslandId> ChunkExchange::holders(ChunkId id, const IslandId& asker) {
  std::shared_ptr<HeldChunks> held;
  {
    const MutexLock lock(mutex_);
    held = held_.lock();
  }
  // Two that fetch it at the same moment must not wait for each other: the one that comes later in the chunk's order
  // waits for the other, and is not waited for.
  const Holding holding = held ? held->holding(id) : Holding::kNot;
  const bool waits_for_this = holding == Holding::kFetched && homes_of(id, {self_.name, asker}).front() == self_.name;
  std::vector<IslandId> holders;
  if (holding == Holding::kHeld || waits_for_this) holders.push_back(self_.name);
  for (IslandId& other : book_.holders(id, asker)) {
    if (holders.size() < kMaxHolders) holders.push_back(std::move(other));
  }
  if (!waits_for_this) book_.note(asker, id);
  return holders;
}

}  // namespace atl
