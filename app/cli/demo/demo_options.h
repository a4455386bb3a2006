// What `atoll demo` was asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/cli/run_preset.h"

namespace atl {

inline constexpr const char* kDemoText = "/usr/share/dictd/gcide.dict.dz";  // of Debian's package dict-gcide
inline constexpr double kDemoMinutes = 4.75;

struct DemoOptions {
  std::vector<std::string> text;  // empty: kDemoText
  std::string directory;          // empty: a new one under XDG_STATE_HOME/atoll/demo
  std::string summary_file;
  std::uint32_t islands = 3;
  std::uint32_t rounds = 0;  // 0: as long as `minutes`
  double minutes = 0;        // of training; 0: kDemoMinutes, or as long as `rounds`
  bool kill = false;         // one island in mid-round; a new one joins later
  RunOverrides run;
};

}  // namespace atl
