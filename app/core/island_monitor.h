// Watches the trainer of one island home through its control socket, on a thread of its own, so that no view ever
// waits. Owned by main(), or by a test; made and destroyed on the GUI thread.
#pragma once

#include <chrono>
#include <memory>
#include <thread>

#include <QObject>

#include "app/core/island_report.h"
#include "net/base/deadline.h"
#include "net/control/home.h"

namespace atl {

class ControlClient;

struct MonitorTiming {
  std::chrono::milliseconds interval{1000};  // between two looks
  // For each answer. The monitor's end waits for one at most.
  std::chrono::milliseconds answer_time{1000};
};

class IslandMonitor : public QObject {
  Q_OBJECT

 public:
  explicit IslandMonitor(IslandHome home, MonitorTiming timing = {});
  ~IslandMonitor() override;

  // Once, when the receivers are connected.
  void start();

 Q_SIGNALS:
  // After each look. Emitted on the monitor's thread: a receiver on another thread gets it queued.
  void reported(const atl::IslandReport& report);

 private:
  void watch(std::stop_token stop);
  void look(IslandReport& report);
  Status ask(IslandReport& report);

  const IslandHome home_;
  const MonitorTiming timing_;
  std::unique_ptr<ControlClient> client_;  // the thread's
  std::jthread thread_;                    // last: joins before what it uses dies
};

}  // namespace atl
