#include "app/agent/files/diag_bundle.h"

#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/agent/files/checkpoint_list.h"
#include "app/agent/files/log_reader.h"
#include "app/agent/files/redaction.h"
#include "app/agent/files/tar_archive.h"
#include "app/agent/history/history_queries.h"
#include "app/config/config_queries.h"
#include "net/base/file.h"
#include "net/base/unix_time.h"

namespace atl {
namespace {

constexpr std::size_t kMaxLogBytes = 2u << 20;

std::string pretty(const Result<nlohmann::json>& json) {
  if (!json.ok()) return json.error().message + "\n";
  return json->dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string system_text(const AgentHome& home) {
  utsname name{};
  struct sysinfo info {};
  (void)::uname(&name);
  (void)::sysinfo(&info);
  std::string text = fmt::format("atoll {}\n{} {} {}\nprocessors {}\nmemory {} MB, up {} s\n", ATOLL_VERSION,
                                 name.sysname, name.release, name.machine, std::thread::hardware_concurrency(),
                                 info.totalram / 1'000'000 * info.mem_unit, info.uptime);
  std::error_code failed;
  for (const auto& [what, directory] : {std::pair{"island", home.island.directory}, std::pair{"state", home.state}}) {
    const auto space = std::filesystem::space(directory, failed);
    text += failed ? fmt::format("{} {}: {}\n", what, directory.string(), failed.message())
                   : fmt::format("{} {}: {} MB free of {} MB\n", what, directory.string(), space.available / 1'000'000,
                                 space.capacity / 1'000'000);
  }
  for (const char* driver : {"/proc/driver/nvidia/version", "/etc/os-release"}) {
    const auto content = read_file(driver, 64 * 1024);
    text += fmt::format("\n{}:\n{}", driver, content.ok() ? *content : "not there\n");
  }
  return text;
}

std::string history_text(const AgentHome& home) {
  const auto store = HistoryStore::open_to_read(home.history());
  if (!store.ok()) return store.error().message + "\n";
  return pretty(list_rounds(**store, {{"limit", 200}})) + pretty(list_peers(**store, nlohmann::json::object()));
}

std::string join_text(const AgentHome& home) {
  const auto join = read_file(home.island.join_file(), 64 * 1024);
  return join.ok() ? *join : join.error().message + "\n";
}

std::string log_text(const std::string& name, const std::filesystem::path& path) {
  LogReader reader({{name, path}});
  const auto lines = reader.read("");
  if (!lines.ok()) return lines.error().message + "\n";
  std::string text;
  for (const LogLine& line : *lines) text += line.text + "\n";
  if (text.size() <= kMaxLogBytes) return text;
  // From the beginning of a line: what is left of one may begin behind the word that marks a secret.
  const std::size_t end = text.find('\n', text.size() - kMaxLogBytes);
  return end == std::string::npos ? std::string() : text.substr(end + 1);
}

}  // namespace

std::vector<DiagEntry> collect_diagnostics(const AgentHome& home, const ConfigSources& config,
                                           const nlohmann::json& state) {
  const auto checkpoints = list_checkpoints(home.island);
  const auto config_file = read_file(config.file, 256 * 1024);
  std::vector<DiagEntry> entries = {
      {"system.txt", system_text(home)},
      {"state.json", state.is_null() ? "no agent is running\n" : pretty(state)},
      {"join.json", join_text(home)},
      {"config.json", pretty(get_config(config, nlohmann::json::object()))},
      {"config.toml", config_file.ok() ? *config_file : config_file.error().message + "\n"},
      {"history.json", history_text(home)},
      {"checkpoints.json", checkpoints.ok() ? pretty(checkpoints_json(*checkpoints, list_logged_rounds(home.island)))
                                            : checkpoints.error().message + "\n"},
      {"agent.log", log_text("agent", home.agent_log())},
      {"trainer.log", log_text("trainer", home.trainer_log())},
  };
  const char* user_home = std::getenv("HOME");
  for (DiagEntry& entry : entries) entry.content = redacted(entry.content, user_home != nullptr ? user_home : "");
  return entries;
}

Status write_diagnostics(const std::filesystem::path& file, const std::vector<DiagEntry>& entries) {
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(file, ignored))) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is there already; remove it or choose another name with -o FILE", file.string())};
  }
  TarArchive archive(unix_seconds_now());
  for (const DiagEntry& entry : entries) archive.add("atoll-diag/" + entry.name, entry.content);
  return write_file_atomically(file, archive.take(), FileMode::kPrivate);
}

nlohmann::json diagnostics_json(const std::filesystem::path& file, const std::vector<DiagEntry>& entries) {
  nlohmann::json list = nlohmann::json::array();
  std::uint64_t bytes = 0;
  for (const DiagEntry& entry : entries) {
    list.push_back({{"name", entry.name}, {"bytes", entry.content.size()}});
    bytes += entry.content.size();
  }
  return {{"file", file.string()}, {"bytes", bytes}, {"entries", std::move(list)}};
}

Result<nlohmann::json> create_diagnostics(const AgentHome& home, const ConfigSources& config,
                                          const nlohmann::json& state, const nlohmann::json& params) {
  const auto file = params.find("file");
  if (file == params.end() || !file->is_string() || !std::filesystem::path(file->get<std::string>()).is_absolute()) {
    return Error{ErrorCode::kInvalidArgument, "diag.create needs {\"file\": \"/absolute/path.tar\"}"};
  }
  const auto entries = collect_diagnostics(home, config, state);
  ATOLL_RETURN_IF_ERROR(write_diagnostics(file->get<std::string>(), entries));
  return diagnostics_json(file->get<std::string>(), entries);
}

}  // namespace atl
