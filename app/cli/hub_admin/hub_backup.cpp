#include "app/cli/hub_admin/hub_backup.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "app/agent/files/tar_archive.h"
#include "app/agent/files/tar_reader.h"
#include "net/base/file.h"
#include "net/base/new_file.h"
#include "net/base/plain_name.h"
#include "net/base/sqlite.h"
#include "net/base/unix_time.h"
#include "net/control/home.h"
#include "net/tls/authority.h"
#include "net/tls/identity.h"
#include "net/wire/run_config.h"

namespace atl {
namespace {

constexpr std::size_t kMaxFileBytes = 1u << 30;
constexpr const char* kDatabase = "hub.sqlite";

using Files = std::map<std::string, std::string>;  // by path in the hub's directory

Status read_directory(const std::filesystem::path& directory, const std::string& prefix, Files& files) {
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(directory, failed)) {
    if (!entry.is_regular_file()) continue;
    ATOLL_ASSIGN_OR_RETURN(files[prefix + entry.path().filename().string()], read_file(entry.path(), kMaxFileBytes));
  }
  if (failed) return Error{ErrorCode::kIo, fmt::format("cannot read {}: {}", directory.string(), failed.message())};
  return ok_status();
}

bool is_known(const std::string& name) {
  const auto directly_in = [&](std::string_view directory) {
    return name.starts_with(directory) && name.find('/', directory.size()) == std::string::npos &&
           name.find("..") == std::string::npos && name.size() > directory.size();
  };
  return name == "run.json" || name == "hub.json" || name == kDatabase || directly_in("authority/") ||
         directly_in("identity/") || directly_in("trees/") || directly_in("evaluation/");
}

Result<HubBackupReport> examine(const HubHome& home) {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, read_file(home.run_file(), 1u << 20));
  ATOLL_ASSIGN_OR_RETURN(const RunConfig run, RunConfig::from_json(text));
  ATOLL_RETURN_IF_ERROR(CertificateAuthority::load(home.authority()));
  ATOLL_RETURN_IF_ERROR(load_identity(home.identity()));
  ATOLL_ASSIGN_OR_RETURN(Database database, Database::open(home.database()));
  ATOLL_ASSIGN_OR_RETURN(Statement check, database.prepare("PRAGMA integrity_check(1)"));
  ATOLL_ASSIGN_OR_RETURN(const bool answered, check.step());
  if (!answered || check.text(0) != "ok") return Error{ErrorCode::kCorrupt, "its database is damaged"};
  ATOLL_ASSIGN_OR_RETURN(Statement count, database.prepare("SELECT count(*) FROM round_commit"));
  ATOLL_ASSIGN_OR_RETURN(const bool row, count.step());
  return HubBackupReport{.run_id = run.run_id,
                         .run_name = run.name,
                         .rounds = row ? static_cast<std::uint32_t>(count.integer(0)) : 0,
                         .begins_at_hub = run.begins_at_hub()};
}

// Of one after the other in a directory; sorted by name they are by age.
Result<std::string> dated_name(const HubHome& home) {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, read_file(home.run_file(), 1u << 20));
  ATOLL_ASSIGN_OR_RETURN(const RunConfig run, RunConfig::from_json(text));
  return fmt::format("hub-{}-{:%Y-%m-%d-%H%M%S}.tar", is_plain_name(run.name) ? run.name : run.run_id,
                     fmt::gmtime(static_cast<std::time_t>(unix_seconds_now())));
}

}  // namespace

Result<HubBackupReport> back_up_hub(const std::filesystem::path& hub_directory, const std::filesystem::path& place,
                                    bool force) {
  const HubHome home{hub_directory};
  std::error_code ignored;
  if (!std::filesystem::exists(home.run_file(), ignored)) {
    return Error{ErrorCode::kNotFound, fmt::format("{} holds no hub", hub_directory.string())};
  }
  const bool in_directory = std::filesystem::is_directory(place, ignored);
  ATOLL_ASSIGN_OR_RETURN(const std::string dated, in_directory ? dated_name(home) : Result<std::string>(""));
  const std::filesystem::path file = in_directory ? place / dated : place;
  if (!force && std::filesystem::exists(std::filesystem::symlink_status(file, ignored))) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is there already; choose another name, a directory, where it gets one by the time, or "
                             "--force to put this one in its place",
                             file.string())};
  }
  Files files;
  ATOLL_RETURN_IF_ERROR(read_directory(home.authority(), "authority/", files));
  ATOLL_RETURN_IF_ERROR(read_directory(home.identity(), "identity/", files));
  // A run without sources has no trees, one that asks nothing no tasks.
  for (const char* name : {"trees", "evaluation"}) {
    if (!std::filesystem::exists(home.directory / name, ignored)) continue;
    ATOLL_RETURN_IF_ERROR(read_directory(home.directory / name, std::string(name) + "/", files));
  }
  ATOLL_ASSIGN_OR_RETURN(files["run.json"], read_file(home.run_file(), 1u << 20));
  ATOLL_ASSIGN_OR_RETURN(files["hub.json"], read_file(home.hub_file(), 1u << 20));
  {
    // One moment of the database, while the hub goes on writing.
    ATOLL_ASSIGN_OR_RETURN(const NewDirectory beside, NewDirectory::create(file, FileMode::kPrivate));
    ATOLL_ASSIGN_OR_RETURN(Database database, Database::open(home.database()));
    ATOLL_ASSIGN_OR_RETURN(Statement copy, database.prepare("VACUUM INTO ?"));
    ATOLL_RETURN_IF_ERROR(copy.bind((beside.path() / kDatabase).string()));
    ATOLL_RETURN_IF_ERROR(copy.run());
    ATOLL_ASSIGN_OR_RETURN(files[kDatabase], read_file(beside.path() / kDatabase, kMaxFileBytes));
  }
  TarArchive archive(unix_seconds_now());
  for (const auto& [name, content] : files) archive.add(name, content);
  const std::string bytes = archive.take();
  ATOLL_ASSIGN_OR_RETURN(HubBackupReport report, examine(home));
  ATOLL_RETURN_IF_ERROR(write_file_atomically(file, bytes, FileMode::kPrivate));
  report.bytes = bytes.size();
  report.file = file;
  return report;
}

Result<HubBackupReport> restore_hub(const std::filesystem::path& file, const std::filesystem::path& hub_directory) {
  std::error_code failed;
  if (std::filesystem::exists(hub_directory, failed) && !std::filesystem::is_empty(hub_directory, failed)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is not empty; a backup is restored into a new directory, with --home DIR",
                             hub_directory.string())};
  }
  ATOLL_ASSIGN_OR_RETURN(const std::string bytes, read_file(file, kMaxFileBytes));
  const auto files = read_tar(bytes);
  if (!files.ok()) return files.error().with_context(file.string());
  ATOLL_ASSIGN_OR_RETURN(NewDirectory place, NewDirectory::create(hub_directory, FileMode::kPrivate));
  for (const auto& [name, content] : *files) {
    if (!is_known(name)) {
      return Error{ErrorCode::kCorrupt, fmt::format("{} is no backup of a hub: '{}' is in it", file.string(), name)};
    }
    ATOLL_RETURN_IF_ERROR(make_directories((place.path() / name).parent_path(), FileMode::kPrivate));
    ATOLL_RETURN_IF_ERROR(write_file_atomically(place.path() / name, content, FileMode::kPrivate));
  }
  auto report = examine(HubHome{place.path()});
  if (!report.ok()) return report.error().with_context(fmt::format("{} is no whole backup", file.string()));
  {
    // A hub that serves it waits for islands that know more than the backup does.
    ATOLL_ASSIGN_OR_RETURN(Database database, Database::open(HubHome{place.path()}.database()));
    ATOLL_RETURN_IF_ERROR(database.exec("INSERT OR REPLACE INTO fact VALUES ('restored', '1')"));
  }
  std::filesystem::remove(hub_directory, failed);  // empty, or not there
  ATOLL_RETURN_IF_ERROR(place.take_place());
  report->bytes = bytes.size();
  return report;
}

}  // namespace atl
