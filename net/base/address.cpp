#include "net/base/address.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "net/base/printable.h"

namespace atl {
namespace {

constexpr std::size_t kMaxShown = 262;

}  // namespace

bool is_host(std::string_view text) {
  const bool ipv6 = text.find(':') != std::string_view::npos;
  const std::string_view also = ipv6 ? ".:%-_" : ".-_";  // after the percent sign stands a zone
  return !text.empty() && text.size() <= 253 && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           also.find(c) != std::string_view::npos;
  });
}

Result<Address> parse_address(std::string_view text) {
  const Error bad{ErrorCode::kInvalidArgument,
                  fmt::format("'{}' is not an address; write HOST:PORT, for instance 203.0.113.7:47000",
                              printable(text, kMaxShown))};
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (!is_host(host) || (!bracketed && host.find(':') != std::string_view::npos)) return bad;
  Address address{std::string(host), 0};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
  if (error != std::errc() || end != digits.data() + digits.size()) return bad;
  return address;
}

std::string to_string(const Address& address) {
  const bool ipv6 = address.host.find(':') != std::string::npos;
  return ipv6 ? fmt::format("[{}]:{}", address.host, address.port) : fmt::format("{}:{}", address.host, address.port);
}

}  // namespace atl
