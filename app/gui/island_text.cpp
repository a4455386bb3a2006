#include "app/gui/island_text.h"

#include <algorithm>
#include <array>

#include <QCoreApplication>

#include "app/core/exit_words.h"
#include "app/core/node.h"
#include "app/core/pause_words.h"
#include "app/gui/look/format.h"
#include "net/base/round_words.h"

namespace atl::text {
namespace {

struct IslandText {
  Q_DECLARE_TR_FUNCTIONS(IslandText)
};

QString plain(const std::string& text) { return QString::fromStdString(text); }

// The states of `state.get`.
struct Word {
  IslandPhase phase;
  const char* icon;
  Tone tone;
  const char* word;
};
constexpr std::array kWords{
    Word{IslandPhase::kUnjoined, "waiting", Tone::kNeutral, QT_TRANSLATE_NOOP("IslandText", "Not joined")},
    Word{IslandPhase::kJoining, "joining", Tone::kAccent, QT_TRANSLATE_NOOP("IslandText", "Joining")},
    Word{IslandPhase::kRecovering, "recovering", Tone::kAccent, QT_TRANSLATE_NOOP("IslandText", "Recovering")},
    Word{IslandPhase::kWaiting, "waiting", Tone::kAccent, QT_TRANSLATE_NOOP("IslandText", "Waiting")},
    Word{IslandPhase::kTraining, "play", Tone::kGood, QT_TRANSLATE_NOOP("IslandText", "Training")},
    Word{IslandPhase::kSyncing, "sync", Tone::kGood, QT_TRANSLATE_NOOP("IslandText", "Synchronising")},
    Word{IslandPhase::kFinishing, "finish", Tone::kAccent, QT_TRANSLATE_NOOP("IslandText", "Finishing")},
    Word{IslandPhase::kPaused, "pause", Tone::kNeutral, QT_TRANSLATE_NOOP("IslandText", "Paused")},
    Word{IslandPhase::kReconnecting, "warning", Tone::kWarning, QT_TRANSLATE_NOOP("IslandText", "Reconnecting")},
    Word{IslandPhase::kError, "error", Tone::kBad, QT_TRANSLATE_NOOP("IslandText", "Error")},
    Word{IslandPhase::kStopped, "stop", Tone::kNeutral, QT_TRANSLATE_NOOP("IslandText", "Stopped")},
};

// Of `step_seconds`; the wait for data is told beside them.
struct StepWord {
  std::optional<double> StepTimes::*seconds;
  const char* word;
};
constexpr std::array kStepWords{
    StepWord{&StepTimes::matmul, QT_TRANSLATE_NOOP("IslandText", "matrix products %1")},
    StepWord{&StepTimes::attention, QT_TRANSLATE_NOOP("IslandText", "attention %1")},
    StepWord{&StepTimes::elementwise, QT_TRANSLATE_NOOP("IslandText", "elementwise %1")},
    StepWord{&StepTimes::loss, QT_TRANSLATE_NOOP("IslandText", "loss %1")},
    StepWord{&StepTimes::optimiser, QT_TRANSLATE_NOOP("IslandText", "optimiser %1")},
    StepWord{&StepTimes::communication, QT_TRANSLATE_NOOP("IslandText", "communication %1")},
};

// Of a connection that does not stand; empty: it does.
std::optional<StateWord> link_word(Node& node) {
  switch (node.link().state()) {
    case LinkState::kConnecting: return StateWord{"connecting", Tone::kNeutral, IslandText::tr("Connecting")};
    case LinkState::kNoAgent: return StateWord{"stop", Tone::kNeutral, IslandText::tr("No agent")};
    case LinkState::kLost: return StateWord{"offline", Tone::kWarning, IslandText::tr("Connection lost")};
    case LinkState::kRefused: return StateWord{"error", Tone::kBad, IslandText::tr("Refused")};
    case LinkState::kEnded: return StateWord{"recording", Tone::kNeutral, IslandText::tr("Recording ended")};
    case LinkState::kConnected: break;
  }
  return std::nullopt;
}

Advice link_advice(Node& node) {
  const QString problem = plain(node.link().problem());
  switch (node.link().state()) {
    case LinkState::kNoAgent:
      if (std::holds_alternative<LocalNode>(node.address())) {
        return {Tone::kWarning, IslandText::tr("No agent runs on this machine, so nothing trains here."),
                IslandText::tr("Start it here, or in a terminal with: atoll agent"), Advice::Action::kStartAgent};
      }
      return {Tone::kWarning, IslandText::tr("No agent runs on that machine, so nothing trains there."),
              IslandText::tr("Start it there with: atoll service install"), Advice::Action::kReconnect, problem};
    case LinkState::kRefused:
      return {Tone::kBad, IslandText::tr("The agent cannot be used."), {}, Advice::Action::kReconnect, problem};
    case LinkState::kEnded:
      return {Tone::kNeutral, IslandText::tr("The recording is over: this is how it ended."), problem,
              Advice::Action::kReplay};
    default:
      return {Tone::kWarning,
              IslandText::tr("The connection is lost. It is tried again by itself; training goes on without it."),
              {},
              Advice::Action::kReconnect,
              problem};
  }
}

// The trainer's end that the island's error speaks of; null: it is about something else.
const TrainerExitView* exit_behind(const NodeState& state) {
  const auto& exit = state.agent.last_exit;
  if (!exit || exit_was_meant(exit->cause)) return nullptr;
  const std::string& error = state.island.error;
  return error.empty() || (!exit->text.empty() && error.starts_with(exit->text)) ? &*exit : nullptr;
}

// The hub lets it in no more: its organiser removed it, for instance.
bool was_refused(const NodeState& state) {
  const TrainerExitView* exit = exit_behind(state);
  return state.island.state == IslandPhase::kError && exit != nullptr && exit->cause == ExitCause::kRefused;
}

// By its cause in the person's language, and beneath that as the agent said it.
Advice ended_advice(const NodeState& state, Tone tone) {
  Advice advice{tone, plain(state.island.error), {}, Advice::Action::kShowLogs};
  if (const TrainerExitView* exit = exit_behind(state)) {
    const ExitWords words = exit_words(exit->cause);
    advice.sentence = words.sentence;
    advice.what_to_do = words.advice;
    advice.details = plain(exit->text);
    if (exit->cause == ExitCause::kRefused) advice.action = Advice::Action::kJoin;
  }
  if (advice.sentence.isEmpty()) advice.sentence = IslandText::tr("The trainer ended.");
  QStringList what{advice.what_to_do};
  if (state.agent.restart_in_seconds) {
    what << IslandText::tr("It is started again in %1.").arg(duration(*state.agent.restart_in_seconds));
  }
  if (advice.what_to_do.isEmpty()) what << IslandText::tr("The log says more.");
  what.removeAll(QString());
  advice.what_to_do = what.join(' ');
  return advice;
}

// By the rule that pauses longest, and beneath that all of them as the agent says them, with what is amiss besides.
Advice paused_advice(const AgentView& agent) {
  QStringList all;
  for (const PausedBy& pause : agent.paused_by) all << plain(sentence_of(pause));
  if (!agent.warning.empty()) all << plain(agent.warning);
  return Advice{Tone::kNeutral, pause_words(agent.paused_by.front()),
                IslandText::tr("It goes on by itself. The machine is free for other work meanwhile."),
                Advice::Action::kNone, all.join('\n')};
}

std::optional<Advice> state_advice(const NodeState& state) {
  const IslandPhase phase = state.island.state;
  if (phase == IslandPhase::kError || (phase == IslandPhase::kReconnecting && exit_behind(state) != nullptr)) {
    return ended_advice(state, phase == IslandPhase::kError ? Tone::kBad : Tone::kWarning);
  }
  const QString error = plain(state.island.error);
  if (phase == IslandPhase::kReconnecting) {
    return Advice{Tone::kWarning, error.isEmpty() ? IslandText::tr("The hub does not answer.") : error,
                  IslandText::tr("It is tried again by itself."), Advice::Action::kShowLogs};
  }
  if (!error.isEmpty()) return Advice{Tone::kWarning, error, {}, Advice::Action::kShowLogs};
  if (!state.agent.paused_by.empty()) return paused_advice(state.agent);
  if (!state.agent.warning.empty()) {
    return Advice{Tone::kWarning, plain(state.agent.warning), {}, Advice::Action::kShowLogs};
  }
  if (phase == IslandPhase::kPaused) {
    const auto& until = state.agent.paused_until;
    return Advice{Tone::kNeutral,
                  until ? IslandText::tr("Paused until %1.").arg(date_time(static_cast<double>(*until)))
                        : IslandText::tr("Paused until you resume."),
                  IslandText::tr("The machine is free for other work meanwhile.")};
  }
  if (phase == IslandPhase::kWaiting && state.island.islands_live < state.island.islands_needed.value_or(0)) {
    return Advice{Tone::kNeutral, IslandText::tr("Waiting for more islands."),
                  IslandText::tr("%1 of %2 that a round needs are here.")
                      .arg(count(state.island.islands_live), count(*state.island.islands_needed))};
  }
  if (phase == IslandPhase::kWaiting && state.island.islands_total > 0) {
    return Advice{Tone::kNeutral, IslandText::tr("Waiting for the next round to begin."),
                  IslandText::tr("%1 of %2 islands are here.")
                      .arg(count(state.island.islands_live), count(state.island.islands_total))};
  }
  if (phase == IslandPhase::kFinishing || state.agent.followed == Wish::kFinish) {
    return Advice{Tone::kNeutral, IslandText::tr("This island completes the round with the others, then it leaves."),
                  IslandText::tr("Resume takes that back.")};
  }
  if (phase == IslandPhase::kStopped)
    return Advice{Tone::kNeutral, IslandText::tr("Nothing trains here until you resume."), {}};
  return std::nullopt;
}

QString hub_line(const std::optional<HubReach>& hub) {
  if (!hub) return QString("\u2013");
  if (hub->up) {
    return hub->since ? IslandText::tr("hub reachable since %1").arg(date_time(*hub->since))
                      : IslandText::tr("hub reachable");
  }
  const QString lost = hub->since ? IslandText::tr("hub not reachable since %1").arg(date_time(*hub->since))
                                  : IslandText::tr("hub not reachable");
  return hub->cause.empty() ? lost : QString("%1: %2").arg(lost, plain(hub->cause));
}

QString transfer_line(const event::Transfer& transfer) {
  const QString what =
      transfer.what == Download::kData ? IslandText::tr("the data") : IslandText::tr("the model's state");
  if (transfer.status == DownloadStatus::kFailed)
    return IslandText::tr("fetching %1 failed: %2").arg(what, plain(transfer.text));
  QString line =
      IslandText::tr("fetching %1: %2 of %3")
          .arg(what, bytes(static_cast<double>(transfer.done_bytes)), bytes(static_cast<double>(transfer.total_bytes)));
  if (transfer.bytes_per_second) line += ", " + link_rate(*transfer.bytes_per_second);
  if (transfer.seconds_left) line += IslandText::tr(", %1 left").arg(duration(*transfer.seconds_left));
  return line;
}

// Steps are at stake only while a trainer has taken some.
bool has_steps(const NodeState& state) { return state.island.inner_step > 0 && state.island.pid != 0; }

QString round_left(const NodeState& state) {
  const auto& left = state.island.next_sync_seconds;
  return left ? IslandText::tr("about %1").arg(duration(*left)) : IslandText::tr("its end is not known yet");
}

}  // namespace

StateWord state_word(Node& node) {
  if (auto word = link_word(node)) return *word;
  if (!node.state()) return {"connecting", Tone::kNeutral, IslandText::tr("Loading")};
  if (!node.live()) return {"warning", Tone::kWarning, IslandText::tr("Not answering")};
  if (was_refused(*node.state())) return {"error", Tone::kBad, IslandText::tr("Not a member")};
  for (const Word& word : kWords) {
    if (node.state()->island.state == word.phase) return {word.icon, word.tone, IslandText::tr(word.word)};
  }
  return {"info", Tone::kNeutral, IslandText::tr("Unknown")};  // of a newer agent
}

QString age(Node& node) {
  const auto age = node.age();
  if (!age || !node.state()) return {};
  if (node.live() && *age < std::chrono::seconds(2)) return IslandText::tr("Updated now");
  return IslandText::tr("Last update %1").arg(ago(age->count()));
}

std::optional<Advice> advice(Node& node) {
  const LinkState link = node.link().state();
  if (link == LinkState::kConnecting) return std::nullopt;
  if (link != LinkState::kConnected) return link_advice(node);
  if (!node.state()) return std::nullopt;
  if (!node.live()) {
    return Advice{Tone::kWarning, IslandText::tr("The agent does not answer; it is asked again every second."),
                  IslandText::tr("If this lasts, it is suspended or hangs. What is shown is old."),
                  Advice::Action::kShowLogs};
  }
  return state_advice(*node.state());
}

QString action_word(Advice::Action action) {
  switch (action) {
    case Advice::Action::kNone: break;
    case Advice::Action::kStartAgent: return IslandText::tr("&Start the agent");
    case Advice::Action::kReconnect: return IslandText::tr("&Try now");
    case Advice::Action::kReplay: return IslandText::tr("Play &again");
    case Advice::Action::kShowLogs: return IslandText::tr("Show the &log");
    case Advice::Action::kJoin: return IslandText::tr("&Join again\u2026");
  }
  return {};
}

QString pause_cost(const NodeState& state) {
  if (!has_steps(state)) return IslandText::tr("Nothing is lost by a pause now.");
  return IslandText::
      tr("Resumed within this round (%1), nothing is lost. Later, the %2 steps that this island took in round %3 are "
         "lost; everything of earlier rounds stays.")
          .arg(round_left(state), count(state.island.inner_step), count(round_number(state.island.round)));
}

QString finish_cost(const NodeState& state) {
  if (!has_steps(state)) return IslandText::tr("Nothing of this round is under way here: this island leaves at once.");
  return IslandText::tr("This island completes round %1 with the others (%2), then it leaves. Nothing is lost.")
      .arg(count(round_number(state.island.round)), round_left(state));
}

QString stop_cost(const NodeState& state) {
  if (!has_steps(state)) return IslandText::tr("Nothing is lost by stopping now.");
  return IslandText::tr("The %1 steps that this island took in round %2 are lost. Finish completes the round first.")
      .arg(count(state.island.inner_step), count(round_number(state.island.round)));
}

QString step(const NodeState& state) {
  if (state.island.inner_steps == 0) return IslandText::tr("no step yet");
  return IslandText::tr("step %1 of %2").arg(count(state.island.inner_step), count(state.island.inner_steps));
}

QString accepted(const NodeState& state) {
  return state.island.accepted_round
             ? IslandText::tr("in round %1").arg(count(round_number(*state.island.accepted_round)))
             : IslandText::tr("none yet");
}

QString network(Node& node) {
  QStringList lines{hub_line(node.uplink().hub())};
  for (const event::Transfer& transfer : node.uplink().transfers()) lines << transfer_line(transfer);
  const auto& ring = node.sync().progress();
  if (node.sync().active() && ring) {
    lines << IslandText::tr("sends %1, receives %2")
                 .arg(link_rate(ring->sent_bytes_per_second), link_rate(ring->received_bytes_per_second));
  }
  return lines.join('\n');
}

std::optional<double> computing_share(const NodeState& state) {
  const double seconds = state.island.inner_seconds + state.island.sync_seconds;
  return seconds > 0 ? std::optional(state.island.inner_seconds / seconds) : std::nullopt;
}

QString step_time(const NodeState& state) {
  const std::optional<StepTimes>& times = state.island.step_seconds;
  if (!times || !(times->total > 0)) return QString("\u2013");
  QString whole = duration(times->total);
  if (state.island.flops_per_second) {
    whole += QString(" \u00B7 %1FLOP/s").arg(scaled(*state.island.flops_per_second));
  }
  // What is less than that is in the rest; a part is not torn where the line is broken.
  constexpr double kLeastShare = 0.05;
  QStringList parts;
  double rest = 1;
  const auto add = [&](const QString& word, double share, double least) {
    if (share < least) return;
    parts << word.arg(percent(share)).replace(' ', QChar::Nbsp);
    rest -= share;
  };
  for (const StepWord& part : kStepWords) {
    add(IslandText::tr(part.word), ((*times).*part.seconds).value_or(0) / times->total, kLeastShare);
  }
  add(IslandText::tr("waiting for data %1"), times->data / times->total, kLeastShare);
  if (times->matmul) add(IslandText::tr("other %1"), rest, 0.005);
  return parts.isEmpty() ? whole : whole + "\n" + parts.join(", ");
}

}  // namespace atl::text
