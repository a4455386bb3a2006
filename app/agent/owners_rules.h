// When the owner's rules let the trainer train: what the machine is used for besides, its battery and its network, and
// the hours of the day. A pure state machine: readings and the time go in. It does not flap: a pause lasts for a while,
// and ends only once what caused it has been away as long. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/config/training_hours.h"

namespace atl {

struct OwnersRulesSettings {
  std::optional<double> load = {};                // of others, in processors
  std::optional<std::int64_t> idle_seconds = {};  // nobody has used the keyboard for so long
  bool battery = false, metered = false;          // pause on them
  std::vector<TrainingHours> hours = {};          // none: always; followed by OwnersWish, said here
  std::int64_t calm_seconds = 60;                 // a pause, and what caused it being away, last at least so long

  bool any() const { return load || idle_seconds || battery || metered; }  // that needs the machine read
};

// Empty: it cannot be known, and pauses nothing.
struct MachineReading {
  std::optional<double> others_load = {};           // processors that others than the trainer keep busy
  std::optional<std::int64_t> unused_seconds = {};  // since a person's last input; 0: somebody is there
  std::optional<bool> on_battery = {}, metered = {};
};

class OwnersRules {
 public:
  explicit OwnersRules(OwnersRulesSettings settings) : settings_(std::move(settings)) {}

  // `seconds` of a clock that never goes back.
  void next(const MachineReading& reading, std::int64_t seconds);
  // By a reading, whatever the hours say.
  bool pauses() const;
  // What pauses, each with until when, the longest first; empty: nothing does.
  std::string sentence(int minute_of_day) const;

 private:
  struct Rule {
    std::optional<std::int64_t> since = {};  // it pauses
    std::int64_t last_cause = 0;
    std::string text = {};
  };
  void look(Rule& rule, bool causes, std::int64_t seconds, std::string text) const;

  const OwnersRulesSettings settings_;
  std::array<Rule, 4> rules_;
};

}  // namespace atl
