// When the owner's rules let the trainer train: what the machine is used for besides, how hot it is and what it draws,
// its battery and its network, and the hours of the day. A pure state machine: readings and the time go in. It does not
// flap: a pause lasts for a while, and ends only once what caused it has been away as long. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/config/training_hours.h"
#include "net/control/node_state.h"

namespace atl {

struct OwnersRulesSettings {
  std::vector<TrainingHours> hours = {};          // none: always
  std::optional<double> load = {};                // of other programs, in processors
  std::optional<double> gpu_bytes = {};           // that other programs hold of one of the island's GPUs
  std::optional<std::int64_t> idle_seconds = {};  // nobody has used the keyboard for so long
  bool battery = false, metered = false;          // pause on them
  std::optional<double> gpu_celsius = {}, cpu_celsius = {};
  std::optional<double> watts = {};  // of processors and the island's GPUs together
  std::int64_t calm_seconds = 60;    // a pause, and what caused it being away, last at least so long

  bool ask_machine() const { return load || idle_seconds || battery || metered || cpu_celsius || watts; }
  bool ask_gpus() const { return gpu_bytes || gpu_celsius || watts; }
};

// Empty: it cannot be known, and pauses nothing.
struct MachineReading {
  std::optional<double> others_load = {};           // processors that others than the trainer keep busy
  std::optional<std::int64_t> unused_seconds = {};  // since a person's last input; 0: somebody is there
  // Since it began no session has ever said whether somebody is there, so that what it says may be nobody's word.
  bool presence_never_said = false;
  std::optional<bool> on_battery = {}, metered = {};
  std::optional<double> cpu_celsius = {};  // the hottest processor
  std::optional<double> cpu_watts = {};    // of all processors
};

struct GpusReading {  // of those that the island trains on, or would
  struct Hottest {
    unsigned gpu = 0;
    double celsius = 0;
  };
  struct Others {
    unsigned gpu = 0;
    double bytes = 0;         // that they hold of it, as far as that is known
    bool bytes_known = true;  // of each of them
    std::string who = {};     // "python, process 4711": the one that holds most
  };
  std::optional<Hottest> hottest = {};
  std::optional<Others> others = {};  // of the GPU of which other programs hold most
  std::optional<double> watts = {};   // together
};

class OwnersRules {
 public:
  explicit OwnersRules(OwnersRulesSettings settings) : settings_(std::move(settings)) {}

  // From the next reading on. What a rule has paused that is no longer there goes on.
  void set(OwnersRulesSettings settings) { settings_ = std::move(settings); }
  const OwnersRulesSettings& settings() const { return settings_; }

  // `seconds` of a clock that never goes back.
  void next(const MachineReading& machine, const GpusReading& gpus, std::int64_t seconds);
  // What pauses now: the hours, then the longest first.
  std::vector<PausedBy> causes(int minute_of_day) const;

 private:
  struct Rule {
    std::optional<std::int64_t> since = {};  // it pauses
    std::optional<std::int64_t> ended = {};  // the last pause
    std::int64_t last_cause = 0, calm = 0;
    std::string why = {}, until = {}, advice = {};
  };
  // Of a rule whose cause is there now; nullptr: it is not.
  Rule* look(OwnersRule which, bool causes, std::int64_t seconds, bool made_by_training = false);
  bool pauses_by(OwnersRule which) const { return rules_[static_cast<std::size_t>(which)].since.has_value(); }
  // Above `bound`; once it pauses, not below `end`.
  bool is_above(OwnersRule which, const std::optional<double>& value, double bound, double end) const;
  void look_at_load(const MachineReading& machine, std::int64_t seconds);
  void look_at_presence(const MachineReading& machine, std::int64_t seconds);
  void look_at_gpus(const GpusReading& gpus, std::int64_t seconds);
  void look_at_heat(const MachineReading& machine, const GpusReading& gpus, std::int64_t seconds);
  void look_at_power(const MachineReading& machine, const GpusReading& gpus, std::int64_t seconds);

  OwnersRulesSettings settings_;
  std::array<Rule, static_cast<std::size_t>(OwnersRule::kUnknown)> rules_;
};

}  // namespace atl
