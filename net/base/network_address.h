// Where a connection comes from, as limits count it: a machine's address, and the network that one holder is likely to
// have to himself. And where one goes: whether that is the internet, or a network of somebody's own.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

struct sockaddr;

namespace atl {

// The leading bits of an address, in the form of IPv6; those of IPv4 stand behind ::ffff:0:0/96.
struct NetworkPrefix {
  std::array<std::uint8_t, 16> bytes{};
  auto operator<=>(const NetworkPrefix&) const = default;
};

// How far an address is: each is nearer than the one before it.
enum class NetworkReach {
  kInternet,
  kOwnNetwork,  // private, or a provider's own
  kLink,
  kMachine,  // that which looks
};

class NetworkAddress {
 public:
  // A literal address, with or without a zone ("fe80::1%eth0"); empty for a name.
  static std::optional<NetworkAddress> parse(const std::string& host);
  static std::optional<NetworkAddress> of(const sockaddr& address);  // empty: neither IPv4 nor IPv6

  // What one machine has: the address of IPv4, the /64 of IPv6, in which a machine chooses its addresses itself.
  NetworkPrefix machine() const { return prefix(is_v4() ? 128 : 64); }
  // What is rented at once: the /24 of IPv4, the /48 of IPv6.
  NetworkPrefix network() const { return prefix(is_v4() ? 120 : 48); }

  // On the internet: none of this machine, of a private or a provider's own network, of a link, for documents or
  // groups (IANA's registries of special-purpose addresses). Of an address that stands for one of IPv4, that one.
  bool is_public() const;
  // Empty: nobody is there (for groups, documents, reserved).
  std::optional<NetworkReach> reach() const;
  // Whether one who comes from here, and named `to`, may have others connect to it: to itself, or to what is no nearer
  // to them than it is. So nobody on the internet names an address in a private network, or on the machine of who asks.
  bool may_name(const NetworkAddress& to) const;
  bool is_v4() const;
  NetworkPrefix prefix(std::size_t bits) const;  // of the 128 of IPv6

 private:
  bool stands_for_v4() const;

  std::array<std::uint8_t, 16> bytes_{};
};

// "203.0.113.7", or all whose leading bits are the same: "10.1.0.0/16"; not all there are.
class NetworkRange {
 public:
  static std::optional<NetworkRange> parse(const std::string& text);
  bool contains(const NetworkAddress& address) const { return address.prefix(bits_) == prefix_; }

 private:
  NetworkPrefix prefix_;
  std::size_t bits_ = 128;
};

}  // namespace atl
