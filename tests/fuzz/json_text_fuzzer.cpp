// Text of anybody as JSON: within its bounds it is what the library makes of it, and an error can be shown.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "net/base/json_text.h"
#include "net/base/printable.h"
#include "tests/fuzz/fuzz_input.h"

namespace atl::fuzz {
namespace {

constexpr std::size_t kMaxBytes = 1 << 16;

int depth_of(const nlohmann::json& json) {
  int deepest = 0;
  if (!json.is_structured()) return 0;
  for (const nlohmann::json& part : json) deepest = std::max(deepest, depth_of(part));
  return deepest + 1;
}

void check(std::string_view text, int max_depth) {
  const auto json = parse_bounded_json(text, kMaxBytes, max_depth, RepeatedKeys::kLastCounts);
  const auto strict = parse_bounded_json(text, kMaxBytes, max_depth);
  ATOLL_FUZZ_CHECK(!strict.ok() || (json.ok() && *json == *strict));
  if (!json.ok()) {
    ATOLL_FUZZ_CHECK(is_printable(json.error().message) && json.error().message.size() < 4096);
    return;
  }
  ATOLL_FUZZ_CHECK(text.size() <= kMaxBytes && depth_of(*json) <= max_depth);
  ATOLL_FUZZ_CHECK(*json == nlohmann::json::parse(text, nullptr, false));
  const auto again = parse_bounded_json(dump_json(*json), nlohmann::json::string_t::npos, max_depth);
  ATOLL_FUZZ_CHECK(again.ok() && *again == *json);
  nlohmann::json shown = *json;
  make_printable(shown);
}

}  // namespace
}  // namespace atl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace atl;
  fuzz::Input input(data, size);
  const int max_depth = input.get<std::uint8_t>() % 16;
  fuzz::check(to_string(input.rest()), max_depth);
  return 0;
}
