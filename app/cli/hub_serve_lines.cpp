#include "app/cli/hub_serve_lines.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/text.h"
#include "net/control/told.h"

namespace atl {
namespace {

using told::count;

double number(const nlohmann::json& data, const char* key) { return told::number(data, key).value_or(0); }

std::string reason_of(const nlohmann::json& data) {
  const std::string reason = told::line(data, "reason");
  return reason.empty() ? "" : ": " + reason;
}

std::string committed(const nlohmann::json& data) {
  const auto members = data.find("members");
  const std::size_t islands = members != data.end() && members->is_array() ? members->size() : 0;
  const auto directly = data.find("directly");
  return fmt::format("round {}  loss {}  {}  {}  {}{}", count(data, "round"),
                     format_loss(number(data, "mean_loss_nats")), format_number_of(count(data, "tokens"), "token"),
                     format_duration(number(data, "seconds")), format_number_of(islands, "island"),
                     directly != data.end() && *directly == true ? ", directly" : "");
}

std::string evaluated(const nlohmann::json& data) {
  std::string line = fmt::format("{} after round {}:", told::line(data, "task"), count(data, "outer_step"));
  const auto figures = data.find("figures");
  if (figures == data.end() || !figures->is_object()) return line;
  for (const auto& [metric, value] : figures->items()) {
    if (value.is_number()) line += fmt::format(" {} {:.4g}", printable(metric), value.get<double>());
  }
  return line;
}

}  // namespace

std::string HubServeLines::name_of(const nlohmann::json& data) const {
  const std::string name = told::line(data, "name"), island = told::line(data, "island");
  if (!name.empty()) return name;
  const auto known = names_.find(island);
  return known != names_.end() ? known->second : island;
}

std::string HubServeLines::line_of(std::string_view event, const nlohmann::json& data) {
  if (!data.is_object()) return {};
  const std::string name = name_of(data);
  if (event == "round.commit") return committed(data);
  if (event == "round.hashes") {
    const auto equal = data.find("equal");
    return equal != data.end() && *equal == false
               ? fmt::format("after round {} islands hold DIFFERENT outer states", count(data, "outer_step"))
               : "";
  }
  if (event == "island.joined") {
    if (names_.size() < kMaxNames) names_[told::line(data, "island")] = name;
    return name + " is here";
  }
  if (event == "island.left") return name + " left" + reason_of(data);
  if (event == "island.dead") return name + " is gone" + reason_of(data);
  if (event == "island.paused") return name + " pauses";
  if (event == "island.left_out") {
    return fmt::format("round {} goes on without the work of {}{}", count(data, "round"), name, reason_of(data));
  }
  if (event == "attempt.failed") {
    return fmt::format("round {}: attempt {} failed{}; it is tried again", count(data, "round"), count(data, "attempt"),
                       reason_of(data));
  }
  if (event == "validation") {
    return fmt::format("validation loss {} after round {}", format_loss(number(data, "loss_nats")),
                       count(data, "outer_step"));
  }
  if (event == "validation.doubted") {
    return fmt::format("{} says a validation loss of {} after round {}, which nobody else finds", name,
                       format_loss(number(data, "loss_nats")), count(data, "outer_step"));
  }
  if (event == "evaluation") return evaluated(data);
  if (event == "run.standstill") return "the run stands still: " + told::line(data, "text");
  if (event == "run.goes_on") return "the run goes on";
  if (event == "run.rolled_back") {
    return fmt::format("the run went back from outer step {} to {}{}", count(data, "from"), count(data, "to"),
                       reason_of(data));
  }
  if (event == "run.fast_forwarded") {
    return fmt::format("{} showed commits that this hub did not have: on from outer step {} to {}", name,
                       count(data, "from"), count(data, "to"));
  }
  if (event == "state.uploaded") {
    const std::string error = told::line(data, "error");
    return error.empty() ? fmt::format("outer step {} is in the object store", count(data, "outer_step"))
                         : fmt::format("outer step {} could not be published: {}", count(data, "outer_step"), error);
  }
  if (event == "run.finished") return fmt::format("the run is finished, after round {}", count(data, "outer_step"));
  return {};
}

}  // namespace atl
