// A host and a port as people write them: "203.0.113.7:47000", "[2001:db8::1]:47000", "hub.example.org:47000".
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "net/base/result.h"

namespace atl {

struct Address {
  std::string host;  // name or literal address, without brackets
  std::uint16_t port = 0;

  auto operator<=>(const Address&) const = default;
};

// A name or a literal address, without brackets: whatever else there may be was meant otherwise ("https://hub").
bool is_host(std::string_view text);
Result<Address> parse_address(std::string_view text);
std::string to_string(const Address& address);

}  // namespace atl
