#include "net/control/events.h"

#include <array>
#include <type_traits>
#include <utility>

#include "net/control/event_fields.h"
#include "net/control/json_fields.h"

namespace atl {
namespace {

constexpr std::size_t kMaxEventName = 64;

template <class Event>
Result<ControlEvent> read_event(const nlohmann::json& data) {
  ATOLL_ASSIGN_OR_RETURN(Event event, read_fields<Event>(data, Event::kName.data()));
  return ControlEvent(std::move(event));
}

Result<ControlEvent> read_sync_phase(const nlohmann::json& data) {
  const auto phase = data.is_object() ? data.find(kPhaseField) : data.end();
  if (!data.is_object() || phase == data.end()) return read_event<event::Syncing>(data);
  return *phase == kAttemptBeginsWord ? read_event<event::AttemptBegin>(data) : read_event<event::SyncPhase>(data);
}

Result<ControlEvent> read_check_result(const nlohmann::json& data) {
  const bool is_row = data.is_object() && data.contains("row");
  return is_row ? read_event<event::CheckRowDone>(data) : read_event<event::CheckDone>(data);
}

// The alternatives of which each name has one; the others are told apart above.
template <class Event>
constexpr bool shares_its_name() {
  return Event::kName == event::SyncPhase::kName || Event::kName == event::CheckDone::kName;
}

template <std::size_t kAt = 0>
Result<ControlEvent> read_named(std::string_view name, const nlohmann::json& data) {
  if constexpr (kAt == std::variant_size_v<ControlEvent>) {
    return ControlEvent(event::Unknown{std::string(name.substr(0, kMaxEventName)), dump_json(data)});
  } else {
    using Candidate = std::variant_alternative_t<kAt, ControlEvent>;
    if constexpr (!shares_its_name<Candidate>() && !std::is_same_v<Candidate, event::Unknown>) {
      if (name == Candidate::kName) return read_event<Candidate>(data);
    }
    return read_named<kAt + 1>(name, data);
  }
}

template <class Event>
concept HasState = requires(Event event) {
  { event.state } -> std::same_as<NodeState&>;
};

}  // namespace

std::string_view name_of(const ControlEvent& event) {
  if (const auto* unknown = std::get_if<event::Unknown>(&event)) return unknown->name;
  return std::visit([](const auto& e) { return std::remove_cvref_t<decltype(e)>::kName; }, event);
}

nlohmann::json data_of(const ControlEvent& event) {
  return std::visit(
      [](const auto& e) -> nlohmann::json {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(e)>, event::Unknown>) {
          auto data = parse_control_json(e.data);
          return data.ok() ? std::move(*data) : nlohmann::json();
        } else {
          return ControlWriter::object_of(e);
        }
      },
      event);
}

Result<ControlEvent> decode_event(std::string_view name, const nlohmann::json& data) {
  if (name == event::SyncPhase::kName) return read_sync_phase(data);
  if (name == event::CheckDone::kName) return read_check_result(data);
  return read_named(name, data);
}

NodeState* state_in(ControlEvent& event) {
  return std::visit(
      [](auto& e) -> NodeState* {
        if constexpr (HasState<std::remove_cvref_t<decltype(e)>>) {
          return &e.state;
        } else {
          return nullptr;
        }
      },
      event);
}

const NodeState* state_in(const ControlEvent& event) { return state_in(const_cast<ControlEvent&>(event)); }

}  // namespace atl
