// Liars that draw what they say and do, alone and together, at any time (wild_liar.h): none of it costs the others more
// than their share of the rounds and a tenth, no average is committed that honest islands do not hold, nobody honest is
// sent away, and when the liars stop the run goes on with everybody.
//
// ATOLL_BUDGET_SCHEDULES: of all numbers of islands together; by default a few, for every build. ATOLL_BUDGET_SEED:
// that one of each alone, with all that happens in it; ATOLL_BUDGET_ISLANDS "8/2": of these alone.
#include <QtTest>

#include <atomic>
#include <cstdio>
#include <map>
#include <thread>

#include "net/base/mutex.h"
#include "tests/net/mesh/random_attack.h"

namespace atl {
namespace {

unsigned number_of(const char* name, unsigned otherwise) {
  const char* given = std::getenv(name);
  return given != nullptr ? static_cast<unsigned>(std::stoul(given)) : otherwise;
}

// Large runs take long, and their liars have less that they could do in turn.
struct Share {
  int islands, liars, percent;
};
constexpr std::array<Share, 5> kShares{{{3, 1, 35}, {4, 1, 30}, {8, 2, 25}, {14, 2, 5}, {14, 4, 5}}};

}  // namespace

class RandomBudgetTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void liars_cost_no_more_than_their_share_data();
  void liars_cost_no_more_than_their_share();
};

void RandomBudgetTest::liars_cost_no_more_than_their_share_data() {
  QTest::addColumn<int>("islands");
  QTest::addColumn<int>("liars");
  QTest::addColumn<unsigned>("percent");
  const char* only = std::getenv("ATOLL_BUDGET_ISLANDS");
  for (const auto& [islands, liars, percent] : kShares) {
    const std::string name = std::to_string(islands) + "/" + std::to_string(liars);
    if (only == nullptr || only == name)
      QTest::addRow("%d of %d", liars, islands) << islands << liars << static_cast<unsigned>(percent);
  }
}

void RandomBudgetTest::liars_cost_no_more_than_their_share() {
  QFETCH(int, islands);
  QFETCH(int, liars);
  QFETCH(unsigned, percent);
  const RandomAttack attack{.islands = islands, .liars = liars};
  const std::size_t honest_rounds = attack.honest_rounds();
  if (const char* seed = std::getenv("ATOLL_BUDGET_SEED")) {
    const RandomAttack::Outcome outcome = attack.run(static_cast<unsigned>(std::stoul(seed)), honest_rounds, true);
    QVERIFY2(outcome.failure.empty(), outcome.failure.c_str());
    return;
  }

  const unsigned schedules = number_of("ATOLL_BUDGET_SCHEDULES", 100) * percent / 100;
  std::map<unsigned, RandomAttack::Outcome> outcomes;
  Mutex mutex;
  std::atomic<unsigned> next{0};
  const auto began = Clock::now();
  const auto work = [&] {
    for (unsigned seed = next++; seed < schedules; seed = next++) {
      const RandomAttack::Outcome outcome = attack.run(seed, honest_rounds, false);
      const MutexLock lock(mutex);
      outcomes[seed] = outcome;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 1; i < number_of("ATOLL_BUDGET_THREADS", 1); ++i) threads.emplace_back(work);
    work();
  }
  const double seconds = Seconds(Clock::now() - began).count();

  std::map<std::string, int> kinds;
  int failed = 0;
  double least = 1e9;
  for (const auto& [seed, outcome] : outcomes) {
    least = std::min(least, outcome.ratio);
    if (outcome.failure.empty()) continue;
    ++kinds[outcome.failure.substr(0, outcome.failure.find(':'))];
    if (++failed <= 12) std::printf("  %d/%d seed %u: %s\n", islands, liars, seed, outcome.failure.c_str());
  }
  std::printf("%d of %d: %u schedules, %.1f a second, %d failed, least ratio %.3f of %.3f:", liars, islands, schedules,
              schedules / seconds, failed, least, attack.least_share());
  for (const auto& [kind, count] : kinds) std::printf(" %s %d", kind.c_str(), count);
  std::printf("\n");
  std::fflush(stdout);
  QCOMPARE(failed, 0);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::RandomBudgetTest)
#include "random_budget_test.moc"
