// The hash tree of a dataset, the cache, and chunks fetched from where they can be had: what is wrong is found, what is
// away is waited for, what nobody has is given up.
#include "net/data/chunk_store.h"

#include <QTemporaryDir>
#include <QtTest>
#include <atomic>
#include <fstream>
#include <set>
#include <thread>

#include "net/base/file.h"
#include "net/base/mutex.h"
#include "net/data/sequence_map.h"
#include "net/data/token_shard.h"
#include "net/data/tree_builder.h"
#include "net/data/tree_journal.h"
#include "tests/net/data/small_dataset.h"

using namespace atl;
using namespace atl::test;
using namespace std::chrono_literals;

namespace {

// What an origin of a test does; shared by its copies on all threads.
struct Behaviour {
  std::atomic<bool> lies{false}, fails{false}, hangs{false};
  std::atomic<int> reads{0};
  std::atomic<std::uint64_t> bytes{0};
  std::string fails_for;  // a file
};

class ScriptedOrigin final : public DataOrigin {
 public:
  ScriptedOrigin(std::string directory, std::shared_ptr<Behaviour> behaviour)
      : origin_(directory_origin(std::move(directory))), behaviour_(std::move(behaviour)) {}
  std::string name() const override { return "a mirror"; }
  Result<Bytes> read(const std::string& file, std::uint64_t offset, std::uint64_t bytes,
                     const AbortSignal& abort) override {
    ++behaviour_->reads;
    while (behaviour_->hangs && !abort.raised()) std::this_thread::sleep_for(5ms);
    if (abort.raised()) return Error{ErrorCode::kAborted, abort.reason()};
    if (behaviour_->fails || file == behaviour_->fails_for) return Error{ErrorCode::kUnreachable, "it is away"};
    Result<Bytes> read = origin_->read(file, offset, bytes, abort);
    if (read.ok()) behaviour_->bytes += bytes;
    if (read.ok() && behaviour_->lies) read->back() ^= std::byte{1};
    return read;
  }

 private:
  const std::unique_ptr<DataOrigin> origin_;
  const std::shared_ptr<Behaviour> behaviour_;
};

}  // namespace

class ChunkStoreTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() { place_ = std::make_unique<QTemporaryDir>(); }
  void a_chunk_has_its_tokens_wherever_shards_end();
  void a_tree_that_is_not_whole_is_refused();
  void a_part_of_another_tree_is_refused();
  void a_damaged_shard_gets_no_tree();
  void a_tree_of_a_million_million_tokens_is_opened_at_once();
  void wrong_bytes_are_never_seen();
  void who_lies_is_asked_last();
  void what_nobody_has_is_given_up_and_only_that();
  void what_may_be_needed_later_holds_nobody_up();
  void an_origin_that_comes_back_is_used();
  void only_what_the_plan_needs_is_fetched_ahead_of_its_use();
  void the_cache_stays_within_its_bound_over_a_thousand_leases();
  void what_was_used_last_stays();
  void a_damaged_file_of_the_cache_is_fetched_again();
  void a_process_that_starts_finds_what_is_cached();
  void chunks_are_read_without_room_for_a_cache();
  void closing_does_not_wait_for_a_fetch();
  void an_owner_who_ends_it_waits_for_no_data();
  void a_tree_that_was_begun_is_gone_on_with();
  void a_journal_that_is_damaged_or_anothers_is_not_believed();

 private:
  std::filesystem::path path(const char* name) const {
    const auto path = std::filesystem::path(place_->path().toStdString()) / name;
    std::filesystem::create_directories(path);
    return path;
  }
  TreeFile make_tree(const std::vector<std::uint64_t>& sizes) { return make_tree_file(path("data"), sizes); }
  std::unique_ptr<ChunkStore> open(const TreeFile& tree, std::uint64_t cache_bytes = 1u << 30) {
    ChunkStoreParts parts;
    parts.trees = {tree};
    parts.cache = must(BlobCache::open(path("cache"), cache_bytes));
    parts.trouble = [this](const std::string& why) {
      const MutexLock lock(mutex_);
      troubles_.push_back(why);
    };
    parts.ends_wait = [this](bool in_vain) { return ends_wait_ ? ends_wait_(in_vain) : std::nullopt; };
    parts.make_origins = [this]() -> Result<std::vector<DataOrigins>> {
      std::vector<DataOrigins> origins(1);
      for (const auto& behaviour : behaviours_) {
        origins[0].push_back(std::make_unique<ScriptedOrigin>(path("data").string(), behaviour));
      }
      return origins;
    };
    return must(ChunkStore::open(
        std::move(parts), never_, {},
        {.connections = 3, .patience = 300ms, .first_pause = 10ms, .longest_pause = 50ms, .in_vain = 50ms}));
  }

  std::unique_ptr<QTemporaryDir> place_;
  AbortSignal never_;
  std::function<std::optional<Error>(bool)> ends_wait_;
  Mutex mutex_;
  std::vector<std::string> troubles_ ATOLL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Behaviour>> behaviours_{std::make_shared<Behaviour>()};
};

void ChunkStoreTest::a_chunk_has_its_tokens_wherever_shards_end() {
  const auto store = open(make_tree({1000, 3000, 5, 2048, 700}));
  const ChunkTreeIndex& index = store->index(0);
  QCOMPARE(index.chunks(), std::uint64_t{4});

  for (std::uint64_t i = 0; i < 4; ++i) {
    const auto chunk = must(store->get({0, i}));
    const auto count = static_cast<std::size_t>(index.tokens_of(i));
    QCOMPARE(tokens_of(*chunk, 0, count), expected(i * 2048, count));
    if (i < 3) QCOMPARE(tokens_of(*chunk, 2000, 49), expected(i * 2048 + 2000, 49));  // one is the next chunk's
  }
}

void ChunkStoreTest::a_tree_that_is_not_whole_is_refused() {
  make_tree({5000});
  const std::string whole = must(read_file(path("data") / kTrainTree));
  const TreeHead head = must(read_tree_head(path("data") / kTrainTree));
  const ByteView index = as_bytes(whole).first(head.index_bytes);

  QVERIFY(decode_chunk_tree_index(index).ok());
  for (std::size_t bytes = 0; bytes < index.size(); ++bytes) QVERIFY(!decode_chunk_tree_index(index.first(bytes)).ok());
  QVERIFY(!decode_chunk_tree_index(as_bytes(whole).first(head.index_bytes + 1)).ok());
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 7) {
    std::ofstream(path("data") / "cut.tree", std::ios::binary) << whole.substr(0, bytes);
    QVERIFY(!read_tree_head(path("data") / "cut.tree").ok());
  }
}

void ChunkStoreTest::a_part_of_another_tree_is_refused() {
  make_tree({5000});
  const std::string whole = must(read_file(path("data") / kTrainTree));
  const TreeHead head = must(read_tree_head(path("data") / kTrainTree));
  std::string part = whole.substr(head.index_bytes, 3 * kChunkLeafBytes);

  QCOMPARE(must(decode_tree_part(head.index, 0, as_bytes(part))).size(), std::size_t{3});
  QVERIFY(!decode_tree_part(head.index, 1, as_bytes(part)).ok());
  part[40] ^= 1;
  QCOMPARE(decode_tree_part(head.index, 0, as_bytes(part)).error().code, ErrorCode::kCorrupt);
}

void ChunkStoreTest::a_damaged_shard_gets_no_tree() {
  write_dataset(path("data"), {5000, 5000});
  Dataset dataset = write_dataset(path("data"), {5000, 5000});
  std::fstream(path("data") / "train-00001.tok", std::ios::in | std::ios::out | std::ios::binary).seekp(700).put('x');

  const Status made = make_chunk_tree(dataset, Split::kTrain, kChunkBytes, path("data") / kTrainTree);

  QCOMPARE(made.error().code, ErrorCode::kCorrupt);
  QVERIFY(made.error().message.find("train-00001.tok") != std::string::npos);
  QVERIFY(!std::filesystem::exists(path("data") / kTrainTree));
}

// Made up: 59,605 shards of 64 MiB. Of it the index alone is read, and is in memory.
void ChunkStoreTest::a_tree_of_a_million_million_tokens_is_opened_at_once() {
  ChunkTreeIndex index{.token_bytes = 4, .vocab_size = 128'256, .tokens = 1'000'000'000'000, .shards = {}, .parts = {}};
  constexpr std::uint64_t kShardTokens = 16u << 20;
  for (std::uint64_t left = index.tokens, i = 0; left > 0; ++i) {
    index.shards.push_back({"train-" + std::to_string(i) + ".tok", std::min(left, kShardTokens)});
    left -= index.shards.back().tokens;
  }
  index.parts.resize((index.chunks() + kLeavesOfPart - 1) / kLeavesOfPart);

  const Bytes encoded = encode(index);
  const ChunkTreeIndex read = must(decode_chunk_tree_index(encoded));
  const ShardTable table(read);

  QVERIFY(encoded.size() < 3u << 20);
  QCOMPARE(read.chunks(), std::uint64_t{3'814'698});
  const std::vector<ShardPiece> last = table.pieces_of(read.chunks() - 1);
  QCOMPARE(last.back().shard, read.shards.size() - 1);
  QCOMPARE(last.back().offset + last.back().bytes, kTokenShardHeaderBytes + 4 * read.shards.back().tokens);
}

void ChunkStoreTest::wrong_bytes_are_never_seen() {
  const TreeFile tree = make_tree({9000});
  const auto store = open(tree);
  behaviours_[0]->lies = true;

  const auto chunk = store->get({0, 2});

  QCOMPARE(chunk.error().code, ErrorCode::kUnreachable);
  QVERIFY(must(BlobCache::open(path("cache"), 1u << 30))->bytes() == tree.index_bytes);  // nothing of it was kept
}

void ChunkStoreTest::who_lies_is_asked_last() {
  behaviours_ = {std::make_shared<Behaviour>(), std::make_shared<Behaviour>()};
  const auto store = open(make_tree({90'000}));
  behaviours_[0]->lies = true;
  const int before = behaviours_[0]->reads;

  for (std::uint64_t i = 0; i < 40; ++i) QCOMPARE(tokens_of(*must(store->get({0, i})), 0, 5), expected(i * 2048, 5));

  QVERIFY(behaviours_[0]->reads - before <= 3);  // one a thread, at most
  behaviours_ = {std::make_shared<Behaviour>()};
}

void ChunkStoreTest::what_nobody_has_is_given_up_and_only_that() {
  const auto store = open(make_tree({20'480, 20'480}));
  behaviours_[0]->fails_for = "train-00001.tok";
  store->plan({{0, 1}, {0, 12}, {0, 2}}, 3);

  QVERIFY(store->get({0, 1}).ok());
  QTRY_VERIFY_WITH_TIMEOUT(store->given_up().has_value(), 60'000);  // before anybody asked for it
  QVERIFY(store->given_up()->message.find("it is away") != std::string::npos);
  QCOMPARE(store->get({0, 12}).error().code, ErrorCode::kUnreachable);
  QVERIFY(store->get({0, 2}).ok());
  store->plan({{0, 3}}, 1);
  QVERIFY(!store->given_up());
  {
    const MutexLock lock(mutex_);
    QVERIFY(!troubles_.empty());
  }
  behaviours_ = {std::make_shared<Behaviour>()};
}

void ChunkStoreTest::what_may_be_needed_later_holds_nobody_up() {
  const auto store = open(make_tree({20'480, 20'480}));
  behaviours_[0]->fails_for = "train-00001.tok";
  store->plan({{0, 1}, {0, 2}, {0, 12}}, 2);
  QVERIFY(store->get({0, 1}).ok() && store->get({0, 2}).ok());

  QTest::qWait(600);  // twice its patience

  QVERIFY(!store->given_up());
  QCOMPARE(store->get({0, 12}).error().code, ErrorCode::kUnreachable);  // now it is needed
  behaviours_ = {std::make_shared<Behaviour>()};
}

void ChunkStoreTest::an_origin_that_comes_back_is_used() {
  const auto store = open(make_tree({20'480}));
  behaviours_[0]->fails = true;
  store->plan({{0, 4}}, 1);
  QTRY_VERIFY_WITH_TIMEOUT(store->given_up().has_value(), 60'000);
  behaviours_[0]->fails = false;
  store->plan({{0, 4}}, 1);

  QVERIFY(store->get({0, 4}).ok());
  const auto all_is_well = [this] {
    const MutexLock lock(mutex_);
    return troubles_.back().empty();
  };
  QTRY_VERIFY_WITH_TIMEOUT(all_is_well(), 60'000);  // it is said
}

void ChunkStoreTest::only_what_the_plan_needs_is_fetched_ahead_of_its_use() {
  const TreeFile tree = make_tree({200'000});
  const std::uint64_t before = behaviours_[0]->bytes;
  constexpr std::uint64_t kRoom = 20 * kChunkBytes + 8192;
  const auto store = open(tree, kRoom);
  std::vector<ChunkId> plan;
  for (std::uint64_t i = 0; i < 50; ++i) plan.push_back({0, i});
  store->plan(plan, plan.size());

  QVERIFY(store->get({0, 0}).ok());

  const std::uint64_t head = tree.index_bytes + 98 * kChunkLeafBytes;
  const std::uint64_t ahead = kRoom / 2 / kChunkBytes;
  QTRY_COMPARE_WITH_TIMEOUT(behaviours_[0]->bytes - before, head + ahead * kChunkBytes, 60'000);
  QTest::qWait(300);
  QCOMPARE(behaviours_[0]->bytes - before, head + ahead * kChunkBytes);
}

// Leases as a run hands them out: of this source every fourth position, 16 sequences each.
void ChunkStoreTest::the_cache_stays_within_its_bound_over_a_thousand_leases() {
  const auto store = open(make_tree({500'000, 500'000}), 64 * kChunkBytes);
  const ChunkTreeIndex& index = store->index(0);
  const SequenceMap map(3, 0, {index.tokens, index.chunk_tokens(), 128});
  std::uint64_t most = 0;

  for (std::uint64_t lease = 0; lease < 1000; ++lease) {
    std::vector<ChunkId> plan;
    for (std::uint64_t i = 0; i < 16; ++i) {
      const ChunkId id{0, map.at(64 * lease + i).chunk};
      if (std::ranges::find(plan, id) == plan.end()) plan.push_back(id);
    }
    store->plan(plan, plan.size());
    for (std::uint64_t i = 0; i < 16; ++i) {
      const SequencePlace place = map.at(64 * lease + i);
      const auto chunk = must(store->get({0, place.chunk}));
      QCOMPARE(tokens_of(*chunk, place.sequence * 128, 129), expected(place.chunk * 2048 + place.sequence * 128, 129));
    }
    std::uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path("cache"))) {
      std::error_code gone;
      if (entry.is_regular_file(gone)) bytes += entry.file_size(gone) * (gone ? 0 : 1);
    }
    most = std::max(most, bytes);
  }

  // What a thread is about to place lies beside its place.
  QVERIFY2(most <= 64 * kChunkBytes + 3 * kChunkBytes, qPrintable(QString::number(most)));
  QVERIFY(most > 32 * kChunkBytes);
}

void ChunkStoreTest::what_was_used_last_stays() {
  const auto cache = must(BlobCache::open(path("lru"), 30));
  std::vector<Digest> digests;
  for (const char* text : {"aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc"}) {
    digests.push_back(sha256(as_bytes(text)));
    QVERIFY(cache->put(digests.back(), as_bytes(text)).ok());
  }
  QVERIFY(cache->find(digests[0]).ok());
  const Digest fourth = sha256(as_bytes("dddddddddd"));
  QVERIFY(cache->put(fourth, as_bytes("dddddddddd")).ok());

  QVERIFY(cache->contains(digests[0]));
  QVERIFY(!cache->contains(digests[1]));
  QVERIFY(cache->contains(digests[2]) && cache->contains(fourth));
  QCOMPARE(cache->bytes(), std::uint64_t{30});
  const std::string large(31, 'x');
  QVERIFY(cache->put(sha256(as_bytes(large)), as_bytes(large)).ok());  // not kept, and nothing goes for it
  QCOMPARE(cache->bytes(), std::uint64_t{30});
}

void ChunkStoreTest::a_damaged_file_of_the_cache_is_fetched_again() {
  const TreeFile tree = make_tree({9000});
  (void)must(open(tree)->get({0, 1}));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path("cache"))) {
    if (!entry.is_regular_file() || entry.file_size() != kChunkBytes) continue;
    std::fstream(entry.path(), std::ios::in | std::ios::out | std::ios::binary).seekp(100).put('\x7f');
  }

  const auto chunk = must(open(tree)->get({0, 1}));

  QCOMPARE(tokens_of(*chunk, 0, 2048), expected(2048, 2048));
}

void ChunkStoreTest::a_process_that_starts_finds_what_is_cached() {
  const TreeFile tree = make_tree({9000});
  (void)must(open(tree)->get({0, 1}));
  const auto file = path("cache") / "00" / (std::string(64, '0') + ".new.0123");  // of a process that was killed
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << "half";
  const int before = behaviours_[0]->reads;
  behaviours_[0]->fails = true;

  const auto store = open(tree);

  QVERIFY(store->get({0, 1}).ok());
  QCOMPARE(behaviours_[0]->reads, before);
  QVERIFY(!std::filesystem::exists(file));
  behaviours_[0]->fails = false;
}

void ChunkStoreTest::chunks_are_read_without_room_for_a_cache() {
  const auto store = open(make_tree({20'480}), 0);
  store->plan({{0, 0}, {0, 1}, {0, 2}}, 3);

  for (std::uint64_t i = 0; i < 3; ++i)
    QCOMPARE(tokens_of(*must(store->get({0, i})), 0, 2048), expected(i * 2048, 2048));
}

void ChunkStoreTest::closing_does_not_wait_for_a_fetch() {
  auto store = open(make_tree({20'480}));
  const int before = behaviours_[0]->reads;
  behaviours_[0]->hangs = true;
  store->plan({{0, 4}, {0, 5}}, 2);
  QTRY_VERIFY_WITH_TIMEOUT(behaviours_[0]->reads > before, 60'000);

  store.reset();  // else for ever

  behaviours_[0]->hangs = false;
}

// A pause ends it whether or not the data may come yet; a finish when a try was in vain.
void ChunkStoreTest::an_owner_who_ends_it_waits_for_no_data() {
  const auto store = open(make_tree({20'480}));
  std::atomic<bool> pauses{false}, finishes{false};
  ends_wait_ = [&](bool in_vain) -> std::optional<Error> {
    if (pauses) return Error{ErrorCode::kAborted, "paused"};
    if (finishes && in_vain) return Error{ErrorCode::kUnreachable, "finished"};
    return std::nullopt;
  };
  behaviours_[0]->hangs = true;
  const int before = behaviours_[0]->reads;
  std::jthread owner([&] {
    while (behaviours_[0]->reads == before) std::this_thread::sleep_for(1ms);
    pauses = true;
  });
  QCOMPARE(store->get({0, 4}).error().message, std::string("paused"));
  owner.join();
  pauses = false;
  finishes = true;
  QCOMPARE(store->get({0, 5}).error().message, std::string("finished"));
  behaviours_[0]->hangs = false;

  QVERIFY(store->get({0, 4}).ok());  // where it comes it is used
  ends_wait_ = {};
}

void ChunkStoreTest::a_tree_that_was_begun_is_gone_on_with() {
  const std::vector<std::uint64_t> sizes(300, 200);  // more than there are processors
  const TreeFile whole = make_tree(sizes);
  const std::string expected_tree = must(read_file(path("data") / kTrainTree));
  const Dataset dataset = write_dataset(path("data"), sizes);
  const auto again = path("again") / kTrainTree;
  std::uint64_t began_at = 0, all_bytes = 0;
  std::size_t calls = 0;
  for (std::size_t ends_after = 1;; ++ends_after) {
    std::size_t told = 0;
    ++calls;
    const Status made =
        make_chunk_tree(dataset, Split::kTrain, kChunkBytes, again, [&](std::uint64_t done, std::uint64_t all) {
          if (told == 0) {
            if (done < began_at) qFatal("what was done is done again");
            began_at = done;
          }
          all_bytes = all;
          return ++told <= ends_after;
        });
    if (made.ok()) break;
    QCOMPARE(made.error().code, ErrorCode::kAborted);
    QVERIFY(!std::filesystem::exists(again));
  }

  QVERIFY(calls > 2 && began_at > 0 && began_at < all_bytes);
  QVERIFY(must(read_file(again)) == expected_tree);
  QCOMPARE(std::distance(std::filesystem::directory_iterator(path("again")), {}), std::ptrdiff_t{1});  // no journal
}

void ChunkStoreTest::a_journal_that_is_damaged_or_anothers_is_not_believed() {
  const Digest of = sha256(as_bytes("this")), other = sha256(as_bytes("that"));
  const auto tree = path("journal") / kTrainTree;
  const std::vector<ChunkLeaf> leaves{
      {sha256(as_bytes("1")), 1}, {sha256(as_bytes("2")), 2}, {sha256(as_bytes("3")), 3}};
  {
    TreeJournal journal = must(TreeJournal::open(tree, of));
    QVERIFY(journal.take_leaves().empty());
    QVERIFY(journal.add(std::span(leaves).first(2)).ok() && journal.add(std::span(leaves).last(1)).ok());
  }
  const auto file = std::filesystem::directory_iterator(path("journal"))->path();
  const std::string good = must(read_file(file));
  QCOMPARE(read_tree_journal(as_bytes(good), of).leaves.size(), std::size_t{3});
  QVERIFY(read_tree_journal(as_bytes(good), other).leaves.empty());
  std::set<std::size_t> counts;
  for (std::size_t at = 0; at < good.size(); ++at) {
    counts.insert(read_tree_journal(as_bytes(good).first(at), of).leaves.size());
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    const TreeJournalText read = read_tree_journal(as_bytes(damaged), of);
    QVERIFY(read.leaves.size() < 3);
    for (std::size_t i = 0; i < read.leaves.size(); ++i) QVERIFY(read.leaves[i].sha256 == leaves[i].sha256);
  }
  QVERIFY(counts == (std::set<std::size_t>{0, 2}));  // a block is there or not

  std::ofstream(file, std::ios::binary) << good.substr(0, good.size() - 1);
  TreeJournal journal = must(TreeJournal::open(tree, of));
  QCOMPARE(journal.take_leaves().size(), std::size_t{2});
  QVERIFY(journal.add(std::span(leaves).last(1)).ok());
  QVERIFY(must(read_file(file)) == good);
}

QTEST_GUILESS_MAIN(ChunkStoreTest)
#include "chunk_store_test.moc"
