// Joining over an agent in memory: an invite that is good, what its hub says, and the words of an agent on the way.
// Owned by a test; its thread.
#pragma once

#include <QtTest>

#include "app/core/join_model.h"
#include "net/base/sha256.h"
#include "net/control/event_reader.h"
#include "tests/app/core/fake_agent.h"

namespace atl::test {

using namespace std::chrono_literals;

inline constexpr LinkTiming kFast{.first_retry = 10ms, .longest_retry = 80ms, .answer_time = 5s, .hello_time = 5s};
inline constexpr std::chrono::sys_seconds kNow{1'763'725'000s};

inline Invite good_invite() {
  Invite invite;
  invite.hub = {{"hub.example.org", 47000}};
  invite.run_id = "run-1";
  invite.run_name = "gcide-demo";
  invite.authority_pin.fill(std::byte{0x5a});
  invite.id = "inv-1";
  invite.secret = Bytes(32, std::byte{7});
  invite.expires = kNow + 1h;
  return invite;
}

inline std::string text_of(const Invite& invite) { return *encode_invite(invite); }

inline nlohmann::json looked(const char* pin = nullptr, const char* run = "run-1") {
  return {{"ok", true},
          {"address", "hub.example.org:47000"},
          {"run_id", run},
          {"run_name", "gcide-demo"},
          {"operator", "Ada"},
          {"model", "150m"},
          {"parameters", 150'000'000u},
          {"pin", pin != nullptr ? std::string(pin) : to_hex(good_invite().authority_pin)}};
}

class JoinFixture {
 public:
  JoinFixture() : link(agent.open(), kFast), join(link) {
    agent.become(unjoined_state());
    QObject::connect(&link, &AgentLink::eventReceived, &link, [this](const LinkEvent& event) {
      const auto heard = reader.read(event.name, event.data, event.time, event.seq, event.kept);
      if (!heard.ok()) return;
      for (const HeardEvent& one : *heard) join.take(one);
    });
    QObject::connect(&link, &AgentLink::eventsLost, &link, [this] { join.interrupted(); });
  }
  bool connect() {
    link.start();
    return QTest::qWaitFor([this] { return link.state() == LinkState::kConnected; });
  }
  bool begin() {
    if (!connect() || !join.setInvite(QString::fromStdString(text_of(good_invite())), kNow).ok()) return false;
    join.join({.name = "laptop", .listen = "", .advertise = ""});
    return QTest::qWaitFor([this] { return agent.count("join") == 1; });
  }
  bool begin_training() {
    if (!begin()) return false;
    agent.tell("join.done", {{"ok", true}, {"text", "joined"}});
    return reaches(JoinStage::kTrainer, StageView::Status::kRunning);
  }
  void progress(const char* stage, const char* status, nlohmann::json more = nlohmann::json::object()) {
    more["stage"] = stage;
    more["status"] = status;
    agent.tell("join.progress", more);
  }
  // As the agent itself tells a state, its own part included.
  void agent_says(const nlohmann::json& changes) {
    agent.say(changes);
    agent.tell("state.changed", agent.state());
  }
  bool reaches(JoinStage stage, StageView::Status status) {
    return QTest::qWaitFor([&] { return join.stage(stage).status == status; });
  }

  FakeAgent agent;
  AgentLink link;
  EventReader reader;
  JoinModel join;
};

}  // namespace atl::test
