#include "app/agent/service_notice.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "net/base/unique_fd.h"

namespace atl {

void notify_service(std::string_view text) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path == nullptr || (path[0] != '/' && path[0] != '@')) return;
  const std::size_t length = std::strlen(path);
  if (length >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = '\0';  // an abstract name
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  // Best effort: a supervisor that does not listen has its own deadline.
  (void)::sendto(socket.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                 reinterpret_cast<const sockaddr*>(&address), size);
}

std::optional<std::chrono::microseconds> watchdog_period() {
  const char* text = std::getenv("WATCHDOG_USEC");
  const long long microseconds = text == nullptr ? 0 : std::atoll(text);
  if (microseconds <= 0) return std::nullopt;
  return std::chrono::microseconds(microseconds / 2);
}

void Watchdog::turn() {
  const auto period = watchdog_period();
  if (!period || Clock::now() < tell_at_) return;
  notify_service("WATCHDOG=1");
  tell_at_ = Clock::now() + *period / 2;
}

}  // namespace atl
