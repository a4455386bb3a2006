#include "app/agent/rules_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "app/agent/agent_config.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kFirstReading{10};  // may take so long: a GPU's driver that was asleep

std::tm local_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  return local;
}

int minute_of_day(const std::tm& local) { return local.tm_hour * 60 + local.tm_min; }

// When it is the next time so late ("22:00"), whatever daylight saving does before.
std::int64_t next_time(std::tm local, const std::string& hour_and_minute) {
  const int hour = std::stoi(hour_and_minute.substr(0, 2)), minute = std::stoi(hour_and_minute.substr(3));
  if (hour * 60 + minute <= minute_of_day(local)) ++local.tm_mday;
  local.tm_hour = hour;
  local.tm_min = minute;
  local.tm_sec = 0;
  local.tm_isdst = -1;
  return std::mktime(&local);
}

bool has(const std::vector<PausedBy>& pauses, OwnersRule rule) {
  return std::ranges::find(pauses, rule, &PausedBy::rule) != pauses.end();
}

}  // namespace

RulesWatch::RulesWatch(const AgentHome& home, Options options, TrainerGpus::Tell tell)
    : places_(std::move(options.machine)),
      news_level_(options.news_level),
      tell_(tell),
      island_gpus_(std::move(options.gpus)),
      rules_({}),
      gpus_(home, options.gpu_limits, options.gpu_sample_period, std::move(tell)) {
  set(options.rules, options.gpu_limits.power_watts);
}

Status RulesWatch::follow(const Config& config) {
  ATOLL_ASSIGN_OR_RETURN(const OwnersRulesSettings rules, owners_rules(config));
  set(rules, gpu_power_limit(config));
  const std::string gpus = config.text("island.gpus");
  if (gpus != std::exchange(island_gpus_, gpus)) gpus_.use(gpus);
  return ok_status();
}

void RulesWatch::set(const OwnersRulesSettings& rules, std::optional<double> gpu_power_watts) {
  rules_.set(rules);
  gpus_.set_power(gpu_power_watts);
  gpus_.read_for_rules(rules.ask_gpus());
  machine_.reset();
  if (!rules.ask_machine()) {
    reader_.reset();
  } else if (reader_) {
    reader_->set_wanted(rules);
  } else {
    reader_.emplace(rules, places_);
  }
  if (reader_) reader_->set_trainer(trainer_);
  known_by_ = Clock::now() + kFirstReading;
  read();
}

void RulesWatch::set_trainer(pid_t pid) {
  trainer_ = pid;
  gpus_.set_trainer(pid);
  if (reader_) reader_->set_trainer(pid);
}

bool RulesWatch::known() const {
  const bool read = (!reader_ || machine_) && (!rules_.settings().ask_gpus() || gpus_.known());
  return read || Clock::now() >= known_by_;
}

void RulesWatch::turn() {
  const std::vector<PausedBy> before = paused_by_;
  gpus_.turn();
  read();
  log_changes(before);
}

void RulesWatch::read() {
  if (reader_) machine_ = reader_->reading();
  const GpusReading gpus = gpus_.reading();
  const bool was_hot = has(paused_by_, OwnersRule::kGpuTemperature);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now().time_since_epoch()).count();
  rules_.next(machine_.value_or(MachineReading{}), gpus, seconds);
  const std::tm local = local_now();
  paused_by_ = rules_.causes(minute_of_day(local));
  for (PausedBy& pause : paused_by_) {
    if (pause.rule == OwnersRule::kHours) pause.until_seconds = next_time(local, pause.until);
  }
  if (was_hot != has(paused_by_, OwnersRule::kGpuTemperature)) tell_heat(gpus);
}

void RulesWatch::tell_heat(const GpusReading& gpus) {
  if (!gpus.hottest || !rules_.settings().gpu_celsius) return;
  tell_.alert({.kind = GpuAlertKind::kTemperature,
               .gpu = gpus.hottest->gpu,
               .celsius = gpus.hottest->celsius,
               .cap_celsius = rules_.settings().gpu_celsius,
               .pauses = has(paused_by_, OwnersRule::kGpuTemperature)});
}

void RulesWatch::log_changes(const std::vector<PausedBy>& before) const {
  for (const PausedBy& pause : paused_by_) {
    if (!has(before, pause.rule)) {
      spdlog::log(news_level_, "rule={} pauses=true text=\"{}\"", word_of(pause.rule), sentence_of(pause));
    }
  }
  for (const PausedBy& pause : before) {
    if (!has(paused_by_, pause.rule)) spdlog::log(news_level_, "rule={} pauses=false", word_of(pause.rule));
  }
}

std::string RulesWatch::warning() const {
  const OwnersRulesSettings& rules = rules_.settings();
  std::vector<std::string> texts;
  if (std::string power = gpus_.warning(); !power.empty()) texts.push_back(std::move(power));
  const auto unwatched = [&](const std::vector<OwnersRule>& of_one_cause, const std::string& why) {
    std::vector<std::string_view> names;
    for (const OwnersRule rule : of_one_cause) names.push_back(word_of(rule));
    if (names.empty()) return;
    texts.push_back(
        fmt::format("{} {} not watched: {}", fmt::join(names, " and "), names.size() == 1 ? "is" : "are", why));
  };
  if (machine_) {
    if (rules.idle_seconds && !machine_->unused_seconds) {
      unwatched({OwnersRule::kIdle}, "no login service (logind) answers");
    }
    if (rules.metered && !machine_->metered) unwatched({OwnersRule::kMetered}, "no NetworkManager answers");
    if (rules.cpu_celsius && !machine_->cpu_celsius) {
      unwatched({OwnersRule::kCpuTemperature}, "no sensor of a processor is in /sys/class/hwmon or /sys/class/thermal");
    }
  }
  const std::string problem = rules.ask_gpus() ? gpus_.problem() : std::string();
  if (problem.empty()) return fmt::format("{}", fmt::join(texts, "; "));
  std::vector<OwnersRule> of_gpus;
  if (rules.gpu_bytes) of_gpus.push_back(OwnersRule::kGpu);
  if (rules.gpu_celsius) of_gpus.push_back(OwnersRule::kGpuTemperature);
  unwatched(of_gpus, problem);
  if (rules.watts && machine_ && !machine_->cpu_watts) {
    unwatched(
        {OwnersRule::kPower},
        fmt::format("neither processors (/sys/class/powercap, which most systems let root alone read) nor GPUs{} say "
                    "what they draw",
                    of_gpus.empty() ? fmt::format(" ({})", problem) : ""));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace atl
