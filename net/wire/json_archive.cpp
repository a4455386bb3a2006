#include "net/wire/json_archive.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/base/encoding.h"

namespace atl {
namespace {

bool deeper_than(std::string_view text, int max_depth) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > max_depth) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

bool is_lower_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

}  // namespace

Result<nlohmann::json> parse_bounded_json(std::string_view text, std::size_t max_bytes, int max_depth) {
  if (text.size() > max_bytes) {
    return Error{ErrorCode::kProtocol, fmt::format("{} bytes are more than the {} allowed", text.size(), max_bytes)};
  }
  if (deeper_than(text, max_depth)) {
    return Error{ErrorCode::kProtocol, fmt::format("JSON is nested deeper than {}", max_depth)};
  }
  nlohmann::json value = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return Error{ErrorCode::kProtocol, "this is no JSON"};
  return value;
}

std::string dump_json(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool is_sha256_hex(std::string_view text) { return text.size() == 64 && std::ranges::all_of(text, is_lower_hex); }

bool is_island_name(std::string_view text) {
  return !text.empty() && text.size() <= 64 &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

const nlohmann::json* JsonReader::find(const char* name) {
  if (!status_.ok()) return nullptr;
  const auto found = object_.find(name);
  if (found != object_.end()) return &*found;
  fail_field(name, "is missing");
  return nullptr;
}

void JsonReader::field(const char* name, double& value) {
  const nlohmann::json* found = find(name);
  if (found == nullptr) return;
  // JSON has no NaN: the writer makes null of it. It is told on as NaN, for the receiver to refuse the island, not the
  // message.
  if (found->is_null()) {
    value = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  if (!found->is_number()) return fail_field(name, "is no number");
  value = found->get<double>();
}

void JsonReader::field(const char* name, IslandId& id) {
  const nlohmann::json* found = find(name);
  if (found != nullptr) read_element(name, *found, id);
}

void JsonReader::read_element(const char* name, const nlohmann::json& entry, IslandId& id) {
  if (!entry.is_string() || !is_island_name(entry.get_ref<const std::string&>())) {
    return fail_field(name, "is no island's id");
  }
  id.value = entry.get<std::string>();
}

void JsonReader::field(const char* name, Address& address) {
  const nlohmann::json* found = find(name);
  if (found == nullptr) return;
  JsonReader inner(*found);
  inner.host("host", address.host);
  inner.field("port", address.port);
  if (!inner.status().ok()) fail_field(name, "is no address: " + inner.status().error().message);
}

void JsonReader::bounded(const char* name, std::string& value, std::size_t max_bytes) {
  const nlohmann::json* found = find(name);
  if (found == nullptr) return;
  if (!found->is_string() || found->get_ref<const std::string&>().size() > max_bytes) {
    return fail_field(name, fmt::format("is no text of at most {} bytes", max_bytes));
  }
  value = found->get<std::string>();
}

void JsonReader::text(const char* name, std::string& value, std::size_t max_bytes) {
  bounded(name, value, max_bytes);
  value = printable(value);
}

void JsonReader::id(const char* name, std::string& value) {
  const nlohmann::json* found = find(name);
  if (found == nullptr) return;
  if (!found->is_string() || !is_island_name(found->get_ref<const std::string&>())) {
    return fail_field(name, "is no id: 1 to 64 of a-z, 0-9 and -");
  }
  value = found->get<std::string>();
}

void JsonReader::host(const char* name, std::string& value) {
  const nlohmann::json* found = find(name);
  if (found == nullptr) return;
  const bool good = found->is_string() &&
                    (found->get_ref<const std::string&>().empty() || is_host(found->get_ref<const std::string&>()));
  if (!good) return fail_field(name, "is neither a host's name nor its address");
  value = found->get<std::string>();
}

void JsonReader::hash(const char* name, std::string& value) {
  const nlohmann::json* found = find(name);
  if (found == nullptr) return;
  if (!found->is_string() || !is_sha256_hex(found->get_ref<const std::string&>())) {
    return fail_field(name, "is no SHA-256 in lower-case hex");
  }
  value = found->get<std::string>();
}

void JsonReader::hashes(const char* name, std::vector<std::string>& values) {
  const nlohmann::json* found = find(name);
  if (found == nullptr) return;
  if (!found->is_array() || found->size() > kMaxListed) return fail_field(name, "is no list of at most 4096 entries");
  for (const nlohmann::json& entry : *found) {
    if (!entry.is_string() || !is_sha256_hex(entry.get_ref<const std::string&>())) {
      return fail_field(name, "holds what is no SHA-256 in lower-case hex");
    }
    values.push_back(entry.get<std::string>());
  }
}

// {"count": 10, "bits": base64url}: flag i is bit i % 8 of byte i / 8, what is left of the last byte is zero.
void JsonWriter::flags(const char* name, const std::vector<bool>& flags) {
  if (flags.empty()) return;
  Bytes bits((flags.size() + 7) / 8);
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (flags[i]) bits[i / 8] |= std::byte{1} << (i % 8);
  }
  object[name] = {{"count", flags.size()}, {"bits", base64url_encode(bits)}};
}

void JsonReader::flags(const char* name, std::vector<bool>& flags) {
  if (!status_.ok() || !object_.contains(name)) return;
  JsonReader inner(object_[name]);
  std::uint32_t count = 0;
  std::string text;
  inner.field("count", count);
  inner.bounded("bits", text, kMaxFlags / 8 * 4 / 3 + 4);
  if (!inner.status().ok()) return fail_field(name, "is no set of flags: " + inner.status().error().message);
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

void JsonWriter::figures(const char* name, const std::vector<double>& figures) {
  if (!figures.empty()) object[name] = figures;
}

void JsonReader::figures(const char* name, std::vector<double>& figures) {
  if (!status_.ok() || !object_.contains(name)) return;
  const nlohmann::json& list = object_[name];
  const auto is_figure = [](const nlohmann::json& entry) {
    return entry.is_number() && std::isfinite(entry.get<double>()) && entry.get<double>() >= 0;
  };
  if (!list.is_array() || list.empty() || list.size() > kMaxListed ||
      !std::all_of(list.begin(), list.end(), is_figure)) {
    return fail_field(name, "is no list of 1 to 4096 finite numbers of 0 or more");
  }
  figures = list.get<std::vector<double>>();
}

}  // namespace atl
