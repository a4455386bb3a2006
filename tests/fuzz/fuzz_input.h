// What every fuzzer uses: reading its input piece by piece, and checks that end the process in every build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>

#include "net/base/bytes.h"

#define ATOLL_FUZZ_CHECK(condition) ((condition) ? void() : ::atl::fuzz::fail(__FILE__, __LINE__, #condition))

namespace atl::fuzz {

[[noreturn]] inline void fail(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
  std::abort();
}

// Never ends: beyond the input's last byte come zeros.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const std::byte*>(data), size) {}

  template <std::unsigned_integral T>
  T get() {
    T value{};
    const ByteView head = take(sizeof value);
    if (!head.empty()) std::memcpy(&value, head.data(), head.size());
    return value;
  }
  // At most so many bytes.
  ByteView take(std::size_t most) {
    const ByteView head = rest_.first(most < rest_.size() ? most : rest_.size());
    rest_ = rest_.subspan(head.size());
    return head;
  }
  ByteView rest() const { return rest_; }

 private:
  ByteView rest_;
};

}  // namespace atl::fuzz
