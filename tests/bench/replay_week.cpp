// A week of events at a real agent's pace, through the models and the window with every page in turn, as fast as it
// goes: how long that takes, how much memory grows from its first eighth on, for how long the event loop did not turn,
// and what the window shows at the end that was not said last. Ends with 1 beyond a limit.
//
//   QT_QPA_PLATFORM=offscreen replay_week [days]
#include <fmt/format.h>

#include <QApplication>
#include <QTemporaryDir>

#include "tests/app/gui/week_replay.h"

namespace {

constexpr double kSpeed = 1e6, kMiB = 1 << 20;

bool figure(const char* what, double value, const char* unit, double limit) {
  fmt::print("{:<44} {:>10.1f} {:<8} {:>6.2f} of the limit of {:g}\n", what, value, unit, value / limit, limit);
  return value <= limit;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace atl::test;
  QApplication app(argc, argv);
  QLocale::setDefault(QLocale::c());
  WeekPlan plan;
  if (argc > 1) plan.days = QString(argv[1]).toDouble();
  const QTemporaryDir directory;
  const QString file = directory.filePath("week.jsonl");
  const WeekEnd end = record_week(file, plan);
  fmt::print("recording of {:g} days: {} events, {:.0f} MiB\n", plan.days, end.events,
             static_cast<double>(QFileInfo(file).size()) / kMiB);

  const WeekReplay replay = replay_week(file, end, kSpeed);

  bool good = figure("time", replay.seconds, "s", 60 * plan.days / 7);
  fmt::print("{:<44} {:>10.0f} {:<8}\n", "events", static_cast<double>(replay.events) / replay.seconds, "1/s");
  fmt::print("{:<44} {:>10.1f} {:<8}\n", "memory after an eighth", static_cast<double>(replay.early_bytes) / kMiB,
             "MiB");
  const double growth = static_cast<double>(replay.late_bytes) - static_cast<double>(replay.early_bytes);
  good = figure("growth from there to the end", growth / kMiB, "MiB", 32) && good;
  good = figure("memory at the end", static_cast<double>(replay.late_bytes) / kMiB, "MiB", 300) && good;
  good = figure("longest hold-up of the event loop", static_cast<double>(replay.longest_turn_ms), "ms", 50) && good;
  fmt::print("{:<44} {:>10.1f} {:<8}\n", "of it the processor's time", replay.longest_work_ms, "ms");
  fmt::print("{:<44} {:>10}\n", "pages shown", replay.pages_shown);
  fmt::print("{:<44} {:>10}   limit 0\n", "times that a live view looked old", replay.looked_old);
  fmt::print("{:<44} {:>10}   limit 0\n", "wrong at the end", replay.wrong.size());
  for (const QString& wrong : replay.wrong) fmt::print("  {}\n", wrong.toStdString());
  return good && replay.looked_old == 0 && replay.wrong.isEmpty() && replay.events == end.events ? 0 : 1;
}
