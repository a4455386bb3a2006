// Puts the agent's service in place and takes it away again: the unit, its start, the system service's user and
// directories, and lingering, without which a user's services end with the last login. What was changed is written
// beside the unit, so that only that is undone. Calls systemctl and loginctl; one thread.
#pragma once

#include <functional>
#include <vector>

#include "app/cli/service/service_unit.h"

namespace atl {

struct ProgramOutcome {
  int exit_code = 0;
  std::string output;  // both streams, at most 16 KiB
};
// Runs a program of the system: {"systemctl", "--user", "enable", ...}.
using RunProgram = std::function<Result<ProgramOutcome>(const std::vector<std::string>& command)>;
Result<ProgramOutcome> run_system_program(const std::vector<std::string>& command);

struct ServiceStatus {
  bool installed = false;
  bool enabled = false;
  std::string active;  // systemd's word: "active", "inactive", "failed", ...
  bool lingering = false;
  std::filesystem::path unit;
};

struct ServiceInstallOptions {
  ServiceUnit unit;
  std::filesystem::path etc = "/etc";  // of the system
  // Asked before lingering is switched on; false: the service runs while the user is logged in.
  std::function<Result<bool>()> may_linger;
  bool start = true;  // false: from the next boot or login on; an agent that runs now goes on
};

struct ServiceInstalled {
  std::filesystem::path unit;
  bool lingering = false;      // now
  bool lingering_set = false;  // by this
};

// kInvalidArgument when a unit is there that this did not write; kNotFound where systemd does not run.
Result<ServiceInstalled> install_service(const ServiceInstallOptions& options, const RunProgram& run);
// kNotFound when it is not installed. The files of the island stay.
// So does the user atoll, to whom they belong.
Status remove_service(ServiceScope scope, const RunProgram& run, const std::filesystem::path& etc = "/etc");
Result<ServiceStatus> service_status(ServiceScope scope, const RunProgram& run);

}  // namespace atl
