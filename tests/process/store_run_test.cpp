// A run and an object store, with programs alone: an island whose owner gave it a bucket publishes the run's states
// there, and another run begins with one. The secret of the bucket's key is in its file, and nowhere else.
#include <sys/stat.h>

#include <QtTest/QTest>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/control/home.h"
#include "net/model_files/model_reader.h"
#include "net/store/state_download.h"
#include "net/wire/run_config.h"
#include "tests/fakes/processes.h"
#include "tests/net/store/fake_store.h"
#include "tests/process/agent_service.h"
#include "tests/process/run_parts.h"
#include "tests/process/scene.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr const char* kPrefix = "runs/first";
const std::string kUrl = std::string("s3://") + kFakeBucket + "/" + kPrefix;

std::string raw(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

bool holds_secret(const std::string& text) { return text.find(kFakeSecret) != std::string::npos; }

}  // namespace

class StoreRunTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void cleanupTestCase();
  void an_island_publishes_the_states_of_its_run();
  void the_secret_is_in_its_file_alone();
  void what_is_wrong_with_the_address_is_told_before_a_hub_is_made();
  void a_run_whose_disks_are_gone_goes_on_from_the_store();
  void a_run_begins_with_the_published_parameters();
  void a_published_state_is_exported();

 private:
  void join(const std::string& name);
  void end_programs();
  PublishedState newest() const;
  nlohmann::json state_of_island(const std::string& name) const {
    return nlohmann::json::parse(scene_.run({"status", "--json", "--home", scene_.path(name).string()}).out, nullptr,
                                 false);
  }
  std::size_t chunks_asked() const {
    const auto asked = store_.asked();
    return static_cast<std::size_t>(std::ranges::count_if(asked, [](const std::string& line) {
      return line.starts_with("GET ") && line.find("/chunks.") != std::string::npos;
    }));
  }

  FakeStore store_;
  Scene scene_;
  std::vector<std::unique_ptr<QProcess>> programs_;
  std::string printed_;
};

void StoreRunTest::initTestCase() {
  qputenv("no_proxy", "127.0.0.1");
  const std::string credentials = scene_.path("keys").string();
  require(write_file_atomically(
      credentials,
      std::string("[default]\naws_access_key_id = ") + kFakeKeyId + "\naws_secret_access_key = " + kFakeSecret + "\n",
      FileMode::kPrivate));
  QProcessEnvironment& environment = scene_.environment;
  for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"}) {
    environment.remove(name);
  }
  environment.insert("no_proxy", "127.0.0.1");
  environment.insert("ATOLL_STORE_ENDPOINT", QString::fromStdString(store_.endpoint()));
  environment.insert("ATOLL_STORE_BUCKET", kFakeBucket);
  environment.insert("ATOLL_STORE_CREDENTIALS_FILE", QString::fromStdString(credentials));
  scene_.make_hub("hub", {"--inner-steps", "2", "--batch", "2", "--validate-every", "0", "--upload-to", kUrl,
                          "--upload-every", "2", "--attention", "document"});
  scene_.serve_hub();
}

void StoreRunTest::cleanupTestCase() { end_programs(); }

void StoreRunTest::end_programs() {
  for (const auto& program : programs_) ::kill(static_cast<pid_t>(program->processId()), SIGINT);
  for (const auto& program : programs_) {
    const ProgramOutcome outcome = outcome_of(*program);
    printed_ += outcome.out + outcome.err;
  }
  programs_.clear();
}

void StoreRunTest::join(const std::string& name) {
  programs_.push_back(
      scene_.start({"join", scene_.invite({}, name == "second" ? "hub two" : "hub"), "--yes", "--threads", "1",
                    "--listen", "127.0.0.1:0", "--home", scene_.path(name).string()}));
}

PublishedState StoreRunTest::newest() const {
  StoreClient client = require(
      StoreClient::create({store_.endpoint(), "us-east-1", kFakeBucket, {kFakeKeyId, kFakeSecret, "", "a test"}}));
  AbortSignal abort;
  return require(find_published_state(client, kPrefix, "", abort));
}

void StoreRunTest::an_island_publishes_the_states_of_its_run() {
  join("island");

  const std::string latest = std::string(kPrefix) + "/latest.json";
  QVERIFY(wait_for([&] { return !store_.object(latest).empty(); }));
  const PublishedState first = newest();
  QVERIFY(wait_for([&] { return newest().manifest.state.version > first.manifest.state.version; }));

  QVERIFY(first.manifest.state.version.value >= 2);
  QCOMPARE(first.manifest.run_name, std::string("test run"));
  const RunConfig run = require(RunConfig::from_json(raw(scene_.path("hub") / "run.json")));
  QCOMPARE(first.manifest.model_json, run.model_json);
  QCOMPARE(store_.object(first.prefix + "/model.json"), run.model_json);
  StoreClient client = require(
      StoreClient::create({store_.endpoint(), "us-east-1", kFakeBucket, {kFakeKeyId, kFakeSecret, "", "a test"}}));
  AbortSignal abort;
  require(check_published_state(client, first, abort));
  // Where whoever steers the run looks.
  const auto hub =
      nlohmann::json::parse(scene_.run({"hub", "status", "--json", "--home", scene_.path("hub").string()}).out);
  QVERIFY(hub.at("uploaded_outer_step").get<std::uint32_t>() >= first.manifest.state.version.value);
}

void StoreRunTest::the_secret_is_in_its_file_alone() {
  QVERIFY(holds_secret(raw(scene_.path("keys"))));  // what is looked for would be found
  const std::string mine = "HOME=" + scene_.path("home").string();
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string environment = read_of_process(entry.path() / "environ");
    if (environment.find(mine) == std::string::npos) continue;
    ++seen;
    QVERIFY(!holds_secret(environment));
    QVERIFY(!holds_secret(read_of_process(entry.path() / "cmdline")));
  }
  QVERIFY(seen >= 3);  // the hub, the join, its trainer
  const std::string bundle = scene_.path("diag.tar").string();
  QCOMPARE(scene_.run({"diag", "-o", bundle, "--home", scene_.path("island").string()}).exit_code, 0);
  const ProgramOutcome config = scene_.run({"config", "get", "--home", scene_.path("island").string()});
  printed_ += config.out + config.err;
  QVERIFY(config.out.find(scene_.path("keys").string()) != std::string::npos);  // where it is may be known

  end_programs();

  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(scene_.path(""))) {
    if (!entry.is_regular_file() || entry.path() == scene_.path("keys")) continue;
    ++files;
    QVERIFY2(!holds_secret(raw(entry.path())), entry.path().c_str());
  }
  QVERIFY(files > 20);
  QVERIFY(!printed_.empty());
  QVERIFY(!holds_secret(printed_));
  QVERIFY(!holds_secret(store_.everything_received()));
}

void StoreRunTest::what_is_wrong_with_the_address_is_told_before_a_hub_is_made() {
  const auto init = [&](const std::string& from, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"hub",    "init",
                                       "--home", scene_.path("hub none").string(),
                                       "--data", scene_.path("data").string(),
                                       "--name", "second",
                                       "--from", from};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return scene_.run(arguments);
  };

  const ProgramOutcome no_address = init("bucket/prefix"), nothing_there = init(kUrl + "/none"),
                       two_models = init(kUrl, {"--model", "150m"});

  for (const ProgramOutcome* outcome : {&no_address, &nothing_there, &two_models}) QVERIFY(outcome->exit_code != 0);
  QVERIFY2(no_address.err.find("must be s3://BUCKET/PREFIX") != std::string::npos, no_address.err.c_str());
  QVERIFY2(nothing_there.err.find("no state is published there") != std::string::npos, nothing_there.err.c_str());
  QVERIFY2(two_models.err.find("leave --model out") != std::string::npos, two_models.err.c_str());
  QVERIFY(!std::filesystem::exists(scene_.path("hub none")));
}

// Every island's disk is gone, and the hub started anew: what is left is the store.
void StoreRunTest::a_run_whose_disks_are_gone_goes_on_from_the_store() {
  std::filesystem::remove_all(scene_.path("island"));
  scene_.kill_hub();
  scene_.serve_hub();
  const std::string hub = scene_.path("hub").string();
  const auto state_of_hub = [&] {
    return nlohmann::json::parse(scene_.run({"hub", "status", "--json", "--home", hub}).out, nullptr, false);
  };
  const auto before = state_of_hub();
  const auto committed = before.at("outer_step").get<std::uint32_t>();
  const auto stored = newest().manifest.state.version.value;
  QCOMPARE(before.at("uploaded_outer_step").get<std::uint32_t>(), stored);
  const std::size_t chunks = chunks_asked();

  join("newcomer");
  if (stored < committed) {
    const ProgramOutcome back = scene_.run({"hub", "rollback", "--to", std::to_string(stored), "--home", hub});
    QVERIFY2(back.exit_code == 0, back.err.c_str());
  }

  QVERIFY(wait_for([&] {
    const auto state = state_of_hub();
    return state.is_object() && state.value("outer_step", 0u) > stored;
  }));
  QVERIFY(chunks_asked() > chunks);
  end_programs();
}

// The hub has never seen them: it knows the hash of what islands will hold, from the manifest, and a round is committed
// only by an island that holds it.
void StoreRunTest::a_run_begins_with_the_published_parameters() {
  QCOMPARE(scene_.end_hub(), 0);
  const PublishedState published = newest();
  scene_.make_hub("hub two", {"--inner-steps", "2", "--batch", "2", "--validate-every", "0", "--from", kUrl});
  scene_.serve_hub("hub two");
  const std::size_t before = chunks_asked();

  join("second");
  QVERIFY(wait_for([&] {
    const auto state = state_of_island("second");
    return state.is_object() && state.value("outer_step", 0u) >= 2;
  }));

  const RunConfig run = require(RunConfig::from_json(raw(scene_.path("hub two") / "run.json")));
  QCOMPARE(run.initial_state,
           "s3://" + std::string(kFakeBucket) + "/" + published.prefix + "?endpoint=" + store_.endpoint());
  QCOMPARE(run.initial_state_sha256, published.manifest_sha256);
  QCOMPARE(run.model_json, published.manifest.model_json);
  QVERIFY(run.attention == AttentionScope::kDocument);  // as it was trained
  QCOMPARE(chunks_asked() - before, published.manifest.state.chunk_sha256.size());
}

void StoreRunTest::a_published_state_is_exported() {
  const PublishedState published = newest();
  const StoreAccess access{store_.endpoint(), "us-east-1", kFakeBucket, {kFakeKeyId, kFakeSecret, "", "a test"}};
  ParametersSink sink(published.manifest.state.state_bytes / (2 * sizeof(float)));
  const AbortSignal never;
  require(fetch_published_state(access, published, sink, never, [](std::uint64_t, std::uint64_t) {}));
  const std::vector<float> parameters = sink.take();

  for (const std::string& from : {kUrl, kUrl + "/" + published_name(published.manifest.state.version)}) {
    const auto made = scene_.path("exported");
    std::filesystem::remove_all(made);
    const ProgramOutcome outcome = scene_.run({"export", "--from", from, "--output", made.string(), "--json"});
    QVERIFY2(outcome.exit_code == 0, outcome.err.c_str());
    QVERIFY(nlohmann::json::parse(outcome.out).at("outer_step") == published.manifest.state.version.value);
    QVERIFY(read_model_directory(made)->parameters == parameters);
    QVERIFY(ModelReader::open(made)->attention() == AttentionScope::kDocument);
    QVERIFY(!holds_secret(outcome.out + outcome.err));
  }
  const ProgramOutcome none =
      scene_.run({"export", "--from", kUrl + "/outer-99999", "--output", scene_.path("none").string()});
  QVERIFY(none.exit_code != 0);
  QVERIFY(!std::filesystem::exists(scene_.path("none")));
}

QTEST_GUILESS_MAIN(StoreRunTest)
#include "store_run_test.moc"
