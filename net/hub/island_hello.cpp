#include "net/hub/island_hello.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "net/mesh/commit_signature.h"

namespace atl {
namespace {

void take_proof(const IslandHello& hello, const Identity& hub, IslandConnected& event) {
  if (hello.epoch) {
    const Status proven = verify_epoch(hub, *hello.epoch);
    if (proven.ok()) event.proven_epoch = hello.epoch->epoch;
    if (!proven.ok()) spdlog::warn("mesh island={} error=\"{}\"", event.entry.id.value, proven.error().message);
  }
  if (!hello.last_commit) return;
  const HubCommit& commit = hello.last_commit->commit;
  if (const Status proven = verify_commit(hub, hello.last_commit->hub_certificate, commit); !proven.ok()) {
    spdlog::warn("mesh island={} error=\"{}\"", event.entry.id.value, proven.error().message);
    return;
  }
  event.proven_commit = commit;
  event.proven_epoch = std::max(event.proven_epoch, commit.epoch);
}

}  // namespace

Result<IslandConnected> read_hello(const EnrolledIsland& island, const std::string& host, const std::string& text,
                                   const CheckPolicy& policy, const Identity& hub) {
  ATOLL_ASSIGN_OR_RETURN(const IslandMessage message, decode_island_message(text));
  const auto* hello = std::get_if<IslandHello>(&message);
  if (hello == nullptr) return Error{ErrorCode::kProtocol, "the first message of an island is its hello"};
  ATOLL_RETURN_IF_ERROR(admit_checked(policy, hello->checked));
  RosterEntry entry{island.id,
                    hello->display_name.empty() ? island.display_name : hello->display_name,
                    Address{host, hello->listen_port},  // until what it names is shown to be its own
                    island.key_sha256,
                    hello->software,
                    hello->region};
  IslandConnected event{std::move(entry), *hello};
  take_proof(*hello, hub, event);
  return event;
}

}  // namespace atl
