// A line of anybody's JSON: what a strict reader makes of it, its text is; an error can be shown.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "net/base/json_text.h"
#include "net/base/printable.h"
#include "net/data/json_line_scanner.h"
#include "net/data/json_lines.h"
#include "net/data/text_blocks.h"
#include "net/data/text_encoding.h"
#include "tests/fuzz/fuzz_input.h"

namespace atl::fuzz {
namespace {

// At a.b, as a strict reader has it; null: not there, or no text.
nlohmann::json strictly(const nlohmann::json& line) {
  if (!line.is_object() || !line.contains("a") || !line["a"].is_object() || !line["a"].contains("b")) return nullptr;
  return line["a"]["b"].is_string() ? line["a"]["b"] : nlohmann::json(nullptr);
}

void check(const std::string& line) {
  if (broken_utf8_at(line)) return;  // refused before
  const auto scanned = scan_json_line(line, {"a", "b"});
  const auto strict = parse_bounded_json(line, kMaxDocumentBytes, kMaxLineDepth, RepeatedKeys::kLastCounts);
  if (!scanned.ok()) {
    ATOLL_FUZZ_CHECK(is_printable(scanned.error().message) && scanned.error().message.size() < 4096);
    ATOLL_FUZZ_CHECK(!strict.ok() || strictly(*strict).is_null());
    return;
  }
  const std::string text = scanned->value_or("");
  ATOLL_FUZZ_CHECK(!broken_utf8_at(text) && text.size() <= line.size());
  if (strict.ok()) ATOLL_FUZZ_CHECK(scanned->has_value() ? strictly(*strict) == text : strictly(*strict).is_null());
  std::string padded = line;
  padded.reserve(line.size() + kJsonPaddingBytes);
  JsonLineText reader("a.b");
  const auto read = reader.text_of(padded);
  ATOLL_FUZZ_CHECK(read.ok() && read->has_value() == scanned->has_value() && read->value_or("") == text);
}

}  // namespace
}  // namespace atl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace atl;
  fuzz::Input input(data, size);
  fuzz::check(std::string(to_string(input.rest())));
  return 0;
}
