// What tests of models share: a link to an agent in memory, and events made by hand.
#pragma once

#include <QAbstractItemModel>
#include <QtTest>

#include "app/core/agent_link.h"
#include "net/control/event_reader.h"
#include "tests/app/core/fake_agent.h"

namespace atl::test {

constexpr LinkTiming kFastLink{.first_retry = std::chrono::milliseconds(10),
                               .longest_retry = std::chrono::milliseconds(80),
                               .answer_time = std::chrono::seconds(5),
                               .hello_time = std::chrono::seconds(5)};

struct ModelFixture {
  ModelFixture() : link(agent.open(), kFastLink) {}
  // Events go where `take` says, read as a node reads them.
  template <class Take>
  bool connect(Take take) {
    QObject::connect(&link, &AgentLink::eventReceived, &link, [this, take](const LinkEvent& event) {
      const auto heard = reader.read(event.name, event.data, event.time, event.seq, event.kept);
      if (!heard.ok()) return;
      for (const HeardEvent& one : *heard) take(one);
    });
    link.start();
    return QTest::qWaitFor([this] { return link.state() == LinkState::kConnected; });
  }
  bool connect() {
    return connect([](const HeardEvent&) {});
  }
  FakeAgent agent;
  AgentLink link;
  EventReader reader;
};

inline QString shown(const QAbstractItemModel& model, int row, int column) {
  return model.data(model.index(row, column), Qt::DisplayRole).toString();
}

// As it is heard; what cannot be read is not: then it is event::Unknown.
inline HeardEvent event_of(const char* name, const nlohmann::json& data) {
  auto event = decode_event(name, data);
  return {.what = event.ok() ? std::move(*event) : ControlEvent(event::Unknown{}), .time = 1000};
}

}  // namespace atl::test
