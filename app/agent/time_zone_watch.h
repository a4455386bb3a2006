// Whether this machine's time zone is another than before, and the process with it: hours and limits by hours are the
// owner's local time, on a laptop that travels, too. glibc reads a zone's file once for localtime_r. One thread, the
// agent's loop.
#pragma once

#include "app/agent/settings_watch.h"

namespace atl {

class TimeZoneWatch {
 public:
  TimeZoneWatch();

  // Looks, as SettingsWatch does, at the file that TZ names, /etc/localtime where it names none.
  void turn(Clock::time_point now);

 private:
  SettingsWatch file_;
};

}  // namespace atl
