// A run's data as an island gets it, from a hub that serves it over TLS, or from a mirror: what a lease needs, and no
// more; the right tokens, or none.
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>
#include <set>

#include "net/base/file.h"
#include "net/data/mixture.h"
#include "net/data/prepare.h"
#include "net/data/run_dataset.h"
#include "net/data/sequence_map.h"
#include "net/data/tree_builder.h"
#include "net/enrol/client.h"
#include "net/wire/invite.h"
#include "tests/net/hub/loopback_hub.h"
#include "trainer/island/run_data.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kLength = 64, kStep = 4;

template <class T>
T must(Result<T> result) {
  if (!result.ok()) qFatal("%s", result.error().message.c_str());
  return std::move(result).value();
}

std::uint64_t bytes_in(const std::filesystem::path& directory) {
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

}  // namespace

class StreamedDataTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void init() { place_ = std::make_unique<QTemporaryDir>(); }
  void an_island_gets_the_tokens_of_its_positions();
  void a_first_lease_fetches_what_it_needs_alone();
  void sources_come_in_their_shares_and_as_weights_change();
  void an_epoch_has_every_sequence_once();
  void validation_batches_are_the_same_every_time();
  void an_organiser_changes_the_mixture_by_names();
  void sources_of_other_tokens_or_names_are_refused();
  void a_mirror_is_asked_before_the_hub();
  void a_mirror_that_lies_is_not_believed();
  void a_mirror_that_the_owner_does_not_allow_is_not_asked();
  void without_hub_and_mirror_the_lease_cannot_be_had();
  void a_hub_whose_data_was_exchanged_is_not_believed();

 private:
  std::filesystem::path path(const std::string& name) const {
    return std::filesystem::path(shared_.path().toStdString()) / name;
  }
  std::filesystem::path cache() const { return std::filesystem::path(place_->path().toStdString()) / "data"; }
  // One hub with both sources, and what is said of mirrors; it is served until the next one is made.
  RunConfig serve(const std::vector<HubDataSource>& sources, const std::vector<NamedShare>& weights = {});
  std::unique_ptr<BatchSource> open(const RunConfig& run);
  Lease lease(std::uint64_t first, std::uint64_t sequences) const { return {first, sequences}; }
  // Token for token what lies in the source's shards.
  bool lies_in(const std::string& source, std::span<const std::int32_t> row) const;

  QTemporaryDir shared_;
  std::unique_ptr<QTemporaryDir> place_;
  std::unique_ptr<HubServer> server_;
  std::vector<Address> addresses_;
  Identity island_;
  MirrorPolicy mirrors_ = MirrorPolicy::kAll;
  AbortSignal never_;
  TransferNews news_{Download::kData, {}};
  int hubs_ = 0;
};

void StreamedDataTest::initTestCase() {
  for (const std::string source : {"web", "code"}) {
    std::string text;
    for (int i = 0; text.size() < 300 * 1024; ++i) {
      text += source + " line " + std::to_string(i * (source == "web" ? 7919 : 104'729) % 1'000'003) + "\n";
    }
    QVERIFY(write_file_atomically(path(source + ".txt"), text, FileMode::kPublic).ok());
    PrepareOptions options;
    options.shard_tokens = 50'000;
    const auto made = prepare_dataset({path(source + ".txt")}, path(source), options, {});
    QVERIFY2(made.ok(), made.ok() ? "" : made.error().message.c_str());
    const Dataset dataset = must(Dataset::open(path(source)));
    for (const Split split : {Split::kTrain, Split::kValidation}) {
      QVERIFY(make_chunk_tree(dataset, split, kMinChunkBytes, path(source) / tree_file(split)).ok());
    }
  }
}

RunConfig StreamedDataTest::serve(const std::vector<HubDataSource>& sources, const std::vector<NamedShare>& weights) {
  server_.reset();
  HubInitOptions options;
  options.directory = path("hub" + std::to_string(++hubs_));
  options.data = sources;
  options.weights = weights;
  options.run = loopback_run(1, 0);
  options.run.sequence_length = kLength;
  options.run.sequences_per_step = kStep;
  options.run.inner_steps = 8;
  options.run.validation_sequences = 10;
  const RunConfig run = must(hub_init(options));
  HubServeOptions serving;
  serving.directory = options.directory;
  serving.listen = {"127.0.0.1", 0};
  server_ = must(HubServer::start(serving, {}));
  addresses_ = {{"127.0.0.1", server_->port()}};
  const InviteReport invite = must(create_invite(options.directory, {.addresses = addresses_}));
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  island_ = must(enrol(must(decode_invite(invite.text, now)), "reader", Deadline::after(5s))).identity;
  return run;
}

std::unique_ptr<BatchSource> StreamedDataTest::open(const RunConfig& run) {
  const RunDataOptions options{.identity = island_,
                               .hub = addresses_,
                               .directory = cache(),
                               .cache_bytes = 10'000'000,
                               .mirrors = mirrors_,
                               .store = {},
                               .trouble = {}};
  return must(
      open_run_data(run, options, never_, news_, {.patience = 500ms, .first_pause = 20ms, .longest_pause = 100ms}));
}

bool StreamedDataTest::lies_in(const std::string& source, std::span<const std::int32_t> row) const {
  const Dataset dataset = must(Dataset::open(path(source)));
  const std::uint64_t tokens = dataset.manifest().tokens(Split::kTrain);
  std::vector<std::int32_t> all(tokens);
  dataset.read_sequence(Split::kTrain, 0, static_cast<std::uint32_t>(tokens - 1), all);
  return !std::ranges::search(all, row).empty();
}

void StreamedDataTest::an_island_gets_the_tokens_of_its_positions() {
  const auto batches = open(serve({{path("web")}}));

  std::set<std::vector<std::int32_t>> rows;
  for (std::uint32_t step = 0; step < 8; ++step) {
    const TokenBatch batch = must(batches->train_batch(OuterStep{0}, step, lease(32, 32)));
    QCOMPARE(batch.tokens.size(), std::size_t{kStep * (kLength + 1)});
    for (std::uint32_t i = 0; i < kStep; ++i) {
      const auto row = batch.tokens.subspan(i * (kLength + 1), kLength + 1);
      QVERIFY(lies_in("web", row));
      rows.insert({row.begin(), row.end()});
    }
  }
  QCOMPARE(rows.size(), std::size_t{32});
  QVERIFY(!batches->train_batch(OuterStep{0}, 8, lease(32, 32)).ok());
}

// Of 150 chunks a window of 16 has 512 sequences: a lease of 32 of these takes 16 chunks at most, and both splits'
// trees.
void StreamedDataTest::a_first_lease_fetches_what_it_needs_alone() {
  const RunConfig run = serve({{path("web")}});
  const auto batches = open(run);
  for (std::uint32_t step = 0; step < 8; ++step) QVERIFY(batches->train_batch(OuterStep{0}, step, lease(0, 32)).ok());

  // The next lease's are fetched ahead only where the hub says which that may be.
  const std::uint64_t all = bytes_in(path("web"));
  const std::uint64_t trees = bytes_in(path("hub" + std::to_string(hubs_)) / "trees");
  QVERIFY2(bytes_in(cache()) <= 16 * kMinChunkBytes + trees, qPrintable(QString::number(bytes_in(cache()))));
  QVERIFY(bytes_in(cache()) < all / 4);
}

void StreamedDataTest::sources_come_in_their_shares_and_as_weights_change() {
  const RunConfig run = serve({{path("web")}, {path("code")}}, {{"web", 3}, {"code", 1}});
  const auto batches = open(run);
  const std::vector<MixtureEra> eras{{32, {0, kMixtureParts}}};
  int web = 0, code = 0, later_web = 0;

  for (std::uint32_t step = 0; step < 8; ++step) {
    const TokenBatch batch = must(batches->train_batch(OuterStep{0}, step, lease(0, 32)));
    for (std::uint32_t i = 0; i < kStep; ++i) {
      const auto row = batch.tokens.subspan(i * (kLength + 1), kLength + 1);
      web += lies_in("web", row) ? 1 : 0;
      code += lies_in("code", row) ? 1 : 0;
    }
  }
  for (std::uint32_t step = 0; step < 8; ++step) {
    const TokenBatch batch = must(batches->train_batch(OuterStep{1}, step, {32, 32, eras}));
    for (std::uint32_t i = 0; i < kStep; ++i) {
      later_web += lies_in("web", batch.tokens.subspan(i * (kLength + 1), kLength + 1)) ? 1 : 0;
    }
  }

  QCOMPARE(web, 24);
  QCOMPARE(code, 8);
  QCOMPARE(later_web, 0);
}

void StreamedDataTest::an_epoch_has_every_sequence_once() {
  const RunConfig run = serve({{path("web")}});
  const auto batches = open(run);
  const RunDataset data = must(RunDataset::from_json(run.dataset_json));
  const SequenceMap map(run.seed, 0, {data.sources[0].train.tokens, kMinChunkBytes / 2, kLength});
  std::set<std::vector<std::int32_t>> rows;

  const std::uint64_t steps = map.sequences() / kStep;
  for (std::uint32_t step = 0; step < steps; ++step) {
    const TokenBatch batch = must(batches->train_batch(OuterStep{0}, step, lease(0, map.sequences())));
    for (std::uint32_t i = 0; i < kStep; ++i) {
      const auto row = batch.tokens.subspan(i * (kLength + 1), kLength + 1);
      rows.insert({row.begin(), row.end()});
    }
  }

  QCOMPARE(rows.size(), std::size_t{steps * kStep});  // the text has no line twice
}

void StreamedDataTest::validation_batches_are_the_same_every_time() {
  const RunConfig run = serve({{path("web")}, {path("code")}});
  const auto first = open(run), second = open(run);

  QCOMPARE(first->validation_batches(), 3u);  // ten sequences, four at once
  for (std::uint32_t i = 0; i < 3; ++i) {
    const TokenBatch a = must(first->validation_batch(i)), b = must(second->validation_batch(i));
    QVERIFY(std::ranges::equal(a.tokens, b.tokens));
    QCOMPARE(a.tokens.size(), std::size_t{(i < 2 ? 4 : 2) * (kLength + 1)});
  }
}

void StreamedDataTest::an_organiser_changes_the_mixture_by_names() {
  (void)serve({{path("web")}});
  QCOMPARE(server_->decide_mixture({{}, "web=1"}).error().code, ErrorCode::kInvalidArgument);  // there is one
  (void)serve({{path("web")}, {path("code"), "source-code"}});
  QCOMPARE(server_->state().mixture->weights.substr(0, 4), std::string("web="));

  const auto decided = server_->decide_mixture({5, "source-code=3,web=1"});

  QVERIFY2(decided.ok(), decided.ok() ? "" : decided.error().message.c_str());
  QCOMPARE(decided->weights, std::string("web=0.25,source-code=0.75"));
  QCOMPARE(server_->state().mixture->next_round, std::optional<std::uint32_t>(5));
  QCOMPARE(server_->state().mixture->next_weights, decided->weights);
  QCOMPARE(server_->decide_mixture({5, "math=1"}).error().code, ErrorCode::kInvalidArgument);
  QVERIFY(server_->cancel_mixture().ok());
  QCOMPARE(server_->cancel_mixture().error().code, ErrorCode::kNotFound);
  QVERIFY(!server_->state().mixture->next_round);
}

void StreamedDataTest::sources_of_other_tokens_or_names_are_refused() {
  std::filesystem::create_directories(path("other"));
  for (const auto& entry : std::filesystem::directory_iterator(path("code"))) {
    std::filesystem::copy_file(entry.path(), path("other") / entry.path().filename());
  }
  std::string manifest = must(read_file(path("other") / "dataset.json"));
  DatasetManifest changed = must(DatasetManifest::from_json(manifest));
  changed.tokenizer = "llama-3";
  changed.vocab_size = 300;
  changed.tokenizer_file = TokenizerEntry{"tokenizer.json", 3, std::string(64, '0')};
  QVERIFY(write_file_atomically(path("other") / "dataset.json", changed.to_json(), FileMode::kPublic).ok());
  HubInitOptions options{path("refused"), {{path("web")}, {path("other")}}, loopback_run(1, 0)};
  const auto other = hub_init(options);
  QCOMPARE(other.error().code, ErrorCode::kInvalidArgument);
  options.data = {{path("web")}, {path("code"), "web"}};
  QVERIFY(hub_init(options).error().message.find("two sources are called web") != std::string::npos);
  options.data = {{path("web"), "We b"}};
  QCOMPARE(hub_init(options).error().code, ErrorCode::kInvalidArgument);
  options.data = {{path("web"), "web", {"ftp://example.org"}}};
  QCOMPARE(hub_init(options).error().code, ErrorCode::kInvalidArgument);
  options.data = {{path("web")}};
  options.weights = {{"math", 1}};
  QCOMPARE(hub_init(options).error().code, ErrorCode::kInvalidArgument);
  QVERIFY(!std::filesystem::exists(path("refused") / "run.json"));
  options.weights = {};
  QVERIFY(hub_init(options).ok());  // what was refused is in nobody's way
}

void StreamedDataTest::a_mirror_is_asked_before_the_hub() {
  std::filesystem::create_directories(path("index"));
  for (const char* file : {"dataset.json", kTrainTree, kValidationTree}) {
    std::filesystem::copy_file(path("web") / file, path("index") / file);
  }
  // The hub has no shard of it.
  const auto batches = open(serve({{path("index"), "web", {path("web").string()}}}));

  const TokenBatch batch = must(batches->train_batch(OuterStep{0}, 0, lease(0, 32)));
  QVERIFY(lies_in("web", batch.tokens.first(kLength + 1)));
}

void StreamedDataTest::a_mirror_that_lies_is_not_believed() {
  std::filesystem::create_directories(path("lies"));
  for (const auto& entry : std::filesystem::directory_iterator(path("web"))) {
    std::string content = must(read_file(entry.path()));
    for (std::size_t i = 100; i < content.size(); i += 100) content[i] ^= 1;
    std::ofstream(path("lies") / entry.path().filename(), std::ios::binary) << content;
  }
  const auto batches = open(serve({{path("web"), "web", {path("lies").string()}}}));

  for (std::uint32_t step = 0; step < 8; ++step) {
    const TokenBatch batch = must(batches->train_batch(OuterStep{0}, step, lease(0, 32)));
    for (std::uint32_t i = 0; i < kStep; ++i) {
      QVERIFY(lies_in("web", batch.tokens.subspan(i * (kLength + 1), kLength + 1)));
    }
  }
}

void StreamedDataTest::a_mirror_that_the_owner_does_not_allow_is_not_asked() {
  std::filesystem::create_directories(path("head"));
  for (const char* file : {"dataset.json", kTrainTree, kValidationTree}) {
    std::filesystem::copy_file(path("web") / file, path("head") / file);
  }
  mirrors_ = MirrorPolicy::kHttps;
  const auto batches = open(serve({{path("head"), "web", {path("web").string()}}}));
  mirrors_ = MirrorPolicy::kAll;

  const auto lost = batches->train_batch(OuterStep{0}, 0, lease(0, 32));

  QCOMPARE(lost.error().code, ErrorCode::kUnreachable);
  QVERIFY2(lost.error().message.find("atoll config set island.data_mirrors all") != std::string::npos,
           lost.error().message.c_str());
}

void StreamedDataTest::without_hub_and_mirror_the_lease_cannot_be_had() {
  const RunConfig run = serve({{path("web")}});
  const auto batches = open(run);
  QVERIFY(batches->train_batch(OuterStep{0}, 0, lease(0, 32)).ok());
  server_.reset();

  const auto lost = batches->train_batch(OuterStep{1}, 0, lease(2048, 32));

  QVERIFY(!lost.ok());
  QCOMPARE(lost.error().code, ErrorCode::kUnreachable);
}

void StreamedDataTest::a_hub_whose_data_was_exchanged_is_not_believed() {
  std::filesystem::copy(path("web"), path("changing"));
  const RunConfig run = serve({{path("changing")}});
  const auto batches = open(run);
  for (const auto& entry : std::filesystem::directory_iterator(path("changing"))) {
    if (entry.path().extension() != ".tok") continue;
    std::string content = must(read_file(entry.path()));
    std::ranges::fill(content.begin() + 32, content.end(), '\1');
    std::ofstream(entry.path(), std::ios::binary) << content;
  }

  const auto lost = batches->train_batch(OuterStep{0}, 0, lease(0, 32));

  QCOMPARE(lost.error().code, ErrorCode::kUnreachable);
  QVERIFY(lost.error().message.find("SHA-256") != std::string::npos);
}

QTEST_GUILESS_MAIN(StreamedDataTest)
#include "streamed_data_test.moc"
