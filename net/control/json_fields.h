// The fields of JSON that a program of this machine said or kept: net/base/json_reader.h, with what the control
// protocol allows besides: null where a figure is not known (NaN for a number that must be there, nothing for one that
// may), and signed numbers.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "net/base/json_reader.h"
#include "net/base/printable.h"
#include "net/base/result.h"

namespace atl {

// Text of one control line or file: bounded in size and nesting, kProtocol otherwise.
Result<nlohmann::json> parse_control_json(std::string_view text);

class JsonFields {
 public:
  // `what` names the object in errors. Both outlive this.
  JsonFields(const nlohmann::json& object, std::string_view what) : reader_(object), what_(what) {}

  template <class T>
  JsonFields& read(const char* key, T& value) {
    if constexpr (std::same_as<T, std::string>) {
      reader_.bounded(key, value, kNotCut);
    } else if constexpr (std::signed_integral<T> && !std::same_as<T, bool>) {
      std::int64_t read = value;
      reader_.integer(key, read, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
      value = static_cast<T>(read);
    } else {
      reader_.field(key, value);
    }
    return *this;
  }

  template <class T>
  JsonFields& read(const char* key, std::optional<T>& value) {
    value.reset();
    return reader_.has_value(key) ? read(key, value.emplace()) : *this;
  }

  // The array at `key`, of at most `max_size` elements; null after an error.
  const nlohmann::json* array(const char* key, std::size_t max_size) { return reader_.entries(key, max_size); }

  Status status() const {
    return reader_.status().ok() ? ok_status() : Status(reader_.status().error().with_context(what_));
  }

 private:
  JsonReader reader_;
  std::string_view what_;
};

}  // namespace atl
