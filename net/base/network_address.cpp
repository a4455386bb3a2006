#include "net/base/network_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

namespace atl {
namespace {

constexpr std::array<std::uint8_t, 12> kMappedV4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

std::optional<NetworkAddress> NetworkAddress::parse(const std::string& host) {
  NetworkAddress address;
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    std::ranges::copy(kMappedV4, address.bytes_.begin());
    std::memcpy(address.bytes_.data() + kMappedV4.size(), &v4, sizeof v4);
    return address;
  }
  in6_addr v6{};
  if (::inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &v6) != 1) return std::nullopt;
  std::memcpy(address.bytes_.data(), &v6, sizeof v6);
  return address;
}

bool NetworkAddress::is_v4() const { return std::equal(kMappedV4.begin(), kMappedV4.end(), bytes_.begin()); }

NetworkPrefix NetworkAddress::prefix(std::size_t bits) const {
  NetworkPrefix prefix{bytes_};
  std::fill(prefix.bytes.begin() + static_cast<std::ptrdiff_t>(bits / 8), prefix.bytes.end(), std::uint8_t{0});
  return prefix;
}

}  // namespace atl
