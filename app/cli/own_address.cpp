#include "app/cli/own_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cstdint>
#include <memory>

namespace atl {
namespace {

// 0: not to be dialled from elsewhere; else the higher the better.
int rank_of(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const std::uint32_t host = ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr);
    if ((host >> 24) == 127 || (host >> 16) == 0xA9FE || host == 0) return 0;
    const bool is_private = (host >> 24) == 10 || (host >> 20) == 0xAC1 || (host >> 16) == 0xC0A8;
    return is_private ? 2 : 3;
  }
  if (address.sa_family != AF_INET6) return 0;
  const in6_addr& host = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&host) || IN6_IS_ADDR_LINKLOCAL(&host) ? 0 : 1;
}

std::string text_of(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN] = {};
  const void* host = address.sa_family == AF_INET
                         ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(address).sin_addr)
                         : static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  ::inet_ntop(address.sa_family, host, text, sizeof text);
  return text;
}

}  // namespace

std::optional<std::string> own_address() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, ::freeifaddrs);
  std::optional<std::string> best;
  int best_rank = 0;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    const bool usable = entry->ifa_addr != nullptr && (entry->ifa_flags & IFF_UP) != 0;
    if (!usable || rank_of(*entry->ifa_addr) <= best_rank) continue;
    best_rank = rank_of(*entry->ifa_addr);
    best = text_of(*entry->ifa_addr);
  }
  return best;
}

}  // namespace atl
