#include "app/cli/demo/demo_island.h"

#include <csignal>
#include <nlohmann/json.hpp>

#include "app/cli/own_programs.h"
#include "net/base/file.h"
#include "net/control/control_client.h"
#include "net/control/json_fields.h"
#include "net/control/methods.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kIslandAnswerTime{3};
constexpr std::chrono::seconds kExportTime{30};

Result<std::uint32_t> exported_step(const nlohmann::json& said) {
  ATOLL_ASSIGN_OR_RETURN(const auto exported, decode_message<method::ModelExported>(said));
  return exported.outer_step;
}

}  // namespace

Result<DemoIsland> DemoIsland::start(const std::string& name, const std::filesystem::path& home,
                                     const std::filesystem::path& invite_file) {
  ATOLL_RETURN_IF_ERROR(make_directories(home, FileMode::kPrivate));
  ATOLL_ASSIGN_OR_RETURN(const auto atoll, locate_atoll());
  const IslandHome island_home{home};
  // On the processor: trainers that share a card take turns on it, and a demo is to be the same on every machine.
  ATOLL_ASSIGN_OR_RETURN(ChildProcess process,
                         ChildProcess::spawn({.program = atoll,
                                              .arguments = {"join", "--invite-file", invite_file.string(), "--home",
                                                            home.string(), "--name", name, "--listen", "127.0.0.1:0",
                                                            "--threads", "1", "--device", "processor", "--yes"},
                                              .log = island_home.trainer_log()}));
  return DemoIsland(name, island_home, std::move(process));
}

Result<IslandState> DemoIsland::state() const {
  ATOLL_ASSIGN_OR_RETURN(const auto client,
                         ControlClient::connect(home_.control_socket(), Deadline::after(kIslandAnswerTime)));
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json json, client->call(method::StateGet::kName, nlohmann::json::object(),
                                                                 Deadline::after(kIslandAnswerTime)));
  return IslandState::from_json(json);
}

Result<std::uint32_t> DemoIsland::export_model(const std::filesystem::path& directory) const {
  ATOLL_ASSIGN_OR_RETURN(const auto client,
                         ControlClient::connect(home_.control_socket(), Deadline::after(kIslandAnswerTime)));
  ATOLL_ASSIGN_OR_RETURN(
      const nlohmann::json reply,
      client->call(method::ModelExport::kName, encode_message(method::ModelExport{directory.string()}),
                   Deadline::after(kExportTime)));
  return exported_step(reply);
}

Result<std::uint32_t> DemoIsland::export_checkpoint(const std::filesystem::path& directory) const {
  const auto log = directory.string() + ".export.json";
  std::error_code ignored;
  std::filesystem::remove(log, ignored);
  ATOLL_ASSIGN_OR_RETURN(const auto trainer, locate_trainer());
  ATOLL_ASSIGN_OR_RETURN(ChildProcess process,
                         ChildProcess::spawn({.program = trainer,
                                              .arguments = {"export", "--home", home_.directory.string(), "--output",
                                                            directory.string(), "--json"},
                                              .log = log}));
  ATOLL_ASSIGN_OR_RETURN(const int code, process.wait(Deadline::after(kExportTime)));
  ATOLL_ASSIGN_OR_RETURN(const std::string text, read_file(log));
  std::filesystem::remove(log, ignored);
  if (code != 0) return Error{ErrorCode::kTrainerFailed, text};
  const auto json = parse_control_json(text);
  if (!json.ok()) return Error{ErrorCode::kProtocol, "the trainer's export did not say what it wrote: " + text};
  return exported_step(*json);
}

Status DemoIsland::kill() {
  ATOLL_ASSIGN_OR_RETURN(const IslandState now, state());
  if (now.pid > 1) ::kill(static_cast<pid_t>(now.pid), SIGKILL);
  process_.send_signal(SIGKILL);
  ATOLL_RETURN_IF_ERROR(process_.wait(Deadline::after(std::chrono::seconds(5))));
  return ok_status();
}

void DemoIsland::remove_data() {
  std::error_code ignored;
  std::filesystem::remove_all(home_.data(), ignored);
}

}  // namespace atl
