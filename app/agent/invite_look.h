// Looks at an invite before it is used (`invite.look`): asks the hub that fits its pin which run that is. Nothing
// secret is sent. One at a time, on a thread of its own; a new look takes the place of the one under way. Owned by the
// agent.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include <nlohmann/json_fwd.hpp>

#include "net/base/abort_signal.h"
#include "net/base/mutex.h"
#include "net/base/result.h"
#include "net/control/events.h"
#include "net/wire/invite.h"

namespace atl {

class InviteLook {
 public:
  using Publish = std::function<void(const event::InviteLooked& looked)>;

  // `publish` is called on the look's thread.
  explicit InviteLook(Publish publish) : publish_(std::move(publish)) {}
  ~InviteLook();

  // Params: {"invite": text or link}. {"started": true}; or what is wrong with the invite, offline. On the control
  // server's thread.
  Result<nlohmann::json> look(const nlohmann::json& params);

 private:
  void run(const std::stop_token& stop);
  static event::InviteLooked ask(const Invite& invite, const AbortSignal& abort);

  const Publish publish_;
  Mutex mutex_;
  StoppableCondVar changed_;
  std::optional<Invite> next_ ATOLL_GUARDED_BY(mutex_);
  std::shared_ptr<AbortSignal> asking_ ATOLL_GUARDED_BY(mutex_);  // of the look under way
  std::jthread thread_;                                           // from the first look on; last
};

}  // namespace atl
