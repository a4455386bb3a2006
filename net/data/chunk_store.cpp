#include "net/data/chunk_store.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <list>
#include <map>
#include <set>
#include <thread>

#include "net/base/backoff.h"
#include "net/base/encoding.h"
#include "net/base/mutex.h"
#include "net/data/verified_fetch.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kTurn{200};  // after which a wait looks whether it is to end
constexpr std::size_t kMaxParts = 2048;          // of trees, in memory: 18 KB each
constexpr std::size_t kLeastMapped = 64;         // chunks
constexpr std::size_t kMappedWindows = 32;       // chunks of each tree: two windows of sequence_map.h
constexpr std::chrono::seconds kFullDiskPause{60};

Digest digest_of_hex(const std::string& hex) {
  Digest digest{};
  const auto bytes = hex_decode(hex);
  if (bytes.ok() && bytes->size() == digest.size()) std::ranges::copy(*bytes, digest.begin());
  return digest;
}

// A chunk that could not be had so far.
struct Trial {
  explicit Trial(const ChunkStoreOptions& options) : pause(options.first_pause, options.longest_pause) {}
  Clock::time_point since = Clock::now(), again;
  Backoff pause;
};

}  // namespace

// ---- a chunk

Chunk::Chunk(MappedFile file, std::uint32_t token_bytes, std::uint32_t next_token)
    : file_(std::move(file)), tokens_(file_->bytes()), token_bytes_(token_bytes), next_token_(next_token) {}

Chunk::Chunk(Bytes bytes, std::uint32_t token_bytes, std::uint32_t next_token)
    : bytes_(std::move(bytes)), tokens_(bytes_), token_bytes_(token_bytes), next_token_(next_token) {}

void Chunk::read(std::uint64_t first, std::span<std::int32_t> to) const {
  const std::uint64_t count = tokens_.size() / token_bytes_;
  const bool with_next = first + to.size() == count + 1 && next_token_ != kNoNextToken;
  if (first > count || to.size() > count - first + (with_next ? 1 : 0)) {
    detail::die_on_wrong_access("a chunk's tokens", fmt::format("{} from {} of {}", to.size(), first, count));
  }
  const std::byte* from = tokens_.data() + first * token_bytes_;
  for (std::int32_t& token : to.first(to.size() - (with_next ? 1 : 0))) {
    std::uint32_t value = 0;
    std::memcpy(&value, from, token_bytes_);
    token = static_cast<std::int32_t>(value);
    from += token_bytes_;
  }
  if (with_next) to.back() = static_cast<std::int32_t>(next_token_);
}

// ---- the store

class ChunkStore::Impl {
 public:
  Impl(ChunkStoreParts parts, const AbortSignal& abort, const ChunkStoreOptions& options)
      : files_(std::move(parts.trees)),
        make_origins_(std::move(parts.make_origins)),
        make_peers_(std::move(parts.make_peers)),
        cache_(std::move(parts.cache)),
        trouble_(std::move(parts.trouble)),
        ends_wait_(std::move(parts.ends_wait)),
        abort_(abort),
        options_(options),
        fetch_(files_.size(), options.aside) {}

  ~Impl() {
    stop_.raise("the data is not needed any more");
    for (std::jthread& thread : threads_) thread.request_stop();
    {
      const MutexLock lock(mutex_);
      changed_.notify_all();
    }
    threads_.clear();
    spdlog::info("data chunks_of_mirrors={} chunks_of_islands={} chunks_of_hub={}", fetched(DataFrom::kMirror).load(),
                 fetched(DataFrom::kIsland).load(), fetched(DataFrom::kHub).load());
  }

  Status fetch_indices(const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
    ATOLL_ASSIGN_OR_RETURN(const std::vector<DataOrigins> origins, make_origins_());
    std::uint64_t done = 0, all = 0;
    for (const TreeFile& file : files_) all += file.index_bytes;
    for (std::uint32_t tree = 0; tree < files_.size(); ++tree) {
      ATOLL_ASSIGN_OR_RETURN(const Bytes bytes, fetch_index(tree, origins[tree]));
      auto index = decode_chunk_tree_index(bytes);
      if (!index.ok()) return index.error().with_context(files_[tree].source);
      largest_chunk_ = std::max(largest_chunk_, index->chunk_bytes);
      trees_.push_back(std::make_unique<const ChunkTreeIndex>(std::move(*index)));
      tables_.emplace_back(*trees_.back());
      done += files_[tree].index_bytes;
      if (progress) progress(done, all);
    }
    return ok_status();
  }

  void start() {
    for (int i = 0; i < options_.connections; ++i) {
      threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
    }
  }

  const ChunkTreeIndex& index(std::uint32_t tree) const { return *trees_[tree]; }

  void plan(std::vector<ChunkId> chunks, std::size_t needed) {
    const MutexLock lock(mutex_);
    plan_ = std::move(chunks);
    needed_ = needed;
    ensured_.assign(plan_.size(), false);
    places_.clear();
    for (std::size_t i = 0; i < plan_.size(); ++i) places_[plan_[i]] = i;
    used_ = first_open_ = 0;
    given_up_.clear();
    trials_.clear();
    changed_.notify_all();
  }

  Result<std::shared_ptr<const Chunk>> get(ChunkId id) {
    MutexLock lock(mutex_);
    if (const auto place = places_.find(id); place != places_.end()) used_ = std::max(used_, place->second);
    wanted_ = id;
    changed_.notify_all();
    const auto since = Clock::now();
    for (;;) {
      if (auto chunk = mapped(id)) {
        wanted_.reset();
        return chunk;
      }
      if (const auto lost = given_up_.find(id); lost != given_up_.end()) {
        wanted_.reset();
        return lost->second;
      }
      if (abort_.raised()) return Error{ErrorCode::kAborted, abort_.reason()};
      const bool in_vain = trials_.contains(id) || Clock::now() >= since + options_.in_vain;
      if (const auto why = ends_wait_ ? ends_wait_(in_vain) : std::nullopt) {
        wanted_.reset();
        return *why;
      }
      (void)changed_.wait(lock, Deadline::after(kTurn),
                          [&]() ATOLL_REQUIRES(mutex_) { return mapped_.contains(id) || given_up_.contains(id); });
    }
  }

  std::optional<Error> given_up() const {
    const MutexLock lock(mutex_);
    if (given_up_.empty()) return std::nullopt;
    return given_up_.begin()->second;
  }

  Holding holding(ChunkId id) const {
    const auto digest = known_digest(id);
    if (digest && cache_->contains(*digest)) return Holding::kHeld;
    const MutexLock lock(mutex_);
    return busy_.contains(id) ? Holding::kFetched : Holding::kNot;
  }

  Result<MappedFile> held(ChunkId id, const AbortSignal& abort) {
    {
      MutexLock lock(mutex_);
      const Deadline end = Deadline::after(options_.others_wait);
      while (busy_.contains(id) && !end.expired() && !abort.raised() && !stop_.raised()) {
        (void)changed_.wait(lock, Deadline::after(kTurn).but_not_after(end),
                            [&]() ATOLL_REQUIRES(mutex_) { return !busy_.contains(id); });
      }
    }
    const auto digest = known_digest(id);
    if (!digest) return Error{ErrorCode::kNotFound, "this island has not used that part of the run's data"};
    return cache_->find_for_others(*digest);
  }

 private:
  struct Mapped {
    std::shared_ptr<const Chunk> chunk;
    std::list<ChunkId>::iterator use;
  };
  using PartId = std::pair<std::uint32_t, std::uint64_t>;  // tree, part
  struct Job {
    ChunkId id;
    bool is_wanted = false;  // now; else it is fetched ahead, into the cache
  };

  // ---- what is fetched next

  std::shared_ptr<const Chunk> mapped(ChunkId id) ATOLL_REQUIRES(mutex_) {
    const auto found = mapped_.find(id);
    if (found == mapped_.end()) return nullptr;
    uses_.splice(uses_.begin(), uses_, found->second.use);
    return found->second.chunk;
  }

  bool may_fetch(ChunkId id) const ATOLL_REQUIRES(mutex_) {
    if (busy_.contains(id) || given_up_.contains(id)) return false;
    const auto trial = trials_.find(id);
    return trial == trials_.end() || Clock::now() >= trial->second.again;
  }

  // What is ahead of its use takes half of the cache: what is in use has the other.
  std::size_t ahead() const ATOLL_REQUIRES(mutex_) {
    if (Clock::now() < full_until_) return 0;
    return static_cast<std::size_t>(cache_->most_bytes() / 2 / largest_chunk_);
  }

  std::optional<Job> next_job() ATOLL_REQUIRES(mutex_) {
    if (wanted_ && !mapped_.contains(*wanted_) && may_fetch(*wanted_)) return Job{*wanted_, true};
    while (first_open_ < plan_.size() && (ensured_[first_open_] || given_up_.contains(plan_[first_open_]))) {
      ++first_open_;
    }
    const std::size_t end = std::min(plan_.size(), used_ + ahead());
    for (std::size_t i = std::max(first_open_, used_); i < end; ++i) {
      if (!ensured_[i] && may_fetch(plan_[i])) return Job{plan_[i], false};
    }
    return std::nullopt;
  }

  void work(const std::stop_token& stop) {
    const Result<std::vector<DataOrigins>> origins = make_origins_();
    Result<std::unique_ptr<ChunkPeers>> peers = make_peers_ ? make_peers_() : std::unique_ptr<ChunkPeers>();
    if (!peers.ok()) spdlog::warn("data islands=none error=\"{}\"", peers.error().message);
    while (!stop.stop_requested()) {
      std::optional<Job> job;
      {
        MutexLock lock(mutex_);
        (void)changed_.wait(lock, Deadline::after(kTurn), [&]() ATOLL_REQUIRES(mutex_) {
          if (!stop.stop_requested()) job = next_job();
          return stop.stop_requested() || job.has_value();
        });
        if (!job) continue;
        busy_.insert(job->id);
      }
      Result<std::shared_ptr<const Chunk>> chunk =
          origins.ok() ? load(*job, (*origins)[job->id.tree], peers.ok() ? peers->get() : nullptr)
                       : Result<std::shared_ptr<const Chunk>>(origins.error());
      finish(*job, std::move(chunk));
    }
  }

  void finish(const Job& job, Result<std::shared_ptr<const Chunk>> chunk) {
    const MutexLock one_at_a_time(trouble_mutex_);  // what is told is in the order of what happened
    std::optional<std::string> news;
    {
      const MutexLock lock(mutex_);
      busy_.erase(job.id);
      if (chunk.ok()) {
        trials_.erase(job.id);
        if (const auto place = places_.find(job.id); place != places_.end()) ensured_[place->second] = true;
        if (*chunk) keep_mapped(job.id, std::move(*chunk));
        if (std::exchange(troubled_, false)) news = "";
      } else if (!stop_.raised()) {
        news = note_failure(job.id, chunk.error());
      }
      changed_.notify_all();
    }
    if (news && trouble_) trouble_(*news);
  }

  std::string note_failure(ChunkId id, const Error& error) ATOLL_REQUIRES(mutex_) {
    Trial& trial = trials_.try_emplace(id, options_).first->second;
    trial.again = Clock::now() + trial.pause.next();
    troubled_ = true;
    const std::string what =
        fmt::format("cannot get chunk {} of the data's source {}: {}", id.chunk, files_[id.tree].source, error.message);
    const auto place = places_.find(id);
    const bool is_needed = id == wanted_ || (place != places_.end() && place->second < needed_);
    if (!is_needed || Clock::now() - trial.since < options_.patience) return what + "; trying again";
    given_up_.insert_or_assign(id, Error{ErrorCode::kUnreachable, what});
    return what;
  }

  void keep_mapped(ChunkId id, std::shared_ptr<const Chunk> chunk) ATOLL_REQUIRES(mutex_) {
    if (mapped_.contains(id)) return;
    uses_.push_front(id);
    mapped_[id] = {std::move(chunk), uses_.begin()};
    const std::size_t most = std::max(kLeastMapped, kMappedWindows * trees_.size());
    for (; mapped_.size() > most; uses_.pop_back()) mapped_.erase(uses_.back());
  }

  // ---- fetching. Without the lock

  // Null where it is in the cache now, and nobody waits for it.
  Result<std::shared_ptr<const Chunk>> load(const Job& job, const DataOrigins& origins, ChunkPeers* peers) {
    const ChunkTreeIndex& index = *trees_[job.id.tree];
    ATOLL_ASSIGN_OR_RETURN(const ChunkLeaf leaf, leaf_of(job.id, origins));
    if (!job.is_wanted && cache_->contains(leaf.sha256)) return std::shared_ptr<const Chunk>();
    if (job.is_wanted) {
      Result<MappedFile> file = cache_->find(leaf.sha256);
      if (file.ok() && check_tokens(index, file->bytes()).ok()) {
        return std::make_shared<const Chunk>(std::move(*file), index.token_bytes, leaf.next_token);
      }
    }
    std::vector<FilePiece> pieces;
    for (const ShardPiece& piece : tables_[job.id.tree].pieces_of(job.id.chunk)) {
      pieces.push_back({index.shards[piece.shard].file, piece.offset, piece.bytes});
    }
    const auto verify = [&](ByteView bytes) { return check_chunk(index, job.id.chunk, leaf, bytes); };
    AskPeers ask_peers;
    if (peers != nullptr) {
      ask_peers = [&](PeerChoice choice) {
        return peers->fetch({job.id, index.tokens_of(job.id.chunk) * index.token_bytes, verify}, choice, stop_);
      };
    }
    ATOLL_ASSIGN_OR_RETURN(FetchedData data, fetch_.fetch(job.id.tree, pieces, verify, origins, ask_peers, stop_));
    fetched(data.from).fetch_add(1);
    keep(leaf.sha256, data.bytes);
    if (!job.is_wanted) return std::shared_ptr<const Chunk>();
    return std::make_shared<const Chunk>(std::move(data.bytes), index.token_bytes, leaf.next_token);
  }

  std::atomic<std::uint64_t>& fetched(DataFrom from) { return fetched_[static_cast<std::size_t>(from)]; }

  // Of a chunk of this run whose part of the tree is in memory or on the disk.
  std::optional<Digest> known_digest(ChunkId id) const {
    if (id.tree >= trees_.size() || id.chunk >= trees_[id.tree]->chunks()) return std::nullopt;
    const std::uint64_t part = id.chunk / kLeavesOfPart, place = id.chunk % kLeavesOfPart;
    {
      const MutexLock lock(mutex_);
      if (const auto known = parts_.find({id.tree, part}); known != parts_.end()) return known->second[place].sha256;
    }
    const ChunkTreeIndex& index = *trees_[id.tree];
    const Result<MappedFile> kept = cache_->find_for_others(index.parts[part]);
    if (!kept.ok()) return std::nullopt;
    const auto leaves = decode_tree_part(index, part, kept->bytes());
    return leaves.ok() ? std::optional((*leaves)[place].sha256) : std::nullopt;
  }

  Result<ChunkLeaf> leaf_of(ChunkId id, const DataOrigins& origins) {
    const std::uint64_t part = id.chunk / kLeavesOfPart, place = id.chunk % kLeavesOfPart;
    const PartId key{id.tree, part};
    {
      MutexLock lock(mutex_);
      for (;;) {
        if (const auto known = parts_.find(key); known != parts_.end()) return known->second[place];
        if (busy_parts_.insert(key).second) break;  // else another thread fetches it
        (void)changed_.wait(lock, Deadline::after(kTurn),
                            [&]() ATOLL_REQUIRES(mutex_) { return !busy_parts_.contains(key); });
      }
    }
    Result<std::vector<ChunkLeaf>> leaves = fetch_part(id.tree, part, origins);
    const MutexLock lock(mutex_);
    busy_parts_.erase(key);
    changed_.notify_all();
    if (!leaves.ok()) return leaves.error();
    const ChunkLeaf leaf = (*leaves)[place];
    while (parts_.size() >= kMaxParts) parts_.erase(parts_.begin());
    parts_[key] = std::move(*leaves);
    return leaf;
  }

  Result<std::vector<ChunkLeaf>> fetch_part(std::uint32_t tree, std::uint64_t part, const DataOrigins& origins) {
    const ChunkTreeIndex& index = *trees_[tree];
    const FilePiece piece{files_[tree].file, ChunkTreeIndex::part_offset(files_[tree].index_bytes, part),
                          index.leaves_of(part) * kChunkLeafBytes};
    std::vector<ChunkLeaf> leaves;
    const auto verify = [&](ByteView bytes) -> Status {
      ATOLL_ASSIGN_OR_RETURN(leaves, decode_tree_part(index, part, bytes));
      return ok_status();
    };
    const Result<MappedFile> kept = cache_->find(index.parts[part]);
    if (!kept.ok() || !verify(kept->bytes()).ok()) {
      ATOLL_ASSIGN_OR_RETURN(const FetchedData data, fetch_.fetch(tree, {piece}, verify, origins, {}, stop_));
      keep(index.parts[part], data.bytes);
    }
    return leaves;
  }

  Result<Bytes> fetch_index(std::uint32_t tree, const DataOrigins& origins) {
    const TreeFile& file = files_[tree];
    const Digest digest = digest_of_hex(file.sha256);
    if (const Result<MappedFile> kept = cache_->find(digest); kept.ok()) {
      return Bytes(kept->bytes().begin(), kept->bytes().end());
    }
    const auto verify = [&](ByteView bytes) -> Status {
      if (sha256(bytes) == digest) return ok_status();
      return Error{ErrorCode::kCorrupt, "its SHA-256 is not the one that the run names"};
    };
    Backoff pause(options_.first_pause, options_.longest_pause);
    for (bool failed = false;; failed = true) {
      Result<FetchedData> data = fetch_.fetch(tree, {{file.file, 0, file.index_bytes}}, verify, origins, {}, abort_);
      if (abort_.raised()) return Error{ErrorCode::kAborted, abort_.reason()};
      if (data.ok()) {
        if (failed && trouble_) trouble_({});
        keep(digest, data->bytes);
        return std::move(data->bytes);
      }
      if (data.error().code == ErrorCode::kPermissionDenied) return data.error();
      spdlog::warn("data source={} retry=1 message=\"{}\"", file.source, data.error().message);
      if (trouble_) {
        trouble_(fmt::format("cannot get the index of the data's source {}: {}; trying again", file.source,
                             data.error().message));
      }
      const Deadline end = Deadline::after(pause.next());
      while (!end.expired() && !abort_.raised()) std::this_thread::sleep_for(kTurn / 4);
    }
  }

  void keep(const Digest& digest, ByteView bytes) {
    const Status kept = cache_->put(digest, bytes);
    if (kept.ok()) return;
    spdlog::warn("data cache error=\"{}\"", kept.error().message);
    const MutexLock lock(mutex_);
    full_until_ = Clock::now() + kFullDiskPause;
  }

  const std::vector<TreeFile> files_;
  const std::function<Result<std::vector<DataOrigins>>()> make_origins_;
  const std::function<Result<std::unique_ptr<ChunkPeers>>()> make_peers_;
  const std::unique_ptr<BlobCache> cache_;
  const std::function<void(const std::string&)> trouble_;
  const std::function<std::optional<Error>(bool)> ends_wait_;
  const AbortSignal& abort_;
  const ChunkStoreOptions options_;
  VerifiedFetch fetch_;
  AbortSignal stop_;                                     // of what its threads fetch
  std::array<std::atomic<std::uint64_t>, 3> fetched_{};  // chunks, by DataFrom

  // Set before they start.
  std::vector<std::unique_ptr<const ChunkTreeIndex>> trees_;
  std::vector<ShardTable> tables_;
  std::uint32_t largest_chunk_ = 1;

  mutable Mutex mutex_;
  Mutex trouble_mutex_;  // taken before mutex_
  CondVar changed_;
  std::vector<ChunkId> plan_ ATOLL_GUARDED_BY(mutex_);
  std::vector<bool> ensured_ ATOLL_GUARDED_BY(mutex_);  // of the plan: in the cache, unless that dropped it since
  std::map<ChunkId, std::size_t> places_ ATOLL_GUARDED_BY(mutex_);
  std::size_t needed_ ATOLL_GUARDED_BY(mutex_) = 0;      // so many, from its beginning
  std::size_t used_ ATOLL_GUARDED_BY(mutex_) = 0;        // the furthest of the plan that was asked for
  std::size_t first_open_ ATOLL_GUARDED_BY(mutex_) = 0;  // all before it are ensured, or given up
  std::optional<ChunkId> wanted_ ATOLL_GUARDED_BY(mutex_);
  std::set<ChunkId> busy_ ATOLL_GUARDED_BY(mutex_);
  std::map<ChunkId, Trial> trials_ ATOLL_GUARDED_BY(mutex_);
  std::map<ChunkId, Error> given_up_ ATOLL_GUARDED_BY(mutex_);
  std::map<ChunkId, Mapped> mapped_ ATOLL_GUARDED_BY(mutex_);
  std::list<ChunkId> uses_ ATOLL_GUARDED_BY(mutex_);  // of what is mapped, the last first
  std::map<PartId, std::vector<ChunkLeaf>> parts_ ATOLL_GUARDED_BY(mutex_);
  std::set<PartId> busy_parts_ ATOLL_GUARDED_BY(mutex_);
  Clock::time_point full_until_ ATOLL_GUARDED_BY(mutex_){};  // the disk: nothing is fetched ahead
  bool troubled_ ATOLL_GUARDED_BY(mutex_) = false;

  std::vector<std::jthread> threads_;
};

Result<std::unique_ptr<ChunkStore>> ChunkStore::open(ChunkStoreParts parts, const AbortSignal& abort,
                                                     const std::function<void(std::uint64_t, std::uint64_t)>& progress,
                                                     const ChunkStoreOptions& options) {
  auto impl = std::make_unique<Impl>(std::move(parts), abort, options);
  ATOLL_RETURN_IF_ERROR(impl->fetch_indices(progress));
  impl->start();
  return std::unique_ptr<ChunkStore>(new ChunkStore(std::move(impl)));
}

ChunkStore::ChunkStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChunkStore::~ChunkStore() = default;
const ChunkTreeIndex& ChunkStore::index(std::uint32_t tree) const { return impl_->index(tree); }
void ChunkStore::plan(std::vector<ChunkId> chunks, std::size_t needed) { impl_->plan(std::move(chunks), needed); }
Result<std::shared_ptr<const Chunk>> ChunkStore::get(ChunkId id) { return impl_->get(id); }
std::optional<Error> ChunkStore::given_up() const { return impl_->given_up(); }
Holding ChunkStore::holding(ChunkId id) const { return impl_->holding(id); }
Result<MappedFile> ChunkStore::held(ChunkId id, const AbortSignal& abort) { return impl_->held(id, abort); }

}  // namespace atl
