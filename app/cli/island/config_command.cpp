// atoll config: what this machine's owner has set, where it comes from, and how to set it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "app/agent/agent_config.h"
#include "app/cli/agent_client.h"
#include "app/cli/gpu_choice.h"
#include "app/cli/island/island_commands.h"
#include "app/cli/text.h"
#include "app/config/config_keys.h"
#include "app/config/config_queries.h"

namespace atl {
namespace {

struct Settle {
  std::string home, key, value, file;
  bool origin = false, json = false, unset = false, as_file = false;
};

Result<ConfigSources> sources_of(const Settle& command) {
  ATOLL_ASSIGN_OR_RETURN(const AgentHome home, home_of_agent(command.home));
  return config_sources(home);
}

// One key alone as it is, for scripts; in the list what a blank or a 0 means.
std::string shown_in_list(const nlohmann::json& value) {
  const auto text = value["value"].get<std::string>();
  if (!text.empty() && text != "0" && text != "0s" && text != "0 B") return text;
  // "Compute threads; 0: all cores" says what it is. The 0 of "150: one and a half" does not.
  const auto meaning = value["meaning"].get<std::string>();
  const std::string marker = text.empty() ? " empty: " : fmt::format(" {}: ", text);
  const std::size_t begin = meaning.find(marker);
  if (begin == std::string::npos) return text.empty() ? "-" : text;
  const std::size_t end = std::min(meaning.find(';', begin), meaning.size());
  const std::string said = meaning.substr(begin + marker.size(), end - begin - marker.size());
  return text.empty() ? fmt::format("({})", said) : fmt::format("{} ({})", text, said);
}

Status get(const Settle& command, CommandContext& context) {
  if (command.as_file) {
    context.console.out << config_file_template() << std::flush;
    return ok_status();
  }
  ATOLL_ASSIGN_OR_RETURN(const ConfigSources sources, sources_of(command));
  const nlohmann::json params = command.key.empty() ? nlohmann::json::object() : nlohmann::json{{"key", command.key}};
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json answer, get_config(sources, params));
  if (command.json) {
    context.console.out << answer.dump() << std::endl;
    return ok_status();
  }
  for (const nlohmann::json& value : answer["values"]) {
    const std::string line = command.key.empty()
                                 ? fmt::format("{} {}", fit(value["key"].get<std::string>(), 30), shown_in_list(value))
                                 : value["value"].get<std::string>();
    context.console.out << (command.origin ? fmt::format("{}  ({})", line, value["origin"].get<std::string>()) : line)
                        << '\n';
  }
  context.console.out << std::flush;
  return ok_status();
}

// Agent and trainer read their configuration when they start, but for what a running agent follows, and a membership
// what was set when it was joined.
std::string when_in_force(const std::string& key, bool agent_runs) {
  if (agent_runs && changes_while_agent_runs(key)) return "in force now";
  const std::set<std::string> of_the_trainer = {"island.credit", "island.data_cache", "island.data_mirrors"};
  if (key.starts_with("island.") && !of_the_trainer.contains(key)) {
    return "in force from the next 'atoll join' on";
  }
  if (agent_runs && (key.starts_with("limits.upload") || key.starts_with("limits.download"))) {
    return "in force within seconds, also for what is under way";
  }
  return agent_runs ? "in force when the agent is started again" : "in force when the agent starts";
}

// A running agent is told, so that its settings are written by one process.
Status set(const Settle& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const AgentHome home, home_of_agent(command.home));
  ATOLL_ASSIGN_OR_RETURN(const ConfigSources sources, sources_of(command));
  if (command.unset != command.value.empty()) {
    return Error{ErrorCode::kInvalidArgument, "say a value, or --unset to go back to config.toml or the default"};
  }
  const auto key = find_config_key(command.key);
  if (key.ok() && (*key)->type == ConfigType::kGpus && !command.unset) {
    ATOLL_RETURN_IF_ERROR(normalise_config_value(**key, command.value));
    ATOLL_RETURN_IF_ERROR(check_gpus_exist(command.value, context.interrupt));
  }
  const nlohmann::json params = {{"key", command.key},
                                 {"value", command.unset ? nlohmann::json() : nlohmann::json(command.value)}};
  const auto agent = ControlClient::connect(home.socket, answer_deadline());
  auto answer = agent.ok() ? (*agent)->call("config.set", params, answer_deadline()) : set_config(sources, params);
  if (!answer.ok()) return answer.error();
  // The environment of this shell is not the agent's.
  ATOLL_ASSIGN_OR_RETURN(answer, get_config(sources, {{"key", command.key}}));
  const nlohmann::json& value = (*answer)["values"][0];
  context.console.out << (command.json ? answer->dump()
                                       : fmt::format("{} = {}  ({})", value["key"].get<std::string>(),
                                                     shown_in_list(value), value["origin"].get<std::string>()))
                      << std::endl;
  if (!command.json) context.console.out << when_in_force(command.key, agent.ok()) << std::endl;
  return ok_status();
}

Status path(const Settle& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const ConfigSources sources, sources_of(command));
  if (command.json) {
    const nlohmann::json paths = {{"file", sources.file.string()}, {"settings", sources.settings.string()}};
    context.console.out << paths.dump() << std::endl;
  } else {
    context.console.out << sources.file.string() << std::endl;
  }
  return ok_status();
}

Status validate(const Settle& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(ConfigSources sources, sources_of(command));
  if (!command.file.empty()) {
    std::error_code ignored;
    if (!std::filesystem::exists(command.file, ignored)) {
      return Error{ErrorCode::kNotFound, fmt::format("there is no file {}", command.file)};
    }
    sources = {std::filesystem::absolute(command.file), {}};
  }
  const auto loaded = Config::load(sources);
  if (command.json) {
    nlohmann::json report = {
        {"file", sources.file.string()}, {"valid", loaded.ok()}, {"defects", nlohmann::json::array()}};
    std::istringstream lines(loaded.ok() ? "" : loaded.error().message);
    for (std::string line; std::getline(lines, line);) report["defects"].push_back(line);
    context.console.out << report.dump() << std::endl;
  }
  if (!loaded.ok()) return loaded.error();
  std::error_code ignored;
  if (!command.json) {
    context.console.out << sources.file.string()
                        << (std::filesystem::exists(sources.file, ignored)
                                ? ": good"
                                : ": is not there; defaults, settings and environment are good")
                        << std::endl;
  }
  return ok_status();
}

CLI::App* add_action(CLI::App& config, const std::shared_ptr<Settle>& command, const char* name, const char* what,
                     const char* example) {
  CLI::App* sub = config.add_subcommand(name, what);
  sub->footer(fmt::format("Examples:\n{}", example));
  add_home_option(*sub, command->home);
  sub->add_flag("--json", command->json, "Print JSON");
  return sub;
}

}  // namespace

void add_config_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<Settle>();
  CLI::App* config = app.add_subcommand("config", "What this machine's owner has set: get, set, path, validate");
  config->require_subcommand(1);
  config->footer("Example:\n  atoll config get --origin");
  CLI::App* sub = add_action(*config, command, "get", "Values that are in force",
                             "  atoll config get --origin\n  atoll config get limits.upload\n"
                             "  atoll config get --toml > ~/.config/atoll/config.toml");
  sub->add_option("KEY", command->key, "Only this one");
  sub->add_flag("--origin", command->origin, "Say where each comes from");
  sub->add_flag("--toml", command->as_file, "A file to begin with: every key, its meaning and default");
  sub->callback([command, &context] { context.finish(get(*command, context)); });

  sub = add_action(*config, command, "set", "Set a value; config.toml stays as you wrote it",
                   "  atoll config set limits.upload '20 Mbit/s'\n  atoll config set limits.upload --unset\n"
                   "  atoll config set limits.upload_by_hours '08:00-18:00 20 Mbit/s, 23:00-06:00 none'");
  sub->add_option("KEY", command->key, "What to set")->required();
  sub->add_option("VALUE", command->value, "To what");
  sub->add_flag("--unset", command->unset, "Take it back");
  sub->callback([command, &context] { context.finish(set(*command, context)); });

  sub = add_action(*config, command, "path", "Where config.toml is read", "  $EDITOR $(atoll config path)");
  sub->callback([command, &context] { context.finish(path(*command, context)); });

  sub = add_action(*config, command, "validate", "Check config.toml, settings and environment",
                   "  atoll config validate\n  atoll config validate new.toml");
  sub->add_option("FILE", command->file, "Another file");
  sub->callback([command, &context] { context.finish(validate(*command, context)); });
}

}  // namespace atl
