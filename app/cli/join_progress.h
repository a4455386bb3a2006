// What `atoll join` shows while its trainer runs: a line a round (from the trainer's control socket), and what the
// trainer writes, a hub that does not answer said once and not at every try. Main thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "app/cli/console.h"
#include "net/base/deadline.h"
#include "net/control/control_client.h"
#include "net/control/home.h"

namespace atl {

class JoinProgress {
 public:
  JoinProgress(const IslandHome& home, Console& console) : home_(home), console_(console) {}

  void take_output(std::string_view bytes);  // of the trainer, in pieces
  void look_at_rounds();

 private:
  void take_line(std::string_view line);
  void take_retry(std::string_view line);

  const IslandHome home_;
  Console& console_;
  std::unique_ptr<ControlClient> client_;
  Clock::time_point next_connect_{};
  std::string unfinished_line_;
  std::optional<Clock::time_point> last_retry_;  // set while the hub does not answer
};

}  // namespace atl
