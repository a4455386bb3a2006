#include "net/base/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "net/base/bytes.h"
#include "net/base/encoding.h"
#include "net/base/printable.h"

namespace atl {
namespace {

using nlohmann::json;

bool is_lower_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

bool is_signed_64(const json& value) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  return value.is_number_integer() && (!value.is_number_unsigned() || value.get<std::uint64_t>() <= kMost);
}

// Null unless it is one.
const std::string* text_of(const json& value) { return value.get_ptr<const std::string*>(); }

constexpr const char* kNoHash = "is no SHA-256 in lower-case hex";

// A text that `fits`; what it is otherwise is the error.
template <class Fits>
void read_text(JsonReader& reader, const char* name, std::string& value, const Fits& fits, const char* otherwise) {
  const json* found = reader.find(name);
  if (found == nullptr) return;
  const std::string* text = text_of(*found);
  if (text == nullptr || !fits(*text)) return reader.fail_field(name, otherwise);
  value = *text;
}

}  // namespace

bool is_sha256_hex(std::string_view text) { return text.size() == 64 && std::ranges::all_of(text, is_lower_hex); }

bool is_island_name(std::string_view text) {
  return !text.empty() && text.size() <= 64 &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

JsonReader::JsonReader(const json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (object.is_object()) return;
  path_.empty() ? fail("it is no JSON object") : fail_at(path_, "is no JSON object");
}

// ---- looks

bool JsonReader::has(const char* name) const { return object_.is_object() && object_.contains(name); }

bool JsonReader::has_value(const char* name) const { return has(name) && !object_.at(name).is_null(); }

const json* JsonReader::find(const char* name) {
  if (!status_.ok()) return nullptr;
  const auto found = object_.find(name);
  if (found != object_.end()) return &*found;
  fail_field(name, "is missing");
  return nullptr;
}

const json* JsonReader::entries(const char* name, std::size_t most) {
  const json* found = find(name);
  if (found == nullptr || (found->is_array() && found->size() <= most)) return found;
  fail_field(name, fmt::format("is no list of at most {} entries", most));
  return nullptr;
}

std::string JsonReader::path_of(const char* name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

std::string JsonReader::element_path(const char* name, std::size_t index) const {
  return fmt::format("{}[{}]", path_of(name), index);
}

void JsonReader::fail_at(const std::string& path, std::string_view why) {
  fail(fmt::format("field '{}' {}", path, why));
}

std::size_t JsonReader::count_of(const json& list) { return list.size(); }

const json& JsonReader::entry_of(const json& list, std::size_t index) { return list[index]; }

// ---- fields

bool JsonReader::whole_number(const char* name, std::uint64_t& value, std::uint64_t most) {
  const json* found = find(name);
  if (found == nullptr) return false;
  // A number that this program put there itself may be of the signed kind.
  const bool whole = found->is_number_unsigned() || (found->is_number_integer() && found->get<std::int64_t>() >= 0);
  if (!whole || found->get<std::uint64_t>() > most) {
    fail_field(name, fmt::format("is no whole number from 0 to {}", most));
    return false;
  }
  value = found->get<std::uint64_t>();
  return true;
}

void JsonReader::boolean(const char* name, bool& value) {
  const json* found = find(name);
  if (found == nullptr) return;
  if (!found->is_boolean()) return fail_field(name, "is neither true nor false");
  value = found->get<bool>();
}

void JsonReader::integer(const char* name, std::int64_t& value, std::int64_t least, std::int64_t most) {
  const json* found = find(name);
  if (found == nullptr) return;
  if (!is_signed_64(*found) || found->get<std::int64_t>() < least || found->get<std::int64_t>() > most) {
    return fail_field(name, fmt::format("is no whole number from {} to {}", least, most));
  }
  value = found->get<std::int64_t>();
}

void JsonReader::integers(const char* name, std::vector<std::int64_t>& values) {
  const json* found = entries(name, kMaxListed);
  if (found == nullptr) return;
  for (std::size_t i = 0; i < found->size(); ++i) {
    if (!is_signed_64(entry_of(*found, i))) return fail_at(element_path(name, i), "is no whole number of 64 bits");
    values.push_back(entry_of(*found, i).get<std::int64_t>());
  }
}

void JsonReader::field(const char* name, double& value) {
  const json* found = find(name);
  if (found == nullptr) return;
  if (found->is_null()) {
    value = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  number(name, value);
}

void JsonReader::number(const char* name, double& value) {
  const json* found = find(name);
  if (found == nullptr) return;
  if (!found->is_number() || !std::isfinite(found->get<double>())) return fail_field(name, "is no number");
  value = found->get<double>();
}

void JsonReader::field(const char* name, IslandId& id) {
  const json* found = find(name);
  if (found != nullptr) read_element(path_of(name), *found, id);
}

void JsonReader::read_element(const std::string& path, const json& entry, IslandId& id) {
  const std::string* text = text_of(entry);
  if (text == nullptr || !is_island_name(*text)) return fail_at(path, "is no island's id");
  id.value = *text;
}

void JsonReader::field(const char* name, Address& address) {
  const json* found = find(name);
  if (found == nullptr) return;
  JsonReader inner(*found, path_of(name));
  inner.host("host", address.host);
  inner.field("port", address.port);
  if (!inner.status().ok()) fail(inner.status().error());
}

void JsonReader::bounded(const char* name, std::string& value, std::size_t max_bytes) {
  const json* found = find(name);
  if (found == nullptr) return;
  const std::string* text = text_of(*found);
  if (text == nullptr || text->size() > max_bytes) {
    return fail_field(name,
                      max_bytes == kNotCut ? "is no text" : fmt::format("is no text of at most {} bytes", max_bytes));
  }
  value = *text;
}

void JsonReader::text(const char* name, std::string& value, std::size_t max_bytes) {
  bounded(name, value, max_bytes);
  value = printable(value);
}

void JsonReader::id(const char* name, std::string& value) {
  read_text(*this, name, value, is_island_name, "is no id: 1 to 64 of a-z, 0-9 and -");
}

void JsonReader::host(const char* name, std::string& value) {
  const auto fits = [](std::string_view text) { return text.empty() || is_host(text); };
  read_text(*this, name, value, fits, "is neither a host's name nor its address");
}

void JsonReader::hash(const char* name, std::string& value) { read_text(*this, name, value, is_sha256_hex, kNoHash); }

void JsonReader::hashes(const char* name, std::vector<std::string>& values) {
  const json* found = entries(name, kMaxListed);
  if (found == nullptr) return;
  for (std::size_t i = 0; i < found->size(); ++i) {
    const std::string* text = text_of((*found)[i]);
    if (text == nullptr || !is_sha256_hex(*text)) {
      return fail_at(element_path(name, i), kNoHash);
    }
    values.push_back(*text);
  }
}

// As JsonWriter::flags writes them (net/wire/json_archive.cpp).
void JsonReader::flags(const char* name, std::vector<bool>& flags) {
  if (!status_.ok() || !has(name)) return;
  JsonReader inner(object_[name], path_of(name));
  std::uint32_t count = 0;
  std::string text;
  inner.field("count", count);
  inner.bounded("bits", text, kMaxFlags / 8 * 4 / 3 + 4);
  if (!inner.status().ok()) return fail(inner.status().error());
  const Result<Bytes> bits = base64url_decode(text);
  if (count == 0 || count > kMaxFlags || !bits.ok() || bits->size() != (count + 7) / 8) {
    return fail_field(name, fmt::format("is no set of 1 to {} flags", kMaxFlags));
  }
  const auto is_set = [&](std::size_t i) { return ((*bits)[i / 8] >> (i % 8) & std::byte{1}) != std::byte{0}; };
  for (std::size_t i = count; i < bits->size() * 8; ++i) {
    if (is_set(i)) return fail_field(name, "has more flags than it says");
  }
  flags.resize(count);
  for (std::size_t i = 0; i < count; ++i) flags[i] = is_set(i);
}

void JsonReader::figures(const char* name, std::vector<double>& figures) {
  if (!status_.ok() || !has(name)) return;
  const json& list = object_[name];
  const auto is_figure = [](const json& entry) {
    return entry.is_number() && std::isfinite(entry.get<double>()) && entry.get<double>() >= 0;
  };
  if (!list.is_array() || list.empty() || list.size() > kMaxListed ||
      !std::all_of(list.begin(), list.end(), is_figure)) {
    return fail_field(name, fmt::format("is no list of 1 to {} finite numbers of 0 or more", kMaxListed));
  }
  figures = list.get<std::vector<double>>();
}

}  // namespace atl
