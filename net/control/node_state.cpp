#include "net/control/node_state.h"

#include <fmt/format.h>

#include "net/control/state_fields.h"

namespace atl {
namespace {

// Takes the numbers of a sample that may be drawn over time.
class FigureList {
 public:
  static constexpr bool kReads = false;
  std::vector<std::pair<const char*, double>> figures;

  template <class T>
  void known(const char* name, const std::optional<T>& value) {
    if (value) figures.emplace_back(name, static_cast<double>(*value));
  }
  template <class T>
  void told(const char*, const T&) {}
  void told_if_any(const char*, const std::string&) {}
};

}  // namespace

nlohmann::json IslandState::to_json() const { return ControlWriter::object_of(*this); }

Result<IslandState> IslandState::from_json(const nlohmann::json& json) {
  return read_fields<IslandState>(json, "the trainer's state");
}

nlohmann::json to_json(const NodeState& state) { return ControlWriter::object_of(state); }

Result<NodeState> node_state_from_json(const nlohmann::json& json) { return read_fields<NodeState>(json, "the state"); }

std::string sentence_of(const PausedBy& pause) {
  std::string text = pause.why;
  if (!pause.until.empty()) text += ", until " + pause.until;
  // A rule that this program does not know has its own words all the same.
  if (pause.rule != OwnersRule::kUnknown) text += fmt::format(" ({})", word_of(pause.rule));
  return pause.advice.empty() ? text : fmt::format("{}; {}", text, pause.advice);
}

std::vector<std::pair<const char*, double>> changing_figures(const GpuSample& gpu) {
  FigureList list;
  fields(list, const_cast<GpuSample&>(gpu));
  std::erase_if(list.figures,
                [](const auto& figure) { return std::string_view(figure.first) == "memory_total_bytes"; });
  return list.figures;
}

}  // namespace atl
