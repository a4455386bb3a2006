// hub_init and create_invite: what needs no server.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <random>

#include "net/base/encoding.h"
#include "net/base/file.h"
#include "net/base/json_reader.h"
#include "net/base/printable.h"
#include "net/control/home.h"
#include "net/enrol/enroller.h"
#include "net/hub/base_model.h"
#include "net/hub/evaluation_files.h"
#include "net/hub/hub.h"
#include "net/hub/hub_home.h"
#include "net/hub/hub_store.h"
#include "net/hub/initial_state.h"
#include "net/model/config.h"
#include "net/model/train_only.h"
#include "net/tls/authority.h"

namespace atl {
namespace {

constexpr int kHubFileVersion = 2;
constexpr int kOneDirectoryVersion = 1;  // of a run without sources
constexpr std::size_t kMaxHubFileBytes = 64u << 10;
constexpr int kMaxHubFileDepth = 2;
constexpr std::int64_t kQuickParameters = 200'000'000;  // whose initial state is hashed within seconds

std::string random_run_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

Status save_hub_file(const HubHome& home, const HubFile& hub) {
  nlohmann::json file = {{"version", kHubFileVersion}};
  for (const auto& [source, directory] : hub.datasets) file["datasets"][source] = directory.string();
  if (!hub.operator_name.empty()) file["operator"] = hub.operator_name;
  return write_file_atomically(
      home.hub_file(), file.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n", FileMode::kPrivate);
}

// What can be known before the data is read.
Status check_run(RunConfig run, const HubInitOptions& options) {
  run.dataset_json = "{}";  // made later
  ATOLL_RETURN_IF_ERROR(run.validate());
  ATOLL_ASSIGN_OR_RETURN(const ModelConfig model, model_config_from_json(run.model_json));
  ATOLL_RETURN_IF_ERROR(check_train_only(model, run.train_only));
  for (const HubDataSource& source : options.data) {
    ATOLL_ASSIGN_OR_RETURN(const DatasetManifest manifest, DatasetManifest::load(source.directory));
    ATOLL_RETURN_IF_ERROR(check_trainable(model, manifest.vocab_size, run.sequence_length));
  }
  return ok_status();
}

// Copied into the hub's home, which serves it; its hash is the run's.
Status begin_with(const BaseModel& model, const HubHome& home, RunConfig& run) {
  run.initial_state = std::string(RunConfig::kHubScheme) + model.name();
  ATOLL_ASSIGN_OR_RETURN(run.initial_state_sha256, write_base_model(model, home));
  return run.validate();
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
  if (!options.evaluation.empty()) run.evaluation.every = options.evaluate_every;
  for (const EvaluationFile& file : options.evaluation) run.evaluation.tasks.push_back(file.task);
  ATOLL_RETURN_IF_ERROR(check_run(run, options));
  ATOLL_RETURN_IF_ERROR(make_directories(home.directory, FileMode::kPrivate));
  ATOLL_ASSIGN_OR_RETURN(const RunDataset data, make_run_dataset(options.data, options.weights, run.sequence_length,
                                                                 home, options.on_indexing));
  run.dataset_json = data.to_json();
  ATOLL_RETURN_IF_ERROR(run.validate());
  ATOLL_ASSIGN_OR_RETURN(const ModelConfig model, model_config_from_json(run.model_json));
  if (options.base_model != nullptr && options.base_model->config() != model) {
    return Error{ErrorCode::kInvalidArgument, "the run's model is not the one with which it is to begin"};
  }
  if (options.base_model != nullptr) ATOLL_RETURN_IF_ERROR(begin_with(*options.base_model, home, run));
  ATOLL_RETURN_IF_ERROR(keep_evaluation_files(options.evaluation, home));
  ATOLL_ASSIGN_OR_RETURN(const CertificateAuthority authority, CertificateAuthority::create(run.run_id));
  ATOLL_RETURN_IF_ERROR(make_directories(home.authority(), FileMode::kPrivate));
  ATOLL_RETURN_IF_ERROR(authority.save(home.authority()));
  ATOLL_ASSIGN_OR_RETURN(const Identity identity, authority.make_hub_identity(authority.validity(
                                                      std::chrono::system_clock::now(), kHubCertificateLifetime)));
  ATOLL_RETURN_IF_ERROR(save_identity(home.identity(), identity));
  HubFile hub{{}, options.operator_name};
  for (std::size_t i = 0; i < options.data.size(); ++i) {
    hub.datasets[data.sources[i].name] = std::filesystem::absolute(options.data[i].directory);
  }
  ATOLL_RETURN_IF_ERROR(save_hub_file(home, hub));
  ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<HubStore> store, HubStore::open(home.database()));
  if (!options.initial_hash.empty()) {
    ATOLL_RETURN_IF_ERROR(store->save(PersistStateHash{OuterStep{0}, options.initial_hash, std::nullopt}));
  }
  // A large model's takes minutes: the hub does it when it first serves.
  const bool drawn = options.initial_hash.empty() && options.base_model == nullptr;
  if (options.base_model != nullptr || (drawn && canonical_layout(model).numel <= kQuickParameters)) {
    ATOLL_RETURN_IF_ERROR(save_initial_state_hash(run, *store));
  }
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
                 "it is not known where islands reach this hub: start it first (atoll hub serve), or say it: --address "
                 "HOST:PORT"};
  }
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  ATOLL_ASSIGN_OR_RETURN(const Invite invite, make_invite(authority, store->enrolments(), run.name, addresses,
                                                          options.uses, now + options.valid_for));
  ATOLL_ASSIGN_OR_RETURN(std::string text, encode_invite(invite));
  return InviteReport{std::move(text), invite.id, std::move(addresses), invite.expires.time_since_epoch().count()};
}

Result<std::vector<GivenInvite>> given_invites(const std::filesystem::path& hub_directory) {
  const HubHome home{hub_directory};
  ATOLL_RETURN_IF_ERROR(load_run(home));
  ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<HubStore> store, HubStore::open(home.database()));
  ATOLL_ASSIGN_OR_RETURN(const std::vector<InviteRecord> invites, store->enrolments().invites());
  std::vector<GivenInvite> given;
  given.reserve(invites.size());
  for (const InviteRecord& invite : invites) {
    given.push_back({invite.id, invite.uses_left, invite.expires.time_since_epoch().count(), invite.revoked()});
  }
  return given;
}

Status revoke_invite(const std::filesystem::path& hub_directory, const std::string& id) {
  const HubHome home{hub_directory};
  ATOLL_RETURN_IF_ERROR(load_run(home));
  ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<HubStore> store, HubStore::open(home.database()));
  return store->enrolments().revoke(id);
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

Status move_dataset(const std::filesystem::path& hub_directory, const std::string& source,
                    const std::filesystem::path& dataset) {
  const HubHome home{hub_directory};
  ATOLL_ASSIGN_OR_RETURN(const RunConfig run, load_run(home));
  ATOLL_ASSIGN_OR_RETURN(HubFile hub, load_hub_file(home));
  const auto found = source.empty() && hub.datasets.size() == 1 ? hub.datasets.begin() : hub.datasets.find(source);
  if (found == hub.datasets.end()) {
    std::vector<std::string> names;
    for (const auto& [name, directory] : hub.datasets) names.push_back(name);
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the run's data has no source '{}'; say one of them, NAME=DIR: {}", source,
                             fmt::join(names, ", "))};
  }
  ATOLL_RETURN_IF_ERROR(check_moved_data(run, found->first, dataset));
  found->second = std::filesystem::absolute(dataset);
  return save_hub_file(home, hub);
}

Result<RunConfig> load_run(const HubHome& home) {
  Result<std::string> text = read_file(home.run_file(), 1u << 20);
  if (!text.ok()) {
    if (text.error().code != ErrorCode::kNotFound) return text.error();
    return Error{ErrorCode::kNotFound,
                 fmt::format("{} holds no hub; make one with `atoll hub init`", home.directory.string())};
  }
  // A new one would know of no island and of no round: the run would be another, with the same name.
  std::error_code failed;
  if (!std::filesystem::exists(home.database(), failed) && !failed) {
    return Error{
        ErrorCode::kNotFound,
        fmt::format("{} is gone, which holds the run's islands and rounds; move what is left in {} aside and "
                    "restore the hub from a backup, however old: `atoll hub restore FILE`. Its islands show it "
                    "what it missed",
                    home.database().string(), home.directory.string())};
  }
  auto run = RunConfig::from_json(*text);
  if (!run.ok()) return run.error().with_context(home.run_file().string());
  return run;
}

Status save_run(const HubHome& home, const RunConfig& run) {
  ATOLL_ASSIGN_OR_RETURN(const UniqueFd lock, lock_home(home));
  return write_file_atomically(home.run_file(), run.to_json().dump(2) + "\n", FileMode::kPrivate);
}

Result<std::uint32_t> committed_rounds(const HubHome& home) {
  ATOLL_RETURN_IF_ERROR(load_run(home));
  ATOLL_ASSIGN_OR_RETURN(const auto store, HubStore::open(home.database()));
  ATOLL_ASSIGN_OR_RETURN(const auto last, store->rounds(1));
  return last.empty() ? 0 : last.back().round + 1;
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
  std::string operator_name;
  HubFile hub;
  reader.field("version", version);
  if (version == kOneDirectoryVersion) {
    std::string directory;
    reader.bounded("dataset_directory", directory, kMaxHubFileBytes);
    hub.datasets[""] = directory;
  } else if (const nlohmann::json* datasets = reader.find("datasets")) {
    JsonReader directories(*datasets, reader.path_of("datasets"));
    for (const auto& [source, directory] : datasets->items()) {
      std::string path;
      directories.bounded(source.c_str(), path, kMaxHubFileBytes);
      hub.datasets[source] = path;
    }
    if (!directories.status().ok()) reader.fail(directories.status().error());
  }
  if (reader.has_value("operator")) reader.bounded("operator", operator_name, kMaxHubFileBytes);
  if (reader.status().ok() && version != kOneDirectoryVersion && version != kHubFileVersion) {
    reader.fail(fmt::format("it says version {}", version));
  }
  if (reader.status().ok() && hub.datasets.empty()) reader.fail("it names no data");
  if (!reader.status().ok()) return corrupt(reader.status().error().message);
  hub.operator_name = printable(operator_name, kMaxOperatorName);
  return hub;
}

}  // namespace atl
