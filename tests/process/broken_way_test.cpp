// `atoll join` of this build over a way that breaks: what a provider without patience does once, and then looks away.
#include <QtTest/QTest>
#include <csignal>
#include <nlohmann/json.hpp>

#include "net/control/home.h"
#include "tests/fakes/fault_proxy.h"
#include "tests/process/agent_service.h"
#include "tests/process/run_parts.h"
#include "tests/process/scene.h"

using namespace atl;
using namespace atl::test;

class BrokenWayTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_island_whose_first_downloads_are_reset_goes_on_to_train();
};

void BrokenWayTest::an_island_whose_first_downloads_are_reset_goes_on_to_train() {
  // Given an island that has joined, has none of the run's data, and reaches its hub by a way
  Scene scene;
  const std::string home = scene.joined_home();
  const IslandHome island{home};
  JoinFile join = require(load_join_file(island.join_file()));
  FaultProxy way(join.hub_addresses.front());
  join.hub_addresses = {way.address()};
  require(save_join_file(island.join_file(), join));
  // that resets what is dialled beside the mesh's connection: the first three GET /data,
  way.break_beside_another({.kind = FaultKind::kReset, .after_bytes = 200}, 3);

  const auto process = scene.start({"join", "--home", home});
  const bool trains = wait_for([&] {
    process->waitForReadyRead(10);
    const ProgramOutcome status = scene.run({"status", "--json", "--home", home});
    const auto state = nlohmann::json::parse(status.out, nullptr, /*allow_exceptions=*/false);
    return (state.is_object() && state.value("tokens", 0) > 0) || process->state() == QProcess::NotRunning;
  });

  // then it trains all the same, and has said what went on.
  const bool runs = process->state() != QProcess::NotRunning;
  if (runs) ::kill(static_cast<pid_t>(process->processId()), SIGINT);
  const ProgramOutcome outcome = outcome_of(*process);
  const std::string said = outcome.out + outcome.err;
  QVERIFY2(trains && runs, said.c_str());
  QCOMPARE(way.broken(), 3);
  QCOMPARE(outcome.exit_code, 0);
  QVERIFY2(said.find("cannot get") != std::string::npos && said.find("trying again") != std::string::npos,
           said.c_str());
}

QTEST_GUILESS_MAIN(BrokenWayTest)
#include "broken_way_test.moc"
