// Byte buffers, little-endian encoding, and a bounded reader for bytes from outside.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace atl {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

inline ByteView as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string to_string(ByteView bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

static_assert(std::endian::native == std::endian::little, "Atoll's wire formats assume a little-endian machine");

class ByteWriter {
 public:
  template <std::unsigned_integral T>
  void put(T value) {
    put_bytes(std::as_bytes(std::span(&value, 1)));
  }
  // Not inlined: GCC 12 would warn of overflows that cannot be.
  [[gnu::noinline]] void put_bytes(ByteView bytes) { buffer_.insert(buffer_.end(), bytes.begin(), bytes.end()); }
  // u16 length, then the bytes; the caller keeps text under 64 KiB.
  void put_string(std::string_view text) {
    put(static_cast<std::uint16_t>(text.size()));
    put_bytes(as_bytes(text));
  }
  const Bytes& bytes() const { return buffer_; }
  Bytes take() { return std::move(buffer_); }

 private:
  Bytes buffer_;
};

// Reads never pass the end: the first one that would makes ok() false and every later one return zero.
class ByteReader {
 public:
  explicit ByteReader(ByteView bytes) : rest_(bytes) {}

  template <std::unsigned_integral T>
  T get() {
    T value{};
    const ByteView raw = get_bytes(sizeof(T));
    if (raw.size() == sizeof(T)) std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }
  ByteView get_bytes(std::size_t count) {
    if (!ok_ || rest_.size() < count) {
      ok_ = false;
      return {};
    }
    const ByteView head = rest_.first(count);
    rest_ = rest_.subspan(count);
    return head;
  }
  std::string get_string(std::size_t max_length) {
    const auto length = get<std::uint16_t>();
    if (length > max_length) ok_ = false;
    return to_string(get_bytes(length));
  }
  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }

 private:
  ByteView rest_;
  bool ok_ = true;
};

}  // namespace atl
