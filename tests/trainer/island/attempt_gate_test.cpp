#include "trainer/island/attempt_gate.h"

#include <QtTest/QTest>

using namespace atl;

class AttemptGateTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_abort_ends_the_attempt_under_way() {
    AttemptGate gate;
    const auto signal = gate.begin(OuterStep{3}, Attempt{1});
    QVERIFY(!signal->raised());

    gate.abort_through(OuterStep{3}, Attempt{1}, "isl-2 is gone");

    QVERIFY(signal->raised());
    QCOMPARE(signal->reason(), std::string("isl-2 is gone"));
  }

  void an_abort_that_overtakes_its_attempt_still_ends_it() {
    AttemptGate gate;
    gate.abort_through(OuterStep{3}, Attempt{2}, "late");

    QVERIFY(gate.begin(OuterStep{3}, Attempt{1})->raised());
    QVERIFY(gate.begin(OuterStep{3}, Attempt{2})->raised());
    QVERIFY(!gate.begin(OuterStep{3}, Attempt{3})->raised());
  }

  void an_old_abort_leaves_newer_attempts_alone() {
    AttemptGate gate;
    const auto signal = gate.begin(OuterStep{4}, Attempt{1});

    gate.abort_through(OuterStep{3}, Attempt{9}, "old round");

    QVERIFY(!signal->raised());
  }

  // As after a rollback: its attempts count from 1 again.
  void what_follows_a_welcome_is_ended_by_no_abort_of_before() {
    AttemptGate gate;
    const auto signal = gate.begin(OuterStep{10}, Attempt{3});

    gate.welcome();
    QVERIFY(signal->raised());
    QVERIFY(gate.begin(OuterStep{10}, Attempt{4})->raised());  // told before the welcome, taken from the queue now
    gate.pass_welcome();

    QVERIFY(!gate.begin(OuterStep{9}, Attempt{1})->raised());
  }

  void a_closed_gate_ends_every_attempt() {
    AttemptGate gate;
    const auto signal = gate.begin(OuterStep{4}, Attempt{1});

    gate.close("stopping");

    QVERIFY(signal->raised());
    QVERIFY(gate.begin(OuterStep{5}, Attempt{1})->raised());
  }
};

QTEST_GUILESS_MAIN(AttemptGateTest)
#include "attempt_gate_test.moc"
