// An island publishes what the hub asks for, from its disk: a snapshot with the rounds that lead on from it.
#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>

#include "net/base/file.h"
#include "net/base/mailbox.h"
#include "net/collective/canonical_digest.h"
#include "net/data/run_dataset.h"
#include "net/disk/replay.h"
#include "net/store/state_download.h"
#include "tests/net/store/fake_store.h"
#include "tests/net/store/published_parts.h"
#include "tests/trainer/island/round_loop_fixture.h"
#include "trainer/island/island_disk.h"
#include "trainer/island/state_uploader.h"
#include "trainer/island/store_start.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr const char* kUrl = "s3://bucket-one/runs/first";
constexpr const char* kPublished = "s3://bucket-one/runs/first/outer-1";
constexpr std::chrono::seconds kLimit{60};  // a hang, not a slow machine

// Of three chunks, the last one short.
ModelConfig published_model() {
  ModelConfig config = tiny_model();
  config.vocab_size = 70'000;
  config.hidden_size = 32;
  return config;
}

}  // namespace

class StateUploaderTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void init();
  void a_logged_state_is_published_as_it_was();
  void the_ring_goes_first();
  void what_the_disk_does_not_lead_to_is_told();
  void a_bucket_that_is_not_the_owners_is_left_alone();
  void another_runs_states_are_left_alone_data();
  void another_runs_states_are_left_alone();
  void an_island_that_stops_breaks_an_upload_off();
  void a_state_that_a_rollback_undid_is_not_uploaded_to_its_end();
  void of_two_states_the_newer_question_counts();
  void it_says_how_much_of_the_state_the_store_has();
  void another_run_begins_with_its_parameters();
  void a_store_that_fails_is_tried_again_until_the_island_stops();

 private:
  StoreSettings settings() const { return {store_->endpoint(), "", kFakeBucket, key_file_}; }
  StateUploader::Surroundings surroundings() {
    return {settings(),
            directory(),
            pace_,
            ring_,
            [this](std::optional<std::uint64_t> bytes) {
              MutexLock lock(progress_mutex_);
              progress_.push_back(bytes);
            },
            [this](const IslandUploaded& told) { (void)told_.push(told); }};
  }
  RunConfig run() const {
    RunConfig run;
    run.run_id = "0123456789abcdef";
    run.name = "first";
    run.model_json = to_json(model_);
    const std::string sha256(64, 'a');
    RunDataset data;
    data.sources = {{"text", kMixtureParts, sha256, {}, {1000, 100, sha256}, {}}};
    run.dataset_json = data.to_json();
    run.upload_store = kUrl;
    run.upload_every = 1;
    return run;
  }
  IslandUploaded told() {
    const auto told = told_.pop(Deadline::after(kLimit));
    if (!told) qFatal("nothing was told");
    return *told;
  }
  PublishedState published() const {
    AbortSignal abort;
    StoreClient client = take(StoreClient::create(take(access_to_read(settings(), take(parse_store_url(kUrl))))));
    return take(find_published_state(client, "runs/first", "", abort));
  }
  void take_round();
  // The store says nothing to a part.
  void stall_parts() {
    store_ = std::make_unique<FakeStore>([](const FakeStoreRequest& request) {
      return StoreFault{request.is_part() ? StoreFault::Kind::kStall : StoreFault::Kind::kNone, {}};
    });
  }
  bool sends_part() const {
    return std::ranges::any_of(store_->asked(), [](auto& line) { return line.ends_with(" part"); });
  }
  std::filesystem::path directory() const { return home_->path().toStdString(); }

  const ModelConfig model_ = published_model();
  std::filesystem::path key_file_;
  QTemporaryDir keys_;
  std::unique_ptr<QTemporaryDir> home_;
  std::unique_ptr<FakeStore> store_;
  std::unique_ptr<IslandDisk> disk_;
  std::unique_ptr<OuterStateStore> outer_;
  ServingPace pace_;
  AttemptsUnderWay ring_;
  Mailbox<IslandUploaded> told_{8};
  Mutex progress_mutex_;
  std::vector<std::optional<std::uint64_t>> progress_ ATOLL_GUARDED_BY(progress_mutex_);
};

void StateUploaderTest::initTestCase() {
  qputenv("no_proxy", "127.0.0.1");
  qunsetenv("AWS_PROFILE");
  key_file_ = keys_.filePath("keys").toStdString();
  take(write_file_atomically(
      key_file_,
      std::string("[default]\naws_access_key_id = ") + kFakeKeyId + "\naws_secret_access_key = " + kFakeSecret + "\n",
      FileMode::kPrivate));
}

// A snapshot of outer step 0, and a round logged upon it.
void StateUploaderTest::init() {
  home_ = std::make_unique<QTemporaryDir>();
  store_ = std::make_unique<FakeStore>();
  {
    MutexLock lock(progress_mutex_);
    progress_.clear();
  }
  disk_ = std::make_unique<IslandDisk>(directory());
  disk_->of_run(model_, 1, {.keep = 3, .rounds = {}});
  const auto numel = canonical_layout(model_).numel;
  outer_ = std::make_unique<OuterStateStore>(numel);
  std::vector<float> parameters(static_cast<std::size_t>(numel));
  for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] = static_cast<float>(i % 1021) / 1021;
  outer_->initialise(std::move(parameters));
  QVERIFY(write_snapshot(*disk_, *outer_).ok());
  take_round();
}

void StateUploaderTest::take_round() {
  std::vector<float> average(static_cast<std::size_t>(canonical_layout(model_).numel));
  for (std::size_t i = 0; i < average.size(); ++i) average[i] = static_cast<float>(i % 509) / 509;
  const ByteView canonical = std::as_bytes(std::span(average));
  HubCommit commit;
  commit.round = outer_->version();
  commit.attempt = Attempt{1};
  commit.digest = to_hex(canonical_digest(canonical));
  commit.outer_learning_rate = 0.7;
  commit.outer_momentum = 0.9;
  commit.epoch = 5;
  commit.signature = "signature";
  auto writer = disk_->begin_average(FragmentId{0}, commit.round, WireFormat::kFp32, canonical.size());
  QVERIFY(writer.ok() && writer->write(0, canonical).ok() && writer->finish(commit.digest).ok());
  disk_->told(std::make_shared<const SignedCommit>(SignedCommit{commit, "PEM"}));
  disk_->keep_commit(commit);
  const std::string from = outer_->tree_hash();
  const std::vector<Fragment> whole = take(fragments_of(canonical_layout(model_), 1));
  const HeldState made = outer_->apply(whole.front().ranges, WireFormat::kFp32, canonical, 0.7f, 0.9f);
  QVERIFY(disk_->keep_round({commit, "PEM"}, WireFormat::kFp32, canonical, from, made).ok());
}

void StateUploaderTest::a_logged_state_is_published_as_it_was() {
  StateUploader uploader(surroundings(), run(), model_);

  uploader.upload({OuterStep{1}, outer_->tree_hash()});
  const IslandUploaded how = told();

  QCOMPARE(how.error, std::string());
  QCOMPARE(how.outer_step, OuterStep{1});
  QCOMPARE(how.state_hash, outer_->tree_hash());
  const PublishedState state = published();
  QCOMPARE(to_hex(state.manifest.state.tree_hash()), outer_->tree_hash());
  QCOMPARE(state.manifest.run_name, std::string("first"));
  WholeSink sink(static_cast<std::uint64_t>(canonical_layout(model_).numel));
  AbortSignal abort;
  take(fetch_published_state(take(access_to_read(settings(), take(parse_store_url(kUrl)))), state, sink, abort, {},
                             quick_download()));
  QVERIFY(std::ranges::equal(sink.state.parameters, outer_->parameters()));
}

void StateUploaderTest::the_ring_goes_first() {
  auto attempt = std::make_unique<UploadShare>(ring_, nullptr);
  StateUploader uploader(surroundings(), run(), model_);

  uploader.upload({OuterStep{1}, outer_->tree_hash()});
  // It has begun the object's upload, and waits for the ring before the first part.
  const auto begins = [&] { return store_->open_upload_count() == 1; };
  QTRY_VERIFY_WITH_TIMEOUT(begins(), 60'000);
  QVERIFY(!told_.pop(Deadline::after(std::chrono::milliseconds(300))));
  QCOMPARE(store_->parts_taken(), std::uint64_t{0});
  attempt.reset();

  QCOMPARE(told().error, std::string());
  QCOMPARE(ring_.count(), 0);
}

void StateUploaderTest::what_the_disk_does_not_lead_to_is_told() {
  StateUploader uploader(surroundings(), run(), model_);

  uploader.upload({OuterStep{1}, std::string(64, 'a')});

  QCOMPARE(told().error, std::string("this island's disk does not lead to the state after round 1"));
  QVERIFY(store_->asked().empty());
}

void StateUploaderTest::a_bucket_that_is_not_the_owners_is_left_alone() {
  StateUploader::Surroundings around = surroundings();
  around.store.bucket = "another-bucket";
  StateUploader uploader(around, run(), model_);

  uploader.upload({OuterStep{1}, outer_->tree_hash()});

  QVERIFY(told().error.find("set store.bucket") != std::string::npos);
  QVERIFY(store_->asked().empty());
}

void StateUploaderTest::another_runs_states_are_left_alone_data() {
  QTest::addColumn<bool>("same_step");
  QTest::addColumn<bool>("whole");
  QTest::newRow("whole, of the same outer step") << true << true;
  QTest::newRow("whole, of another outer step") << false << true;
  QTest::newRow("being uploaded") << true << false;
}

void StateUploaderTest::another_runs_states_are_left_alone() {
  QFETCH(const bool, same_step);
  QFETCH(const bool, whole);
  if (!whole) stall_parts();
  const HeldState first{OuterStep{1}, outer_->tree_hash()};
  {
    StateUploader uploader(surroundings(), run(), model_);
    uploader.upload({first.outer_step, first.state_hash});
    if (whole) QCOMPARE(told().error, std::string());
    if (!whole) QTRY_VERIFY_WITH_TIMEOUT(sends_part(), 60'000);
  }
  if (!same_step) take_round();
  RunConfig other = run();
  other.run_id = "fedcba9876543210";
  StateUploader uploader(surroundings(), other, model_);

  uploader.upload({outer_->version(), outer_->tree_hash()});

  const std::string why = told().error;
  QVERIFY2(why.find("0123456789abcdef") != std::string::npos, why.c_str());
  QVERIFY2(why.find("stay as they are") != std::string::npos, why.c_str());
  if (!whole) {
    QCOMPARE(store_->open_upload_count(), std::size_t{1});
    return;
  }
  QCOMPARE(published().manifest.run_id, std::string("0123456789abcdef"));
  QCOMPARE(to_hex(published().manifest.state.tree_hash()), first.state_hash);
}

// What the store has stays for the next process; a store that says nothing holds nobody up.
void StateUploaderTest::an_island_that_stops_breaks_an_upload_off() {
  stall_parts();
  auto uploader = std::make_unique<StateUploader>(surroundings(), run(), model_);
  uploader->upload({OuterStep{1}, outer_->tree_hash()});
  QTRY_VERIFY_WITH_TIMEOUT(sends_part(), 60'000);

  uploader.reset();

  QVERIFY(!told_.try_pop());
  QCOMPARE(store_->open_upload_count(), std::size_t{1});
  QCOMPARE(ring_.count(), 0);
}

// The store would hold it up for ever.
void StateUploaderTest::a_state_that_a_rollback_undid_is_not_uploaded_to_its_end() {
  stall_parts();
  StateUploader uploader(surroundings(), run(), model_);
  const HeldState state{OuterStep{1}, outer_->tree_hash()};
  uploader.upload({state.outer_step, state.state_hash});
  QTRY_VERIFY_WITH_TIMEOUT(sends_part(), 60'000);

  uploader.give_up_after(OuterStep{1});
  QVERIFY(!told_.pop(Deadline::after(std::chrono::milliseconds(300))));
  QVERIFY(ring_.count() > 0);  // it goes on
  uploader.give_up_after(OuterStep{0});

  QTRY_COMPARE_WITH_TIMEOUT(ring_.count(), 0, 60'000);
  // The hub, too, has forgotten what it asked for; it asks for another.
  uploader.upload({OuterStep{2}, std::string(64, 'a')});
  QCOMPARE(told().outer_step, OuterStep{2});
  QVERIFY(!told_.try_pop());
}

void StateUploaderTest::of_two_states_the_newer_question_counts() {
  stall_parts();
  StateUploader uploader(surroundings(), run(), model_);
  const HubUpload first{OuterStep{1}, outer_->tree_hash()};
  uploader.upload(first);
  QTRY_VERIFY_WITH_TIMEOUT(sends_part(), 60'000);

  uploader.upload(first);  // again, after the hub started anew
  QVERIFY(!told_.pop(Deadline::after(std::chrono::milliseconds(300))));
  QVERIFY(ring_.count() > 0);
  uploader.upload({OuterStep{2}, std::string(64, 'a')});

  QCOMPARE(told().outer_step, OuterStep{2});
  QVERIFY(!told_.try_pop());
  QCOMPARE(ring_.count(), 0);
}

void StateUploaderTest::it_says_how_much_of_the_state_the_store_has() {
  StateUploader uploader(surroundings(), run(), model_);
  uploader.upload({OuterStep{1}, outer_->tree_hash()});
  QCOMPARE(told().error, std::string());

  MutexLock lock(progress_mutex_);
  QCOMPARE(progress_.front(), std::optional<std::uint64_t>(0));
  QVERIFY(progress_.size() >= 5);  // three chunks
  QVERIFY(std::is_sorted(progress_.begin(), progress_.end() - 1));
  QCOMPARE(progress_.end()[-2], std::optional<std::uint64_t>(2 * sizeof(float) * outer_->parameters().size()));
  QCOMPARE(progress_.back(), std::optional<std::uint64_t>());
}

void StateUploaderTest::another_run_begins_with_its_parameters() {
  StateUploader uploader(surroundings(), run(), model_);
  uploader.upload({OuterStep{1}, outer_->tree_hash()});
  QCOMPARE(told().error, std::string());
  const PublishedState state = published();
  RunConfig next = run();
  next.initial_state = kPublished;
  next.initial_state_sha256 = state.manifest_sha256;
  AbortSignal abort;
  TransferNews news(Download::kState, {});

  const auto parameters =
      fetch_initial_parameters(next, outer_->parameters().size(), settings(), abort, news, [](auto) {});
  const auto other_size =
      fetch_initial_parameters(next, outer_->parameters().size() + 1, settings(), abort, news, [](auto) {});

  QVERIFY2(parameters.ok(), parameters.ok() ? "" : parameters.error().message.c_str());
  QVERIFY(std::ranges::equal(*parameters, outer_->parameters()));
  OuterStateStore begins(canonical_layout(model_).numel);
  begins.initialise(*parameters);
  QCOMPARE(begins.tree_hash(), state.manifest.initial_hash);
  QVERIFY(!other_size.ok());
  QCOMPARE(other_size.error().code, ErrorCode::kInvalidArgument);
}

void StateUploaderTest::a_store_that_fails_is_tried_again_until_the_island_stops() {
  RunConfig next = run();
  next.initial_state = kPublished;
  next.initial_state_sha256 = std::string(64, 'a');
  AbortSignal abort;
  TransferNews news(Download::kState, {});
  std::vector<std::string> troubles;

  const auto parameters = fetch_initial_parameters(next, 1, settings(), abort, news, [&](const std::string& why) {
    troubles.push_back(why);
    if (troubles.size() == 2) abort.raise("stopped by its owner");
  });

  QVERIFY(!parameters.ok());
  QCOMPARE(parameters.error().code, ErrorCode::kAborted);
  QCOMPARE(troubles.size(), std::size_t{2});
  QVERIFY2(troubles.front().find("NoSuchKey") != std::string::npos, troubles.front().c_str());
  QVERIFY(troubles.front().ends_with("; trying again"));
}

QTEST_GUILESS_MAIN(StateUploaderTest)
#include "state_uploader_test.moc"
