// A file's name that names no directory, and that people can read. Pure; any thread.
#pragma once

#include <algorithm>
#include <string_view>

namespace atl {

inline constexpr std::size_t kMaxPlainName = 64;  // of files that this project names

inline bool is_plain_name(std::string_view name, std::size_t most_bytes = kMaxPlainName) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  return !name.empty() && name.size() <= most_bytes && name.front() != '.' && std::ranges::all_of(name, plain);
}

}  // namespace atl
