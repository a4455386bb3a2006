#include "net/hub/member_roll.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "net/wire/json_archive.h"

namespace atl {
namespace {

constexpr std::size_t kMostInRosters = 64;

}  // namespace

Result<MemberRoll> MemberRoll::open(HubStore& store, OnDiskFailure on_disk_failure) {
  MemberRoll roll(store, std::move(on_disk_failure));
  ATOLL_RETURN_IF_ERROR(store.changed_by_others());  // from here on
  ATOLL_ASSIGN_OR_RETURN(const std::vector<IslandId> removed, roll.read_removed());
  for (const IslandId& island : removed) roll.note_removed(island);
  return roll;
}

void MemberRoll::failed(const Error& error) {
  if (is_disk_failure(error.code)) return on_disk_failure_(error);
  const auto held_back = lines_->pass(error.message);
  if (held_back) spdlog::error("hub roster error=\"{}\" held_back={}", error.message, *held_back);
}

// ---- who is one

Result<std::optional<EnrolledIsland>> MemberRoll::find(const PeerCertificate& certificate) {
  auto island = store_->enrolments().find_island(to_hex(certificate.key_sha256));
  if (!island.ok()) failed(island.error());
  if (island.ok() && *island && (*island)->id != certificate.name) island->reset();
  return island;
}

Result<bool> MemberRoll::is_member(const EnrolledIsland& island) {
  const auto found = store_->enrolments().find_island(island.key_sha256);
  if (found.ok()) return *found && (*found)->id == island.id;
  failed(found.error());
  return found.error();
}

void MemberRoll::note_credited(const IslandId& island, bool credited) {
  const Status saved = store_->save_credited(island, credited);
  if (!saved.ok()) failed(saved.error());
}

void MemberRoll::note_name(const EnrolledIsland& island, const std::string& display_name) {
  if (display_name == island.display_name) return;
  const Status saved = store_->enrolments().rename_island(island.id, display_name);
  if (!saved.ok()) return failed(saved.error());
  const auto held_back = lines_->pass(island.id.value);
  if (!held_back) return;
  spdlog::info("mesh island={} name=\"{}\" before=\"{}\" held_back={}", island.id.value, display_name,
               island.display_name, *held_back);
}

// ---- coming and going

EnrolResponse MemberRoll::enrol(Enroller& enroller, const EnrolRequest& request) {
  const Result<EnrolResponse> response = enroller.handle(request);
  if (!response.ok()) {
    failed(response.error());
    const ErrorCode code = is_disk_failure(response.error().code) ? ErrorCode::kInternal : ErrorCode::kTimeout;
    return Error{code, "the hub cannot write its roster now; try again later, or ask who runs it"};
  }
  if (const auto* refused = std::get_if<Error>(&*response)) {
    const std::string invite = is_island_name(request.invite_id) ? request.invite_id : "?";  // a stranger's text
    const std::string why = fmt::format("invite={} refused={}", invite, to_string(refused->code));
    if (const auto held_back = lines_->pass(why)) spdlog::info("enrol {} held_back={}", why, *held_back);
  } else {
    const std::string& island = std::get<EnrolGrant>(*response).island.value;
    if (const auto held_back = lines_->pass(island)) {
      spdlog::info("enrol invite={} island={} name=\"{}\" held_back={}", request.invite_id, island,
                   request.display_name, *held_back);
    }
  }
  return *response;
}

Result<std::vector<IslandId>> MemberRoll::read_removed() {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<EnrolledIsland> islands, store_->enrolments().islands());
  std::vector<IslandId> removed;
  for (const EnrolledIsland& island : islands) {
    if (island.removed) removed.push_back(island.id);
  }
  return removed;
}

std::vector<IslandId> MemberRoll::newly_removed() {
  const Result<bool> changed = store_->changed_by_others();
  if (changed.ok() && !*changed) return {};
  Result<std::vector<IslandId>> found = changed.ok() ? read_removed() : changed.error();
  if (!found.ok()) {
    store_->expect_changes();
    failed(found.error());
    return {};
  }
  std::erase_if(*found, [this](const IslandId& island) { return removed_.contains(island); });
  for (const IslandId& island : *found) note_removed(island);
  return std::move(*found);
}

void MemberRoll::note_removed(const IslandId& island) {
  if (!removed_.insert(island).second) return;
  last_removed_.push_back(island);
  if (last_removed_.size() > kMostInRosters) last_removed_.erase(last_removed_.begin());
}

}  // namespace atl
