#include "app/agent/owners_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/agent/wish.h"

namespace atl {
namespace {

constexpr int kDay = 24 * 60;
constexpr double kCalmShare = 0.75;  // of the load that pauses, below which it is over

int next_begin(const std::vector<TrainingHours>& hours, int minute_of_day) {
  const auto wait = [&](const TrainingHours& span) { return (span.begin_minute - minute_of_day + kDay) % kDay; };
  return std::ranges::min(hours, {}, wait).begin_minute;
}

std::string span_text(std::int64_t seconds) {
  return seconds % 60 == 0 ? fmt::format("{} min", seconds / 60) : fmt::format("{} s", seconds);
}

}  // namespace

void OwnersRules::look(Rule& rule, bool causes, std::int64_t seconds, std::string text) const {
  if (causes) {
    if (!rule.since) rule.since = seconds;
    rule.last_cause = seconds;
    rule.text = std::move(text);
  } else if (rule.since && seconds - rule.last_cause >= settings_.calm_seconds) {
    rule.since.reset();
  }
}

void OwnersRules::next(const MachineReading& reading, std::int64_t seconds) {
  const std::string calm = span_text(settings_.calm_seconds);
  look(rules_[0], settings_.battery && reading.on_battery.value_or(false), seconds,
       fmt::format("the machine runs on its battery, until {} after it is plugged in (rules.battery)", calm));
  look(rules_[1], settings_.metered && reading.metered.value_or(false), seconds,
       fmt::format("the network is metered, until {} after it no longer is (rules.metered)", calm));
  if (settings_.idle_seconds) {
    const bool used = reading.unused_seconds && *reading.unused_seconds < *settings_.idle_seconds;
    // Its calm time is the owner's own.
    if (reading.unused_seconds && !used) rules_[2].since.reset();
    look(rules_[2], used, seconds,
         fmt::format("somebody uses the machine, until nobody has for {} (rules.idle)",
                     span_text(*settings_.idle_seconds)));
  }
  if (settings_.load) {
    const double load = reading.others_load.value_or(0);
    const double bound = rules_[3].since ? *settings_.load * kCalmShare : *settings_.load;
    look(rules_[3], load > bound, seconds,
         fmt::format("other programs keep {:.1f} processors busy, until it has been less than {:.1f} for {} "
                     "(rules.load)",
                     load, *settings_.load * kCalmShare, calm));
  }
}

bool OwnersRules::pauses() const {
  return std::ranges::any_of(rules_, [](const Rule& rule) { return rule.since.has_value(); });
}

std::string OwnersRules::sentence(int minute_of_day) const {
  std::vector<const Rule*> causes;
  for (const Rule& rule : rules_) {
    if (rule.since) causes.push_back(&rule);
  }
  std::ranges::stable_sort(causes, {}, [](const Rule* rule) { return *rule->since; });
  std::vector<std::string> texts;
  if (!may_train(settings_.hours, minute_of_day)) {
    const int begin = next_begin(settings_.hours, minute_of_day);
    texts.push_back(fmt::format("it is not the hour, until {:02}:{:02} (schedule.hours)", begin / 60, begin % 60));
  }
  for (const Rule* rule : causes) texts.push_back(rule->text);
  return texts.empty() ? std::string() : fmt::format("training is paused: {}", fmt::join(texts, "; "));
}

}  // namespace atl
