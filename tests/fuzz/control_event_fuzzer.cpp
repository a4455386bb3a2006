// An event as another process tells it, its name and its data: refused with a reason, or read to an event that survives
// being told on: encoded and read again it is the same.
#include <nlohmann/json.hpp>
#include <string>

#include "net/control/event_reader.h"
#include "net/control/json_fields.h"
#include "tests/fuzz/fuzz_input.h"

namespace atl::fuzz {
namespace {

std::string text_of(const ControlEvent& event) {
  return data_of(event).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void check_event(std::string_view name, const nlohmann::json& data) {
  const auto event = decode_event(name, data);
  if (!event.ok()) return ATOLL_FUZZ_CHECK(!event.error().message.empty());
  const std::string once = text_of(*event);
  const auto again = parse_control_json(once);
  ATOLL_FUZZ_CHECK(again.ok());
  const auto read = decode_event(name_of(*event), *again);
  ATOLL_FUZZ_CHECK(read.ok() && read->index() == event->index());
  ATOLL_FUZZ_CHECK(text_of(*read) == once);
}

}  // namespace
}  // namespace atl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace atl;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\n');
  if (end == std::string::npos) return 0;
  const std::string name = text.substr(0, end);
  const auto json = parse_control_json(std::string_view(text).substr(end + 1));
  if (!json.ok()) return 0;
  fuzz::check_event(name, *json);
  // What comes before it may be anything, too.
  static EventReader reader;
  const auto heard = reader.read(name, *json, 1000);
  if (heard.ok()) ATOLL_FUZZ_CHECK(!heard->empty() && heard->size() <= 2);
  return 0;
}
