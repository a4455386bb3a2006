#include "app/agent/agent_config.h"

namespace atl {
namespace {

bool is_set(const Config& config, std::string_view key) { return config.value(key).origin != "default"; }

}  // namespace

ConfigSources config_sources(const AgentHome& home) {
  return {home.config_file, home.settings_file(), environment_of_process()};
}

StoreSettings store_settings(const Config& config) {
  return {config.text("store.endpoint"), config.text("store.region"), config.text("store.bucket"),
          config.text("store.credentials_file"), config.text("store.authorities_file")};
}

Status apply_config(const Config& config, AgentOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(options.training_hours, parse_training_hours(config.text("schedule.hours")));
  options.upload_bytes_per_second = config_bytes_per_second(config.text("limits.upload"));
  const auto limit = [&](const char* key, std::optional<double>& value) {
    if (config.whole(key) > 0) value = static_cast<double>(config.whole(key));
  };
  limit("limits.gpu_power", options.gpu_limits.power_watts);
  limit("limits.gpu_temperature", options.gpu_limits.celsius);
  if (const auto percent = config.whole("rules.load"); percent > 0) {
    options.rules.load = static_cast<double>(percent) / 100;
  }
  if (const auto idle = config_seconds(config.text("rules.idle")); idle > 0) {
    options.rules.idle_seconds = static_cast<std::int64_t>(idle);
  }
  options.rules.battery = config.text("rules.battery") != "train";
  options.rules.metered = config.text("rules.metered") != "train";
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
