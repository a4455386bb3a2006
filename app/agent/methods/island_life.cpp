// pause {for_seconds?}, resume, finish, stop {now?}, leave {force?}: what the owner wants of this machine. Each answers
// {wish, kept, warning?} at once; what comes of it is told by events and state.get.
#include <fmt/format.h>

#include <chrono>

#include "app/agent/methods/methods.h"
#include "net/base/new_file.h"
#include "net/base/unix_time.h"
#include "net/control/json_fields.h"

namespace atl {
namespace {

constexpr double kLongestPauseSeconds = 366.0 * 24 * 3600;

Status require_joined(AgentControl& control) {
  if (control.board().facts().joined) return ok_status();
  return Error{ErrorCode::kNotJoined, fmt::format("{} has joined no run; join one with: atoll join INVITE",
                                                  control.home().island.directory.string())};
}

Result<nlohmann::json> follow(AgentControl& control, WishFile wish, bool at_once = false) {
  wish.since_unix_seconds = unix_seconds_now();
  const Status kept = control.wish(wish, at_once);
  nlohmann::json answer = {{"wish", word_of(wish.wish)}, {"kept", kept.ok()}};
  if (wish.paused_until_unix_seconds) answer["paused_until_unix_seconds"] = *wish.paused_until_unix_seconds;
  if (!kept.ok()) {
    answer["warning"] = fmt::format("a restart of this machine forgets it: {}", kept.error().message);
  }
  return answer;
}

// What a pause that outlives the open round loses.
nlohmann::json at_stake(const IslandState& state) {
  if (state.inner_step == 0 || state.pid == 0) return nullptr;
  nlohmann::json stake = {{"round", state.round}, {"inner_steps", state.inner_step}, {"of", state.inner_steps}};
  stake["round_ends_in_seconds"] =
      state.next_sync_seconds ? nlohmann::json(*state.next_sync_seconds) : nlohmann::json();
  return stake;
}

Result<nlohmann::json> pause(AgentControl& control, const nlohmann::json& params) {
  ATOLL_RETURN_IF_ERROR(require_joined(control));
  WishFile wish{.wish = Wish::kPause};
  if (const auto span = params.find("for_seconds"); span != params.end()) {
    if (!span->is_number() || !(span->get<double>() > 0) || span->get<double>() > kLongestPauseSeconds) {
      return Error{ErrorCode::kInvalidArgument, "for_seconds must be more than 0 and at most a year"};
    }
    wish.paused_until_unix_seconds = unix_seconds_now() + static_cast<std::int64_t>(span->get<double>());
  }
  const nlohmann::json stake = at_stake(control.board().state().island);
  ATOLL_ASSIGN_OR_RETURN(nlohmann::json answer, follow(control, wish));
  answer["at_stake"] = stake;
  return answer;
}

Result<bool> flag(const nlohmann::json& params, const char* name) {
  const auto found = params.find(name);
  if (found == params.end()) return false;
  if (found->is_boolean()) return found->get<bool>();
  return Error{ErrorCode::kInvalidArgument, fmt::format("{} must be true or false", name)};
}

// The membership is set aside: `atoll join` comes back to the run, nothing else does.
Result<nlohmann::json> leave(AgentControl& control, const nlohmann::json& params) {
  ATOLL_ASSIGN_OR_RETURN(const bool force, flag(params, "force"));
  ATOLL_RETURN_IF_ERROR(require_joined(control));
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json answer, follow(control, {.wish = Wish::kStop}, force));
  const IslandHome& home = control.home().island;
  if (const Status left = rename_and_flush(home.join_file(), home.left_file()); !left.ok()) {
    return Error{ErrorCode::kIo, fmt::format("the trainer ends, but {} cannot be set aside ({}): this machine still "
                                             "counts as joined",
                                             home.join_file().string(), left.error().message)};
  }
  control.look_at_home();
  return answer;
}

}  // namespace

void add_life_methods(MethodTable& table, AgentControl& control) {
  table.add("pause", [&control](const nlohmann::json& params) { return pause(control, params); });
  table.add("resume", [&control](const nlohmann::json&) -> Result<nlohmann::json> {
    ATOLL_RETURN_IF_ERROR(require_joined(control));
    return follow(control, {.wish = Wish::kRun});
  });
  table.add("finish", [&control](const nlohmann::json&) -> Result<nlohmann::json> {
    ATOLL_RETURN_IF_ERROR(require_joined(control));
    return follow(control, {.wish = Wish::kFinish});
  });
  table.add("stop", [&control](const nlohmann::json& params) -> Result<nlohmann::json> {
    ATOLL_ASSIGN_OR_RETURN(const bool now, flag(params, "now"));
    return follow(control, {.wish = Wish::kStop}, now);
  });
  table.add("leave", [&control](const nlohmann::json& params) { return leave(control, params); });
}

}  // namespace atl
