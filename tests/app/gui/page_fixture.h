// A page of the desktop app, shown alone over an agent in memory. What a Qt Test class of pages stands on; GUI thread.
#pragma once

#include <QtTest>
#include <memory>

#include "tests/app/gui/gui_node.h"
#include "tests/fakes/patience.h"

namespace atl::test {

class PageFixture {
 protected:
  void begin() {  // before the first test
    QLocale::setDefault(QLocale::c());
    qputenv("XDG_STATE_HOME", QFile::encodeName(state_.path()));
  }
  void renew() { world_ = std::make_unique<GuiNode>(); }
  void end() {  // after each
    page_.reset();
    world_.reset();
  }

  // Shortcuts work in the active window alone.
  void focus(QWidget* widget) {
    page_->activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(page_.get()));
    widget->setFocus();
  }
  template <class T>
  void show() {
    page_ = std::make_unique<T>(world_->node);
    page_->resize(900, 650);
    page_->show();
    QVERIFY(QTest::qWaitForWindowExposed(page_.get()));
  }
  template <class T>
  T* find(const char* name) {
    return page_->findChild<T*>(name);
  }
  void hang_up() {
    world_->agent.refuse({ErrorCode::kNotRunning, "no agent runs here"});
    world_->agent.hang_up();
    QTRY_VERIFY(world_->node.link().state() != LinkState::kConnected);
  }
  FakeAgent& agent() { return world_->agent; }

  QTemporaryDir state_;
  std::unique_ptr<GuiNode> world_;
  std::unique_ptr<QWidget> page_;
};

}  // namespace atl::test
