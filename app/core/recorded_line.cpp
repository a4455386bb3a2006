#include "app/core/recorded_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "net/base/json_reader.h"

namespace atl {
namespace {

constexpr int kMaxDepth = 4;

struct Key {
  const char* name;
  RecordedLine::Kind kind;
};
constexpr std::array kKeys = {Key{"in", RecordedLine::Kind::kReceived}, Key{"out", RecordedLine::Kind::kSent},
                              Key{"closed", RecordedLine::Kind::kClosed}};

// What stands for the character behind a backslash; 0: more than a look is needed.
char unescaped(char c) {
  switch (c) {
    case '"':
    case '\\':
    case '/': return c;
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    default: return 0;
  }
}

// What is between the quotes of a JSON text of printable ASCII; false where it is not that.
bool read_plain_text(std::string_view json, std::string& text) {
  text.resize(json.size());
  char* to = text.data();
  for (std::size_t i = 0; i < json.size(); ++i) {
    char c = json[i];
    if (c == '\\') {
      c = ++i < json.size() ? unescaped(json[i]) : '\0';
      if (c == 0) return false;
    } else if (c == '"' || c < 0x20 || c > 0x7E) {
      return false;
    }
    *to++ = c;
  }
  text.resize(static_cast<std::size_t>(to - text.data()));
  return true;
}

// {"in":"text","t":1.5}
std::optional<RecordedLine> read_plain_line(std::string_view line) {
  constexpr std::string_view kTime = "\",\"t\":";
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  if (!line.starts_with("{\"") || !line.ends_with('}')) return std::nullopt;
  line = line.substr(2, line.size() - 3);
  const std::size_t time = line.rfind(kTime);
  if (time == std::string_view::npos) return std::nullopt;
  RecordedLine read;
  const std::string_view number = line.substr(time + kTime.size());
  const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), read.t);
  if (error != std::errc() || rest != number.data() + number.size() || !std::isfinite(read.t)) return std::nullopt;
  line = line.substr(0, time);
  for (const auto& [name, kind] : kKeys) {
    const std::size_t size = std::string_view(name).size();
    if (!line.starts_with(name) || !line.substr(size).starts_with("\":\"")) continue;
    read.kind = kind;
    if (!read_plain_text(line.substr(size + 3), read.text)) return std::nullopt;
    return read;
  }
  return std::nullopt;
}

}  // namespace

QByteArray RecordingLines::next(QFile& file) {
  if (room_.isEmpty()) room_.resize(kMaxRecordedLineBytes);
  const qint64 read = file.readLine(room_.data(), room_.size());
  return read > 0 ? QByteArray(room_.constData(), read) : QByteArray();
}

Result<RecordedLine> parse_recorded_line(const QByteArray& line) {
  const std::string_view text(line.data(), static_cast<std::size_t>(line.size()));
  if (auto plain = read_plain_line(text)) return *std::move(plain);
  const auto wrong = [](const std::string& why) {
    return Error{ErrorCode::kCorrupt, "a line of a recording that cannot be read: " + why};
  };
  const auto json = parse_bounded_json(text, kMaxRecordedLineBytes, kMaxDepth);
  if (!json.ok()) return wrong(json.error().message);
  JsonReader reader(*json);
  RecordedLine read{.text = {}};
  reader.number("t", read.t);
  const auto said = std::ranges::find_if(kKeys, [&](const Key& key) { return reader.has_value(key.name); });
  if (said == kKeys.end()) return wrong("it holds nothing that was said");
  read.kind = said->kind;
  reader.bounded(said->name, read.text, kMaxRecordedLineBytes);
  if (!reader.status().ok()) return wrong(reader.status().error().message);
  return read;
}

bool is_recorded_event(const QByteArray& line) { return line.contains("\\\"method\\\":\\\"event\\\""); }

std::optional<RecordedAnswer> parse_recorded_answer(const std::string& text) {
  constexpr std::string_view kId = "{\"id\":", kResult = ",\"jsonrpc\":\"2.0\",\"result\":";
  RecordedAnswer answer;
  const char* const end = text.data() + text.size();
  if (text.starts_with(kId)) {
    const auto [rest, error] = std::from_chars(text.data() + kId.size(), end, answer.id);
    const std::string_view after(rest, static_cast<std::size_t>(end - rest));
    if (error == std::errc() && after.starts_with(kResult) && after.ends_with('}')) {
      answer.result = after.substr(kResult.size(), after.size() - kResult.size() - 1);
      return answer;
    }
  }
  const auto reply = decode_reply(text);
  const auto* response = reply.ok() ? std::get_if<RpcResponse>(&*reply) : nullptr;
  if (response == nullptr) return std::nullopt;
  answer.id = response->id;
  if (response->result.ok()) answer.result = response->result->dump();
  return answer;
}

}  // namespace atl
