#include "app/cli/service/service_install.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <pwd.h>
#include <unistd.h>

#include "app/cli/remote/piped_process.h"
#include "net/base/file.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kProgramTime{150};  // systemctl stop waits for TimeoutStopSec
constexpr std::size_t kMaxOutput = 16 * 1024;
constexpr const char* kMark = "# Written by 'atoll service install'; 'atoll service remove' removes it.\n";
constexpr const char* kLingerMark = "# Lingering was switched on for it.\n";

std::string user_name() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry != nullptr ? entry->pw_name : std::to_string(::getuid());
}

std::vector<std::string> systemctl(ServiceScope scope, const std::vector<std::string>& words) {
  std::vector<std::string> command = {"systemctl"};
  if (scope == ServiceScope::kUser) command.emplace_back("--user");
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

Status must(const RunProgram& run, const std::vector<std::string>& command) {
  ATOLL_ASSIGN_OR_RETURN(const ProgramOutcome outcome, run(command));
  if (outcome.exit_code == 0) return ok_status();
  const bool no_systemd = outcome.output.find("not been booted with systemd") != std::string::npos ||
                          outcome.output.find("Failed to connect to bus") != std::string::npos;
  return Error{
      no_systemd ? ErrorCode::kNotFound : ErrorCode::kIo,
      fmt::format(
          "'{}' failed: {}{}", fmt::join(command, " "), outcome.output,
          no_systemd ? "; systemd does not run here: start 'atoll agent' by whatever starts your services" : "")};
}

Result<bool> is_lingering(const RunProgram& run) {
  ATOLL_ASSIGN_OR_RETURN(const ProgramOutcome outcome,
                         run({"loginctl", "show-user", user_name(), "--property=Linger"}));
  return outcome.output.find("Linger=yes") != std::string::npos;
}

// The text of a unit that we wrote; empty: there is none.
Result<std::string> our_unit(const std::filesystem::path& path) {
  const auto text = read_file(path, 64 * 1024);
  if (!text.ok()) {
    if (text.error().code == ErrorCode::kNotFound) return std::string();
    return text.error();
  }
  if (text->starts_with(kMark)) return *text;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} was not written by 'atoll service install'; move it away first", path.string())};
}

Status check_root(ServiceScope scope, const std::filesystem::path& etc) {
  if (scope == ServiceScope::kUser || etc != "/etc" || ::geteuid() == 0) return ok_status();
  return Error{ErrorCode::kPermissionDenied,
               "a system service needs root: run it with sudo, or install it for this user with --user"};
}

std::vector<std::filesystem::path> system_files(const std::filesystem::path& etc) {
  return {etc / "sysusers.d" / kServiceFilesName, etc / "tmpfiles.d" / kServiceFilesName};
}

// The user and the directories of the system's service, now and at every boot.
Status install_system_files(const std::filesystem::path& etc, const RunProgram& run) {
  const char* const texts[] = {kServiceUsers, kServiceDirectories};
  const auto files = system_files(etc);
  for (std::size_t i = 0; i < files.size(); ++i) {
    ATOLL_RETURN_IF_ERROR(make_directories(files[i].parent_path()));
    ATOLL_RETURN_IF_ERROR(write_file_atomically(files[i], std::string(kMark) + texts[i], FileMode::kPublic));
  }
  ATOLL_RETURN_IF_ERROR(must(run, {"systemd-sysusers", files[0].string()}));
  return must(run, {"systemd-tmpfiles", "--create", files[1].string()});
}

Status undo(ServiceScope scope, const std::filesystem::path& path, const std::filesystem::path& etc, bool lingering_set,
            const RunProgram& run) {
  ATOLL_RETURN_IF_ERROR(must(run, systemctl(scope, {"disable", "--now", kServiceName})));
  std::vector<std::filesystem::path> files{path};
  if (scope == ServiceScope::kSystem) {
    for (const std::filesystem::path& file : system_files(etc)) files.push_back(file);
  }
  for (const std::filesystem::path& file : files) {
    std::error_code failed;
    std::filesystem::remove(file, failed);
    if (failed) return Error{ErrorCode::kIo, fmt::format("cannot remove {}: {}", file.string(), failed.message())};
  }
  ATOLL_RETURN_IF_ERROR(must(run, systemctl(scope, {"daemon-reload"})));
  return lingering_set ? must(run, {"loginctl", "disable-linger", user_name()}) : ok_status();
}

}  // namespace

Result<ProgramOutcome> run_system_program(const std::vector<std::string>& command) {
  PipedOptions options{.program = command.front(),
                       .arguments = {command.begin() + 1, command.end()},
                       .environment = {{"LC_ALL", "C"}},
                       .own_errors = true};
  ATOLL_ASSIGN_OR_RETURN(PipedProcess process, PipedProcess::spawn(options));
  process.input.reset();
  ProgramOutcome outcome;
  const Deadline deadline = Deadline::after(kProgramTime);
  while (process.output || process.errors) {
    pollfd waits[] = {{process.output.get(), POLLIN, 0}, {process.errors.get(), POLLIN, 0}};
    ::poll(waits, 2, deadline.poll_milliseconds());
    if (deadline.expired()) return Error{ErrorCode::kTimeout, fmt::format("{} does not end", command.front())};
    for (int i = 0; i < 2; ++i) {
      UniqueFd& pipe = i == 0 ? process.output : process.errors;
      char buffer[4096];
      if (waits[i].revents == 0) continue;
      const ssize_t count = ::read(pipe.get(), buffer, sizeof buffer);
      if (count <= 0) pipe.reset();
      if (count > 0 && outcome.output.size() < kMaxOutput)
        outcome.output.append(buffer, static_cast<std::size_t>(count));
    }
  }
  const auto code = process.wait(deadline);
  if (!code) return Error{ErrorCode::kTimeout, fmt::format("{} does not end", command.front())};
  outcome.exit_code = *code;
  while (outcome.output.ends_with('\n')) outcome.output.pop_back();
  return outcome;
}

Result<ServiceInstalled> install_service(const ServiceInstallOptions& options, const RunProgram& run) {
  const ServiceScope scope = options.unit.scope;
  ATOLL_RETURN_IF_ERROR(check_root(scope, options.etc));
  ATOLL_ASSIGN_OR_RETURN(const auto path, unit_path(scope, options.etc));
  ATOLL_ASSIGN_OR_RETURN(const std::string text, unit_text(options.unit));
  ATOLL_ASSIGN_OR_RETURN(const std::string before, our_unit(path));
  ServiceInstalled installed{.unit = path};
  installed.lingering_set = before.find(kLingerMark) != std::string::npos;
  if (scope == ServiceScope::kUser) {
    ATOLL_ASSIGN_OR_RETURN(installed.lingering, is_lingering(run));
    if (!installed.lingering) {
      ATOLL_ASSIGN_OR_RETURN(const bool may, options.may_linger());
      if (may) ATOLL_RETURN_IF_ERROR(must(run, {"loginctl", "enable-linger", user_name()}));
      installed.lingering = installed.lingering_set = may;
    }
  }
  if (scope == ServiceScope::kSystem) ATOLL_RETURN_IF_ERROR(install_system_files(options.etc, run));
  ATOLL_RETURN_IF_ERROR(make_directories(path.parent_path()));
  ATOLL_RETURN_IF_ERROR(write_file_atomically(
      path, std::string(kMark) + (installed.lingering_set ? kLingerMark : "") + text, FileMode::kPublic));
  Status started = must(run, systemctl(scope, {"daemon-reload"}));
  const std::vector<std::string> enable = options.start ? std::vector<std::string>{"enable", "--now", kServiceName}
                                                        : std::vector<std::string>{"enable", kServiceName};
  if (started.ok()) started = must(run, systemctl(scope, enable));
  if (!started.ok()) {
    // Half a service is none.
    if (before.empty()) (void)undo(scope, path, options.etc, installed.lingering_set, run);
    return started.error();
  }
  return installed;
}

Status remove_service(ServiceScope scope, const RunProgram& run, const std::filesystem::path& etc) {
  ATOLL_RETURN_IF_ERROR(check_root(scope, etc));
  ATOLL_ASSIGN_OR_RETURN(const auto path, unit_path(scope, etc));
  ATOLL_ASSIGN_OR_RETURN(const std::string text, our_unit(path));
  if (text.empty()) {
    return Error{
        ErrorCode::kNotFound,
        fmt::format("no service is installed by this command ({} is not there); one that came with a package is "
                    "switched off with: systemctl {}disable --now atoll",
                    path.string(), scope == ServiceScope::kUser ? "--user " : "")};
  }
  return undo(scope, path, etc, text.find(kLingerMark) != std::string::npos, run);
}

Result<ServiceStatus> service_status(ServiceScope scope, const RunProgram& run) {
  ServiceStatus status;
  ATOLL_ASSIGN_OR_RETURN(status.unit, unit_path(scope));
  std::error_code ignored;
  status.installed = std::filesystem::exists(status.unit, ignored);
  if (!status.installed) {  // a package's lies elsewhere
    ATOLL_ASSIGN_OR_RETURN(const ProgramOutcome found,
                           run(systemctl(scope, {"show", "--property=FragmentPath", "--value", kServiceName})));
    status.installed = found.exit_code == 0 && found.output.starts_with('/');
    if (status.installed) status.unit = found.output;
  }
  ATOLL_ASSIGN_OR_RETURN(const ProgramOutcome enabled, run(systemctl(scope, {"is-enabled", kServiceName})));
  status.enabled = enabled.output == "enabled";
  ATOLL_ASSIGN_OR_RETURN(const ProgramOutcome active, run(systemctl(scope, {"is-active", kServiceName})));
  status.active = active.output;
  if (scope == ServiceScope::kUser) {
    ATOLL_ASSIGN_OR_RETURN(status.lingering, is_lingering(run));
  }
  return status;
}

}  // namespace atl
