#include "app/core/alert_list.h"

#include <algorithm>
#include <cmath>

#include "app/core/exit_words.h"
#include "net/control/told.h"

namespace atl {
namespace {

using Level = Alert::Level;

constexpr std::size_t kMaxTextBytes = 2048;

QString shown(const std::string& text) { return QString::fromStdString(text.substr(0, kMaxTextBytes)); }

}  // namespace

void AlertList::add(Level level, const QString& text, double time, bool news) {
  const Alert alert{level, text.toStdString(), time};
  // The same once more takes its place.
  std::erase_if(alerts_, [&](const Alert& old) { return old.text == alert.text && old.level == alert.level; });
  const auto at = std::ranges::find_if(alerts_, [&](const Alert& old) { return old.time <= alert.time; });
  alerts_.insert(at, alert);
  if (alerts_.size() > kMaxAlerts) alerts_.pop_back();
  if (news) on_news_(alert);
}

void AlertList::take(const std::optional<NodeState>& before, const NodeState& now, double time) {
  const bool news = before.has_value();
  const AgentView none{}, &then = before ? before->agent : none;
  const auto& exit = now.agent.last_exit;
  const bool new_exit = exit && (!then.last_exit || exit->time > then.last_exit->time);
  if (new_exit && exit->cause == "run_finished") {
    add(Level::kInfo, tr("The run has finished."), exit->time, news);
  } else if (new_exit && exit->cause == "finished") {
    add(Level::kInfo, tr("Finished: the round is completed, and this machine trains no more."), exit->time, news);
  } else if (new_exit && !exit_was_meant(exit->cause)) {
    QString text = exit_words(exit->cause).sentence;
    if (!exit->text.empty()) text += "\n" + shown(exit->text);
    add(Level::kError, text, exit->time, news);
  }
  const std::string& error = now.island.error;
  const bool new_error = !error.empty() && (!before || before->island.error != error);
  // While it waits to start again, the error counts seconds: the exit has been told.
  if (new_error && !new_exit && !now.agent.restart_in_seconds) {
    add(now.island.state == "error" ? Level::kError : Level::kWarning, shown(error), time, news);
  }
  if (!now.agent.warning.empty() && now.agent.warning != then.warning) {
    add(Level::kWarning, shown(now.agent.warning), time, news);
  }
}

void AlertList::take(const ControlEvent& event, const NodeState* state) {
  if (!event.data.is_object()) return;
  const bool news = !event.kept;
  if (event.name == "gpu.alert") return takeGpuAlert(event);
  if (event.name == "join.done") return takeJoin(event);
  if (event.name == "sync.phase" && told::text(event.data, "phase") == "failed") {
    const auto round = told::number(event.data, "round");
    add(Level::kWarning,
        tr("An attempt at averaging round %1 failed; it is tried again.")
            .arg(static_cast<qulonglong>(std::max(0.0, round.value_or(0)))),
        event.time, news);
  }
  if (event.name == "sync.done" && state != nullptr && state->island.outer_step > 0) {
    const std::uint32_t round = state->island.outer_step - 1;
    // An island that came in the middle of it has no part in it.
    const bool worked = state->island.accepted_round.has_value();
    if (worked && *state->island.accepted_round < round) {
      add(Level::kWarning, tr("Round %1 was averaged without this machine's contribution.").arg(round), event.time,
          news);
    }
  }
}

void AlertList::takeGpuAlert(const ControlEvent& event) {
  const bool news = !event.kept;
  if (told::text(event.data, "kind") == "power") {
    return add(Level::kWarning,
               tr("The GPUs' power limit is not in force: %1").arg(shown(told::text(event.data, "text"))), event.time,
               news);
  }
  const auto gpu = told::number(event.data, "gpu"), celsius = told::number(event.data, "celsius"),
             cap = told::number(event.data, "cap_celsius");
  if (!gpu || !celsius || !cap) return;
  const bool pauses = told::yes(event.data, "pauses");
  add(Level::kWarning,
      pauses ? tr("GPU %1 is at %2 \u00B0"
                  "C, above its limit of %3 \u00B0"
                  "C: training pauses until it is cooler.")
                   .arg(*gpu)
                   .arg(std::round(*celsius))
                   .arg(*cap)
             : tr("GPU %1 is at %2 \u00B0"
                  "C again, its limit is %3 \u00B0"
                  "C: training goes on.")
                   .arg(*gpu)
                   .arg(std::round(*celsius))
                   .arg(*cap),
      event.time, news);
}

void AlertList::takeJoin(const ControlEvent& event) {
  if (told::yes(event.data, "ok")) {
    const std::string text = told::text(event.data, "text");
    return add(Level::kInfo, text.empty() ? tr("Joined.") : shown(text), event.time, !event.kept);
  }
  if (told::text(event.data, "code") == to_string(ErrorCode::kAborted)) return;  // cancelled
  add(Level::kError, tr("Joining failed: %1").arg(shown(told::text(event.data, "message"))), event.time, !event.kept);
}

}  // namespace atl
