// One description of a message's fields serves both directions: `fields(archive, message)` with a JsonWriter makes the
// object, with a JsonReader fills the message from one that came from outside, bounded: depth, lengths, ranges, counts.
// For .cpp files of net/wire and net/check. One thread.
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/address.h"
#include "net/base/id.h"
#include "net/base/printable.h"
#include "net/base/result.h"

namespace atl {

inline constexpr std::size_t kMaxPersonText = 512;  // bytes of a text that only people read
inline constexpr std::size_t kMaxPersonName = 64;   // of a name, a version, a place
inline constexpr std::size_t kMaxListed = 4096;     // entries of a list
inline constexpr std::size_t kMaxFlags = 1u << 16;  // bits of a set

// kProtocol when it is larger or deeper than allowed, or not JSON.
Result<nlohmann::json> parse_bounded_json(std::string_view text, std::size_t max_bytes, int max_depth);
// Text for JSON: invalid UTF-8 is replaced, never an exception.
std::string dump_json(const nlohmann::json& value);
bool is_sha256_hex(std::string_view text);
bool is_island_name(std::string_view text);  // 1 to 64 of a-z 0-9 -

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
  void fail(std::string) {}

 private:
  static nlohmann::json element(const IslandId& id) { return id.value; }
  template <class T>
  static nlohmann::json element(const T& entry) {
    JsonWriter writer;
    fields(writer, const_cast<T&>(entry));
    return std::move(writer.object);
  }
};

// The first field that does not fit makes status() an error that names it; later ones are left as they are.
class JsonReader {
 public:
  static constexpr bool kReads = true;
  explicit JsonReader(const nlohmann::json& object) : object_(object) {
    if (!object.is_object()) fail("it is no JSON object");
  }

  template <std::integral T>
  void field(const char* name, T& value) {
    const nlohmann::json* found = find(name);
    if (found == nullptr) return;
    if constexpr (std::same_as<T, bool>) {
      if (!found->is_boolean()) return fail_field(name, "is neither true nor false");
      value = found->get<bool>();
    } else {
      constexpr auto kLimit = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
      if (!found->is_number_unsigned() || found->get<std::uint64_t>() > kLimit) {
        return fail_field(name, "is no whole number from 0 to " + std::to_string(kLimit));
      }
      value = static_cast<T>(found->get<std::uint64_t>());
    }
  }
  void field(const char* name, double& value);
  void field(const char* name, IslandId& id);
  void field(const char* name, Address& address);
  template <class Tag, std::integral Rep>
  void field(const char* name, Id<Tag, Rep>& id) {
    field(name, id.value);
  }
  template <class T>
  void field(const char* name, std::optional<T>& value) {
    if (!object_.is_object() || !object_.contains(name)) return;
    field(name, value.emplace());
  }
  template <class T>
  void field(const char* name, std::vector<T>& list) {
    const nlohmann::json* found = find(name);
    if (found == nullptr) return;
    if (!found->is_array() || found->size() > kMaxListed) return fail_field(name, "is no list of at most 4096 entries");
    for (const nlohmann::json& entry : *found) read_element(name, entry, list.emplace_back());
  }
  // For people: printable (net/base/printable.h), whatever was sent.
  void text(const char* name, std::string& value, std::size_t max_bytes = kMaxPersonText);
  void text_if_any(const char* name, std::string& value, std::size_t max_bytes = kMaxPersonText) {
    if (object_.is_object() && object_.contains(name)) text(name, value, max_bytes);
  }
  void id(const char* name, std::string& value);    // of a run, an invite, an island: is_island_name
  void host(const char* name, std::string& value);  // is_host, or empty
  void bounded(const char* name, std::string& value, std::size_t max_bytes);
  void hash(const char* name, std::string& value);                  // SHA-256, lower-case hex
  void hashes(const char* name, std::vector<std::string>& values);  // at most kMaxListed of them
  void flags(const char* name, std::vector<bool>& flags);
  void figures(const char* name, std::vector<double>& figures);  // finite numbers of 0 or more

  bool has(const char* name) const { return object_.is_object() && object_.contains(name); }
  const nlohmann::json* find(const char* name);  // nullptr, and an error, when it is not there
  void fail(std::string message) { fail(Error{ErrorCode::kProtocol, std::move(message)}); }
  void fail(Error error) {
    if (status_.ok()) status_ = std::move(error);
  }
  const Status& status() const { return status_; }

 private:
  void fail_field(const char* name, const std::string& why) { fail("field '" + std::string(name) + "' " + why); }
  void read_element(const char* name, const nlohmann::json& entry, IslandId& id);
  template <class T>
  void read_element(const char* name, const nlohmann::json& entry, T& value) {
    JsonReader reader(entry);
    fields(reader, value);
    if (!reader.status().ok()) fail_field(name, "holds a wrong entry: " + reader.status().error().message);
  }

  const nlohmann::json& object_;
  Status status_;
};

}  // namespace atl
