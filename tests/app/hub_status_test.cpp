// What `atoll hub status` prints of what a hub says, which here is a test.
#include <QtTest>
#include <filesystem>
#include <fstream>

#include "net/control/control_server.h"
#include "net/control/home.h"
#include "net/control/hub_state.h"
#include "tests/app/cli_run.h"

using namespace atl;
using atl::test::CliOutcome;
using atl::test::CliRun;
using atl::test::contains;

namespace {

class FakeHub final : public ControlService {
 public:
  explicit FakeHub(HubState state) : state_(std::move(state)) {}
  Result<nlohmann::json> call(std::string_view, const nlohmann::json&) override { return state_.to_json(); }

 private:
  const HubState state_;
};

CliOutcome status_in(CliRun& atoll, const HubHome& home, const HubState& state) {
  FakeHub hub(state);
  const auto server = ControlServer::start(home.control_socket(), "atoll-hub", hub);
  if (!server.ok()) qFatal("%s", server.error().message.c_str());
  return atoll({"hub", "status", "--home", home.directory.string()});
}

CliOutcome status_of(const HubState& state) {
  CliRun atoll;
  const HubHome home{atoll.path("hub")};
  std::filesystem::create_directories(home.directory);
  std::ofstream(home.run_file()) << "{}";
  return status_in(atoll, home, state);
}

}  // namespace

class HubStatusTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_run_that_everybody_left_is_no_alarm() {
    HubState state;
    state.outer_step = 7;
    state.islands.resize(2);
    for (HubState::Island& island : state.islands) island.state = HubIslandState::kGone;
    state.islands.back().rounds_accepted = 5;
    const CliOutcome left = status_of(state);
    state.islands.back().state = HubIslandState::kTraining;
    const CliOutcome here = status_of(state);

    QVERIFY2(contains(left.out, "nobody is here; who trained last has the state after round 7"), left.out.c_str());
    QVERIFY2(contains(left.out, "5 rounds") && !contains(left.out, "is on no disk"), left.out.c_str());
    QVERIFY2(contains(here.out, "is on no disk of an island") && !contains(here.out, "nobody"), here.out.c_str());
  }

  void who_was_removed_is_called_so_and_is_not_here() {
    HubState state;
    state.outer_step = 7;
    state.islands.resize(2);
    state.islands.front().state = HubIslandState::kRemoved;
    state.islands.back().state = HubIslandState::kGone;
    const CliOutcome outcome = status_of(state);

    QVERIFY2(contains(outcome.out, " removed ") && contains(outcome.out, " gone "), outcome.out.c_str());
    QVERIFY2(contains(outcome.out, "nobody is here"), outcome.out.c_str());
  }

  void that_nothing_was_published_yet_is_said() {
    CliRun atoll;
    const HubHome home{atoll.path("hub")};
    const std::string data = atoll.path("data").string();
    QCOMPARE(atoll({"data", "prepare", atoll.write_text().string(), "--output", data}).exit_code, 0);
    QCOMPARE(atoll({"hub", "init", "--name", "first", "--data", data, "--home", home.directory.string(), "--upload-to",
                    "s3://bucket/first", "--upload-every", "2"})
                 .exit_code,
             0);
    HubState state;
    state.outer_step = 3;
    const CliOutcome none = status_in(atoll, home, state);
    state.uploaded_outer_step = 2;
    const CliOutcome one = status_in(atoll, home, state);

    QVERIFY2(contains(none.out, "no state is in s3://bucket/first yet"), none.out.c_str());
    QVERIFY2(contains(one.out, "the state after round 2 is in the object store") && !contains(one.out, "no state"),
             one.out.c_str());
  }

  void it_says_what_all_rounds_came_to_and_how_long_the_rest_takes() {
    HubState state;
    state.outer_step = 400;
    state.max_rounds = 500;
    state.past = {{.round = 0, .rounds = 256, .tokens = 2'560'000, .seconds = 2560, .mean_loss_nats = 4},
                  {.round = 256, .rounds = 144, .tokens = 1'440'000, .seconds = 2000, .mean_loss_nats = 2.5}};
    state.rounds.resize(2);
    for (HubState::Round& round : state.rounds) round.seconds = 12;
    const CliOutcome half = status_of(state);
    state.outer_step = 500;
    const CliOutcome ends = status_of(state);
    state.finished = true;
    const CliOutcome over = status_of(state);

    QVERIFY2(contains(half.out,
                      "4,000,000 tokens trained in 1h16m of rounds  loss 2.500  100 rounds to go, about "
                      "20m00s\n"),
             half.out.c_str());
    QVERIFY2(contains(ends.out, "500 rounds committed  ends: what it came to is validated and published\n") &&
                 !contains(ends.out, "to go"),
             ends.out.c_str());
    QVERIFY2(contains(over.out, "of rounds  loss 2.500\n"), over.out.c_str());
  }

  void it_says_for_whose_fetch_a_round_waits() {
    HubState state;
    state.name = "first";
    state.round_open = true;
    const CliOutcome before = status_of(state);
    state.fetch_wait = "the next round waits for attic (isl-1), which fetches the model: 12 s at most";
    const CliOutcome waits = status_of(state);

    QCOMPARE(before.exit_code, 0);
    QVERIFY2(!contains(before.out, "fetch"), before.out.c_str());
    QCOMPARE(waits.exit_code, 0);
    QVERIFY2(contains(waits.out, "waits for a fetch\n" + state.fetch_wait + "\n"), waits.out.c_str());
  }
};

QTEST_GUILESS_MAIN(HubStatusTest)
#include "hub_status_test.moc"
