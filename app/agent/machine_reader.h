// What the owner's rules (owners_rules.h) ask of this machine, read every few seconds on a thread of its own: files of
// the kernel, and properties of services on the system's bus. Those are asked by busctl, which is there wherever the
// services are, so that no D-Bus library is linked; no service is started for it.
//
// Owned by the agent, whose loop calls it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "app/agent/owners_rules.h"
#include "net/base/abort_signal.h"
#include "net/base/deadline.h"
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
// The hottest sensor of a processor, in degrees Celsius: of chips under /sys/class/hwmon that measure processors, else
// of their zones under /sys/class/thermal. Empty: none says.
std::optional<double> hottest_processor(const std::filesystem::path& hwmon, const std::filesystem::path& thermal);

// What a processor's package has used since some time, in microjoules, as the kernel counts it (RAPL).
struct PackageEnergy {
  std::string package;                       // its directory's name
  std::uint64_t microjoules = 0, range = 0;  // after `range` it begins anew
};
// Of all packages under /sys/class/powercap that may be read, which most kernels allow root alone.
std::vector<PackageEnergy> package_energies(const std::filesystem::path& powercap);
// Between two readings; 0 watts is none. Empty: none of the packages is in both.
std::optional<double> watts_between(const std::vector<PackageEnergy>& before, const std::vector<PackageEnergy>& now,
                                    double seconds);

class MachineReader {
 public:
  struct Places {
    std::filesystem::path proc = "/proc", power_supplies = "/sys/class/power_supply";
    std::filesystem::path hwmon = "/sys/class/hwmon", thermal = "/sys/class/thermal", powercap = "/sys/class/powercap";
    std::chrono::milliseconds period{5'000};
  };
  MachineReader(OwnersRulesSettings wanted, Places places);
  ~MachineReader();

  void set_wanted(OwnersRulesSettings wanted);
  void set_trainer(pid_t pid);  // 0: none runs
  // Empty until it was read for the first time.
  std::optional<MachineReading> reading() const;

 private:
  void run(const std::stop_token& stop);
  MachineReading read(const OwnersRulesSettings& wanted, pid_t trainer);
  std::optional<double> processors_watts();
  std::optional<double> others_load(pid_t trainer);

  const Places places_;
  AbortSignal stop_;
  // The thread's:
  std::optional<ProcessorTicks> before_;
  pid_t trainer_before_ = 0;
  std::uint64_t trainer_ticks_before_ = 0;
  std::vector<PackageEnergy> energies_before_;
  Clock::time_point energies_at_;

  mutable Mutex mutex_;
  StoppableCondVar changed_;
  OwnersRulesSettings wanted_ ATOLL_GUARDED_BY(mutex_);
  std::uint64_t changes_ ATOLL_GUARDED_BY(mutex_) = 0;  // of what is wanted
  pid_t trainer_ ATOLL_GUARDED_BY(mutex_) = 0;
  std::optional<MachineReading> reading_ ATOLL_GUARDED_BY(mutex_);
  std::jthread thread_;  // last
};

}  // namespace atl
