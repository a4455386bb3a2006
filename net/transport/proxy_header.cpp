#include "net/transport/proxy_header.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace atl {
namespace {

constexpr std::string_view kTextBegin = "PROXY ";
constexpr std::string_view kTextEnd = "\r\n";
constexpr std::size_t kMaxTextBytes = 107;
constexpr std::string_view kBinaryBegin("\r\n\r\n\0\r\nQUIT\n", kProxyFirstBytes);
constexpr std::size_t kBinaryPrefix = 16;

Error wrong(const char* why) { return Error{ErrorCode::kProtocol, std::string("PROXY header: ") + why}; }

std::string_view text_of(ByteView bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

std::uint8_t byte_at(ByteView bytes, std::size_t at) { return std::to_integer<std::uint8_t>(bytes[at]); }

// An address of IPv4 that is written as one of IPv6 is that of IPv4.
std::optional<std::string> literal_of(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const auto* bytes = static_cast<const std::uint8_t*>(address);
  if (family == AF_INET6 && std::equal(kMapped.begin(), kMapped.end(), bytes)) {
    family = AF_INET;
    address = bytes + kMapped.size();
  }
  if (::inet_ntop(family, address, text.data(), text.size()) == nullptr) return std::nullopt;
  return std::string(text.data());
}

bool is_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size();
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

Result<std::optional<std::string>> source_of_text(std::string_view header) {
  if (header.size() > kMaxTextBytes || !header.ends_with(kTextEnd)) return wrong("its line does not end");
  const auto words = words_of(header.substr(0, header.size() - kTextEnd.size()));
  if (words.size() >= 2 && words[1] == "UNKNOWN") return std::optional<std::string>();
  if (words.size() != 6 || (words[1] != "TCP4" && words[1] != "TCP6"))
    return wrong("it is not of TCP over IPv4 or IPv6");
  const int family = words[1] == "TCP4" ? AF_INET : AF_INET6;
  in6_addr source{}, destination{};
  if (::inet_pton(family, std::string(words[2]).c_str(), &source) != 1 ||
      ::inet_pton(family, std::string(words[3]).c_str(), &destination) != 1) {
    return wrong("it names no address");
  }
  if (!is_port(words[4]) || !is_port(words[5])) return wrong("it names no port");
  return literal_of(family, &source);
}

Result<std::optional<std::string>> source_of_binary(ByteView header) {
  constexpr std::uint8_t kVersion = 2, kLocal = 0, kProxied = 1;
  constexpr std::uint8_t kUnspecified = 0x00, kTcpV4 = 0x11, kTcpV6 = 0x21;
  const std::uint8_t version = byte_at(header, 12) >> 4, command = byte_at(header, 12) & 0x0f,
                     kind = byte_at(header, 13);
  if (version != kVersion || command > kProxied) return wrong("another version than 1 and 2");
  if (command == kLocal || kind == kUnspecified) return std::optional<std::string>();
  const ByteView addresses = header.subspan(kBinaryPrefix);
  if (kind == kTcpV4 && addresses.size() >= 2 * (sizeof(in_addr) + 2)) return literal_of(AF_INET, addresses.data());
  if (kind == kTcpV6 && addresses.size() >= 2 * (sizeof(in6_addr) + 2)) return literal_of(AF_INET6, addresses.data());
  return wrong("it is not of TCP over IPv4 or IPv6");
}

bool is_binary(ByteView bytes) { return text_of(bytes).starts_with(kBinaryBegin); }
bool is_text(ByteView bytes) { return text_of(bytes).starts_with(kTextBegin); }

}  // namespace

bool begins_proxy_header(ByteView bytes) { return is_binary(bytes) || is_text(bytes); }

Result<std::size_t> proxy_header_needs(ByteView bytes) {
  if (bytes.size() < kProxyFirstBytes) return kProxyFirstBytes - bytes.size();
  if (is_binary(bytes)) {
    if (bytes.size() < kBinaryPrefix) return kBinaryPrefix - bytes.size();
    const std::size_t whole = kBinaryPrefix + (std::size_t{byte_at(bytes, 14)} << 8 | byte_at(bytes, 15));
    if (whole > kMaxProxyHeaderBytes) return wrong("it is longer than any that a proxy sends");
    return whole - std::min(whole, bytes.size());
  }
  if (!is_text(bytes)) return wrong("these bytes are none");
  if (text_of(bytes).ends_with(kTextEnd)) return std::size_t{0};
  if (bytes.size() >= kMaxTextBytes) return wrong("its line does not end");
  return std::size_t{1};  // what follows the line is not the header's
}

Result<std::optional<std::string>> proxied_source(ByteView header) {
  ATOLL_ASSIGN_OR_RETURN(const std::size_t needs, proxy_header_needs(header));
  if (needs > 0) return wrong("it is cut short");
  return is_binary(header) ? source_of_binary(header) : source_of_text(text_of(header));
}

}  // namespace atl
