// Three real trainers, of which one says that it holds another average than it does, or holds one with a flipped bit:
// nobody ends of what the hub asks then, and the run goes on.
#include <QtCore/QProcess>
#include <QtTest/QTest>
#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "net/control/home.h"
#include "net/mesh/mesh_client.h"
#include "tests/net/hub/scripted_hub.h"
#include "tests/process/local_run.h"

using namespace atl;
using namespace atl::test;
using namespace std::chrono_literals;

namespace {

constexpr std::chrono::seconds kLimit{120};  // a hang, not a slow machine

// Between an island and its hub: passes on what each says to the other, but for what `alter` makes of the island's
// words.
class AlteredWords {
 public:
  using Alter = std::function<void(IslandMessage&)>;

  AlteredWords(const Identity& hub, const Identity& island, Address hub_address, Alter alter)
      : to_island_(hub), island_(island), hub_address_(std::move(hub_address)), alter_(std::move(alter)) {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  Address address() const { return to_island_.address(); }

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      while (to_hub_ && to_hub_->next(Deadline::after(0ms)).ok()) {  // said on already
      }
      auto said = to_island_.hear(Deadline::after(5ms));
      if (!said) continue;
      if (const auto* hello = std::get_if<IslandHello>(&*said)) {
        meet_hub(*hello);
      } else {
        alter_(*said);
        (void)to_hub_->send(*said);
      }
    }
    to_hub_.reset();
  }
  void meet_hub(const IslandHello& hello) {
    to_hub_.reset();
    MeshClient::Callbacks callbacks{
        .hello = [hello] { return hello; },
        .heartbeat = [this] { return to_island_.heartbeat().value_or(IslandHeartbeat{}); },
        .urgent = [this](const HubMessage& message) { to_island_.say(message); },
    };
    MeshClientOptions options;
    options.hub_addresses = {hub_address_};
    to_hub_ = require(MeshClient::start(options, island_, std::move(callbacks)));
  }

  ScriptedHub to_island_;
  const Identity island_;
  const Address hub_address_;
  const Alter alter_;
  std::unique_ptr<MeshClient> to_hub_;
  std::jthread thread_;  // last
};

void flip(std::string& digest) { digest.front() = digest.front() == '0' ? '1' : '0'; }

}  // namespace

class WrongDigestTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void nobody_ends_and_the_run_goes_on_data();
  void nobody_ends_and_the_run_goes_on();
};

void WrongDigestTest::nobody_ends_and_the_run_goes_on_data() {
  QTest::addColumn<bool>("in_a_chunk");
  QTest::newRow("a digest that is said wrongly") << false;
  QTest::newRow("a flipped bit in its average") << true;
}

void WrongDigestTest::nobody_ends_and_the_run_goes_on() {
  QFETCH(const bool, in_a_chunk);
  const LocalRun run(small_run(3));
  const IslandHome liar = run.make_home("liar");
  std::atomic<int> asked = 0;  // how often the hub looked into the averages
  std::optional<std::pair<OuterStep, Attempt>> lied;
  const auto once_in_every_other_round = [&, in_a_chunk](IslandMessage& said) {
    if (auto* have = std::get_if<IslandHave>(&said)) {
      if (have->round.value % 2 == 0 || (lied && lied->first == have->round)) return;
      lied = {have->round, have->attempt};
      flip(have->digest);
    }
    auto* chunks = std::get_if<IslandChunks>(&said);
    if (chunks == nullptr || chunks->digests.empty()) return;
    ++asked;
    if (in_a_chunk && lied == std::pair(chunks->round, chunks->attempt)) flip(chunks->digests.back());
  };
  const AlteredWords way(require(load_identity(HubHome{run.directory() / "hub"}.identity())),
                         require(load_identity(liar.identity())), run.hub_address(), once_in_every_other_round);
  JoinFile join = require(load_join_file(liar.join_file()));
  join.hub_addresses = {way.address(), run.hub_address()};  // data comes from the hub itself
  require(save_join_file(liar.join_file(), join));
  std::vector<std::unique_ptr<QProcess>> honest;
  for (const char* name : {"reef", "lagoon"}) honest.push_back(run.start_island(name));
  const auto lying = start_trainer(liar);

  QVERIFY(run.wait_until([&](const HubState& state) { return state.outer_step >= 6 && asked > 0; }, kLimit));

  for (const auto& trainer : honest) QCOMPARE(trainer->state(), QProcess::Running);
  QVERIFY(lying->state() == QProcess::Running || lying->exitStatus() == QProcess::NormalExit);
  const std::uint32_t then = run.state().outer_step;
  QVERIFY(run.wait_until([&](const HubState& state) { return state.outer_step >= then + 4; }, kLimit));
  for (const auto& trainer : honest) QCOMPARE(trainer->state(), QProcess::Running);
  for (const auto& trainer : honest) {
    trainer->terminate();
    QVERIFY(trainer->waitForFinished(60'000));
  }
  lying->kill();
  lying->waitForFinished(60'000);
}

QTEST_GUILESS_MAIN(WrongDigestTest)
#include "wrong_digest_test.moc"
