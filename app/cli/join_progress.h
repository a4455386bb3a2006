// What `atoll join` and `atoll train` show while their trainer comes and runs: what an agent and its trainer tell by
// events, as lines for a person. take() on any thread, show() on the console's.
#pragma once

#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "app/cli/console.h"
#include "net/base/deadline.h"
#include "net/base/mailbox.h"

namespace atl {

class JoinProgress {
 public:
  explicit JoinProgress(Console& console) : console_(console) {}

  // {"event", "data"}, as ControlClient::next_event returns it. Of more than 1024 that were not shown the last are
  // lost.
  void take(const nlohmann::json& event) { (void)events_.push(event); }
  // Prints what came since: a line a round, a hub that does not answer once and not at every try, a download every few
  // seconds.
  void show();

 private:
  void show(const std::string& name, const nlohmann::json& data);
  void show_round(const nlohmann::json& data);
  void show_hub(const nlohmann::json& data);
  void show_trouble(const nlohmann::json& data);
  void show_stage(const nlohmann::json& data);
  void show_transfer(const std::string& what, const nlohmann::json& data);
  void print(const std::string& line);

  static constexpr std::size_t kMaxEvents = 1024;

  Console& console_;
  Mailbox<nlohmann::json> events_{kMaxEvents};
  std::map<std::string, Clock::time_point> transfers_;  // under way, by what they are of: shown last
  std::string hub_text_;                                // why it does not answer; empty: it does
  std::string trouble_, stage_;                         // shown last
};

}  // namespace atl
