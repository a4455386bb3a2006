// The budget between machines: f liars of n cost the others at most f/n of the rounds a second that they would make,
// and a tenth, whatever they say and whenever they say it. No honest island is sent away, none is left out of more
// rounds than that, and the model learns. Held against each attack that was ever found, by one liar and by two.
//
// ATOLL_ATTACKERS_ALL=1: in runs of all sizes; ATOLL_ATTACKER: only those whose names contain it; ATOLL_ATTACKER_LOG=1
// tells what happens.
#include <QtTest>

#include <fmt/format.h>

#include <cstdio>

#include "tests/net/mesh/attacked_run.h"

namespace atl {

class NamedAttackersTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void an_attacker_costs_no_more_than_its_share_data();
  void an_attacker_costs_no_more_than_its_share();
};

void NamedAttackersTest::an_attacker_costs_no_more_than_its_share_data() {
  QTest::addColumn<int>("attacker");
  QTest::addColumn<int>("islands");
  QTest::addColumn<int>("liars");
  QTest::addColumn<int>("inner_milliseconds");
  const char* only = std::getenv("ATOLL_ATTACKER");
  const auto attackers = named_attackers();
  for (int i = 0; i < static_cast<int>(attackers.size()); ++i) {
    const std::string& name = attackers[static_cast<std::size_t>(i)].name;
    if (only != nullptr && name.find(only) == std::string::npos) continue;
    for (const auto& [islands, liars] : {std::pair(3, 1), {4, 1}, {8, 1}, {8, 2}, {14, 4}, {7, 2}}) {
      for (const int inner : {1000, 10'000}) {
        const bool is_usual = islands == 3 || (liars == 2 && inner == 10'000);
        if (!is_usual && std::getenv("ATOLL_ATTACKERS_ALL") == nullptr) continue;
        QTest::addRow("%s, %d of %d, %d ms", name.c_str(), liars, islands, inner) << i << islands << liars << inner;
      }
    }
  }
  std::printf("%-42s %2s %2s %5s | %-6s %-6s %-5s %-5s | %-5s %-5s | %s\n", "attacker", "n", "f", "inner", "honest",
              "attack", "ratio", "least", "part", "least", "loss (honest)  sent away / left out");
}

void NamedAttackersTest::an_attacker_costs_no_more_than_its_share() {
  QFETCH(int, attacker);
  QFETCH(int, islands);
  QFETCH(int, liars);
  QFETCH(int, inner_milliseconds);
  const NamedAttacker kind = named_attackers()[static_cast<std::size_t>(attacker)];

  AttackedRun attack{.islands = islands, .liars = liars, .inner = std::chrono::milliseconds(inner_milliseconds)};
  attack.grace = kind.grace;
  attack.ring = kind.ring;
  using Times = std::tuple<int, int, std::chrono::milliseconds, std::chrono::milliseconds>;
  static std::map<Times, AttackedRun::Outcome> honest_ones;
  const auto [found, is_new] = honest_ones.try_emplace({islands, inner_milliseconds, kind.grace, kind.ring});
  if (is_new) found->second = attack.run(nullptr);
  const AttackedRun::Outcome& honest = found->second;
  AttackedRun::Outcome worst;
  for (const bool first : {true, false}) {
    attack.liars_come_first = first;
    const AttackedRun::Outcome outcome = attack.run(&kind);
    if (first || attack.left(outcome, honest) < attack.left(worst, honest)) worst = outcome;
  }

  const double share = attack.least_share();
  const bool ok = worst.rate >= share * honest.rate && worst.least_part >= attack.least_part() &&
                  worst.violation.empty() && worst.loss <= attack.most_loss(honest);
  std::printf("%-42s %2d %2d %5d | %6.4f %6.4f %5.3f %5.3f | %5.3f %5.3f | %5.2f (%5.2f) %s%s%s\n", kind.name.c_str(),
              islands, liars, inner_milliseconds, honest.rate, worst.rate, worst.rate / honest.rate, share,
              worst.least_part, attack.least_part(), worst.loss, honest.loss, worst.told.c_str(),
              worst.violation.empty() ? "" : " VIOLATION ", worst.violation.c_str());
  std::printf("%s", ok ? "" : "     ^ FAILS\n");
  std::fflush(stdout);
  QVERIFY2(worst.violation.empty(), worst.violation.c_str());
  QVERIFY(worst.rate >= share * honest.rate);
  QVERIFY(worst.least_part >= attack.least_part());
  QVERIFY(worst.loss <= attack.most_loss(honest));
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::NamedAttackersTest)
#include "named_attackers_test.moc"
