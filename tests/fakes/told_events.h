// Events as they come over a line, {"event", "time", "data"}, read as a program reads them: for tests of who hears
// them.
#pragma once

#include <nlohmann/json.hpp>

#include "net/control/event_reader.h"

namespace atl::test {

class ToldEvents {
 public:
  // `take(HeardEvent)`: what cannot be read is not taken.
  template <class Take>
  void tell(const nlohmann::json& event, Take take) {
    const bool whole = event.is_object() && event.contains("event") && event["event"].is_string() &&
                       event.contains("data") && event.contains("time") && event["time"].is_number();
    if (!whole) return;
    const auto heard = reader_.read(event["event"].get<std::string>(), event["data"], event["time"].get<double>(), 0,
                                    event.contains("kept"));
    if (!heard.ok()) return;
    for (const HeardEvent& one : *heard) take(one);
  }

 private:
  EventReader reader_;
};

}  // namespace atl::test
