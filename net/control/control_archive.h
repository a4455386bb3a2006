// The archive of net/wire/json_archive.h as the control protocol speaks it: what a peer of another version leaves out
// is as it was before, null says that a figure is not known, words are enums (words.h). `fields(archive, value)` of
// event_fields.h and state_fields.h serves both directions. For .cpp files of net/control, and their tests. One thread.
#pragma once

#include <cmath>

#include "net/check/check_row.h"
#include "net/control/words.h"
#include "net/wire/json_archive.h"

namespace atl {

inline constexpr std::size_t kMaxControlText = 4096;  // bytes of a text, of whatever kind

class ControlWriter : public JsonWriter {
 public:
  static constexpr bool kWrites = true;
  using JsonWriter::field;
  // Numbers, too: to clang 14 a template here hides the one above of the same form, whatever either asks of its type.
  template <class T>
  requires ControlWord<T> || std::is_arithmetic_v<T>
  void field(const char* name, const T& value) {
    if constexpr (ControlWord<T>) {
      object[name] = word_of(value);
    } else {
      JsonWriter::field(name, value);
    }
  }
  void field(const char* name, const std::string& value) { object[name] = value; }

  // May be missing, as in what older programs say.
  template <class T>
  void told(const char* name, const T& value) {
    field(name, value);
  }
  // Not written while it is not known; told_if_any: while it is empty.
  template <class T>
  void known(const char* name, const std::optional<T>& value) {
    if (value) field(name, *value);
  }
  void told_if_any(const char* name, const std::string& value) {
    if (!value.empty()) field(name, value);
  }
  void told_if(const char* name, bool value) {
    if (value) object[name] = true;
  }
  // Written as null while it is not known.
  template <class T>
  void or_null(const char* name, const std::optional<T>& value) {
    value ? field(name, *value) : static_cast<void>(object[name] = nullptr);
  }
  template <class T>
  void list(const char* name, const std::vector<T>& entries, std::size_t) {
    nlohmann::json array = nlohmann::json::array();
    for (const T& entry : entries) array.push_back(object_of(entry));
    object[name] = std::move(array);
  }
  template <class T>
  void list_if_any(const char* name, const std::vector<T>& entries, std::size_t most) {
    if (!entries.empty()) list(name, entries, most);
  }
  template <class T>
  void part_or_null(const char* name, const std::optional<T>& part) {
    object[name] = part ? object_of(*part) : nlohmann::json();
  }
  template <class T>
  void part_if(const char* name, bool there, const T& part) {
    if (there) object[name] = object_of(part);
  }
  template <class T>
  void part_if_any(const char* name, const std::optional<T>& part) {
    if (part) object[name] = object_of(*part);
  }
  template <class T>
  void part(const char* name, const T& part) {
    object[name] = object_of(part);
  }

  void exit_status(const char* name, int value) { object[name] = value; }  // of a process; -1: not known
  // Seconds since 1970, whole ones.
  void moment(const char* name, std::int64_t value) { object[name] = value; }
  void moment(const char* name, const std::optional<std::int64_t>& value) { or_null(name, value); }

  void fixed(const char* name, const char* word) { object[name] = word; }
  // As it is to the byte, not fit to be shown: a path, a secret.
  void raw_if_any(const char* name, const std::string& value, std::size_t) {
    if (!value.empty()) object[name] = value;
  }
  void always(const char* name) { object[name] = true; }
  void require(bool, const char*) {}
  void check_row(const char* name, const CheckRow& row) { object[name] = row.to_json(); }
  void check_report(const char* name, const std::optional<CheckReport>& report) {
    if (report) object[name] = report->to_json();
  }

  template <class T>
  static nlohmann::json object_of(const T& value) {
    ControlWriter writer;
    fields(writer, const_cast<T&>(value));
    return std::move(writer.object);
  }
};

class ControlReader : public JsonReader {
 public:
  static constexpr bool kWrites = false;
  explicit ControlReader(const nlohmann::json& object, std::string path = {})
      : JsonReader(object, std::move(path)), object_(object) {}

  using JsonReader::field;
  // Numbers, too, as above.
  template <class T>
  requires ControlWord<T> || std::integral<T>
  void field(const char* name, T& value) {
    if constexpr (ControlWord<T>) {
      const nlohmann::json* found = find(name);
      if (found == nullptr) return;
      if (!found->is_string()) return fail_field(name, "is no word");
      value = parse_word<T>(found->get_ref<const std::string&>());
    } else {
      JsonReader::field(name, value);
    }
  }
  void field(const char* name, std::string& value) {
    const nlohmann::json* found = find(name);
    if (found == nullptr) return;
    if (!found->is_string()) return fail_field(name, "is no text");
    value = printable_lines(found->get_ref<const std::string&>(), kMaxControlText);
  }

  template <class T>
  void told(const char* name, T& value) {
    if (is_told(name)) field(name, value);
  }
  template <class T>
  void known(const char* name, std::optional<T>& value) {
    value.reset();
    if (!is_told(name)) return;
    field(name, value.emplace());
    if constexpr (std::same_as<T, double>) {
      if (!std::isfinite(*value)) value.reset();
    }
  }
  void told_if_any(const char* name, std::string& value) { told(name, value); }
  void told_if(const char* name, bool& value) { told(name, value); }
  template <class T>
  void or_null(const char* name, std::optional<T>& value) {
    known(name, value);
  }
  template <class T>
  void list(const char* name, std::vector<T>& entries, std::size_t most) {
    const nlohmann::json* found = JsonReader::entries(name, most);
    if (found == nullptr) return;
    entries.clear();
    for (std::size_t i = 0; i < found->size(); ++i) {
      read_part(element_path(name, i), (*found)[i], entries.emplace_back());
    }
  }
  template <class T>
  void list_if_any(const char* name, std::vector<T>& entries, std::size_t most) {
    if (is_told(name)) list(name, entries, most);
  }
  template <class T>
  void part_or_null(const char* name, std::optional<T>& part) {
    part.reset();
    if (is_told(name)) read_part(path_of(name), object_[name], part.emplace());
  }
  template <class T>
  void part_if(const char* name, bool& there, T& part) {
    there = is_told(name);
    if (there) read_part(path_of(name), object_[name], part);
  }
  template <class T>
  void part_if_any(const char* name, std::optional<T>& part) {
    part_or_null(name, part);
  }
  template <class T>
  void part(const char* name, T& part) {
    const nlohmann::json* found = find(name);
    if (found != nullptr) read_part(path_of(name), *found, part);
  }

  void exit_status(const char* name, int& value) {
    const bool there = is_told(name) && object_[name].is_number_integer();
    if (there && object_[name] >= -1 && object_[name] <= 255) value = object_[name].template get<int>();
  }

  void moment(const char* name, std::int64_t& value) {
    std::optional<std::int64_t> read;
    moment(name, read);
    value = read.value_or(value);
  }
  void moment(const char* name, std::optional<std::int64_t>& value) {
    constexpr double kLatest = 1e15;
    std::optional<double> read;
    known(name, read);
    value.reset();
    if (read && std::abs(*read) < kLatest) value = static_cast<std::int64_t>(*read);
  }

  void raw_if_any(const char* name, std::string& value, std::size_t max_bytes) {
    if (is_told(name)) bounded(name, value, max_bytes);
  }
  void fixed(const char* name, const char* word) {
    const nlohmann::json* found = find(name);
    if (found != nullptr && *found != word) fail_field(name, "is not " + std::string(word));
  }
  void always(const char* name) {
    const nlohmann::json* found = find(name);
    if (found != nullptr && *found != true) fail_field(name, "is not true");
  }
  void require(bool holds, const char* why) {
    if (!holds) fail(why);
  }
  void check_row(const char* name, CheckRow& row) {
    const nlohmann::json* found = find(name);
    if (found == nullptr) return;
    auto read = check_row_from_json(*found);
    read.ok() ? static_cast<void>(row = std::move(*read)) : fail(read.error());
  }
  void check_report(const char* name, std::optional<CheckReport>& report) {
    report.reset();
    if (!is_told(name)) return;
    auto read = CheckReport::from_json(dump_json(object_[name]));
    read.ok() ? static_cast<void>(report = std::move(*read)) : fail(read.error());
  }

  bool is_told(const char* name) const { return has(name) && !object_[name].is_null(); }

 private:
  template <class T>
  void read_part(std::string path, const nlohmann::json& entry, T& value) {
    ControlReader reader(entry, std::move(path));
    fields(reader, value);
    if (!reader.status().ok()) fail(reader.status().error());
  }

  const nlohmann::json& object_;
};

// `what`: for the error, "the state".
template <class T>
Result<T> read_fields(const nlohmann::json& json, const char* what) {
  ControlReader reader(json);
  T value;
  fields(reader, value);
  if (!reader.status().ok()) {
    return Error{reader.status().error().code, std::string(what) + ": " + reader.status().error().message};
  }
  return value;
}

}  // namespace atl
