// Reads the fields of a JSON object that came from outside, bounded: types, lengths, ranges, counts. The first field
// that does not fit makes status() an error (kProtocol) that names it with its path, "members[2].address.port"; from
// then on nothing is read, and what was not read is left as it was. Who reads a file of its own adds with_context()
// which file, and what to do. One thread.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/address.h"
#include "net/base/id.h"
#include "net/base/json_text.h"
#include "net/base/result.h"

namespace atl {

inline constexpr std::size_t kMaxPersonText = 512;  // bytes of a text that only people read
inline constexpr std::size_t kMaxPersonName = 64;   // of a name, a version, a place
inline constexpr std::size_t kMaxListed = 4096;     // entries of a list
inline constexpr std::size_t kMaxFlags = 1u << 16;  // bits of a set

bool is_sha256_hex(std::string_view text);   // 64 of 0-9 a-f
bool is_island_name(std::string_view text);  // 1 to 64 of a-z 0-9 -

class JsonReader {
 public:
  static constexpr bool kReads = true;  // of an archive (net/wire/json_archive.h)

  // `object` outlives this. `path`: where it stands in what came; empty: it is the whole.
  explicit JsonReader(const nlohmann::json& object, std::string path = {});

  // ---- fields that must be there

  // A whole number from 0 to the greatest of its type; true or false.
  template <std::integral T>
  void field(const char* name, T& value) {
    if constexpr (std::same_as<T, bool>) {
      boolean(name, value);
    } else {
      std::uint64_t read = 0;
      if (whole_number(name, read, static_cast<std::uint64_t>(std::numeric_limits<T>::max()))) {
        value = static_cast<T>(read);
      }
    }
  }
  // JSON has no NaN: the writer makes null of it. It is told on as NaN, for the receiver to refuse the island, not the
  // message. Where null is no figure: number().
  void field(const char* name, double& value);
  void field(const char* name, IslandId& id);
  void field(const char* name, Address& address);
  template <class Tag, std::integral Rep>
  void field(const char* name, Id<Tag, Rep>& id) {
    field(name, id.value);
  }
  // May be missing.
  template <class T>
  void field(const char* name, std::optional<T>& value) {
    if (has(name)) field(name, value.emplace());
  }
  // At most kMaxListed; each read by fields(reader, entry).
  template <class T>
  void field(const char* name, std::vector<T>& list) {
    const nlohmann::json* found = entries(name, kMaxListed);
    if (found == nullptr) return;
    for (std::size_t i = 0; i < count_of(*found) && status_.ok(); ++i) {
      read_element(element_path(name, i), entry_of(*found, i), list.emplace_back());
    }
  }
  void number(const char* name, double& value);  // finite, as all numbers of JSON are
  void integer(const char* name, std::int64_t& value, std::int64_t least = std::numeric_limits<std::int64_t>::min(),
               std::int64_t most = std::numeric_limits<std::int64_t>::max());
  void integers(const char* name, std::vector<std::int64_t>& values);  // at most kMaxListed of them
  // For people: printable (printable.h), whatever was sent.
  void text(const char* name, std::string& value, std::size_t max_bytes = kMaxPersonText);
  void text_if_any(const char* name, std::string& value, std::size_t max_bytes = kMaxPersonText) {
    if (has(name)) text(name, value, max_bytes);
  }
  void id(const char* name, std::string& value);    // of a run, an invite, an island: is_island_name
  void host(const char* name, std::string& value);  // is_host, or empty
  void bounded(const char* name, std::string& value, std::size_t max_bytes);  // any text
  void hash(const char* name, std::string& value);                            // SHA-256, lower-case hex
  void hashes(const char* name, std::vector<std::string>& values);            // at most kMaxListed of them
  void flags(const char* name, std::vector<bool>& flags);                     // may be missing
  void figures(const char* name, std::vector<double>& figures);  // finite numbers of 0 or more; may be missing

  // ---- looks

  bool has(const char* name) const;
  bool has_value(const char* name) const;        // and it is not null
  const nlohmann::json* find(const char* name);  // nullptr, and an error, when it is not there
  // The list there, of at most so many entries; nullptr, and an error, when it is none.
  const nlohmann::json* entries(const char* name, std::size_t most);
  // What an entry of it is called in errors: "members[2]", with the path of this object.
  std::string element_path(const char* name, std::size_t index) const;
  std::string path_of(const char* name) const;

  void fail(std::string message) { fail(Error{ErrorCode::kProtocol, std::move(message)}); }
  void fail(Error error) {
    if (status_.ok()) status_ = std::move(error);
  }
  void fail_field(const char* name, std::string_view why) { fail_at(path_of(name), why); }
  Status status() const { return status_; }

 private:
  // false, and an error, when it is no such number.
  bool whole_number(const char* name, std::uint64_t& value, std::uint64_t most);
  void boolean(const char* name, bool& value);
  void fail_at(const std::string& path, std::string_view why);
  void read_element(const std::string& path, const nlohmann::json& entry, IslandId& id);
  template <class T>
  void read_element(const std::string& path, const nlohmann::json& entry, T& value) {
    JsonReader reader(entry, path);
    fields(reader, value);
    if (!reader.status().ok()) fail(reader.status().error());
  }
  static std::size_t count_of(const nlohmann::json& list);
  static const nlohmann::json& entry_of(const nlohmann::json& list, std::size_t index);

  const nlohmann::json& object_;
  const std::string path_;
  Status status_;
};

}  // namespace atl
