// atoll agent: the island's long-lived process, as a service runs it.
#include <fmt/format.h>
#include <spdlog/sinks/base_sink-inl.h>  // for a mutex of ours
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>

#include "app/agent/agent_config.h"
#include "app/agent/files/rotating_log.h"
#include "app/cli/agent_options.h"
#include "app/cli/command.h"
#include "net/base/file.h"
#include "net/base/log.h"
#include "net/base/mutex.h"

namespace atl {
namespace {

struct AgentRequest {
  std::string home;
  bool system = false;
  std::string hours;
};

// The log that `atoll logs` reads, beside the service's journal.
class LogSink final : public spdlog::sinks::base_sink<Mutex> {
 public:
  explicit LogSink(RotatingLog log) : log_(std::move(log)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    (void)log_.write({line.data(), line.size()});  // a full disk: the journal has it
  }
  void flush_() override {}

  RotatingLog log_;
};

Status set_up_log(const AgentHome& home, const Config& config) {
  set_log_level(config.text("log.level"));
  ATOLL_RETURN_IF_ERROR(make_directories(home.state, FileMode::kPrivate));
  ATOLL_ASSIGN_OR_RETURN(RotatingLog log,
                         RotatingLog::open(home.agent_log(), config_bytes(config.text("log.max_size")) / 2));
  auto sink = std::make_shared<LogSink>(std::move(log));
  sink->set_formatter(log_formatter());
  spdlog::default_logger()->sinks().push_back(std::move(sink));
  return ok_status();
}

Status run_agent(const AgentRequest& command, CommandContext& context) {
  AgentHome home = system_agent_home();
  if (!command.system) {
    ATOLL_ASSIGN_OR_RETURN(home, find_agent_home(command.home));
  }
  ConfigSources sources = config_sources(home);
  if (!command.hours.empty()) sources.command_line["schedule.hours"] = command.hours;
  ATOLL_ASSIGN_OR_RETURN(const Config config, Config::load(sources));
  ATOLL_ASSIGN_OR_RETURN(AgentOptions options, agent_options(home, sources, config));
  if (command.system) options.access = SocketAccess::kGroup;
  log_without_waiting(context.console.loss_listener());  // training would wait for a terminal that was stopped
  // A disk that takes no log is no reason not to train.
  if (const Status log = set_up_log(home, config); !log.ok()) spdlog::warn("log error=\"{}\"", log.error().message);
  ATOLL_ASSIGN_OR_RETURN(const auto agent, Agent::start(std::move(options)));
  spdlog::info("agent started version={}", ATOLL_VERSION);
  return agent->run(context.interrupt, context.hurry);
}

}  // namespace

void add_agent_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<AgentRequest>();
  CLI::App* sub = app.add_subcommand("agent", "Keep this machine's island training, as a service does");
  sub->footer(
      "Starts the trainer of a joined run, watches it and starts it again, until Ctrl-C or SIGTERM, which ends it\n"
      "cleanly within 90 s; a second one at once. It serves the control socket for the other commands.\n\n"
      "Example:\n  atoll agent --hours 22:00-06:00");
  auto* home = sub->add_option("--home", command->home, "Directory of everything (default: this user's directories)")
                   ->type_name("DIR");
  sub->add_flag("--system", command->system, "As a system service: /run/atoll, /etc/atoll, /var/lib/atoll")
      ->excludes(home);
  sub->add_option("--hours", command->hours, "Train only then, local time: 22:00-06:00, several with commas");
  sub->callback([command, &context] { context.finish(run_agent(*command, context)); });
}

}  // namespace atl
