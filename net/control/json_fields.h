// Reading typed fields out of JSON that came from another process: a wrong type or a missing key is an error that names
// it. Numbers that JSON cannot write (NaN, infinity) travel as null.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "net/base/result.h"

namespace atl {

// Text of one control line or file: bounded in size and nesting, kProtocol otherwise.
Result<nlohmann::json> parse_control_json(std::string_view text);

// Every text within made printable, its lines kept (net/base/printable.h): for what is only shown.
void make_printable(nlohmann::json& json);

class JsonFields {
 public:
  // `what` names the object in errors. Both outlive this.
  JsonFields(const nlohmann::json& object, std::string_view what) : object_(object), what_(what) {
    if (!object_.is_object()) fail("is not an object");
  }

  template <class T>
  JsonFields& read(const char* key, T& value) {
    const nlohmann::json* field = find(key);
    if (field == nullptr) return *this;
    if constexpr (std::is_same_v<T, double>) {
      if (field->is_number())
        value = field->get<double>();
      else if (field->is_null())
        value = std::numeric_limits<double>::quiet_NaN();
      else
        fail_field(key, "a number");
    } else if constexpr (std::is_same_v<T, bool>) {
      field->is_boolean() ? static_cast<void>(value = field->get<bool>()) : fail_field(key, "true or false");
    } else if constexpr (std::is_same_v<T, std::string>) {
      field->is_string() ? static_cast<void>(value = field->get<std::string>()) : fail_field(key, "a string");
    } else if constexpr (std::is_unsigned_v<T>) {
      if (field->is_number_unsigned() && field->get<std::uint64_t>() <= std::numeric_limits<T>::max())
        value = field->get<T>();
      else
        fail_field(key, "a whole number of 0 or more");
    } else {
      static_assert(std::is_signed_v<T> && std::is_integral_v<T>);
      if (field->is_number_integer())
        value = static_cast<T>(field->get<std::int64_t>());
      else
        fail_field(key, "a whole number");
    }
    return *this;
  }

  template <class T>
  JsonFields& read(const char* key, std::optional<T>& value) {
    value.reset();
    const auto found = ok_ ? object_.find(key) : object_.end();
    if (!ok_ || found == object_.end() || found->is_null()) return *this;
    return read(key, value.emplace());
  }

  // The array at `key`, of at most `max_size` elements; null after an error.
  const nlohmann::json* array(const char* key, std::size_t max_size) {
    const nlohmann::json* field = find(key);
    if (field == nullptr) return nullptr;
    if (field->is_array() && field->size() <= max_size) return field;
    fail_field(key, "a list within bounds");
    return nullptr;
  }

  Status status() const { return ok_ ? ok_status() : Status(Error{ErrorCode::kProtocol, message_}); }

 private:
  const nlohmann::json* find(const char* key) {
    if (!ok_) return nullptr;
    const auto found = object_.find(key);
    if (found == object_.end()) {
      fail(fmt::format("has no \"{}\"", key));
      return nullptr;
    }
    return &*found;
  }
  void fail_field(const char* key, const char* wanted) { fail(fmt::format("\"{}\" is not {}", key, wanted)); }
  void fail(const std::string& why) {
    if (ok_) message_ = fmt::format("{} {}", what_, why);
    ok_ = false;
  }

  const nlohmann::json& object_;
  std::string_view what_;
  bool ok_ = true;
  std::string message_;
};

}  // namespace atl
