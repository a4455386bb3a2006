// Parameters of control methods, typed and bounded. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "net/base/result.h"

namespace atl {

// Empty when it is not there.
inline Result<std::string> text_param(const nlohmann::json& params, const char* name, std::size_t max_bytes = 512) {
  const auto found = params.find(name);
  if (found == params.end()) return std::string();
  if (found->is_string() && found->get_ref<const std::string&>().size() <= max_bytes) return found->get<std::string>();
  return Error{ErrorCode::kInvalidArgument, fmt::format("{} must be a text of at most {} bytes", name, max_bytes)};
}

// 0 when it is not there.
inline Result<int> number_param(const nlohmann::json& params, const char* name, int most) {
  const auto found = params.find(name);
  if (found == params.end()) return 0;
  if (found->is_number_unsigned() && found->get<std::uint64_t>() <= static_cast<std::uint64_t>(most)) {
    return found->get<int>();
  }
  return Error{ErrorCode::kInvalidArgument, fmt::format("{} must be a number from 0 to {}", name, most)};
}

}  // namespace atl
