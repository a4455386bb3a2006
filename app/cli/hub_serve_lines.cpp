#include "app/cli/hub_serve_lines.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/text.h"
#include "net/base/round_words.h"
#include "net/control/told.h"

namespace atl {
namespace {

using told::count;

std::uint64_t round_of(const nlohmann::json& data) {
  return round_number(static_cast<std::uint32_t>(count(data, "round")));
}

// "after round 12"
std::string state_of(const nlohmann::json& data, const char* key = "outer_step") {
  return after_round(static_cast<std::uint32_t>(count(data, key)));
}

double number(const nlohmann::json& data, const char* key) { return told::number(data, key).value_or(0); }

std::string reason_of(const nlohmann::json& data) {
  const std::string reason = told::line(data, "reason");
  return reason.empty() ? "" : ": " + reason;
}

std::string committed(const nlohmann::json& data) {
  const auto members = data.find("members");
  const std::size_t islands = members != data.end() && members->is_array() ? members->size() : 0;
  const auto directly = data.find("directly");
  return fmt::format("round {}  loss {}  {}  {}  {}{}", round_of(data), format_loss(number(data, "mean_loss_nats")),
                     format_number_of(count(data, "tokens"), "token"), format_duration(number(data, "seconds")),
                     format_number_of(islands, "island"),
                     directly != data.end() && *directly == true ? ", directly" : "");
}

std::string evaluated(const nlohmann::json& data) {
  std::string line = fmt::format("{} {}:", told::line(data, "task"), state_of(data));
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
               ? fmt::format("{} islands hold DIFFERENT outer states", state_of(data))
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
    return fmt::format("round {} goes on without the work of {}{}", round_of(data), name, reason_of(data));
  }
  if (event == "attempt.failed") {
    return fmt::format("round {}: attempt {} failed{}; it is tried again", round_of(data), count(data, "attempt"),
                       reason_of(data));
  }
  if (event == "validation") {
    return fmt::format("validation loss {} {}", format_loss(number(data, "loss_nats")), state_of(data));
  }
  if (event == "validation.doubted") {
    return fmt::format("{} says a validation loss of {} {}, which nobody else finds", name,
                       format_loss(number(data, "loss_nats")), state_of(data));
  }
  if (event == "evaluation") return evaluated(data);
  if (event == "run.standstill") return "the run stands still: " + told::line(data, "text");
  if (event == "run.goes_on") return "the run goes on";
  if (event == "run.rolled_back") {
    return fmt::format("the run went back from the state {} to that {}{}", state_of(data, "from"), state_of(data, "to"),
                       reason_of(data));
  }
  if (event == "run.fast_forwarded") {
    return fmt::format("{} showed commits that this hub did not have: on from the state {} to that {}", name,
                       state_of(data, "from"), state_of(data, "to"));
  }
  if (event == "state.uploaded") {
    const std::string error = told::line(data, "error");
    return error.empty() ? fmt::format("the state {} is in the object store", state_of(data))
                         : fmt::format("the state {} could not be published: {}", state_of(data), error);
  }
  if (event == "run.finished") return fmt::format("the run is finished, {}", state_of(data));
  return {};
}

}  // namespace atl
