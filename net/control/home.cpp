#include "net/control/home.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/base/printable.h"
#include "net/control/json_fields.h"

namespace atl {
namespace {

constexpr std::size_t kMaxHubAddresses = 16;
constexpr std::size_t kMaxJoinFileBytes = 64 * 1024;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// The XDG specification: a relative path there is to be ignored.
Result<std::filesystem::path> xdg_directory(const char* variable, const char* below_home, const char* leaf) {
  const std::filesystem::path base = environment(variable);
  if (base.is_absolute()) return base / leaf;
  const std::string home = environment("HOME");
  if (home.empty()) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("neither {} nor HOME is set; say which directory to use, for instance with --home DIR", variable)};
  }
  return std::filesystem::path(home) / below_home / leaf;
}

Result<std::filesystem::path> home_directory(const char* variable, const char* leaf) {
  const std::string chosen = environment(variable);
  if (!chosen.empty()) return std::filesystem::absolute(chosen);
  return xdg_directory("XDG_DATA_HOME", ".local/share", leaf);
}

}  // namespace

Result<DeviceChoice> parse_device_choice(std::string_view text) {
  const auto choice = parse_word<DeviceChoice>(text);
  if (choice != DeviceChoice::kUnknown) return choice;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("device '{}' is none: choose auto, processor or gpu", printable(text, 32))};
}

Result<PrecisionChoice> parse_precision_choice(std::string_view text) {
  const auto choice = parse_word<PrecisionChoice>(text);
  if (choice != PrecisionChoice::kUnknown) return choice;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("precision '{}' is none: choose auto, fp32 or bf16", printable(text, 32))};
}

std::string JoinFile::to_json() const {
  nlohmann::json addresses = nlohmann::json::array();
  for (const Address& address : hub_addresses) addresses.push_back(to_string(address));
  const nlohmann::json json = {{"version", kVersion},
                               {"run_id", run_id},
                               {"run_name", run_name},
                               {"hub_addresses", addresses},
                               {"display_name", display_name},
                               {"bind", to_string(bind)},
                               {"advertised_host", advertised_host},
                               {"local_ranks", local_ranks},
                               {"threads", threads},
                               {"micro_batch", micro_batch},
                               {"device", word_of(device)},
                               {"precision", word_of(precision)},
                               {"region", region},
                               {"gpus", gpus}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Result<JoinFile> JoinFile::from_json(std::string_view text) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json json, parse_control_json(text));
  JsonFields fields(json, "join.json");
  int version = 0;
  ATOLL_RETURN_IF_ERROR(fields.read("version", version).status());
  if (version != kVersion) {
    return Error{ErrorCode::kVersionUnsupported,
                 fmt::format("join.json is of version {}, this program reads {}; use the Atoll that wrote it", version,
                             kVersion)};
  }
  JoinFile join;
  std::string bind;
  fields.read("run_id", join.run_id).read("run_name", join.run_name).read("display_name", join.display_name);
  fields.read("bind", bind).read("advertised_host", join.advertised_host);
  fields.read("local_ranks", join.local_ranks).read("threads", join.threads);
  std::optional<std::string> gpus, region, precision, device;  // those who joined with an older program said none
  std::optional<int> micro_batch;
  fields.read("gpus", gpus)
      .read("region", region)
      .read("micro_batch", micro_batch)
      .read("precision", precision)
      .read("device", device);
  join.region = region.value_or("");
  join.gpus = gpus.value_or(join.gpus);
  join.micro_batch = std::max(0, micro_batch.value_or(0));
  const nlohmann::json* addresses = fields.array("hub_addresses", kMaxHubAddresses);
  ATOLL_RETURN_IF_ERROR(fields.status());
  for (const nlohmann::json& address : *addresses) {
    if (!address.is_string()) return Error{ErrorCode::kProtocol, "join.json has a hub address that is not a string"};
    ATOLL_ASSIGN_OR_RETURN(join.hub_addresses.emplace_back(), parse_address(address.get<std::string>()));
  }
  ATOLL_ASSIGN_OR_RETURN(join.bind, parse_address(bind));
  if (device) {
    ATOLL_ASSIGN_OR_RETURN(join.device, parse_device_choice(*device));
  }
  if (precision) {
    ATOLL_ASSIGN_OR_RETURN(join.precision, parse_precision_choice(*precision));
  }
  return join;
}

namespace {

// Of a home whose owner left the run.
Result<JoinFile> load_left_file(const IslandHome& home) {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, read_file(home.left_file(), kMaxJoinFileBytes));
  return JoinFile::from_json(text);
}

}  // namespace

Result<JoinFile> load_join_file(const std::filesystem::path& path) {
  const auto text = read_file(path, kMaxJoinFileBytes);
  if (!text.ok()) {
    if (text.error().code != ErrorCode::kNotFound) return text.error();
    const auto before = load_left_file({path.parent_path()});
    if (before.ok()) {
      return Error{ErrorCode::kNotJoined, fmt::format("{} has left run {}; come back to it with: atoll join",
                                                      path.parent_path().string(), before->run_name)};
    }
    return Error{ErrorCode::kNotJoined,
                 fmt::format("{} has joined no run; join one with: atoll join --invite-stdin", path.parent_path().string())};
  }
  auto join = JoinFile::from_json(*text);
  if (!join.ok()) return join.error().with_context(path.string());
  return join;
}

Result<JoinFile> load_membership(const IslandHome& home) {
  auto join = load_join_file(home.join_file());
  if (join.ok() || join.error().code != ErrorCode::kNotJoined) return join;
  auto before = load_left_file(home);
  return before.ok() ? before : join;
}

Status save_join_file(const std::filesystem::path& path, const JoinFile& join) {
  return write_file_atomically(path, join.to_json(), FileMode::kPrivate);
}

AgentHome agent_home_in(const std::filesystem::path& directory) {
  return {directory / "agent.sock", directory / "config.toml", directory / "state", IslandHome{directory}};
}

AgentHome system_agent_home() {
  return {"/run/atoll/control.sock", "/etc/atoll/config.toml", "/var/lib/atoll/state", IslandHome{"/var/lib/atoll"}};
}

std::filesystem::path island_directory(const std::filesystem::path& given) {
  const IslandHome itself{given}, within = TrainHome{given}.island();
  std::error_code ignored;
  const bool is_one =
      std::filesystem::exists(itself.join_file(), ignored) || std::filesystem::exists(itself.left_file(), ignored);
  return !is_one && std::filesystem::exists(within.join_file(), ignored) ? within.directory : given;
}

std::filesystem::path hub_directory(const std::filesystem::path& given) {
  const HubHome itself{given}, within = TrainHome{given}.hub();
  std::error_code ignored;
  const bool is_one = std::filesystem::exists(itself.run_file(), ignored);
  return !is_one && std::filesystem::exists(within.run_file(), ignored) ? within.directory : given;
}

Result<AgentHome> find_agent_home(const std::string& given) {
  const std::string directory = given.empty() ? environment("ATOLL_HOME") : given;
  if (!directory.empty()) return agent_home_in(island_directory(std::filesystem::absolute(directory)));
  ATOLL_ASSIGN_OR_RETURN(const auto state, state_directory());
  ATOLL_ASSIGN_OR_RETURN(const auto config, xdg_directory("XDG_CONFIG_HOME", ".config", "atoll"));
  ATOLL_ASSIGN_OR_RETURN(const auto island, default_island_home());
  const std::filesystem::path runtime = environment("XDG_RUNTIME_DIR");
  const auto sockets = runtime.is_absolute() ? runtime / "atoll" : state;
  return AgentHome{sockets / "control.sock", config / "config.toml", state, IslandHome{island}};
}

Result<std::filesystem::path> default_island_home() { return home_directory("ATOLL_HOME", "atoll"); }
Result<std::filesystem::path> default_hub_home() { return home_directory("ATOLL_HUB_HOME", "atoll-hub"); }
Result<std::filesystem::path> cache_directory() { return xdg_directory("XDG_CACHE_HOME", ".cache", "atoll"); }
Result<std::filesystem::path> state_directory() { return xdg_directory("XDG_STATE_HOME", ".local/state", "atoll"); }

}  // namespace atl
