// An agent in memory, for tests of models and views: answers as canned or as a test says, tells events at will, falls
// silent, sends garbage, goes away and comes back. Owned by a test; its thread, and nothing happens within a call: all
// of it comes by the event loop.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/core/line_stream.h"
#include "tests/app/core/fake_answers.h"
#include "tests/app/core/fake_commands.h"

namespace atl::test {

class FakeAgent {
 public:
  using Method = std::function<Result<nlohmann::json>(const nlohmann::json& params)>;
  struct Call {
    std::string method;
    nlohmann::json params;
  };

  FakeAgent();  // trains, and answers every method of an agent

  OpenStream open() const;

  void answer(const std::string& method, const nlohmann::json& result);
  void answer(const std::string& method, Method method_body);
  void fail(const std::string& method, ErrorCode code, const std::string& message);
  void forget(const std::string& method);  // it knows no such method
  void fall_silent();                      // takes calls and answers none, also those that wait
  void answer_again();

  // Some fields of the state, for state.get and the events that carry it.
  void say(const nlohmann::json& changes);
  const nlohmann::json& state() const;
  void become(const nlohmann::json& state);  // all of it

  // To those that subscribed; the last 1024 are kept. `time` 0: a second after the event before.
  void tell(const std::string& event, const nlohmann::json& data, double time = 0);
  void tell_state(const std::string& event, const nlohmann::json& changes = nlohmann::json::object());
  // One more inner step, told as trainers do.
  void step(double loss_nats);
  void lose_events(unsigned count);  // told while nobody could hear them, and not kept
  double time() const;               // of the last event

  void send_line(const QByteArray& line);  // whatever it is
  // Ends all connections; new ones are welcome.
  void hang_up(const Error& why = {ErrorCode::kPeerLost, "hung up"});
  void refuse(const Error& why);  // new connections, from now on
  void welcome();
  void set_version(int version);
  void restart();  // another agent, which counts events from one

  const std::vector<Call>& calls() const;
  std::size_t count(const std::string& method) const;
  nlohmann::json last_params(const std::string& method) const;  // null: it was not called
  std::size_t connections() const;                              // that are open
  std::size_t attempts() const;                                 // to connect, ever

  // What metrics.query tells of: so many points of each series, a second and a step apart, up to the last event.
  void set_history(std::size_t points);

  struct Core;

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace atl::test
