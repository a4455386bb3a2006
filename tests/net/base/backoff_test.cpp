#include "net/base/backoff.h"

#include <QtTest>
#include <set>

using namespace std::chrono_literals;

namespace atl {

class BackoffTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void pauses_grow_twofold_up_to_the_longest();
  void a_success_begins_anew();
  void no_two_have_the_same_pauses();
  void no_pause_stays_none();
};

void BackoffTest::pauses_grow_twofold_up_to_the_longest() {
  Backoff backoff(100ms, 500ms);

  for (const auto middle : {100ms, 200ms, 400ms, 500ms, 500ms}) {
    const auto pause = backoff.next();
    QVERIFY(pause >= middle / 2 && pause <= middle * 3 / 2);
  }
}

void BackoffTest::a_success_begins_anew() {
  Backoff backoff(100ms, 100'000ms);
  for (int i = 0; i < 8; ++i) (void)backoff.next();

  backoff.reset();

  QVERIFY(backoff.next() <= 150ms);
}

void BackoffTest::no_two_have_the_same_pauses() {
  std::set<std::chrono::milliseconds> pauses;
  for (int i = 0; i < 20; ++i) pauses.insert(Backoff(1h, 1h).next());

  QVERIFY(pauses.size() > 15);
}

void BackoffTest::no_pause_stays_none() {
  Backoff backoff(0ms, 0ms);
  QCOMPARE(backoff.next(), 0ms);
  QCOMPARE(backoff.next(), 0ms);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::BackoffTest)
#include "backoff_test.moc"
