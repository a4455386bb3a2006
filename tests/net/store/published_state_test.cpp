// Outer states in an object store: what is published is fetched back to the same bits, whatever the store and the way
// to it do meanwhile, and nothing is sent twice.
#include <QtTest/QTest>
#include <atomic>
#include <deque>

#include "net/store/multipart.h"
#include "tests/net/store/fake_store.h"
#include "tests/net/store/published_parts.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr std::uint64_t kNumel = 5 * kStateChunkNumel + 777;  // six chunks, the last one short
constexpr std::uint64_t kChunks = 6;
constexpr const char* kPrefix = "runs/first";

StoreAccess access_of(const FakeStore& store) {
  return {store.endpoint(), "us-east-1", kFakeBucket, {kFakeKeyId, kFakeSecret, "", "a test"}};
}

Result<StateUploadReport> publish(const FakeStore& store, const ChunkSource& source,
                                  const StateUploadOptions& options = quick_upload()) {
  AbortSignal abort;
  return publish_state(access_of(store), kPrefix, test_run_parts(), source, abort, options);
}

PublishedState find(const FakeStore& store, const std::string& prefix = kPrefix) {
  AbortSignal abort;
  StoreClient client = take(StoreClient::create(access_of(store), impatient()));
  return take(find_published_state(client, prefix, "", abort));
}

Status fetch(const FakeStore& store, const PublishedState& state, ChunkSink& sink) {
  AbortSignal abort;
  return fetch_published_state(access_of(store), state, sink, abort, {}, quick_download());
}

std::string tree_hash(const FetchedState& state, OuterStep step) {
  return to_hex(make_state_manifest(step, state.parameters, state.momentum).tree_hash());
}

std::vector<std::string> written(const FakeStore& store) {
  std::vector<std::string> names;
  for (const std::string& request : store.asked()) {
    if (request.starts_with("PUT ") && !request.ends_with(" part")) names.push_back(request.substr(4));
  }
  return names;
}

}  // namespace

class PublishedStateTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void what_is_published_is_fetched_to_the_same_state();
  void latest_is_written_last_and_names_the_newest();
  void a_state_that_is_there_is_not_sent_again();
  void an_upload_that_is_broken_off_ten_times_sends_each_part_once();
  void what_is_cut_or_refused_on_the_way_is_sent_again();
  void an_answer_that_was_lost_ends_no_upload();
  void an_upload_of_another_state_is_not_gone_on_with();
  void another_state_of_the_same_step_takes_the_place();
  void an_object_that_somebody_deleted_is_written_again();
  void bytes_that_the_store_keeps_otherwise_are_told();
  void a_source_that_is_damaged_publishes_nothing();
  void a_full_bucket_leaves_no_manifest();
  void a_store_without_credentials_is_told_before_anything_is_asked();
  void a_part_waits_for_its_turn();
  void chunks_that_came_are_not_fetched_again();
  void a_byte_that_was_changed_on_the_way_is_fetched_again();
  void another_state_in_the_place_is_told();
  void a_state_that_nobody_published_is_not_found();
  void a_run_that_begins_with_it_has_its_parameters_and_no_momentum();

 private:
  const FetchedState state_ = state_of(OuterStep{12}, kNumel, 0.5f);
  const MemorySource source_{state_};
};

void PublishedStateTest::initTestCase() { qputenv("no_proxy", "127.0.0.1"); }

void PublishedStateTest::what_is_published_is_fetched_to_the_same_state() {
  const FakeStore store;

  const StateUploadReport report = take(publish(store, source_));
  const PublishedState found = find(store);
  WholeSink sink(kNumel);
  take(fetch(store, found, sink));

  QCOMPARE(report.sent_bytes, 8 * kNumel);
  QCOMPARE(found.manifest_sha256, report.manifest_sha256);
  QCOMPARE(found.manifest.run_name, std::string("first run"));
  QCOMPARE(found.prefix, std::string("runs/first/outer-12"));
  QCOMPARE(tree_hash(sink.state, OuterStep{12}), to_hex(source_.manifest().tree_hash()));
  QCOMPARE(store.object("runs/first/outer-12/model.json"), std::string(kTestModel));
  QCOMPARE(store.keys(),
           (std::vector<std::string>{"runs/first/latest.json", "runs/first/outer-12/chunks.00000",
                                     "runs/first/outer-12/manifest.json", "runs/first/outer-12/model.json"}));
  QCOMPARE(store.open_upload_count(), std::size_t{0});
}

void PublishedStateTest::latest_is_written_last_and_names_the_newest() {
  const FakeStore store;
  const FetchedState small = state_of(OuterStep{13}, 1000, 2.0f);

  take(publish(store, source_));
  take(publish(store, MemorySource(small)));

  QCOMPARE(written(store).back(), std::string("runs/first/latest.json"));
  QCOMPARE(find(store).manifest.state.version, OuterStep{13});
  QCOMPARE(find(store, "runs/first/outer-12").manifest.state.version, OuterStep{12});
}

void PublishedStateTest::a_state_that_is_there_is_not_sent_again() {
  const FakeStore store;
  const StateUploadReport first = take(publish(store, source_));
  const auto parts = store.parts_taken();
  const auto before = written(store);
  const int reads = source_.reads;

  const StateUploadReport again = take(publish(store, source_));

  QCOMPARE(again.sent_bytes, std::uint64_t{0});
  QCOMPARE(again.manifest_sha256, first.manifest_sha256);
  QCOMPARE(store.parts_taken(), parts);
  QCOMPARE(written(store), before);
  QCOMPARE(int(source_.reads), reads);
}

// Each process is killed as the store does its last request, whose answer nobody reads: while it looks around, when it
// has begun an upload, and then behind each of the six parts.
void PublishedStateTest::an_upload_that_is_broken_off_ten_times_sends_each_part_once() {
  std::deque<AbortSignal> processes;
  std::atomic<AbortSignal*> running{nullptr};  // of the processes, which outlive the store
  std::atomic<int> requests_left{0};
  const FakeStore store([&](const FakeStoreRequest&) {
    AbortSignal* const process = running;
    if (process != nullptr && --requests_left <= 0) process->raise("killed");
    return StoreFault{};
  });
  StateUploadOptions options = quick_upload();
  options.connections = 1;
  int broken_off = 0;
  for (const int requests : {1, 6, 7, 9, 10, 10, 10, 10, 10, 10}) {
    AbortSignal& abort = processes.emplace_back();
    requests_left = requests;
    running = &abort;
    broken_off += publish_state(access_of(store), kPrefix, test_run_parts(), source_, abort, options).ok() ? 0 : 1;
    running = nullptr;
  }

  const StateUploadReport report = take(publish(store, source_, options));
  WholeSink sink(kNumel);
  take(fetch(store, find(store), sink));

  QCOMPARE(broken_off, 10);
  QCOMPARE(store.parts_taken(), kChunks);
  QCOMPARE(report.sent_bytes, std::uint64_t{0});
  QCOMPARE(tree_hash(sink.state, OuterStep{12}), to_hex(source_.manifest().tree_hash()));
  QCOMPARE(store.open_upload_count(), std::size_t{0});
}

void PublishedStateTest::what_is_cut_or_refused_on_the_way_is_sent_again() {
  int count = 0;
  const FakeStore store([&](const FakeStoreRequest&) {
    ++count;
    if (count % 5 == 2) return StoreFault{StoreFault::Kind::kCutBefore, {}};
    if (count % 5 == 4) return StoreFault::refuse(503, "SlowDown");
    return StoreFault{};
  });

  take(publish(store, source_));
  WholeSink sink(kNumel);
  take(fetch(store, find(store), sink));

  QCOMPARE(store.parts_taken(), kChunks);
  QCOMPARE(tree_hash(sink.state, OuterStep{12}), to_hex(source_.manifest().tree_hash()));
}

// The upload is complete, and its answer lost: the next try hears that there is no such upload.
void PublishedStateTest::an_answer_that_was_lost_ends_no_upload() {
  int left = 1;
  const FakeStore store([&](const FakeStoreRequest& request) {
    const bool completes = request.method == "POST" && request.asks("uploadId");
    return completes && left-- > 0 ? StoreFault{StoreFault::Kind::kCutAfter, {}} : StoreFault{};
  });

  take(publish(store, source_));

  QCOMPARE(store.parts_taken(), kChunks);
  QCOMPARE(find(store).manifest.state.version, OuterStep{12});
}

// Its parts might be taken for ours, and what an object says of itself is said when an upload begins.
void PublishedStateTest::an_upload_of_another_state_is_not_gone_on_with() {
  const FetchedState other = state_of(OuterStep{12}, kNumel, 9.0f);
  bool breaks = true;
  AbortSignal abort;
  const FakeStore store([&](const FakeStoreRequest& request) {
    if (breaks && request.is_part()) abort.raise("killed");
    return StoreFault{};
  });
  QVERIFY(!publish_state(access_of(store), kPrefix, test_run_parts(), MemorySource(other), abort, quick_upload()).ok());
  QCOMPARE(store.open_upload_count(), std::size_t{1});
  breaks = false;
  const auto before = store.parts_taken();

  take(publish(store, source_));
  WholeSink sink(kNumel);
  take(fetch(store, find(store), sink));

  QCOMPARE(store.parts_taken() - before, kChunks);
  QCOMPARE(store.open_upload_count(), std::size_t{0});
  QCOMPARE(tree_hash(sink.state, OuterStep{12}), to_hex(source_.manifest().tree_hash()));
}

// A rollback makes another state of a step that was published before. Who fetches meanwhile finds no manifest rather
// than one whose chunks are another's.
void PublishedStateTest::another_state_of_the_same_step_takes_the_place() {
  const FetchedState other = state_of(OuterStep{12}, kNumel, 9.0f);
  const FakeStore store;
  take(publish(store, MemorySource(other)));
  const PublishedState old = find(store);

  take(publish(store, source_));
  WholeSink sink(kNumel);
  take(fetch(store, find(store), sink));

  const auto asked = store.asked();
  const auto deleted = std::ranges::find(asked, "DELETE runs/first/outer-12/manifest.json");
  const auto part = std::find(deleted, asked.end(), "PUT runs/first/outer-12/chunks.00000 part");
  QVERIFY(deleted != asked.end() && part != asked.end());
  QCOMPARE(tree_hash(sink.state, OuterStep{12}), to_hex(source_.manifest().tree_hash()));
  QVERIFY(find(store).manifest_sha256 != old.manifest_sha256);
}

void PublishedStateTest::an_object_that_somebody_deleted_is_written_again() {
  FakeStore store;
  const StateUploadReport first = take(publish(store, source_));
  store.erase("runs/first/outer-12/chunks.00000");

  const StateUploadReport again = take(publish(store, source_));

  QCOMPARE(again.sent_bytes, 8 * kNumel);
  QCOMPARE(again.manifest_sha256, first.manifest_sha256);
}

void PublishedStateTest::bytes_that_the_store_keeps_otherwise_are_told() {
  int wrong = 0;
  const FakeStore once([&](const FakeStoreRequest& request) {
    return StoreFault{request.is_part() && wrong++ == 0 ? StoreFault::Kind::kWrongEtag : StoreFault::Kind::kNone, {}};
  });
  const FakeStore always([](const FakeStoreRequest& request) {
    return StoreFault{request.is_part() ? StoreFault::Kind::kWrongEtag : StoreFault::Kind::kNone, {}};
  });

  take(publish(once, source_));
  const auto refused = publish(always, source_);

  QCOMPARE(once.parts_taken(), kChunks + 1);
  QVERIFY(!refused.ok());
  QCOMPARE(refused.error().code, ErrorCode::kCorrupt);
  QVERIFY(refused.error().message.find("keeps other bytes") != std::string::npos);
  QCOMPARE(always.object("runs/first/outer-12/manifest.json"), std::string());
}

void PublishedStateTest::a_source_that_is_damaged_publishes_nothing() {
  const FakeStore store;
  MemorySource damaged(state_);
  damaged.damages = true;

  const auto refused = publish(store, damaged);

  QVERIFY(!refused.ok());
  QCOMPARE(refused.error().code, ErrorCode::kCorrupt);
  QCOMPARE(store.parts_taken(), std::uint64_t{0});
  QCOMPARE(store.object("runs/first/latest.json"), std::string());
}

void PublishedStateTest::a_full_bucket_leaves_no_manifest() {
  int room = 3;
  const FakeStore store([&](const FakeStoreRequest& request) {
    return request.is_part() && room-- <= 0 ? StoreFault::refuse(403, "QuotaExceeded", "full") : StoreFault{};
  });

  const auto refused = publish(store, source_);
  room = 100;
  const StateUploadReport later = take(publish(store, source_));

  QVERIFY(!refused.ok());
  QCOMPARE(refused.error().code, ErrorCode::kDiskFull);
  QCOMPARE(later.sent_bytes, 8 * kNumel - 3 * kStateChunkBytes);
}

void PublishedStateTest::a_store_without_credentials_is_told_before_anything_is_asked() {
  const FakeStore store;
  StoreAccess access = access_of(store);
  access.credentials = {};
  AbortSignal abort;

  const auto refused = publish_state(access, kPrefix, test_run_parts(), source_, abort, quick_upload());

  QVERIFY(!refused.ok());
  QCOMPARE(refused.error().code, ErrorCode::kPermissionDenied);
  QVERIFY(refused.error().message.find("store.credentials_file") != std::string::npos);
  QVERIFY(store.asked().empty());
}

void PublishedStateTest::a_part_waits_for_its_turn() {
  struct Turn final : UploadTurn {
    explicit Turn(std::atomic<int>& counted) : held(counted) { ++held; }
    ~Turn() override { --held; }
    std::optional<double> bytes_per_second() const override { return std::nullopt; }
    std::atomic<int>& held;
  };
  std::atomic<int> held{0}, taken{0};
  std::atomic<bool> without{false};
  const FakeStore store([&](const FakeStoreRequest& request) {
    if (request.is_part() && held == 0) without = true;
    return StoreFault{};
  });
  StateUploadOptions options = quick_upload();
  options.take_turn = [&](const AbortSignal&) {
    ++taken;
    return std::make_unique<Turn>(held);
  };

  take(publish(store, source_, options));

  QCOMPARE(int(taken), int(kChunks));
  QCOMPARE(int(held), 0);
  QVERIFY(!without);
}

void PublishedStateTest::chunks_that_came_are_not_fetched_again() {
  bool fails = true;
  int ranges = 0;
  const FakeStore store([&](const FakeStoreRequest& request) {
    if (!request.headers.contains("range")) return StoreFault{};
    return fails && ++ranges > 3 ? StoreFault::refuse(403, "AccessDenied") : StoreFault{};
  });
  take(publish(store, source_));
  const PublishedState found = find(store);
  WholeSink sink(kNumel);

  const Status broken = fetch(store, found, sink);
  const int came = sink.puts;
  fails = false;
  const auto asked_before = store.asked().size();
  take(fetch(store, found, sink));

  QVERIFY(!broken.ok());
  QCOMPARE(came, 3);
  QCOMPARE(store.asked().size() - asked_before, std::size_t{kChunks - 3});
  QCOMPARE(tree_hash(sink.state, OuterStep{12}), to_hex(source_.manifest().tree_hash()));
}

void PublishedStateTest::a_byte_that_was_changed_on_the_way_is_fetched_again() {
  int changed = 0;
  const FakeStore store([&](const FakeStoreRequest& request) {
    const bool changes = request.headers.contains("range") && changed++ == 2;
    return StoreFault{changes ? StoreFault::Kind::kWrongBytes : StoreFault::Kind::kNone, {}};
  });
  take(publish(store, source_));
  WholeSink sink(kNumel);

  take(fetch(store, find(store), sink));

  QCOMPARE(changed, int(kChunks) + 1);
  QCOMPARE(tree_hash(sink.state, OuterStep{12}), to_hex(source_.manifest().tree_hash()));
}

void PublishedStateTest::another_state_in_the_place_is_told() {
  const FakeStore store;
  take(publish(store, source_));
  const PublishedState old = find(store);
  const FetchedState other = state_of(OuterStep{12}, kNumel, 9.0f);
  take(publish(store, MemorySource(other)));
  WholeSink sink(kNumel);
  AbortSignal abort;
  StoreClient client = take(StoreClient::create(access_of(store), impatient()));

  const Status chunks = fetch(store, old, sink);
  const auto manifest = find_published_state(client, "runs/first/outer-12", old.manifest_sha256, abort);

  QCOMPARE(chunks.error().code, ErrorCode::kCorrupt);
  QCOMPARE(manifest.error().code, ErrorCode::kCorrupt);
  QVERIFY(manifest.error().message.find("another state has taken its place") != std::string::npos);
  QCOMPARE(int(sink.puts), 0);
}

void PublishedStateTest::a_state_that_nobody_published_is_not_found() {
  const FakeStore store;
  StoreClient client = take(StoreClient::create(access_of(store), impatient()));
  AbortSignal abort;

  for (const char* prefix : {"runs/none", "runs/none/outer-3", ""}) {
    const auto found = find_published_state(client, prefix, "", abort);
    QVERIFY(!found.ok());
    QCOMPARE(found.error().code, ErrorCode::kNotFound);
  }
}

// The hub knows the hash of what islands will make of it, and has seen none of it.
void PublishedStateTest::a_run_that_begins_with_it_has_its_parameters_and_no_momentum() {
  const FakeStore store;
  take(publish(store, source_));
  const PublishedState found = find(store);
  ParametersSink sink(kNumel);

  take(fetch(store, found, sink));
  const std::vector<float> parameters = sink.take();

  QVERIFY(parameters == state_.parameters);
  const FetchedState initial{OuterStep{0}, parameters, std::vector<float>(kNumel)};
  QCOMPARE(found.manifest.initial_hash, tree_hash(initial, OuterStep{0}));
}

QTEST_GUILESS_MAIN(PublishedStateTest)
#include "published_state_test.moc"
