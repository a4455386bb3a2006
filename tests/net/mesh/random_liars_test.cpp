// One liar among honest islands that die, are cut off and come back, with a hub that restarts: no state is adopted that
// no honest island computed, nobody honest is evicted for good, and what cannot be decided is a named standstill.
#include <QtTest>

#include "tests/net/mesh/coordinator_script.h"

namespace atl {
namespace {

constexpr int kFaults = 12, kStepsBetween = 40;

// ATOLL_LIAR_SCHEDULES: of each number of islands; by default a few, for every build.
unsigned schedules() {
  const char* given = std::getenv("ATOLL_LIAR_SCHEDULES");
  return given != nullptr ? static_cast<unsigned>(std::stoul(given)) : 120;
}

RunConfig careful_run(std::uint32_t islands, std::uint32_t fragments) {
  RunConfig run = run_for(islands);
  run.fragments = fragments;
  run.quorum = 2;
  run.validate_every = 3;
  run.straggler_grace = 10s;
  run.lost_after = 20s;
  return run;
}

SimulatedMesh::Lies random_lies(std::mt19937& random) {
  SimulatedMesh::Lies lies;
  for (bool* lie : {&lies.state_hash, &lies.digest, &lies.bytes, &lies.norm, &lies.hidden_norm, &lies.complaint,
                    &lies.tokens, &lies.links, &lies.validation, &lies.no_data, &lies.step}) {
    *lie = random() % 3 == 0;
  }
  return lies;
}

// Somebody honest dies, is cut off or comes back; or the hub starts again.
void disturb(SimulatedMesh& mesh, std::mt19937& random, int islands) {
  const int victim = 2 + static_cast<int>(random() % static_cast<unsigned>(islands - 1));
  SimulatedMesh::Island& island = mesh.island(victim);
  switch (random() % 6) {
    case 0: mesh.kill(victim); break;
    case 1:
      if (island.linked) mesh.cut(victim);
      break;
    case 2: mesh.pass(std::chrono::milliseconds(random() % 4000)); break;
    case 3:
      if (random() % 4 == 0) mesh.restart_hub();
      break;
    default: break;
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

// Three rounds on, and every honest island has come along; or it is said why nobody can go on.
bool goes_on_or_says_why(SimulatedMesh& mesh, int islands, std::size_t commits, OuterStep step) {
  if (mesh.hub().standstill()) return true;
  for (int i = 2; i <= islands; ++i) {
    if (!mesh.island(i).outer_step || *mesh.island(i).outer_step <= step) return false;
  }
  return mesh.commits().size() >= commits + 3;
}

// How things stand, for who looks for the reason.
QString told(SimulatedMesh& mesh, int islands) {
  QString text = QString("round %1 of phase %2").arg(mesh.hub().committed().value).arg(int(mesh.hub().phase()));
  for (int i = 1; i <= islands; ++i) {
    const auto found = mesh.hub().islands().find(mesh.island(i).id);
    text += QString("; %1:").arg(i);
    if (found == mesh.hub().islands().end()) {
      text += " away";
      continue;
    }
    text += QString(" standing %1 step %2")
                .arg(int(found->second.standing))
                .arg(mesh.island(i).outer_step ? int(mesh.island(i).outer_step->value) : -1);
    for (const auto& [number, round] : mesh.hub().rounds()) {
      const RoundPart& part = std::as_const(*round).parts().of(mesh.island(i).id);
      text += QString(" round %1 part %2 ready %3 sits out %4")
                  .arg(number.value)
                  .arg(int(part.role))
                  .arg(part.ready.has_value())
                  .arg(part.sits_out);
    }
    if (mesh.island(i).goodbye) text += QString(" goodbye ") + mesh.island(i).goodbye->message.c_str();
  }
  int shown = 0;
  for (auto news = mesh.news().rbegin(); news != mesh.news().rend() && shown < 6; ++news) {
    if (const auto* failed = std::get_if<AttemptFailed>(&*news)) {
      text += QString("; attempt %1: %2").arg(failed->attempt.value).arg(failed->reason.c_str());
      ++shown;
    } else if (const auto* out = std::get_if<WorkLeftOut>(&*news)) {
      text += QString("; left out %1: %2").arg(out->island.value.c_str(), out->reason.c_str());
      ++shown;
    }
  }
  return text;
}

}  // namespace

class RandomLiarsTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void one_liar_bends_nothing_and_evicts_nobody_data() {
    QTest::addColumn<int>("islands");
    QTest::addColumn<quint32>("fragments");
    QTest::addColumn<bool>("directly");
    for (const int islands : {3, 4, 8}) QTest::addRow("%d islands", islands) << islands << 1u << false;
    for (const quint32 fragments : {2u, 3u}) {
      QTest::addRow("4 islands, %u fragments", fragments) << 4 << fragments << false;
    }
    for (const int islands : {3, 4, 8}) QTest::addRow("%d islands, directly", islands) << islands << 1u << true;
    QTest::addRow("4 islands, 2 fragments, directly") << 4 << 2u << true;
  }
  void one_liar_bends_nothing_and_evicts_nobody();
};

void RandomLiarsTest::one_liar_bends_nothing_and_evicts_nobody() {
  QFETCH(int, islands);
  QFETCH(quint32, fragments);
  QFETCH(bool, directly);
  int direct_attempts = 0;
  for (unsigned seed = 0; seed < schedules(); ++seed) {
    std::mt19937 random(seed * 7919 + static_cast<unsigned>(islands));
    SimulatedMesh mesh(careful_run(static_cast<std::uint32_t>(islands), fragments), small_fragments(fragments));
    mesh.keeps_states = true;
    for (int i = 1; i <= islands; ++i) mesh.start(i);
    mesh.settle_randomly(random, 60 * islands);

    for (int fault = 0; fault < kFaults; ++fault) {
      mesh.island(1).lies = random_lies(random);
      if (directly) measure_long_links(mesh, islands);
      mesh.settle_randomly(random, static_cast<int>(random() % kStepsBetween) * islands);
      disturb(mesh, random, islands);
      if (random() % 2 == 0) heal(mesh, islands);
      QVERIFY2(mesh.violation().empty(), qPrintable(QString("seed %1: ").arg(seed) + mesh.violation().c_str()));
    }
    const std::size_t before = mesh.commits().size();
    const OuterStep step = mesh.hub().committed();
    for (int i = 0; i < 120 && !(goes_on_or_says_why(mesh, islands, before, step) && i > 20);
         ++i) {  // faults stop, lies do not
      heal(mesh, islands);
      if (directly) measure_long_links(mesh, islands);
      mesh.settle_randomly(random, 60 * islands);
      mesh.pass(1s);
    }

    QVERIFY2(mesh.violation().empty(), qPrintable(QString("seed %1: ").arg(seed) + mesh.violation().c_str()));
    QVERIFY2(goes_on_or_says_why(mesh, islands, before, step),
             qPrintable(QString("seed %1: ").arg(seed) + told(mesh, islands)));
    direct_attempts += mesh.direct_attempts;
  }
  QCOMPARE(direct_attempts > 0, directly);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::RandomLiarsTest)
#include "random_liars_test.moc"
