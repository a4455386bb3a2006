// What systemd wants to hear of a service (sd_notify(3)), in its own few bytes over a Unix datagram socket. Without a
// service behind us all of it does nothing. Any thread, but for Watchdog.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "net/base/deadline.h"

namespace atl {

// "READY=1", "WATCHDOG=1", "STOPPING=1", "STATUS=...": to $NOTIFY_SOCKET.
void notify_service(std::string_view text);
// How often the watchdog wants to hear of us: half of $WATCHDOG_USEC; empty when there is none.
std::optional<std::chrono::microseconds> watchdog_period();

// Tells the watchdog, if there is one, that its loop turns: at each turn, some times a second. One thread.
class Watchdog {
 public:
  void turn();

 private:
  Clock::time_point tell_at_{};
};

}  // namespace atl
