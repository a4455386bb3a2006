// What the owner's rules (owners_rules.h) ask of this machine, read every few seconds on a thread of its own: files of
// the kernel, and properties of services on the system's bus. Those are asked by busctl, which is there wherever the
// services are, so that no D-Bus library is linked; no service is started for it.
//
// Owned by the agent, whose loop calls it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string_view>
#include <thread>

#include "app/agent/owners_rules.h"
#include "net/base/abort_signal.h"
#include "net/base/mutex.h"

namespace atl {

// Of /proc/stat: busy and all ticks of all processors since the machine started.
struct ProcessorTicks {
  std::uint64_t busy = 0, all = 0;
  int processors = 0;
};
std::optional<ProcessorTicks> parse_processor_ticks(std::string_view proc_stat);
// Of /proc/PID/stat: ticks of the process and of children that it has waited for.
std::optional<std::uint64_t> parse_process_ticks(std::string_view pid_stat);
// Supplies under /sys/class/power_supply: no mains is online, and a battery of the machine discharges. Empty: there is
// no such battery.
std::optional<bool> battery_of(const std::filesystem::path& power_supplies);

class MachineReader {
 public:
  struct Places {
    std::filesystem::path proc = "/proc", power_supplies = "/sys/class/power_supply";
    std::chrono::milliseconds period{5'000};
  };
  MachineReader(OwnersRulesSettings wanted, Places places);
  ~MachineReader();

  void set_trainer(pid_t pid);  // 0: none runs
  MachineReading reading() const;

 private:
  void run(const std::stop_token& stop);
  MachineReading read(pid_t trainer);
  std::optional<double> others_load(pid_t trainer);

  const OwnersRulesSettings wanted_;
  const Places places_;
  AbortSignal stop_;
  // The thread's:
  std::optional<ProcessorTicks> before_;
  pid_t trainer_before_ = 0;
  std::uint64_t trainer_ticks_before_ = 0;

  mutable Mutex mutex_;
  StoppableCondVar changed_;
  pid_t trainer_ ATOLL_GUARDED_BY(mutex_) = 0;
  MachineReading reading_ ATOLL_GUARDED_BY(mutex_);
  std::jthread thread_;  // last
};

}  // namespace atl
