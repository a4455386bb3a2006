#include "net/control/ssh_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace atl {
namespace {

constexpr std::size_t kMaxNameBytes = 253;

bool is_name(std::string_view text, std::string_view beside) {
  const auto good = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           beside.find(c) != std::string_view::npos;
  };
  // A leading '-' would be an option.
  return !text.empty() && text.size() <= kMaxNameBytes && text[0] != '-' && std::all_of(text.begin(), text.end(), good);
}

}  // namespace

Result<SshHost> parse_ssh_host(std::string_view text) {
  const Error wrong{ErrorCode::kInvalidArgument,
                    fmt::format("'{}' names no machine; write ssh://node, ssh://user@node or ssh://user@node:22",
                                text.substr(0, 80))};
  constexpr std::string_view kScheme = "ssh://";
  if (!text.starts_with(kScheme)) return wrong;
  text.remove_prefix(kScheme.size());
  if (text.ends_with('/')) text.remove_suffix(1);
  SshHost host;
  if (const auto at = text.find('@'); at != std::string_view::npos) {
    host.user = text.substr(0, at);
    if (!is_name(host.user, "._-")) return wrong;
    text.remove_prefix(at + 1);
  }
  const bool bracketed = text.starts_with('[');
  const auto end = bracketed ? text.find(']') : text.find(':');
  if (bracketed && end == std::string_view::npos) return wrong;
  host.host = bracketed ? text.substr(1, end - 1) : text.substr(0, end);
  if (!is_name(host.host, bracketed ? ":.%" : "._-")) return wrong;
  const std::string_view rest = end == std::string_view::npos ? "" : text.substr(bracketed ? end + 1 : end);
  if (rest.empty()) return host;
  const char* last = rest.data() + rest.size();
  const auto port = std::from_chars(rest.data() + 1, last, host.port);
  if (rest[0] != ':' || port.ec != std::errc() || port.ptr != last || host.port < 1 || host.port > 65535) return wrong;
  return host;
}

std::vector<std::string> ssh_arguments(const SshHost& host) {
  std::vector<std::string> arguments = {"-T", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=15"};
  if (host.port > 0) arguments.insert(arguments.end(), {"-p", std::to_string(host.port)});
  if (!host.user.empty()) arguments.insert(arguments.end(), {"-l", host.user});
  arguments.insert(arguments.end(), {"--", host.host, "atoll", "control", "--stdio"});
  return arguments;
}

}  // namespace atl
