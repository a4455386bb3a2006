#include "net/base/address.h"

#include <charconv>

#include <fmt/format.h>

namespace atl {

Result<Address> parse_address(std::string_view text) {
  const Error bad{ErrorCode::kInvalidArgument,
                  fmt::format("'{}' is not an address; write HOST:PORT, for instance 203.0.113.7:47000", text)};
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad;
  }
  Address address{std::string(host), 0};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
  if (error != std::errc() || end != digits.data() + digits.size() || host.empty() || host.size() > 253) return bad;
  return address;
}

std::string to_string(const Address& address) {
  const bool ipv6 = address.host.find(':') != std::string::npos;
  return ipv6 ? fmt::format("[{}]:{}", address.host, address.port) : fmt::format("{}:{}", address.host, address.port);
}

}  // namespace atl
