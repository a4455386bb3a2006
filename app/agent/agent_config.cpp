#include "app/agent/agent_config.h"

#include "app/config/quantity.h"

namespace atl {
namespace {

bool is_set(const Config& config, std::string_view key) { return config.value(key).origin != "default"; }

// A whole number of which 0 is none.
std::optional<double> above_zero(const Config& config, std::string_view key) {
  const std::int64_t number = config.whole(key);
  return number > 0 ? std::optional(static_cast<double>(number)) : std::nullopt;
}

// As its join file has it, also once its owner left the run: the next join begins with it.
std::map<std::string, std::string> joined_values(const IslandHome& home) {
  const auto join = load_membership(home);
  if (!join.ok()) return {};
  return {{"island.name", join->display_name},
          {"island.listen", to_string(join->bind)},
          {"island.advertise", join->advertised_host},
          {"island.region", join->region},
          {"island.threads", std::to_string(join->threads)},
          {"island.local_ranks", std::to_string(join->local_ranks)},
          {"island.micro_batch", std::to_string(join->micro_batch)},
          {"island.device", std::string(word_of(join->device))},
          {"island.precision", std::string(word_of(join->precision))},
          {"island.gpus", join->gpus}};
}

}  // namespace

std::optional<double> gpu_power_limit(const Config& config) { return above_zero(config, "limits.gpu_power"); }

ConfigSources config_sources(const AgentHome& home) {
  ConfigSources sources{home.config_file, home.settings_file(), environment_of_process()};
  sources.joined = [island = home.island] { return joined_values(island); };
  return sources;
}

StoreSettings store_settings(const Config& config) {
  return {config.text("store.endpoint"), config.text("store.region"), config.text("store.bucket"),
          config.text("store.credentials_file"), config.text("store.authorities_file")};
}

Result<CapRules> cap_rules(const Config& config) {
  CapRules rules;
  rules.upload.otherwise = cap_bytes_per_second(config.text("limits.upload"));
  rules.download.otherwise = cap_bytes_per_second(config.text("limits.download"));
  ATOLL_ASSIGN_OR_RETURN(rules.upload.by_hours, parse_cap_hours(config.text("limits.upload_by_hours")));
  ATOLL_ASSIGN_OR_RETURN(rules.download.by_hours, parse_cap_hours(config.text("limits.download_by_hours")));
  return rules;
}

Result<OwnersRulesSettings> owners_rules(const Config& config) {
  OwnersRulesSettings rules;
  ATOLL_ASSIGN_OR_RETURN(rules.hours, parse_training_hours(config.text("schedule.hours")));
  rules.load = above_zero(config, "rules.load");
  if (rules.load) *rules.load /= 100;
  const std::uint64_t bytes = config_bytes(config.text("rules.gpu"));
  rules.gpu_bytes = bytes > 0 ? std::optional(static_cast<double>(bytes)) : std::nullopt;
  const std::uint64_t idle = config_seconds(config.text("rules.idle"));
  rules.idle_seconds = idle > 0 ? std::optional(static_cast<std::int64_t>(idle)) : std::nullopt;
  rules.battery = config.text("rules.battery") != "train";
  rules.metered = config.text("rules.metered") != "train";
  rules.gpu_celsius = above_zero(config, "limits.gpu_temperature");
  rules.cpu_celsius = above_zero(config, "limits.cpu_temperature");
  rules.watts = above_zero(config, "limits.power");
  return rules;
}

Status apply_config(const Config& config, AgentOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(options.rules, owners_rules(config));
  ATOLL_ASSIGN_OR_RETURN(options.caps, cap_rules(config));
  options.gpus = config.text("island.gpus");
  options.gpu_limits.power_watts = gpu_power_limit(config);
  options.supervisor.end_within = std::chrono::seconds(config_seconds(config.text("agent.stop_within")));
  options.trainer_log_bytes = config_bytes(config.text("log.max_size")) / 2;  // the agent's own takes the other half
  options.trainer_log_level = config.text("log.level");
  options.work_every = std::chrono::seconds(config_seconds(config.text("checkpoints.work_every")));
  options.data_cache_bytes = config_bytes(config.text("island.data_cache"));
  options.data_mirrors = config.text("island.data_mirrors");
  options.credit = config.text("island.credit");
  options.keep_days = static_cast<std::uint32_t>(config.whole("checkpoints.keep_daily"));
  options.keep_rounds = config.text("checkpoints.keep_rounds");
  options.store = store_settings(config);
  options.history.max_bytes = config_bytes(config.text("history.max_size"));
  return ok_status();
}

void apply_config(const Config& config, JoinRequest& request) {
  const auto text = [&](const char* key, std::string& value) {
    if (value.empty() && is_set(config, key)) value = config.text(key);
  };
  const auto whole = [&](const char* key, std::optional<int>& value) {
    if (!value && is_set(config, key)) value = static_cast<int>(config.whole(key));
  };
  text("island.name", request.name);
  text("island.listen", request.listen);
  text("island.advertise", request.advertise);
  text("island.gpus", request.gpus);
  text("island.region", request.region);
  text("island.device", request.device);
  text("island.precision", request.precision);
  whole("island.local_ranks", request.local_ranks);
  whole("island.threads", request.threads);
  whole("island.micro_batch", request.micro_batch);
}

}  // namespace atl
