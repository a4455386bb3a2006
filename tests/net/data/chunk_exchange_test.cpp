// A run's data from island to island: a chunk is asked of the hub about once, whoever needs it; and one that lies, is
// slow or away costs a refetch, and is put last.
#include "net/data/chunk_exchange.h"

#include <QTemporaryDir>
#include <QtTest>
#include <atomic>
#include <thread>

#include "net/base/mutex.h"
#include "net/recovery/state_server.h"
#include "net/transport/peer_listener.h"
#include "tests/fakes/test_run.h"
#include "tests/net/data/small_dataset.h"

using namespace std::chrono_literals;

namespace atl::test {
namespace {

constexpr std::uint64_t kChunks = 40;
constexpr ChunkExchangeOptions kPatient{.connect = 30s, .silence = 30s};
constexpr ChunkExchangeOptions kImpatient{
    .connect = 300ms, .silence = 300ms, .least_rate = 1u << 20, .aside = 1h, .longest_aside = 1h};

// The hub: counts what is read of shards, and may be away.
struct FakeHub {
  std::string directory;
  std::atomic<int> chunks{0};
  std::atomic<bool> is_away{false};
};

class HubOfTest final : public DataOrigin {
 public:
  explicit HubOfTest(FakeHub& hub) : hub_(hub), files_(directory_origin(hub.directory)) {}
  std::string name() const override { return "the hub"; }
  Result<Bytes> read(const std::string& file, std::uint64_t offset, std::uint64_t bytes,
                     const AbortSignal& abort) override {
    if (hub_.is_away) return Error{ErrorCode::kUnreachable, "it is away"};
    if (file.ends_with(".tok")) ++hub_.chunks;
    return files_->read(file, offset, bytes, abort);
  }

 private:
  FakeHub& hub_;
  const std::unique_ptr<DataOrigin> files_;
};

class NoState final : public OuterStateSource {
 public:
  Result<StateManifest> manifest() const override { return Error{ErrorCode::kNotFound, "none"}; }
  Result<Bytes> copy_chunk(OuterStep, std::uint64_t) const override { return Error{ErrorCode::kNotFound, "none"}; }
};

// Who is in the run; islands come and go.
class Members {
 public:
  void add(ChunkPeer peer) {
    const MutexLock lock(mutex_);
    peers_.push_back(std::move(peer));
  }
  void remove(const IslandId& id) {
    const MutexLock lock(mutex_);
    std::erase_if(peers_, [&](const ChunkPeer& peer) { return peer.id == id; });
  }
  std::vector<ChunkPeer> all() const {
    const MutexLock lock(mutex_);
    return peers_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<ChunkPeer> peers_ ATOLL_GUARDED_BY(mutex_);
};

std::unique_ptr<PeerListener> listen(const Identity& identity, RingInbox& inbox, HttpHandler handler) {
  PeerListenerOptions options;
  options.bind = {"127.0.0.1", 0};
  return must(PeerListener::start(
      options, must(TlsContext::island_server(identity)), [](const PeerCertificate&) { return ok_status(); }, inbox,
      std::move(handler)));
}

class Node {
 public:
  Node(const Identity& self, const TreeFile& tree, const std::filesystem::path& cache, FakeHub& hub, Members& members,
       const ChunkExchangeOptions& options, std::uint64_t cache_bytes = 1u << 30)
      : members_(members),
        chunks_(
            self, [&members] { return members.all(); }, options) {
    ChunkStoreParts parts;
    parts.trees = {tree};
    parts.cache = must(BlobCache::open(cache, cache_bytes));
    parts.make_origins = [&hub]() -> Result<std::vector<DataOrigins>> {
      std::vector<DataOrigins> origins(1);
      origins[0].push_back(std::make_unique<HubOfTest>(hub));
      return origins;
    };
    parts.make_peers = [this] { return chunks_.on_this_thread(); };
    store_ = must(ChunkStore::open(
        std::move(parts), never_, {},
        {.connections = 3, .patience = 500ms, .first_pause = 10ms, .longest_pause = 50ms, .aside = 1ms}));
    chunks_.serve(store_);
    listener_ = listen(self, inbox_, [this](TlsConnection connection, HttpSession& session) {
      static const NoState state;
      serve_state(std::move(connection), {state, nullptr, pace_, &chunks_}, session);
    });
    members_.add({self.name, {"127.0.0.1", listener_->port()}});
  }

  ChunkStore& store() { return *store_; }
  ChunkExchange& chunks() { return chunks_; }
  // All of them, and whether each has its tokens.
  bool has_all(std::uint64_t first = 0) {
    std::vector<ChunkId> plan;
    for (std::uint64_t i = 0; i < kChunks; ++i) plan.push_back({0, (first + i) % kChunks});
    store_->plan(plan, plan.size());
    return std::ranges::all_of(plan, [&](const ChunkId& id) {
      const auto chunk = store_->get(id);
      return chunk.ok() && tokens_of(**chunk, 0, 2048) == expected(id.chunk * 2048, 2048);
    });
  }
  void stop_listening() { listener_.reset(); }

 private:
  Members& members_;
  AbortSignal never_;
  ChunkExchange chunks_;
  ServingPace pace_;
  RingInbox inbox_;
  std::shared_ptr<ChunkStore> store_;
  std::unique_ptr<PeerListener> listener_;
};

enum class Fault { kWrongBytes, kDrips, kEndless, kHasNotWhatItPromised, kSilent, kCloses, kRefuses, kMadeUpHolders };

// Says that it has every chunk, and has none.
class BadNode {
 public:
  BadNode(const Identity& self, Fault fault, Members& members) : self_(self), fault_(fault) {
    listener_ = listen(self, inbox_,
                       [this](TlsConnection connection, HttpSession& session) { serve(connection, session.abort()); });
    members.add({self.name, {"127.0.0.1", listener_->port()}});
  }
  int chunks_asked() const { return chunks_asked_; }
  int asked() const { return asked_; }

 private:
  void serve(TlsConnection& connection, const AbortSignal& abort) {
    const Deadline end = Deadline::after(1min);
    std::string head;
    for (char next = 0; !head.ends_with("\r\n\r\n"); head += next) {
      const auto count = connection.read_some({reinterpret_cast<std::byte*>(&next), 1}, end, &abort);
      if (!count.ok() || *count == 0) return;
    }
    ++asked_;
    const auto say = [&](const std::string& text) { return connection.write_all(as_bytes(text), end, &abort).ok(); };
    if (head.find("/holders ") != std::string::npos) {
      const std::string names =
          fault_ == Fault::kMadeUpHolders ? std::string("isl-nobody\n../key\n") : self_.name.value + "\n";
      say("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(names.size()) + "\r\n\r\n" + names);
      return;
    }
    ++chunks_asked_;
    const std::string begin = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kChunkBytes) + "\r\n\r\n";
    std::byte ignored{};
    switch (fault_) {
      case Fault::kWrongBytes: say(begin + std::string(kChunkBytes, 'x')); return;
      case Fault::kHasNotWhatItPromised: say("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"); return;
      case Fault::kRefuses: say("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"); return;
      case Fault::kCloses: say(begin + std::string(100, 'x')); return;
      case Fault::kMadeUpHolders: return;
      case Fault::kSilent: static_cast<void>(connection.read_some({&ignored, 1}, end, &abort)); return;
      case Fault::kEndless:
        if (!say("HTTP/1.1 200 OK\r\n\r\n")) return;
        while (say(std::string(kChunkBytes, 'x'))) {
        }
        return;
      case Fault::kDrips:
        if (!say(begin)) return;
        while (say("x") && !abort.raised()) std::this_thread::sleep_for(20ms);
        return;
    }
  }

  const Identity& self_;
  const Fault fault_;
  std::atomic<int> asked_{0}, chunks_asked_{0};
  RingInbox inbox_;
  std::unique_ptr<PeerListener> listener_;
};

}  // namespace

class ChunkExchangeTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init();
  void the_second_of_two_gets_all_from_the_first();
  void a_third_learns_from_those_who_asked_before();
  void islands_that_begin_at_once_share();
  void whatever_one_does_costs_a_refetch_and_it_is_put_last_data();
  void whatever_one_does_costs_a_refetch_and_it_is_put_last();
  void one_that_is_dead_holds_nobody_up();
  void without_the_hub_the_others_give_what_they_have();
  void a_liar_is_believed_where_it_is_right_and_nobody_else_is_there();
  void when_everybody_is_dead_the_chunk_is_given_up();
  void only_chunks_of_the_run_are_given();
  void what_is_given_away_is_no_use_of_ones_own();

 private:
  std::filesystem::path path(const std::string& name) const {
    const auto path = std::filesystem::path(place_->path().toStdString()) / name;
    std::filesystem::create_directories(path);
    return path;
  }
  std::unique_ptr<Node> node(int number, const ChunkExchangeOptions& options = kPatient,
                             std::uint64_t cache_bytes = 1u << 30) {
    return std::make_unique<Node>(run_.island(number), tree_, path("cache" + std::to_string(number)), *hub_, *members_,
                                  options, cache_bytes);
  }

  TestRun run_;
  std::unique_ptr<QTemporaryDir> place_;
  std::unique_ptr<FakeHub> hub_;
  std::unique_ptr<Members> members_;
  TreeFile tree_;
};

void ChunkExchangeTest::init() {
  place_ = std::make_unique<QTemporaryDir>();
  tree_ = make_tree_file(path("data"), {30'000, kChunks * 2048 - 30'000});
  hub_ = std::make_unique<FakeHub>();
  hub_->directory = path("data").string();
  members_ = std::make_unique<Members>();
}

void ChunkExchangeTest::the_second_of_two_gets_all_from_the_first() {
  const auto first = node(1);
  QVERIFY(first->has_all());
  const int once = hub_->chunks;  // some lie in two shards

  const auto second = node(2);
  QVERIFY(second->has_all());

  QCOMPARE(hub_->chunks.load(), once);
}

void ChunkExchangeTest::a_third_learns_from_those_who_asked_before() {
  const auto first = node(1);
  QVERIFY(first->has_all());
  const int once = hub_->chunks;
  std::vector<std::unique_ptr<Node>> later;
  for (int i = 2; i <= 4; ++i) {
    later.push_back(node(i));
    QVERIFY(later.back()->has_all(7 * static_cast<std::uint64_t>(i)));
  }

  QCOMPARE(hub_->chunks.load(), once);
  // Who was first goes: the others have it, and a newcomer learns that.
  first->stop_listening();
  members_->remove(run_.island(1).name);
  QVERIFY(node(5)->has_all());
  QVERIFY2(hub_->chunks < once + once / 2, std::to_string(hub_->chunks).c_str());
}

void ChunkExchangeTest::islands_that_begin_at_once_share() {
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 1; i <= 4; ++i) nodes.push_back(node(i));
  std::atomic<int> good{0};
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] { good += nodes[i]->has_all(7 * i) ? 1 : 0; });
    }
  }

  QCOMPARE(good.load(), 4);
  QVERIFY2(hub_->chunks < 2 * static_cast<int>(kChunks), std::to_string(hub_->chunks).c_str());  // else four times
}

void ChunkExchangeTest::whatever_one_does_costs_a_refetch_and_it_is_put_last_data() {
  QTest::addColumn<int>("fault");
  QTest::newRow("wrong bytes") << int(Fault::kWrongBytes);
  QTest::newRow("drips") << int(Fault::kDrips);
  QTest::newRow("endless") << int(Fault::kEndless);
  QTest::newRow("404 after a promise") << int(Fault::kHasNotWhatItPromised);
  QTest::newRow("silent") << int(Fault::kSilent);
  QTest::newRow("closes") << int(Fault::kCloses);
  QTest::newRow("refuses") << int(Fault::kRefuses);
  QTest::newRow("made-up holders") << int(Fault::kMadeUpHolders);
}

void ChunkExchangeTest::whatever_one_does_costs_a_refetch_and_it_is_put_last() {
  QFETCH(const int, fault);
  BadNode bad(run_.island(9), static_cast<Fault>(fault), *members_);
  const auto good = node(1, kImpatient);

  QVERIFY(good->has_all());

  QVERIFY(bad.asked() > 0);
  // Of 40 chunks. Three threads may be at it at once; who only says that it has not may say so three times in a row.
  QVERIFY2(bad.chunks_asked() <= 6, std::to_string(bad.chunks_asked()).c_str());
  QVERIFY2(bad.asked() <= 12, std::to_string(bad.asked()).c_str());
}

void ChunkExchangeTest::one_that_is_dead_holds_nobody_up() {
  {
    const auto dead = node(9);
    dead->stop_listening();
  }
  const auto good = node(1, kImpatient);

  QVERIFY(good->has_all());

  QVERIFY(hub_->chunks >= static_cast<int>(kChunks));
}

void ChunkExchangeTest::without_the_hub_the_others_give_what_they_have() {
  const auto first = node(1);
  QVERIFY(first->has_all());
  BadNode liar(run_.island(9), Fault::kWrongBytes, *members_);
  const auto second = node(2);
  QVERIFY(second->store().get({0, 0}).ok());  // and the part of the tree
  hub_->is_away = true;

  QVERIFY(second->has_all());
}

// It was wrong once, by a disk perhaps; all that it gives is verified.
void ChunkExchangeTest::a_liar_is_believed_where_it_is_right_and_nobody_else_is_there() {
  const auto first = node(1);
  QVERIFY(first->has_all());
  const auto second = node(2);
  QVERIFY(second->store().get({0, 0}).ok());
  auto peers = must(second->chunks().on_this_thread());
  AbortSignal never;
  const auto wrong = [](ByteView) { return Status(Error{ErrorCode::kCorrupt, "not this"}); };
  const auto right = [](ByteView) { return ok_status(); };

  QVERIFY(!peers->fetch({{0, 3}, kChunkBytes, wrong}, PeerChoice::kLikely, never).ok());
  QVERIFY(!peers->fetch({{0, 4}, kChunkBytes, right}, PeerChoice::kLikely, never).ok());  // it is put last
  QVERIFY(peers->fetch({{0, 4}, kChunkBytes, right}, PeerChoice::kAllThereAre, never).ok());
}

void ChunkExchangeTest::when_everybody_is_dead_the_chunk_is_given_up() {
  const auto dead = node(9);
  const auto alone = node(1, kImpatient);
  QVERIFY(alone->store().get({0, 0}).ok());
  dead->stop_listening();
  hub_->is_away = true;
  alone->store().plan({{0, 5}}, 1);

  const auto lost = alone->store().get({0, 5});

  QCOMPARE(lost.error().code, ErrorCode::kUnreachable);
  QVERIFY(lost.error().message.find("the hub: it is away") != std::string::npos);
  QVERIFY(lost.error().message.find("other islands: ") != std::string::npos);
}

void ChunkExchangeTest::only_chunks_of_the_run_are_given() {
  const auto first = node(1);
  QVERIFY(first->has_all());
  AbortSignal never;

  QVERIFY(first->chunks().chunk({0, kChunks - 1}, never).ok());
  QCOMPARE(first->chunks().chunk({0, kChunks}, never).error().code, ErrorCode::kNotFound);
  QCOMPARE(first->chunks().chunk({1, 0}, never).error().code, ErrorCode::kNotFound);
  QCOMPARE(first->chunks().chunk({UINT32_MAX, UINT64_MAX}, never).error().code, ErrorCode::kNotFound);
  QVERIFY(first->chunks().holders({1, 0}, IslandId{"isl-x"}).empty());
}

// Whoever asks for old chunks, again and again, keeps nothing in this island's cache.
void ChunkExchangeTest::what_is_given_away_is_no_use_of_ones_own() {
  const auto cache = must(BlobCache::open(path("lru"), 20));
  const std::vector<std::string> texts{"aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc"};
  for (int i = 0; i < 2; ++i) QVERIFY(cache->put(sha256(as_bytes(texts[i])), as_bytes(texts[i])).ok());

  QVERIFY(cache->find_for_others(sha256(as_bytes(texts[0]))).ok());
  QVERIFY(cache->put(sha256(as_bytes(texts[2])), as_bytes(texts[2])).ok());

  QVERIFY(!cache->contains(sha256(as_bytes(texts[0]))));  // it was the oldest, and is still
  QVERIFY(cache->contains(sha256(as_bytes(texts[1]))));
  QCOMPARE(cache->find_for_others(sha256(as_bytes(texts[0]))).error().code, ErrorCode::kNotFound);
}

}  // namespace atl::test

QTEST_GUILESS_MAIN(atl::test::ChunkExchangeTest)
#include "chunk_exchange_test.moc"
