// Random orders of events, deaths, cuts and joins: what must hold, holds, and once faults stop, rounds go on.
#include <QtTest>

#include "tests/net/mesh/coordinator_script.h"

namespace atl {
namespace {

RunConfig validating_run_for(std::uint32_t islands, std::uint32_t fragments) {
  RunConfig run = run_for(islands);
  run.fragments = fragments;
  run.validate_every = RunConfig{}.validate_every;
  run.straggler_grace = 10s;
  return run;
}

// One fault or none: all may die, one after the other or at once, for their disks stay.
void disturb(SimulatedMesh& mesh, std::mt19937& random, int islands, bool hub_too) {
  const int victim = 1 + static_cast<int>(random() % static_cast<unsigned>(islands));
  SimulatedMesh::Island& island = mesh.island(victim);
  switch (random() % 8) {
    case 0: mesh.kill(victim); break;
    case 1:
      if (island.running && island.linked) mesh.cut(victim);
      break;
    case 2:
    case 3:
      if (island.running && !island.linked && !island.goodbye) mesh.link(victim);
      break;
    case 4:
      if (!island.running) mesh.start(victim);
      break;
    case 5: mesh.pass(std::chrono::milliseconds(random() % 4000)); break;
    case 6:
      if (hub_too && random() % 8 == 0) mesh.restart_hub();
      break;
    default:
      if (random() % 8 == 0) {
        for (int i = 1; i <= islands; ++i) mesh.kill(i);
      }
  }
}

void heal(SimulatedMesh& mesh, int islands) {
  for (int i = 1; i <= islands; ++i) {
    if (!mesh.island(i).running || mesh.island(i).goodbye) {
      mesh.start(i);
    } else if (!mesh.island(i).linked) {
      mesh.link(i);
    }
  }
}

}  // namespace

class RandomMeshTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void whatever_happens_no_rule_is_broken_and_rounds_go_on_data();
  void whatever_happens_no_rule_is_broken_and_rounds_go_on();
};

void RandomMeshTest::whatever_happens_no_rule_is_broken_and_rounds_go_on_data() {
  QTest::addColumn<int>("islands");
  QTest::addColumn<bool>("hub_restarts");
  QTest::addColumn<quint32>("fragments");
  QTest::addColumn<bool>("directly");
  for (int islands = 2; islands <= 6; ++islands) {
    QTest::addRow("%d islands", islands) << islands << false << 1u << false;
    QTest::addRow("%d islands, hub restarts", islands) << islands << true << 1u << false;
  }
  for (const int islands : {3, 4, 6}) QTest::addRow("%d islands, directly", islands) << islands << true << 1u << true;
  QTest::addRow("4 islands, 2 fragments, directly") << 4 << true << 2u << true;
  for (const quint32 fragments : {2u, 3u}) {
    for (const int islands : {2, 3, 5}) {
      QTest::addRow("%d islands, %u fragments", islands, fragments) << islands << false << fragments << false;
      QTest::addRow("%d islands, %u fragments, hub restarts", islands, fragments)
          << islands << true << fragments << false;
    }
  }
}

void RandomMeshTest::whatever_happens_no_rule_is_broken_and_rounds_go_on() {
  QFETCH(int, islands);
  QFETCH(bool, hub_restarts);
  QFETCH(quint32, fragments);
  QFETCH(bool, directly);
  constexpr int kRuns = 60, kFaults = 60, kStepsBetween = 25;

  for (unsigned seed = 0; seed < kRuns; ++seed) {
    std::mt19937 random(seed * 977 + static_cast<unsigned>(islands));
    RunConfig run = validating_run_for(static_cast<std::uint32_t>(1 + islands / 2), fragments);
    if (seed % 2 == 1) run.initial_state = "hub:a model";
    SimulatedMesh mesh(run, small_fragments(fragments));
    mesh.keeps_states = true;
    mesh.snapshot_every = 1 + seed % 9;
    mesh.replays_by_itself = seed % 3 != 0;
    for (int i = 1; i <= islands; ++i) {
      mesh.island(i).dials_ahead = seed % 2 == 0 || i != 1;
      mesh.start(i);
    }
    for (int fault = 0; fault < kFaults; ++fault) {
      mesh.settle_randomly(random, static_cast<int>(random() % kStepsBetween));
      if (directly) measure_long_links(mesh, islands);
      disturb(mesh, random, islands, hub_restarts);
      QVERIFY2(mesh.violation().empty(), qPrintable(QString("seed %1: ").arg(seed) + mesh.violation().c_str()));
    }

    const std::size_t before = mesh.commits().size();
    const auto everybody_takes_part = [&] {
      return mesh.commits().size() >= before + 3 &&
             mesh.commits().back().members.size() == static_cast<std::size_t>(islands);
    };
    for (int i = 0; i < 40 && !everybody_takes_part(); ++i) {  // faults have stopped
      heal(mesh, islands);
      if (directly) measure_long_links(mesh, islands);
      mesh.settle_randomly(random, 200 * islands);
      mesh.pass(1s);
    }

    QVERIFY2(mesh.violation().empty(), qPrintable(QString("seed %1: ").arg(seed) + mesh.violation().c_str()));
    for (const CoordinatorNews& news : mesh.news()) {  // whatever was kept of attempts that failed: all hold the same
      const auto* failed = std::get_if<AttemptFailed>(&news);
      QVERIFY(failed == nullptr || !failed->reason.starts_with("the members hold different averages"));
    }
    QVERIFY2(mesh.commits().size() >= before + 3,
             qPrintable(QString("seed %1 stands still at round %2").arg(seed).arg(mesh.hub().committed().value)));
    QVERIFY2(mesh.commits().back().members.size() == static_cast<std::size_t>(islands),
             qPrintable(QString("seed %1: %2 members at the end").arg(seed).arg(mesh.commits().back().members.size())));
    QVERIFY2(mesh.most_open == fragments,
             qPrintable(QString("seed %1: %2 rounds at once").arg(seed).arg(mesh.most_open)));
    QCOMPARE(mesh.direct_attempts > 0, directly);
  }
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::RandomMeshTest)
#include "random_mesh_test.moc"
