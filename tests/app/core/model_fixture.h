// What tests of models share: a link to an agent in memory, and events made by hand.
#pragma once

#include <QAbstractItemModel>
#include <QtTest>

#include "app/core/agent_link.h"
#include "tests/app/core/fake_agent.h"

namespace atl::test {

constexpr LinkTiming kFastLink{.first_retry = std::chrono::milliseconds(10),
                               .longest_retry = std::chrono::milliseconds(80),
                               .answer_time = std::chrono::seconds(5),
                               .hello_time = std::chrono::seconds(5)};

struct ModelFixture {
  ModelFixture() : link(agent.open(), kFastLink) {}
  // Events go where `take` says.
  template <class Take>
  bool connect(Take take) {
    QObject::connect(&link, &AgentLink::event, &link, take);
    link.start();
    return QTest::qWaitFor([this] { return link.state() == LinkState::kConnected; });
  }
  bool connect() {
    return connect([](const ControlEvent&) {});
  }
  FakeAgent agent;
  AgentLink link;
};

inline QString shown(const QAbstractItemModel& model, int row, int column) {
  return model.data(model.index(row, column), Qt::DisplayRole).toString();
}

inline ControlEvent event_of(const char* name, nlohmann::json data) {
  ControlEvent event;
  event.name = name;
  event.time = 1000;
  event.data = std::move(data);
  return event;
}

}  // namespace atl::test
