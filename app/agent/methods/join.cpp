// join {invite?, name?, listen?, advertise?, local_ranks?, threads?, gpus?}: answers {started: true} once the invite is
// read offline; the event "join.done" {ok, text} or {ok: false, code, message} tells what came of it. The invite
// travels in the message alone: never in argv, an event or a log.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>

#include "app/agent/agent_config.h"
#include "app/agent/join_run.h"
#include "app/agent/methods/methods.h"
#include "app/config/gpu_list.h"
#include "net/base/unix_time.h"

namespace atl {
namespace {

constexpr std::size_t kMaxText = 512;

Result<std::string> text_of(const nlohmann::json& params, const char* name, std::size_t max_bytes = kMaxText) {
  const auto found = params.find(name);
  if (found == params.end()) return std::string();
  if (found->is_string() && found->get_ref<const std::string&>().size() <= max_bytes) return found->get<std::string>();
  return Error{ErrorCode::kInvalidArgument, fmt::format("{} must be a text of at most {} bytes", name, max_bytes)};
}

Result<int> number_of(const nlohmann::json& params, const char* name, int most) {
  const auto found = params.find(name);
  if (found == params.end()) return 0;
  if (found->is_number_unsigned() && found->get<std::uint64_t>() <= static_cast<std::uint64_t>(most)) {
    return found->get<int>();
  }
  return Error{ErrorCode::kInvalidArgument, fmt::format("{} must be a number from 0 to {}", name, most)};
}

Result<JoinRequest> request_of(const nlohmann::json& params) {
  JoinRequest request;
  ATOLL_ASSIGN_OR_RETURN(const std::string invite, text_of(params, "invite", kMaxInviteText));
  if (!invite.empty()) {
    const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
    ATOLL_ASSIGN_OR_RETURN(request.invite, decode_invite(invite, now));
  }
  ATOLL_ASSIGN_OR_RETURN(request.name, text_of(params, "name"));
  ATOLL_ASSIGN_OR_RETURN(request.listen, text_of(params, "listen"));
  ATOLL_ASSIGN_OR_RETURN(request.advertise, text_of(params, "advertise"));
  ATOLL_ASSIGN_OR_RETURN(request.local_ranks, number_of(params, "local_ranks", 64));
  ATOLL_ASSIGN_OR_RETURN(request.threads, number_of(params, "threads", 1024));
  ATOLL_ASSIGN_OR_RETURN(request.gpus, text_of(params, "gpus"));
  if (!request.gpus.empty()) ATOLL_RETURN_IF_ERROR(parse_gpu_list(request.gpus));
  return request;
}

// A machine that fails is not to train; why, for the person who joins.
Status checked(const CheckTask::Check& check, const AbortSignal& stop) {
  if (!check) return ok_status();
  ATOLL_ASSIGN_OR_RETURN(const CheckReport report, check(/*full=*/false, stop, [](const CheckRow&) {}));
  for (const CheckRow& row : report.rows) {
    if (row.verdict != Verdict::kFail || is_silent_hub(row)) continue;
    return Error{
        ErrorCode::kPermissionDenied,
        fmt::format("this machine fails the node check: {} {}; {} (atoll check shows all)", row.id, row.text, row.fix)};
  }
  return ok_status();
}

Result<JoinOutcome> join_checked(const JoinRequest& request, const IslandHome& home, const CheckTask::Check& check,
                                 const AbortSignal& stop) {
  ATOLL_ASSIGN_OR_RETURN(JoinOutcome joined,
                         join_run(request, home, &stop, [&](const Invite&) { return checked(check, stop); }));
  const Status fit = checked(check, stop);  // for what the run asks
  if (fit.ok()) return joined;
  std::error_code ignored;
  std::filesystem::rename(home.join_file(), home.left_file(), ignored);  // the next join comes back without an invite
  return fit.error();
}

void join(AgentControl& control, const JoinRequest& request, const CheckTask::Check& check, const AbortSignal& stop) {
  const auto joined = join_checked(request, control.home().island, check, stop);
  nlohmann::json done = {{"ok", joined.ok()}};
  if (joined.ok()) {
    const Status kept = control.wish({.wish = Wish::kRun, .since_unix_seconds = unix_seconds_now()}, /*at_once=*/false);
    if (!kept.ok()) done["warning"] = kept.error().message;
    control.look_at_home();
    done["text"] = joined->text;
    spdlog::info("join ok=true run={}", joined->join.run_id);
  } else {
    done["code"] = to_string(joined.error().code);
    done["message"] = joined.error().message;
    spdlog::warn("join ok=false code={}", to_string(joined.error().code));
  }
  control.publish("join.done", done);
}

}  // namespace

void add_join_method(MethodTable& table, AgentControl& control, CheckTask::Check check) {
  table.add("join", [&control, check = std::move(check)](const nlohmann::json& params) -> Result<nlohmann::json> {
    ATOLL_ASSIGN_OR_RETURN(JoinRequest request, request_of(params));
    ATOLL_ASSIGN_OR_RETURN(const Config config, Config::load(config_sources(control.home())));
    apply_config(config, request);
    ATOLL_RETURN_IF_ERROR(
        control.start_job("join", [&control, check, request = std::move(request)](const AbortSignal& stop) {
          join(control, request, check, stop);
        }));
    return nlohmann::json{{"started", true}};
  });
}

}  // namespace atl
