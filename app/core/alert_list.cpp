#include "app/core/alert_list.h"

#include <algorithm>
#include <cmath>

#include "app/core/exit_words.h"
#include "app/core/pause_words.h"
#include "net/base/round_words.h"

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
  if (new_exit && exit->cause == ExitCause::kRunFinished) {
    add(Level::kInfo, tr("The run has finished."), exit->time, news);
  } else if (new_exit && exit->cause == ExitCause::kFinished) {
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
    add(now.island.state == IslandPhase::kError ? Level::kError : Level::kWarning,
        tr("The island reports: %1").arg(shown(error)), time, news);
  }
  if (!now.agent.warning.empty() && now.agent.warning != then.warning) {
    add(Level::kWarning, tr("The agent reports: %1").arg(shown(now.agent.warning)), time, news);
  }
  // Each when it begins: its figures change all the time. Of a hot GPU gpu.alert tells, with its own.
  for (const PausedBy& pause : now.agent.paused_by) {
    if (pause.rule == OwnersRule::kGpuTemperature) continue;
    if (std::ranges::find(then.paused_by, pause.rule, &PausedBy::rule) != then.paused_by.end()) continue;
    add(Level::kWarning, pause_words(pause), time, news);
  }
}

void AlertList::take(const HeardEvent& event) {
  const bool news = !event.kept;
  std::visit(
      Overloaded{[&](const event::GpuAlert& e) { takeGpuAlert(e, event.time, news); },
                 [&](const event::JoinDone& e) { takeJoin(e, event.time, news); },
                 [&](const event::SyncPhase& e) {
                   if (e.part != SyncPart::kFailed) return;
                   add(Level::kWarning,
                       tr("An attempt at averaging round %1 failed; it is tried again.").arg(round_number(e.round)),
                       event.time, news);
                 },
                 [&](const event::SyncDone& e) { takeRoundEnd(e.state.island, event.time, news); }, [](const auto&) {}},
      event.what);
}

void AlertList::takeRoundEnd(const IslandState& island, double time, bool news) {
  // An island that came in the middle of it has no part in it.
  if (island.outer_step == 0 || !island.accepted_round || *island.accepted_round >= island.outer_step - 1) return;
  add(Level::kWarning, tr("Round %1 was averaged without this machine's contribution.").arg(island.outer_step), time,
      news);
}

void AlertList::takeGpuAlert(const event::GpuAlert& alert, double time, bool news) {
  if (alert.kind == GpuAlertKind::kPower) {
    return add(Level::kWarning, tr("The GPUs' power limit is not in force: %1").arg(shown(alert.text)), time, news);
  }
  if (!alert.gpu || !alert.celsius || !alert.cap_celsius) return;
  add(Level::kWarning,
      alert.pauses.value_or(false) ? tr("GPU %1 is at %2 \u00B0"
                                        "C, above its limit of %3 \u00B0"
                                        "C: training pauses until it is cooler.")
                                         .arg(*alert.gpu)
                                         .arg(std::round(*alert.celsius))
                                         .arg(*alert.cap_celsius)
                                   : tr("GPU %1 is at %2 \u00B0"
                                        "C again, its limit is %3 \u00B0"
                                        "C: training goes on.")
                                         .arg(*alert.gpu)
                                         .arg(std::round(*alert.celsius))
                                         .arg(*alert.cap_celsius),
      time, news);
}

void AlertList::takeJoin(const event::JoinDone& done, double time, bool news) {
  if (done.ok) return add(Level::kInfo, (tr("Joined.") + "\n" + shown(done.text)).trimmed(), time, news);
  if (done.code == to_string(ErrorCode::kAborted)) return;  // cancelled
  add(Level::kError, tr("Joining failed: %1").arg(shown(done.message)), time, news);
}

}  // namespace atl
