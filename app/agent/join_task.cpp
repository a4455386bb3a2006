#include "app/agent/join_task.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>

#include "app/agent/agent_config.h"
#include "app/agent/methods/params.h"
#include "app/config/gpu_list.h"
#include "net/base/new_file.h"
#include "net/base/unix_time.h"

namespace atl {
namespace {

Error cancelled() { return {ErrorCode::kAborted, "the joining was cancelled"}; }

}  // namespace

Result<JoinRequest> JoinTask::request_of(const nlohmann::json& params) const {
  JoinRequest request;
  ATOLL_ASSIGN_OR_RETURN(const std::string invite, text_param(params, "invite", kMaxInviteText));
  if (!invite.empty()) {
    const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
    ATOLL_ASSIGN_OR_RETURN(request.invite, decode_invite(invite, now));
  }
  ATOLL_ASSIGN_OR_RETURN(request.name, text_param(params, "name"));
  ATOLL_ASSIGN_OR_RETURN(request.listen, text_param(params, "listen"));
  ATOLL_ASSIGN_OR_RETURN(request.advertise, text_param(params, "advertise"));
  const auto number = [&](const char* name, int most, std::optional<int>& value) -> Status {
    if (!params.contains(name)) return ok_status();
    ATOLL_ASSIGN_OR_RETURN(value, number_param(params, name, most));
    return ok_status();
  };
  ATOLL_RETURN_IF_ERROR(number("local_ranks", 64, request.local_ranks));
  ATOLL_RETURN_IF_ERROR(number("threads", 1024, request.threads));
  ATOLL_RETURN_IF_ERROR(number("micro_batch", 1 << 20, request.micro_batch));
  ATOLL_ASSIGN_OR_RETURN(request.gpus, text_param(params, "gpus"));
  if (!request.gpus.empty()) ATOLL_RETURN_IF_ERROR(parse_gpu_list(request.gpus));
  ATOLL_ASSIGN_OR_RETURN(const Config config, Config::load(config_sources(control_.home())));
  apply_config(config, request);
  return request;
}

Result<nlohmann::json> JoinTask::join(const nlohmann::json& params) {
  ATOLL_ASSIGN_OR_RETURN(JoinRequest request, request_of(params));
  const Phase before = phase_.exchange(Phase::kEnrolling);
  const Status started = control_.start_job(
      "join", [this, request = std::move(request)](const AbortSignal& stop) { work(request, stop); });
  if (started.ok()) return nlohmann::json{{"started", true}};
  if (before != Phase::kEnrolling) phase_ = before;
  return started.error();
}

// A machine that fails is not to train; why, for the person who joins.
Status JoinTask::checked(const AbortSignal& stop) {
  stage(JoinStage::kCheck, StageStatus::kRunning);
  if (check_) {
    ATOLL_ASSIGN_OR_RETURN(const CheckReport report, check_(/*full=*/false, stop, [](const CheckRow&) {}));
    for (const CheckRow& row : report.rows) {
      if (row.verdict != Verdict::kFail || is_silent_hub(row)) continue;
      return Error{ErrorCode::kPermissionDenied,
                   fmt::format("this machine fails the node check: {} {}; {} (atoll check shows all)", row.id, row.text,
                               row.fix)};
    }
  }
  stage(JoinStage::kCheck, StageStatus::kDone);
  return ok_status();
}

Result<JoinOutcome> JoinTask::join_checked(const JoinRequest& request, const AbortSignal& stop) {
  const IslandHome& home = control_.home().island;
  ATOLL_ASSIGN_OR_RETURN(JoinOutcome joined, join_run(
                                                 request, home, &stop, [&](const Invite&) { return checked(stop); },
                                                 [this](JoinStage of, StageStatus status) { stage(of, status); }));
  const Status fit = checked(stop);  // for what the run asks
  if (fit.ok() && !stop.raised()) return joined;
  set_membership_aside();
  return fit.ok() ? cancelled() : fit.error();
}

void JoinTask::work(const JoinRequest& request, const AbortSignal& stop) {
  control_.tell_join({.kind = JoinNews::Kind::kBegan});
  Result<JoinOutcome> joined = join_checked(request, stop);
  Status kept;
  // Before anybody may cancel a trainer that is to come: a later wish is not to be overruled by this one.
  if (joined.ok()) kept = control_.wish({.wish = Wish::kRun, .since_unix_seconds = unix_seconds_now()}, false);
  Phase expected = Phase::kEnrolling;
  if (!phase_.compare_exchange_strong(expected, joined.ok() ? Phase::kFollowing : Phase::kNone)) {
    if (joined.ok()) set_membership_aside();
    joined = cancelled();
    phase_ = Phase::kNone;
  }
  told(joined, kept);
}

// The next join comes back without an invite.
void JoinTask::set_membership_aside() {
  const IslandHome& home = control_.home().island;
  (void)rename_and_flush(home.join_file(), home.left_file());
}

void JoinTask::told(const Result<JoinOutcome>& joined, const Status& kept) {
  JoinNews news;
  event::JoinDone& done = news.done.emplace();
  done.ok = joined.ok();
  if (joined.ok()) {
    if (!kept.ok()) done.warning = kept.error().message;
    done.text = joined->text;
    news.kind = JoinNews::Kind::kEnrolled;
    news.text = joined->join.run_id;
    spdlog::info("join ok=true run={}", joined->join.run_id);
  } else {
    done.code = to_string(joined.error().code);
    done.message = joined.error().message;
    news.kind = JoinNews::Kind::kFailed;
    news.text = joined.error().message;
    spdlog::warn("join ok=false code={}", to_string(joined.error().code));
  }
  control_.tell_join(std::move(news));
  control_.look_at_home();
}

void JoinTask::stage(JoinStage stage, StageStatus status) {
  control_.tell_join({.kind = JoinNews::Kind::kStage, .stage = stage, .status = status});
}

Result<nlohmann::json> JoinTask::cancel() {
  Phase phase = Phase::kEnrolling;
  if (phase_.compare_exchange_strong(phase, Phase::kCancelled)) {
    control_.stop_job("the joining was cancelled");
    return nlohmann::json{{"cancelled", true}};
  }
  phase = Phase::kFollowing;
  if (!phase_.compare_exchange_strong(phase, Phase::kNone)) return nlohmann::json{{"cancelled", false}};
  const Status kept = control_.wish({.wish = Wish::kStop, .since_unix_seconds = unix_seconds_now()}, false);
  set_membership_aside();
  control_.tell_join({.kind = JoinNews::Kind::kFailed, .text = cancelled().message});
  control_.look_at_home();
  nlohmann::json answer = {{"cancelled", true}};
  if (!kept.ok()) answer["warning"] = kept.error().message;
  return answer;
}

void JoinTask::first_step_taken() {
  Phase following = Phase::kFollowing;
  phase_.compare_exchange_strong(following, Phase::kNone);
}

}  // namespace atl
