// One description of a message's fields serves both directions: `fields(archive, message)` with a JsonWriter makes the
// object, with a JsonReader (net/base/json_reader.h) fills the message from one that came from outside. For .cpp files.
// One thread.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "net/base/address.h"
#include "net/base/id.h"
#include "net/base/json_reader.h"
#include "net/base/printable.h"

namespace atl {

class JsonWriter {
 public:
  static constexpr bool kReads = false;
  nlohmann::json object = nlohmann::json::object();

  template <class T>
  requires std::is_arithmetic_v<T>
  void field(const char* name, const T& value) { object[name] = value; }
  template <class Tag, class Rep>
  void field(const char* name, const Id<Tag, Rep>& id) {
    object[name] = id.value;
  }
  template <class T>
  void field(const char* name, const std::optional<T>& value) {
    if (value) field(name, *value);
  }
  void field(const char* name, const Address& address) {
    object[name] = {{"host", address.host}, {"port", address.port}};
  }
  template <class T>
  void field(const char* name, const std::vector<T>& list) {
    nlohmann::json array = nlohmann::json::array();
    for (const T& entry : list) array.push_back(element(entry));
    object[name] = std::move(array);
  }
  void text(const char* name, const std::string& value, std::size_t max_bytes = kMaxPersonText) {
    object[name] = printable(value, max_bytes);
  }
  void text_if_any(const char* name, const std::string& value, std::size_t max_bytes = kMaxPersonText) {
    if (!value.empty()) text(name, value, max_bytes);
  }
  void id(const char* name, const std::string& value) { object[name] = value; }
  void host(const char* name, const std::string& value) { object[name] = value; }
  void bounded(const char* name, const std::string& value, std::size_t) { object[name] = value; }
  void hash(const char* name, const std::string& value) { object[name] = value; }
  void hashes(const char* name, const std::vector<std::string>& values) { object[name] = values; }
  void flags(const char* name, const std::vector<bool>& flags);        // at most kMaxFlags; none: not written
  void figures(const char* name, const std::vector<double>& figures);  // at most kMaxListed; none: not written
  void fail(const std::string&) {}

 private:
  static nlohmann::json element(const IslandId& id) { return id.value; }
  template <class T>
  static nlohmann::json element(const T& entry) {
    JsonWriter writer;
    fields(writer, const_cast<T&>(entry));
    return std::move(writer.object);
  }
};

}  // namespace atl
