#include "net/base/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "net/base/printable.h"

namespace atl {
namespace {

using nlohmann::json;

constexpr std::size_t kShownKey = 64;       // bytes
constexpr int kNumberOverflow = 406;        // of nlohmann::json's out_of_range
constexpr std::size_t kShownPathParts = 8;  // then what is left out is said to be

Error no_json(std::string why) { return Error{ErrorCode::kProtocol, std::move(why)}; }

// Line and column of a byte, both from 1. Text of one line may be a line of a file, of which its reader knows the
// number.
std::string place_of(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const std::size_t line_begin = before.rfind('\n');
  const auto lines = static_cast<std::size_t>(std::ranges::count(before, '\n'));
  const std::size_t column = before.size() - (line_begin == std::string_view::npos ? 0 : line_begin + 1) + 1;
  if (text.find('\n') == std::string_view::npos) return fmt::format("column {}", column);
  return fmt::format("line {}, column {}", lines + 1, column);
}

// Makes the value while the parser goes through the text: what nlohmann::json calls a SAX handler. Its functions' names
// and signatures are the library's; false ends the parsing.
class Builder {
 public:
  Builder(std::string_view text, int max_depth, RepeatedKeys repeated)
      : text_(text), max_depth_(static_cast<std::size_t>(std::max(max_depth, 0))), repeated_(repeated) {}

  json& value() { return root_; }
  const std::string& problem() const { return problem_; }

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(json::number_integer_t value) { return put(value); }
  bool number_unsigned(json::number_unsigned_t value) { return put(value); }
  bool number_float(json::number_float_t value, const json::string_t&) { return put(value); }
  bool string(json::string_t& value) { return put(std::move(value)); }
  bool binary(json::binary_t&) { return fail("this is no JSON"); }
  bool start_object(std::size_t) { return open(json::object()); }
  bool start_array(std::size_t) { return open(json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(json::string_t& name) {
    Level& level = levels_.back();
    level.key = std::move(name);
    const auto [member, added] = level.value->emplace(level.key, nullptr);
    if (!added && repeated_ == RepeatedKeys::kRefused) {
      return fail(fmt::format("the key '{}' stands twice; say it once", path()));
    }
    level.member = &*member;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const json::exception& error) {
    const std::string where = place_of(text_, position > 0 ? position - 1 : 0);
    if (error.id == kNumberOverflow) return fail(fmt::format("the number at '{}' is too large ({})", path(), where));
    return fail(fmt::format("this is no JSON: it cannot be read from {} on", where));
  }

 private:
  struct Level {
    json* value;             // the object or list
    json* member = nullptr;  // of an object: where the next value goes
    std::string key;         // of that
  };

  // Where the next value goes. A list grows only while nothing within it is open, so that no level's place moves.
  json& next() {
    if (levels_.empty()) return root_;
    Level& level = levels_.back();
    return level.value->is_array() ? level.value->emplace_back() : *level.member;
  }
  template <class T>
  bool put(T&& value) {
    next() = std::forward<T>(value);
    return true;
  }
  bool open(json container) {
    if (levels_.size() >= max_depth_) return fail(fmt::format("JSON is nested deeper than {}", max_depth_));
    json& place = next();
    place = std::move(container);
    levels_.push_back({.value = &place, .member = nullptr, .key = {}});
    return true;
  }
  bool close() {
    levels_.pop_back();
    return true;
  }
  bool fail(std::string why) {
    problem_ = std::move(why);
    return false;
  }

  // "members[2].address.port"
  std::string path() const {
    std::string path;
    for (std::size_t i = 0; i < std::min(levels_.size(), kShownPathParts); ++i) {
      const Level& level = levels_[i];
      if (level.value->is_array()) {
        path += fmt::format("[{}]", level.value->size());
      } else {
        path += fmt::format("{}{}", path.empty() ? "" : ".", printable(level.key, kShownKey));
      }
    }
    return levels_.size() > kShownPathParts ? path + "..." : path;
  }

  const std::string_view text_;
  const std::size_t max_depth_;
  const RepeatedKeys repeated_;
  json root_;
  std::vector<Level> levels_;
  std::string problem_;
};

}  // namespace

Result<json> parse_bounded_json(std::string_view text, std::size_t max_bytes, int max_depth, RepeatedKeys repeated) {
  if (text.size() > max_bytes) {
    return no_json(fmt::format("{} bytes are more than the {} allowed", text.size(), max_bytes));
  }
  // The library takes one for the end of the text, and whatever follows for nothing.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return no_json(fmt::format("this is no JSON: there is a zero byte in {}", place_of(text, zero)));
  }
  Builder builder(text, max_depth, repeated);
  if (json::sax_parse(text.begin(), text.end(), &builder)) return std::move(builder.value());
  return no_json(builder.problem());
}

std::string dump_json(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

void make_printable(json& value) {
  if (auto* text = value.get_ptr<std::string*>()) *text = printable_lines(*text);
  if (value.is_structured()) {
    for (json& part : value) make_printable(part);
  }
}

}  // namespace atl
