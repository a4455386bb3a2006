// What the desktop app says of an island, translated, with icon and tone: its state, how old that is, what to do, what
// a wish costs. Pure functions of a node; GUI thread.
#pragma once

#include <optional>

#include <QString>

#include "app/gui/look/colours.h"
#include "net/control/node_state.h"

namespace atl {

class Node;

namespace text {

// An icon and a word, never colour alone.
struct StateWord {
  const char* icon = "info";  // of resources/icons
  Tone tone = Tone::kNeutral;
  QString word;
};
StateWord state_word(Node& node);

// "Updated now", "Last update 12 s ago"; empty before the first.
QString age(Node& node);

// What a person needs to know beyond the figures: what happened, why, what to do; nothing when all is well.
struct Advice {
  enum class Action { kNone, kStartAgent, kReconnect, kReplay, kShowLogs, kJoin };
  Tone tone = Tone::kNeutral;
  QString sentence;
  QString what_to_do;
  Action action = Action::kNone;
  QString details = {};  // as another program said it
};
std::optional<Advice> advice(Node& node);
QString action_word(Advice::Action action);

// What it costs, said before it is done.
QString pause_cost(const NodeState& state);
QString finish_cost(const NodeState& state);
QString stop_cost(const NodeState& state);

QString step(const NodeState& state);      // "step 371 of 500"
QString accepted(const NodeState& state);  // "in round 41", "none yet"
// "Hub reachable since 14:05", what is fetched, what the ring carries: a line each.
QString network(Node& node);
std::optional<double> computing_share(const NodeState& state);
// How long and how fast, and on the next line where most of that time goes; a dash before the first step.
QString step_time(const NodeState& state);

}  // namespace text
}  // namespace atl
