// What another process told, as far as it did: for what is only shown. A field that is missing, or is something else,
// was not told. What must be right is read by json_fields.h. Pure functions; any thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "net/base/printable.h"

namespace atl::told {

inline std::string text(const nlohmann::json& object, const char* key, std::size_t most_bytes = 4096) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? printable_lines(found->get_ref<const std::string&>(), most_bytes)
                                                     : std::string();
}

// In one line.
inline std::string line(const nlohmann::json& object, const char* key) { return printable(text(object, key)); }

inline std::optional<double> number(const nlohmann::json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  const bool good = found != object.end() && found->is_number() && std::isfinite(found->get<double>());
  return good ? std::optional(found->get<double>()) : std::nullopt;
}

// A whole number, 0 where none was told that could be one.
inline std::uint64_t count(const nlohmann::json& object, const char* key) {
  const double value = number(object, key).value_or(0);
  return value > 0 && value < 1e18 ? static_cast<std::uint64_t>(value) : 0;
}

inline bool yes(const nlohmann::json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && *found == true;
}

}  // namespace atl::told
