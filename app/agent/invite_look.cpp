#include "app/agent/invite_look.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "net/check/run_needs.h"
#include "net/control/methods.h"
#include "net/enrol/client.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kLookTime{30};

}  // namespace

InviteLook::~InviteLook() {
  thread_.request_stop();
  const MutexLock lock(mutex_);
  if (asking_) asking_->raise("the agent ends");
}

Result<nlohmann::json> InviteLook::look(const nlohmann::json& json) {
  ATOLL_ASSIGN_OR_RETURN(const auto params, decode_message<method::InviteLook>(json));
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  ATOLL_ASSIGN_OR_RETURN(Invite invite, decode_invite(params.invite, now));
  invite.secret.clear();  // not needed here, and so not kept
  const MutexLock lock(mutex_);
  next_ = std::move(invite);
  if (asking_) asking_->raise("another invite is looked at");
  changed_.notify_all();
  if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  return encode_message(method::Started{});
}

void InviteLook::run(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  while (changed_.wait(lock, stop, [this]() ATOLL_REQUIRES(mutex_) { return next_.has_value(); }) &&
         !stop.stop_requested()) {
    const Invite invite = *std::exchange(next_, std::nullopt);
    asking_ = std::make_shared<AbortSignal>();
    const auto asking = asking_;
    lock.unlock();
    const event::InviteLooked looked = ask(invite, *asking);
    lock.lock();
    asking_.reset();
    if (next_ || stop.stop_requested()) continue;  // nobody waits for this one any more
    lock.unlock();
    publish_(looked);
    lock.lock();
  }
}

event::InviteLooked InviteLook::ask(const Invite& invite, const AbortSignal& abort) {
  const auto hub = describe_hub(invite, Deadline::after(kLookTime), &abort);
  if (!hub.ok()) {
    return {.ok = false,
            .invite = invite.id,
            .code = std::string(to_string(hub.error().code)),
            .message = hub.error().message};
  }
  const auto needs = run_needs_from_json(hub->run.needs);
  return {.ok = true,
          .invite = invite.id,
          .address = to_string(hub->address),
          .run_id = hub->run.run_id,
          .run_name = hub->run.name,
          .operator_name = hub->run.operator_name,
          .model = hub->run.model,
          .parameters = hub->run.parameters,
          .costs = needs.ok() ? std::optional(costs_of(*needs)) : std::nullopt,
          .pin = to_hex(invite.authority_pin)};
}

}  // namespace atl
