// hub_init and create_invite: what needs no server.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <random>

#include "net/base/encoding.h"
#include "net/base/file.h"
#include "net/base/json_reader.h"
#include "net/base/printable.h"
#include "net/control/home.h"
#include "net/data/dataset.h"
#include "net/enrol/enroller.h"
#include "net/hub/hub.h"
#include "net/hub/hub_home.h"
#include "net/hub/hub_store.h"
#include "net/hub/initial_state.h"
#include "net/model/config.h"
#include "net/model/layout.h"
#include "net/tls/authority.h"

namespace atl {
namespace {

constexpr int kHubFileVersion = 1;
constexpr std::size_t kMaxHubFileBytes = 64u << 10;
constexpr int kMaxHubFileDepth = 2;
constexpr std::int64_t kQuickParameters = 200'000'000;  // whose initial state is hashed within seconds

std::string random_run_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

Status save_hub_file(const HubHome& home, const HubFile& hub) {
  nlohmann::json file = {{"version", kHubFileVersion}, {"dataset_directory", hub.dataset.string()}};
  if (!hub.operator_name.empty()) file["operator"] = hub.operator_name;
  return write_file_atomically(
      home.hub_file(), file.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n", FileMode::kPrivate);
}

}  // namespace

Result<RunConfig> hub_init(const HubInitOptions& options) {
  const HubHome home{options.directory};
  if (std::filesystem::exists(home.run_file())) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} holds a hub already; serve it with `atoll hub serve`, or choose another directory",
                             options.directory.string())};
  }
  if (options.operator_name.size() > kMaxOperatorName) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the operator's name has {} bytes; give a shorter one, of at most {}",
                             options.operator_name.size(), kMaxOperatorName)};
  }
  RunConfig run = options.run;
  run.run_id = random_run_id();
  ATOLL_ASSIGN_OR_RETURN(const Dataset dataset, Dataset::open(options.dataset_directory));
  run.dataset_json = dataset.manifest().to_json();
  ATOLL_RETURN_IF_ERROR(run.validate());
  ATOLL_ASSIGN_OR_RETURN(const ModelConfig model, model_config_from_json(run.model_json));
  ATOLL_RETURN_IF_ERROR(check_trainable(model, dataset.manifest().vocab_size, run.sequence_length));
  ATOLL_RETURN_IF_ERROR(make_directories(home.directory, FileMode::kPrivate));
  ATOLL_ASSIGN_OR_RETURN(const CertificateAuthority authority, CertificateAuthority::create(run.run_id));
  ATOLL_RETURN_IF_ERROR(make_directories(home.authority(), FileMode::kPrivate));
  ATOLL_RETURN_IF_ERROR(authority.save(home.authority()));
  ATOLL_ASSIGN_OR_RETURN(const Identity identity, authority.make_hub_identity(Validity::starting(
                                                      std::chrono::system_clock::now(), kHubCertificateLifetime)));
  ATOLL_RETURN_IF_ERROR(save_identity(home.identity(), identity));
  ATOLL_RETURN_IF_ERROR(
      save_hub_file(home, {std::filesystem::absolute(options.dataset_directory), options.operator_name}));
  ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<HubStore> store, HubStore::open(home.database()));
  if (!options.initial_hash.empty()) {
    ATOLL_RETURN_IF_ERROR(store->save(PersistStateHash{OuterStep{0}, options.initial_hash, std::nullopt}));
  }
  // A large model's takes minutes: the hub does it when it first serves.
  const bool drawn = options.initial_hash.empty();
  if (drawn && canonical_layout(model).numel <= kQuickParameters)
    ATOLL_RETURN_IF_ERROR(save_initial_state_hash(run, *store));
  // Last: a directory with it is a whole hub.
  ATOLL_RETURN_IF_ERROR(write_file_atomically(home.run_file(), run.to_json().dump(2) + "\n", FileMode::kPrivate));
  return run;
}

Result<InviteReport> create_invite(const std::filesystem::path& hub_directory, const InviteOptions& options) {
  const HubHome home{hub_directory};
  ATOLL_ASSIGN_OR_RETURN(const RunConfig run, load_run(home));
  ATOLL_ASSIGN_OR_RETURN(const CertificateAuthority authority, CertificateAuthority::load(home.authority()));
  ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<HubStore> store, HubStore::open(home.database()));
  std::vector<Address> addresses = options.addresses;
  if (addresses.empty()) {
    ATOLL_ASSIGN_OR_RETURN(addresses, store->addresses());
  }
  if (addresses.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "it is not known where islands reach this hub: serve it first, or give its address (HOST:PORT)"};
  }
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  ATOLL_ASSIGN_OR_RETURN(const Invite invite, make_invite(authority, store->enrolments(), run.name, addresses,
                                                          options.uses, now + options.valid_for));
  ATOLL_ASSIGN_OR_RETURN(std::string text, encode_invite(invite));
  return InviteReport{std::move(text), invite.id, std::move(addresses), invite.expires.time_since_epoch().count()};
}

Result<std::vector<EnrolledIslandReport>> enrolled_islands(const std::filesystem::path& hub_directory) {
  const HubHome home{hub_directory};
  ATOLL_RETURN_IF_ERROR(load_run(home));
  ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<HubStore> store, HubStore::open(home.database()));
  ATOLL_ASSIGN_OR_RETURN(const std::vector<EnrolledIsland> islands, store->enrolments().islands());
  std::vector<EnrolledIslandReport> reports;
  reports.reserve(islands.size());
  for (const EnrolledIsland& island : islands) {
    reports.push_back(
        {island.id.value, island.display_name, island.enrolled_at.time_since_epoch().count(), island.removed});
  }
  return reports;
}

Status remove_enrolled_island(const std::filesystem::path& hub_directory, const std::string& island) {
  const HubHome home{hub_directory};
  ATOLL_RETURN_IF_ERROR(load_run(home));
  ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<HubStore> store, HubStore::open(home.database()));
  return store->enrolments().remove_island(IslandId{island});
}

Status move_dataset(const std::filesystem::path& hub_directory, const std::filesystem::path& dataset) {
  const HubHome home{hub_directory};
  ATOLL_ASSIGN_OR_RETURN(const RunConfig run, load_run(home));
  ATOLL_ASSIGN_OR_RETURN(const Dataset opened, Dataset::open(dataset));
  if (opened.manifest().to_json() != run.dataset_json) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} is another dataset than that of run {}, whose islands have agreed on its hashes; copy the "
                    "run's own there",
                    dataset.string(), run.name)};
  }
  ATOLL_ASSIGN_OR_RETURN(HubFile hub, load_hub_file(home));
  hub.dataset = std::filesystem::absolute(dataset);
  return save_hub_file(home, hub);
}

Result<RunConfig> load_run(const HubHome& home) {
  Result<std::string> text = read_file(home.run_file(), 1u << 20);
  if (!text.ok()) {
    if (text.error().code != ErrorCode::kNotFound) return text.error();
    return Error{ErrorCode::kNotFound,
                 fmt::format("{} holds no hub; make one with `atoll hub init`", home.directory.string())};
  }
  auto run = RunConfig::from_json(*text);
  if (!run.ok()) return run.error().with_context(home.run_file().string());
  return run;
}

Result<UniqueFd> lock_home(const HubHome& home) {
  UniqueFd lock(::open(home.run_file().c_str(), O_RDONLY | O_CLOEXEC));
  if (!lock) return errno_error("open", home.run_file());
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return Error{ErrorCode::kPermissionDenied,
                 fmt::format("another process serves the hub in {}; stop that one first", home.directory.string())};
  }
  return lock;
}

Result<HubFile> load_hub_file(const HubHome& home) {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, read_file(home.hub_file(), kMaxHubFileBytes));
  const auto corrupt = [&](const std::string& why) {
    return Error{ErrorCode::kCorrupt, fmt::format("{} is not a hub.json of version {}: {}; restore it from a backup",
                                                  home.hub_file().string(), kHubFileVersion, why)};
  };
  const auto file = parse_bounded_json(text, kMaxHubFileBytes, kMaxHubFileDepth);
  if (!file.ok()) return corrupt(file.error().message);
  JsonReader reader(*file);
  int version = 0;
  std::string dataset, operator_name;
  reader.field("version", version);
  reader.bounded("dataset_directory", dataset, kMaxHubFileBytes);
  if (reader.has_value("operator")) reader.bounded("operator", operator_name, kMaxHubFileBytes);
  if (reader.status().ok() && version != kHubFileVersion) reader.fail(fmt::format("it says version {}", version));
  if (!reader.status().ok()) return corrupt(reader.status().error().message);
  return HubFile{dataset, printable(operator_name, kMaxOperatorName)};
}

Result<std::filesystem::path> load_dataset_directory(const HubHome& home) {
  ATOLL_ASSIGN_OR_RETURN(const HubFile hub, load_hub_file(home));
  return hub.dataset;
}

}  // namespace atl
