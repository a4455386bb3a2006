#include "app/cli/service/service_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/cli/console_input.h"
#include "app/cli/own_programs.h"
#include "app/cli/service/service_install.h"
#include "net/base/file.h"

namespace atl {
namespace {

struct Service {
  std::string home;
  bool system = false, user = false, yes = false, json = false, no_start = false;

  ServiceScope scope() const { return system ? ServiceScope::kSystem : ServiceScope::kUser; }
};

// Nobody to ask is a no.
Result<bool> ask_linger(bool yes, CommandContext& context) {
  if (yes) return true;
  if (!input_is_terminal() || !context.console.out_is_terminal) return false;
  context.console.out << "A user's services end with the last login, unless lingering is switched on\n"
                         "(loginctl enable-linger; 'atoll service remove' switches it off again).\n"
                         "Switch it on, so that the island trains while you are away? [y/N] "
                      << std::flush;
  return said_yes(context.interrupt);
}

Status show(const Service& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const ServiceStatus status, service_status(command.scope(), run_system_program));
  if (command.json) {
    const nlohmann::json json = {{"scope", command.system ? "system" : "user"},
                                 {"installed", status.installed},
                                 {"enabled", status.enabled},
                                 {"active", status.active},
                                 {"lingering", status.lingering},
                                 {"unit", status.unit.string()}};
    context.console.out << json.dump() << std::endl;
  } else if (!status.installed) {
    context.console.out << "no service is installed; install it with: atoll service install" << std::endl;
  } else {
    context.console.out << fmt::format("{}  {}{}  {}", status.active,
                                       status.enabled ? "starts by itself" : "not enabled",
                                       command.system     ? ""
                                       : status.lingering ? ", also while nobody is logged in"
                                                          : ", while this user is logged in",
                                       status.unit.string())
                        << std::endl;
  }
  return ok_status();
}

Status remove(const Service& command, CommandContext& context) {
  ATOLL_RETURN_IF_ERROR(remove_service(command.scope(), run_system_program));
  context.console.out << "the service was stopped and removed; what the island has learned stays in its home"
                      << std::endl;
  return ok_status();
}

// What a package has of the service, made of what `install` writes: DIR/system, DIR/user, DIR/sysusers.d,
// DIR/tmpfiles.d.
Status write_files(const std::filesystem::path& directory, const std::filesystem::path& program) {
  ATOLL_ASSIGN_OR_RETURN(const std::string system,
                         unit_text({.scope = ServiceScope::kSystem, .program = program, .home = {}}));
  ATOLL_ASSIGN_OR_RETURN(const std::string user,
                         unit_text({.scope = ServiceScope::kUser, .program = program, .home = {}}));
  ATOLL_ASSIGN_OR_RETURN(const std::string system_hub, hub_unit_text(ServiceScope::kSystem, program));
  ATOLL_ASSIGN_OR_RETURN(const std::string user_hub, hub_unit_text(ServiceScope::kUser, program));
  const std::pair<std::filesystem::path, std::string> files[] = {
      {std::filesystem::path("system") / kServiceName, system},
      {std::filesystem::path("user") / kServiceName, user},
      {std::filesystem::path("system") / kHubServiceName, system_hub},
      {std::filesystem::path("user") / kHubServiceName, user_hub},
      {std::filesystem::path("sysusers.d") / kServiceFilesName, kServiceUsers},
      {std::filesystem::path("tmpfiles.d") / kServiceFilesName, kServiceDirectories}};
  for (const auto& [name, text] : files) {
    ATOLL_RETURN_IF_ERROR(make_directories((directory / name).parent_path()));
    ATOLL_RETURN_IF_ERROR(write_file_atomically(directory / name, text, FileMode::kPublic));
  }
  return ok_status();
}

}  // namespace

Status install_service_for(ServiceScope scope, const std::string& home, bool yes, CommandContext& context, bool start) {
  ServiceInstallOptions options;
  options.unit.scope = scope;
  options.unit.home = home.empty() ? "" : std::filesystem::absolute(home).string();
  ATOLL_ASSIGN_OR_RETURN(options.unit.program, locate_atoll());
  options.unit.program = std::filesystem::absolute(options.unit.program);
  options.start = start;
  options.may_linger = [&] { return ask_linger(yes, context); };
  ATOLL_ASSIGN_OR_RETURN(const ServiceInstalled installed, install_service(options, run_system_program));
  context.console.out << fmt::format("service installed{} ({})",
                                     start ? " and started" : "; it starts at the next boot", installed.unit.string())
                      << std::endl;
  if (scope == ServiceScope::kSystem) {
    context.console.out << "who may command it: members of the group atoll (usermod -aG atoll NAME)" << std::endl;
  }
  if (scope == ServiceScope::kUser && !installed.lingering) {
    context.console.out << "it runs while this user is logged in; for always: loginctl enable-linger" << std::endl;
  }
  return ok_status();
}

void add_service_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<Service>();
  CLI::App* service = app.add_subcommand("service", "The agent as a service of this machine: install, remove, status");
  service->require_subcommand(1);
  service->footer("Example:\n  atoll service status");
  const auto add = [&](const char* name, const char* what, const char* examples) {
    CLI::App* sub = service->add_subcommand(name, what);
    sub->footer(fmt::format("Examples:\n{}", examples));
    auto* system = sub->add_flag("--system", command->system, "For the whole machine (needs root)");
    sub->add_flag("--user", command->user, "For this user (the default)")->excludes(system);
    return sub;
  };
  CLI::App* sub = add("install", "Install it, start it now and at every boot",
                      "  atoll service install\n  sudo atoll service install --system");
  sub->add_option("--home", command->home, "Island's home, if not the default one")->type_name("DIR");
  sub->add_flag("--yes", command->yes, "Switch lingering on without asking");
  sub->add_flag("--no-start", command->no_start, "Only at the next boot: an agent that runs now goes on");
  sub->callback([command, &context] {
    context.finish(install_service_for(command->scope(), command->home, command->yes, context, !command->no_start));
  });
  sub = add("remove", "Stop it and undo what install did", "  atoll service remove");
  sub->callback([command, &context] { context.finish(remove(*command, context)); });
  sub = add("status", "Whether it runs, and when it starts", "  atoll service status --json");
  sub->add_flag("--json", command->json, "Print JSON");
  sub->callback([command, &context] { context.finish(show(*command, context)); });
  auto directory = std::make_shared<std::string>();
  auto program = std::make_shared<std::string>();
  sub = service->add_subcommand("files", "Write the units, users and directories of a package");
  sub->group("");  // for packages
  sub->add_option("DIR", *directory, "Directory to write them to")->required();
  sub->add_option("--program", *program, "Where the package has atoll")->required();
  sub->callback([directory, program, &context] { context.finish(write_files(*directory, *program)); });
}

}  // namespace atl
