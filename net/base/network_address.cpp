#include "net/base/network_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <span>

namespace atl {
namespace {

constexpr std::array<std::uint8_t, 12> kMappedV4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

constexpr std::array<std::uint8_t, 12> kNat64{0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0};  // RFC 6052

struct SpecialNetwork {
  std::array<std::uint8_t, 4> first;
  int bits;
};
constexpr SpecialNetwork kSpecialV4[]{
    {{0, 0, 0, 0}, 8},      {{10, 0, 0, 0}, 8},    {{100, 64, 0, 0}, 10},   {{127, 0, 0, 0}, 8},
    {{169, 254, 0, 0}, 16}, {{172, 16, 0, 0}, 12}, {{192, 0, 0, 0}, 24},    {{192, 0, 2, 0}, 24},
    {{192, 168, 0, 0}, 16}, {{198, 18, 0, 0}, 15}, {{198, 51, 100, 0}, 24}, {{203, 0, 113, 0}, 24},
    {{224, 0, 0, 0}, 3},
};

// What of these is somebody's; 0.0.0.0 is this machine to connect().
constexpr SpecialNetwork kMachineV4[]{{{0, 0, 0, 0}, 8}, {{127, 0, 0, 0}, 8}};
constexpr SpecialNetwork kLinkV4[]{{{169, 254, 0, 0}, 16}};
constexpr SpecialNetwork kOwnV4[]{
    {{10, 0, 0, 0}, 8}, {{100, 64, 0, 0}, 10}, {{172, 16, 0, 0}, 12}, {{192, 168, 0, 0}, 16}};

bool is_within(std::span<const std::uint8_t> address, const SpecialNetwork& network) {
  for (int bit = 0; bit < network.bits; ++bit) {
    const auto byte = static_cast<std::size_t>(bit / 8);
    if (((address[byte] ^ network.first[byte]) >> (7 - bit % 8) & 1) != 0) return false;
  }
  return true;
}

}  // namespace

std::optional<NetworkAddress> NetworkAddress::of(const sockaddr& address) {
  NetworkAddress found;
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    std::ranges::copy(kMappedV4, found.bytes_.begin());
    std::memcpy(found.bytes_.data() + kMappedV4.size(), &v4.sin_addr, sizeof v4.sin_addr);
    return found;
  }
  if (address.sa_family != AF_INET6) return std::nullopt;
  std::memcpy(found.bytes_.data(), &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, found.bytes_.size());
  return found;
}

bool NetworkAddress::stands_for_v4() const {
  return is_v4() || std::equal(kNat64.begin(), kNat64.end(), bytes_.begin());
}

bool NetworkAddress::is_public() const {
  const std::span<const std::uint8_t> bytes = bytes_;
  if (stands_for_v4()) {
    return std::ranges::none_of(kSpecialV4, [&](const auto& special) { return is_within(bytes.last(4), special); });
  }
  // 2000::/3 alone is given out; of it 2001:db8::/32 and 3fff::/20 are for documents, 2001::/23 and 2002::/16 for ways
  // through IPv4.
  if (bytes[0] >> 5 != 1) return false;
  if (bytes[0] == 0x20 && bytes[1] == 0x01) return bytes[2] >= 2 && !(bytes[2] == 0x0d && bytes[3] == 0xb8);
  if (bytes[0] == 0x20 && bytes[1] == 0x02) return false;
  return !(bytes[0] == 0x3f && bytes[1] == 0xff && bytes[2] < 0x10);
}

std::optional<NetworkReach> NetworkAddress::reach() const {
  const std::span<const std::uint8_t> bytes = bytes_;
  if (is_public()) return NetworkReach::kInternet;
  if (stands_for_v4()) {
    const auto is_one_of = [&](std::span<const SpecialNetwork> networks) {
      return std::ranges::any_of(networks, [&](const auto& network) { return is_within(bytes.last(4), network); });
    };
    if (is_one_of(kMachineV4)) return NetworkReach::kMachine;
    if (is_one_of(kLinkV4)) return NetworkReach::kLink;
    return is_one_of(kOwnV4) ? std::optional(NetworkReach::kOwnNetwork) : std::nullopt;
  }
  const bool only_last = std::ranges::all_of(bytes.first(15), [](std::uint8_t byte) { return byte == 0; });
  if (only_last && bytes[15] <= 1) return NetworkReach::kMachine;  // :: and ::1
  if (bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80) return NetworkReach::kLink;
  return (bytes[0] & 0xfe) == 0xfc ? std::optional(NetworkReach::kOwnNetwork) : std::nullopt;
}

bool NetworkAddress::may_name(const NetworkAddress& to) const {
  if (to.bytes_ == bytes_) return true;
  const auto own = reach(), others = to.reach();
  return own && others && *others <= *own;
}

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
  for (std::size_t i = 0; i < prefix.bytes.size(); ++i) {
    const std::size_t kept = std::min<std::size_t>(8, bits - std::min(bits, 8 * i));
    prefix.bytes[i] &= static_cast<std::uint8_t>(0xff00 >> kept);
  }
  return prefix;
}

std::optional<NetworkRange> NetworkRange::parse(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto address = NetworkAddress::parse(text.substr(0, slash));
  if (!address) return std::nullopt;
  NetworkRange range;
  if (slash != std::string::npos) {
    const std::size_t most = address->is_v4() ? 32 : 128;
    std::size_t bits = 0;
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data() + slash + 1, end, bits);
    if (error != std::errc() || stopped != end || bits == 0 || bits > most) return std::nullopt;
    range.bits_ = 128 - most + bits;
  }
  range.prefix_ = address->prefix(range.bits_);
  return range;
}

}  // namespace atl
