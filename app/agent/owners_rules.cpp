#include "app/agent/owners_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/agent/wish.h"

namespace atl {
namespace {

constexpr int kDay = 24 * 60;
constexpr double kCalmShare = 0.75;   // of what pauses, below which it is over
constexpr double kCoolerCelsius = 5;  // than what pauses, until it is over
// What training itself makes (heat, power) comes back when it goes on: each time it does so soon, the next pause is
// twice as long, for each costs a start of the trainer.
constexpr std::int64_t kSoonSeconds = 600;
constexpr std::int64_t kLongestCalmSeconds = 3600;

int next_begin(const std::vector<TrainingHours>& hours, int minute_of_day) {
  const auto wait = [&](const TrainingHours& span) { return (span.begin_minute - minute_of_day + kDay) % kDay; };
  return std::ranges::min(hours, {}, wait).begin_minute;
}

std::string span_text(std::int64_t seconds) {
  return seconds % 60 == 0 ? fmt::format("{} min", seconds / 60) : fmt::format("{} s", seconds);
}

std::string bytes_text(double bytes) {
  return bytes >= 1e9 ? fmt::format("{:.1f} GB", bytes / 1e9) : fmt::format("{:.0f} MB", bytes / 1e6);
}

}  // namespace

OwnersRules::Rule* OwnersRules::look(OwnersRule which, bool causes, std::int64_t seconds, bool made_by_training) {
  Rule& rule = rules_[static_cast<std::size_t>(which)];
  if (causes) {
    if (!rule.since) {
      const bool soon = made_by_training && rule.ended && seconds - *rule.ended < kSoonSeconds;
      rule.calm = soon ? std::min(2 * rule.calm, kLongestCalmSeconds) : settings_.calm_seconds;
      rule.since = seconds;
    }
    rule.last_cause = seconds;
    return &rule;
  }
  if (rule.since && seconds - rule.last_cause >= rule.calm) {
    rule.since.reset();
    rule.ended = seconds;
  }
  return nullptr;
}

bool OwnersRules::is_above(OwnersRule which, const std::optional<double>& value, double bound, double end) const {
  return value && (pauses_by(which) ? *value >= end : *value > bound);
}

void OwnersRules::next(const MachineReading& machine, const GpusReading& gpus, std::int64_t seconds) {
  if (Rule* rule = look(OwnersRule::kBattery, machine.on_battery.value_or(false), seconds)) {
    rule->why = "the machine runs on its battery";
    rule->until = fmt::format("{} after it is plugged in", span_text(rule->calm));
  }
  if (Rule* rule = look(OwnersRule::kMetered, machine.metered.value_or(false), seconds)) {
    rule->why = "the network is metered";
    rule->until = fmt::format("{} after it no longer is", span_text(rule->calm));
  }
  look_at_load(machine, seconds);
  look_at_presence(machine, seconds);
  look_at_gpus(gpus, seconds);
  look_at_heat(machine, gpus, seconds);
  look_at_power(machine, gpus, seconds);
  const auto forget_unless = [this](OwnersRule which, bool wanted) {
    if (!wanted) rules_[static_cast<std::size_t>(which)] = {};
  };
  forget_unless(OwnersRule::kBattery, settings_.battery);
  forget_unless(OwnersRule::kMetered, settings_.metered);
  forget_unless(OwnersRule::kLoad, settings_.load.has_value());
  forget_unless(OwnersRule::kIdle, settings_.idle_seconds.has_value());
  forget_unless(OwnersRule::kGpu, settings_.gpu_bytes.has_value());
  forget_unless(OwnersRule::kGpuTemperature, settings_.gpu_celsius.has_value());
  forget_unless(OwnersRule::kCpuTemperature, settings_.cpu_celsius.has_value());
  forget_unless(OwnersRule::kPower, settings_.watts.has_value());
}

void OwnersRules::look_at_load(const MachineReading& machine, std::int64_t seconds) {
  const double bound = settings_.load.value_or(0), end = bound * kCalmShare;
  const bool busy = is_above(OwnersRule::kLoad, machine.others_load, bound, end);
  Rule* rule = look(OwnersRule::kLoad, busy, seconds);
  if (rule == nullptr) return;
  rule->why = fmt::format("other programs keep {:.1f} processors busy", *machine.others_load);
  rule->until = fmt::format("it has been less than {:.1f} for {}", end, span_text(rule->calm));
}

// Its calm time is the owner's own.
void OwnersRules::look_at_presence(const MachineReading& machine, std::int64_t seconds) {
  const std::int64_t wanted = settings_.idle_seconds.value_or(0);
  const bool used = machine.unused_seconds && *machine.unused_seconds < wanted;
  if (machine.unused_seconds && !used) rules_[static_cast<std::size_t>(OwnersRule::kIdle)].since.reset();
  Rule* rule = look(OwnersRule::kIdle, used, seconds);
  if (rule == nullptr) return;
  rule->why = "somebody uses the machine";
  rule->until = fmt::format("nobody has for {}", span_text(wanted));
  // As long a desktop that tells it would have told it by now, had nobody been there.
  const bool for_ever = machine.presence_never_said && seconds - *rule->since >= wanted;
  rule->advice = for_ever ? "the login service was never told whether somebody is there (IdleHint), so this may last "
                            "for ever: have the desktop tell it (Sway: swayidle's idlehint), or take the rule back "
                            "with: atoll config set rules.idle 0s"
                          : "";
}

void OwnersRules::look_at_gpus(const GpusReading& gpus, std::int64_t seconds) {
  const double bound = settings_.gpu_bytes.value_or(0), end = bound * kCalmShare;
  const auto& others = gpus.others;
  const bool used =
      others && (!others->bytes_known || is_above(OwnersRule::kGpu, std::optional(others->bytes), bound, end));
  Rule* rule = look(OwnersRule::kGpu, used, seconds);
  if (rule == nullptr) return;
  rule->why = others->bytes_known ? fmt::format("other programs hold {} of GPU {} ({})", bytes_text(others->bytes),
                                                others->gpu, others->who)
                                  : fmt::format("other programs use GPU {} ({})", others->gpu, others->who);
  rule->until = fmt::format("it has been less than {} for {}", bytes_text(end), span_text(rule->calm));
}

void OwnersRules::look_at_heat(const MachineReading& machine, const GpusReading& gpus, std::int64_t seconds) {
  const auto look_at = [&](OwnersRule which, const std::optional<double>& celsius, const std::optional<double>& cap,
                           const std::string& what) {
    const double end = cap.value_or(0) - kCoolerCelsius;
    Rule* rule = look(which, is_above(which, celsius, cap.value_or(0), end), seconds, /*made_by_training=*/true);
    if (rule == nullptr) return;
    rule->why = fmt::format("{} is at {:.0f} C", what, *celsius);
    rule->until = fmt::format("it has been below {:.0f} C for {}", end, span_text(rule->calm));
  };
  const auto& hottest = gpus.hottest;
  look_at(OwnersRule::kGpuTemperature, hottest ? std::optional(hottest->celsius) : std::nullopt, settings_.gpu_celsius,
          fmt::format("GPU {}", hottest ? hottest->gpu : 0));
  look_at(OwnersRule::kCpuTemperature, machine.cpu_celsius, settings_.cpu_celsius, "the processor");
}

void OwnersRules::look_at_power(const MachineReading& machine, const GpusReading& gpus, std::int64_t seconds) {
  const double bound = settings_.watts.value_or(0), end = bound * kCalmShare;
  std::optional<double> watts;
  if (machine.cpu_watts || gpus.watts) watts = machine.cpu_watts.value_or(0) + gpus.watts.value_or(0);
  Rule* rule = look(OwnersRule::kPower, is_above(OwnersRule::kPower, watts, bound, end), seconds,
                    /*made_by_training=*/true);
  if (rule == nullptr) return;
  const char* who = !gpus.watts          ? "the processors draw"
                    : !machine.cpu_watts ? "the GPUs draw"
                                         : "processors and GPUs draw";
  rule->why = fmt::format("{} {:.0f} W", who, *watts);
  rule->until = fmt::format("it has been less than {:.0f} W for {}", end, span_text(rule->calm));
}

std::vector<PausedBy> OwnersRules::causes(int minute_of_day) const {
  std::vector<std::size_t> held;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if (rules_[i].since) held.push_back(i);
  }
  std::ranges::stable_sort(held, {}, [this](std::size_t i) { return *rules_[i].since; });
  std::vector<PausedBy> causes;
  if (!may_train(settings_.hours, minute_of_day)) {
    const int begin = next_begin(settings_.hours, minute_of_day);
    causes.push_back({.rule = OwnersRule::kHours,
                      .why = "it is not the hour",
                      .until = fmt::format("{:02}:{:02}", begin / 60, begin % 60)});
  }
  for (const std::size_t i : held) {
    const Rule& rule = rules_[i];
    causes.push_back({.rule = static_cast<OwnersRule>(i), .why = rule.why, .until = rule.until, .advice = rule.advice});
  }
  return causes;
}

}  // namespace atl
