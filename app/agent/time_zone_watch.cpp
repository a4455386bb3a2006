#include "app/agent/time_zone_watch.h"

#include <spdlog/spdlog.h>

#include <cstdlib>
#include <ctime>
#include <string>

namespace atl {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A TZ that describes its zone itself ("CET-1CEST") is no file's name: there is none, and it does not change.
std::filesystem::path zone_file() {
  std::string zone = variable("TZ");
  if (zone.starts_with(':')) zone.erase(0, 1);
  if (zone.empty()) return "/etc/localtime";
  const std::string zones = variable("TZDIR");
  return std::filesystem::path(zones.empty() ? "/usr/share/zoneinfo" : zones) / zone;  // an absolute one alone
}

// tzset() looks at the file again where TZ is not set; else only where it is another than at the last time.
void read_zone_again() {
  const std::string zone = variable("TZ");
  if (!zone.empty()) {
    ::setenv("TZ", "UTC0", 1);
    ::tzset();
    ::setenv("TZ", zone.c_str(), 1);
  }
  ::tzset();
}

}  // namespace

TimeZoneWatch::TimeZoneWatch() : file_({zone_file()}) { ::tzset(); }

void TimeZoneWatch::turn(Clock::time_point now) {
  if (!file_.changed(now)) return;
  read_zone_again();
  const std::time_t time = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&time, &local);
  spdlog::info("time_zone read=true utc_offset_seconds={}", local.tm_gmtoff);
}

}  // namespace atl
