#include "net/base/encoding.h"

#include <array>

namespace atl {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::string_view kBase64Url = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1u) ? 0xEDB88320u : 0u);
    table[i] = value;
  }
  return table;
}
constexpr auto kCrcTable = make_crc_table();

}  // namespace

std::string hex_encode(ByteView bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte b : bytes) {
    text += kHexDigits[std::to_integer<unsigned>(b) >> 4];
    text += kHexDigits[std::to_integer<unsigned>(b) & 15u];
  }
  return text;
}

Result<Bytes> hex_decode(std::string_view text) {
  const Error bad{ErrorCode::kInvalidArgument, "not a hexadecimal string"};
  if (text.size() % 2 != 0) return bad;
  Bytes bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const auto high = kHexDigits.find(text[i]);
    const auto low = kHexDigits.find(text[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return bad;
    bytes.push_back(static_cast<std::byte>(high * 16 + low));
  }
  return bytes;
}

std::string base64url_encode(ByteView bytes) {
  std::string text;
  std::uint32_t window = 0;
  int bits = 0;
  for (const std::byte b : bytes) {
    window = (window << 8) | std::to_integer<std::uint32_t>(b);
    bits += 8;
    while (bits >= 6) {
      bits -= 6;
      text += kBase64Url[(window >> bits) & 63u];
    }
  }
  if (bits > 0) text += kBase64Url[(window << (6 - bits)) & 63u];
  return text;
}

Result<Bytes> base64url_decode(std::string_view text) {
  const Error bad{ErrorCode::kInvalidArgument, "not a base64url string"};
  if (text.size() % 4 == 1) return bad;
  Bytes bytes;
  std::uint32_t window = 0;
  int bits = 0;
  for (const char c : text) {
    const auto digit = kBase64Url.find(c);
    if (digit == std::string_view::npos) return bad;
    window = (window << 6) | static_cast<std::uint32_t>(digit);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes.push_back(static_cast<std::byte>((window >> bits) & 255u));
    }
  }
  // Left-over bits must be zero: one byte string has one encoding.
  if ((window & ((1u << bits) - 1u)) != 0) return bad;
  return bytes;
}

std::uint32_t crc32(ByteView bytes) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const std::byte b : bytes) crc = kCrcTable[(crc ^ std::to_integer<std::uint32_t>(b)) & 255u] ^ (crc >> 8);
  return ~crc;
}

}  // namespace atl
