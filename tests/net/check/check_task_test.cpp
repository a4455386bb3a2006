// `check.run` of the control protocol: started at once, one at a time, rows as events.
#include "net/check/check_task.h"

#include <QtTest>
#include <nlohmann/json.hpp>

#include "net/base/mutex.h"
#include "tests/fakes/patience.h"

using namespace atl;

namespace {

// Holds a check until it is let go, or cut short.
struct Gate {
  Mutex mutex;
  CondVar changed;
  bool open ATOLL_GUARDED_BY(mutex) = false;
  std::vector<nlohmann::json> events ATOLL_GUARDED_BY(mutex);

  void pass(const AbortSignal& abort) {
    MutexLock lock(mutex);
    while (!open && !abort.raised()) {
      changed.wait(lock, Deadline::after(std::chrono::milliseconds(5)),
                   [this]() ATOLL_REQUIRES(mutex) { return open; });
    }
  }
  void let_go() {
    const MutexLock lock(mutex);
    open = true;
    changed.notify_all();
  }
  void take(const nlohmann::json& data) {
    const MutexLock lock(mutex);
    events.push_back(data);
  }
  std::size_t count() {
    const MutexLock lock(mutex);
    return events.size();
  }
  nlohmann::json event(std::size_t i) {
    const MutexLock lock(mutex);
    return events.at(i);
  }
};

}  // namespace

class CheckTaskTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void rows_come_as_events_and_the_report_at_the_end();
  void a_second_check_is_refused_while_one_runs();
  void the_end_of_the_program_cuts_a_check_short();

 private:
  CheckTask::Check held_by(Gate& gate) {
    return [&gate](const CheckTask::Wanted& wanted, const AbortSignal& abort,
                   const CheckTask::OnRow& on_row) -> Result<CheckReport> {
      CheckReport report{.software = "atoll", .full = wanted.full};
      report.rows.push_back({.id = "ram", .verdict = Verdict::kPass});
      on_row(report.rows.front());
      gate.pass(abort);
      if (abort.raised()) return Error{ErrorCode::kAborted, "cut short"};
      return report;
    };
  }
  static CheckTask::OnRow rows_into(Gate& gate) {
    return [&gate](const CheckRow& row) { gate.take({{"row", row.to_json()}}); };
  }
  static CheckTask::OnEnd end_into(Gate& gate) {
    return [&gate](const Result<CheckReport>& report) {
      gate.take(report.ok() ? nlohmann::json{{"report", report->to_json()}}
                            : nlohmann::json{{"error", report.error().message}});
    };
  }
};

void CheckTaskTest::rows_come_as_events_and_the_report_at_the_end() {
  Gate gate;
  CheckTask task(held_by(gate), rows_into(gate), end_into(gate));

  QVERIFY(task.run({.full = true}).ok());
  QTRY_COMPARE(gate.count(), std::size_t{1});  // before the end
  gate.let_go();
  QTRY_COMPARE(gate.count(), std::size_t{2});

  QCOMPARE(gate.event(0)["row"]["id"].get<std::string>(), std::string("ram"));
  QVERIFY(gate.event(1)["report"]["full"].get<bool>());
}

void CheckTaskTest::a_second_check_is_refused_while_one_runs() {
  Gate gate;
  CheckTask task(held_by(gate), rows_into(gate), end_into(gate));
  QVERIFY(task.run({}).ok());

  QCOMPARE(task.run({}).error().code, ErrorCode::kPermissionDenied);
  gate.let_go();

  QTRY_COMPARE(gate.count(), std::size_t{2});
  QVERIFY(task.run({}).ok());
  QTRY_COMPARE(gate.count(), std::size_t{4});
}

void CheckTaskTest::the_end_of_the_program_cuts_a_check_short() {
  Gate gate;
  {
    CheckTask task(held_by(gate), rows_into(gate), end_into(gate));
    QVERIFY(task.run({}).ok());
  }

  QCOMPARE(gate.event(gate.count() - 1)["error"].get<std::string>(), std::string("cut short"));
}

QTEST_APPLESS_MAIN(CheckTaskTest)
#include "check_task_test.moc"
