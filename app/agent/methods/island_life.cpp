// pause {for_seconds?}, resume, finish, stop {now?}, leave {force?}: what the owner wants of this machine. Each answers
// {wish, kept, warning?} at once; what comes of it is told by events and state.get.
#include <fmt/format.h>

#include <chrono>

#include "app/agent/methods/methods.h"
#include "net/base/new_file.h"
#include "net/base/unix_time.h"
#include "net/control/methods.h"

namespace atl {
namespace {

constexpr double kLongestPauseSeconds = 366.0 * 24 * 3600;

Status require_joined(AgentControl& control) {
  if (control.board().facts().joined) return ok_status();
  const auto join = load_join_file(control.home().island.join_file());
  return join.ok() ? ok_status() : Status(join.error());  // joined meanwhile
}

method::WishTaken follow(AgentControl& control, WishFile wish, bool at_once = false) {
  wish.since_unix_seconds = unix_seconds_now();
  const Status kept = control.wish(wish, at_once);
  method::WishTaken taken{.wish = wish.wish, .kept = kept.ok()};
  taken.paused_until_unix_seconds = wish.paused_until_unix_seconds;
  if (!kept.ok()) taken.warning = fmt::format("a restart of this machine forgets it: {}", kept.error().message);
  return taken;
}

// What a pause that outlives the open round loses.
std::optional<method::Stake> at_stake(const IslandState& state) {
  if (state.inner_step == 0 || state.pid == 0) return std::nullopt;
  return method::Stake{state.round, state.inner_step, state.inner_steps, state.next_sync_seconds};
}

Result<nlohmann::json> pause(AgentControl& control, const nlohmann::json& json) {
  ATOLL_RETURN_IF_ERROR(require_joined(control));
  ATOLL_ASSIGN_OR_RETURN(const auto params, decode_message<method::Pause>(json));
  WishFile wish{.wish = Wish::kPause};
  if (const auto& span = params.for_seconds) {
    if (!(*span > 0) || *span > kLongestPauseSeconds) {
      return Error{ErrorCode::kInvalidArgument, "for_seconds must be more than 0 and at most a year"};
    }
    wish.paused_until_unix_seconds = unix_seconds_now() + static_cast<std::int64_t>(*span);
  }
  const auto stake = at_stake(control.board().state().island);
  method::WishTaken taken = follow(control, wish);
  taken.at_stake = stake;
  return encode_message(taken);
}

// The membership is set aside: `atoll join` comes back to the run, nothing else does.
Result<nlohmann::json> leave(AgentControl& control, const nlohmann::json& json) {
  ATOLL_ASSIGN_OR_RETURN(const auto params, decode_message<method::Leave>(json));
  ATOLL_RETURN_IF_ERROR(require_joined(control));
  const method::WishTaken taken = follow(control, {.wish = Wish::kStop}, params.force);
  const IslandHome& home = control.home().island;
  if (const Status left = rename_and_flush(home.join_file(), home.left_file()); !left.ok()) {
    return Error{ErrorCode::kIo, fmt::format("the trainer ends, but {} cannot be set aside ({}): this machine still "
                                             "counts as joined",
                                             home.join_file().string(), left.error().message)};
  }
  control.board().update([](AgentFacts& facts) { facts.joined = false; });
  control.look_at_home();
  return encode_message(taken);
}

}  // namespace

void add_life_methods(MethodTable& table, AgentControl& control) {
  table.add(method::Pause::kName, [&control](const nlohmann::json& params) { return pause(control, params); });
  table.add(method::Resume::kName, [&control](const nlohmann::json&) -> Result<nlohmann::json> {
    ATOLL_RETURN_IF_ERROR(require_joined(control));
    return encode_message(follow(control, {.wish = Wish::kRun}));
  });
  table.add(method::Finish::kName, [&control](const nlohmann::json&) -> Result<nlohmann::json> {
    ATOLL_RETURN_IF_ERROR(require_joined(control));
    return encode_message(follow(control, {.wish = Wish::kFinish}));
  });
  table.add(method::Stop::kName, [&control](const nlohmann::json& json) -> Result<nlohmann::json> {
    ATOLL_ASSIGN_OR_RETURN(const auto params, decode_message<method::Stop>(json));
    return encode_message(follow(control, {.wish = Wish::kStop}, params.now));
  });
  table.add(method::Leave::kName, [&control](const nlohmann::json& params) { return leave(control, params); });
}

}  // namespace atl
