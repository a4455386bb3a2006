// A recorded week shown in the window, as fast as it goes, each page in turn; what it cost, and whether the window says
// at the end what was said last. For a test and a bench; GUI thread.
#pragma once

#include <QString>
#include <QStringList>

#include "tests/app/core/recorded_week.h"

namespace atl::test {

struct WeekReplay {
  std::uint64_t events = 0;
  double seconds = 0;
  std::size_t early_bytes = 0, late_bytes = 0;  // of memory, after an eighth of the events and at the end
  qint64 longest_turn_ms = 0;                   // for which the event loop did not come round
  double longest_work_ms = 0;                   // the same in time of the processor, which others cannot make longer
  std::uint64_t looked_old = 0;                 // times that the state was too old to be shown as live
  int pages_shown = 0;
  QStringList wrong;  // what the window shows at the end, and should not
};

// `recording`: as record_week made it. `speed`: how many times as fast it is asked for.
WeekReplay replay_week(const QString& recording, const WeekEnd& end, double speed);

}  // namespace atl::test
