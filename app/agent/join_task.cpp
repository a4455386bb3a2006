#include "app/agent/join_task.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "app/agent/agent_config.h"
#include "app/config/gpu_list.h"
#include "net/base/new_file.h"
#include "net/base/unix_time.h"
#include "net/control/methods.h"

namespace atl {
namespace {

Result<std::optional<int>> at_most(std::uint32_t most, const char* name, const std::optional<std::uint32_t>& value) {
  if (!value) return std::optional<int>();
  if (*value <= most) return std::optional(static_cast<int>(*value));
  return Error{ErrorCode::kInvalidArgument, fmt::format("{} must be a number from 0 to {}", name, most)};
}

constexpr std::chrono::seconds kTrainerEndTime{120};  // it is killed before
constexpr std::chrono::milliseconds kLook{100};

Error cancelled() { return {ErrorCode::kAborted, "the joining was cancelled"}; }

}  // namespace

Result<JoinRequest> JoinTask::request_of(const nlohmann::json& json) const {
  ATOLL_ASSIGN_OR_RETURN(const auto params, decode_message<method::Join>(json));
  JoinRequest request;
  if (!params.invite.empty()) {
    const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
    ATOLL_ASSIGN_OR_RETURN(request.invite, decode_invite(params.invite, now));
  }
  request.name = params.name;
  request.listen = params.listen;
  request.advertise = params.advertise;
  ATOLL_ASSIGN_OR_RETURN(request.local_ranks, at_most(64, "local_ranks", params.local_ranks));
  ATOLL_ASSIGN_OR_RETURN(request.threads, at_most(1024, "threads", params.threads));
  ATOLL_ASSIGN_OR_RETURN(request.micro_batch, at_most(1 << 20, "micro_batch", params.micro_batch));
  request.leave_other = params.leave;
  request.gpus = params.gpus;
  if (!request.gpus.empty()) ATOLL_RETURN_IF_ERROR(parse_gpu_list(request.gpus));
  request.device = params.device;
  if (!request.device.empty()) ATOLL_RETURN_IF_ERROR(parse_device_choice(request.device));
  request.precision = params.precision;
  if (!request.precision.empty()) ATOLL_RETURN_IF_ERROR(parse_precision_choice(request.precision));
  ATOLL_ASSIGN_OR_RETURN(const Config config, Config::load(config_sources(control_.home())));
  apply_config(config, request);
  return request;
}

Result<nlohmann::json> JoinTask::join(const nlohmann::json& params) {
  ATOLL_ASSIGN_OR_RETURN(JoinRequest request, request_of(params));
  const Phase before = phase_.exchange(Phase::kEnrolling);
  const Status started = control_.start_job(
      "join", [this, request = std::move(request)](const AbortSignal& stop) { work(request, stop); });
  if (started.ok()) return encode_message(method::Started{});
  if (before != Phase::kEnrolling) phase_ = before;
  return started.error();
}

// A machine that fails is not to train; why, for the person who joins. One that holds a state of the run is taken back
// as it is: others may be waiting for it, and it may only be busy for now.
Status JoinTask::checked(const JoinRequest& request, const AbortSignal& stop) {
  stage(JoinStage::kCheck, StageStatus::kRunning);
  if (check_) {
    ATOLL_ASSIGN_OR_RETURN(
        const CheckReport report,
        check_({.full = false, .device = device_of(request), .invite = request.invite}, stop, [](const CheckRow&) {}));
    const auto failed = std::ranges::find_if(
        report.rows, [](const CheckRow& row) { return row.verdict == Verdict::kFail && !is_silent_hub(row); });
    if (failed != report.rows.end() && !has_trained_in_run_of(request, control_.home().island)) {
      return Error{ErrorCode::kPermissionDenied,
                   fmt::format("this machine fails the node check: {} {}; {} (atoll check shows all)", failed->id,
                               failed->text, failed->fix)};
    }
  }
  stage(JoinStage::kCheck, StageStatus::kDone);
  return ok_status();
}

// Of the run that is left: what it has on the disk is about to be set aside.
Status JoinTask::end_trainer(const AbortSignal& stop) {
  (void)control_.wish({.wish = Wish::kStop, .since_unix_seconds = unix_seconds_now()}, false);
  const Deadline deadline = Deadline::after(kTrainerEndTime);
  while (control_.board().facts().trainer_pid != 0) {
    if (deadline.expired()) return Error{ErrorCode::kTimeout, "the trainer of the run that was joined does not end"};
    pollfd wake{stop.fd(), POLLIN, 0};
    (void)::poll(&wake, 1, static_cast<int>(kLook.count()));
    if (stop.raised()) return cancelled();
  }
  return ok_status();
}

Result<JoinOutcome> JoinTask::join_checked(const JoinRequest& request, const AbortSignal& stop) {
  const IslandHome& home = control_.home().island;
  std::optional<WishFile> before;  // of the run that is left, should that come to nothing
  const auto consent = [&](const Invite& invite) -> Status {
    ATOLL_RETURN_IF_ERROR(checked(request, stop));
    if (!other_run(home, invite)) return ok_status();
    before = control_.board().facts().wish;
    return end_trainer(stop);
  };
  Result<JoinOutcome> joined =
      join_run(request, home, &stop, consent, [this](JoinStage of, StageStatus status) { stage(of, status); });
  if (!joined.ok()) {
    if (before) (void)control_.wish(*before, false);
    return joined.error();
  }
  const Status fit = checked(request, stop);  // for what the run asks
  if (fit.ok() && !stop.raised()) return joined;
  (void)forget_what_failed(home, *joined);
  set_membership_aside();
  return fit.ok() ? cancelled() : fit.error();
}

void JoinTask::work(const JoinRequest& request, const AbortSignal& stop) {
  control_.tell_join({.kind = JoinNews::Kind::kBegan});
  forget_failure();
  Result<JoinOutcome> joined = join_checked(request, stop);
  Status kept;
  // Before anybody may cancel a trainer that is to come: a later wish is not to be overruled by this one.
  if (joined.ok()) kept = control_.wish({.wish = Wish::kRun, .since_unix_seconds = unix_seconds_now()}, false);
  if (joined.ok()) follow(*joined);
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
    return encode_message(method::Cancelled{.cancelled = true});
  }
  phase = Phase::kFollowing;
  if (!phase_.compare_exchange_strong(phase, Phase::kNone)) return encode_message(method::Cancelled{});
  const Status kept = control_.wish({.wish = Wish::kStop, .since_unix_seconds = unix_seconds_now()}, false);
  set_membership_aside();
  control_.tell_join({.kind = JoinNews::Kind::kFailed, .text = cancelled().message});
  control_.look_at_home();
  return encode_message(
      method::Cancelled{.cancelled = true, .warning = kept.ok() ? std::string() : kept.error().message});
}

void JoinTask::follow(std::optional<JoinOutcome> joined) {
  const MutexLock lock(mutex_);
  followed_ = std::move(joined);
  has_failed_ = false;
}

// With what the join was told it does not do: the next one is not to begin with that.
void JoinTask::forget_failure() {
  const MutexLock lock(mutex_);
  if (followed_ && has_failed_ && forget_what_failed(control_.home().island, *followed_)) {
    spdlog::warn("join choices_kept=false");
  }
  followed_.reset();
}

void JoinTask::trainer_failed(bool given_up) {
  {
    const MutexLock lock(mutex_);
    has_failed_ = followed_.has_value();
  }
  if (given_up) forget_failure();
}

void JoinTask::first_step_taken() {
  follow({});
  Phase following = Phase::kFollowing;
  phase_.compare_exchange_strong(following, Phase::kNone);
}

}  // namespace atl
