// A join wizard over an agent in memory that lets an invite pass, and what tests ask of its pages. Tests derive from
// it.
#pragma once

#include <memory>

#include <QAbstractButton>
#include <QPlainTextEdit>

#include "app/gui/join_wizard/join_wizard.h"
#include "app/gui/parts/notice.h"
#include "net/wire/invite.h"
#include "tests/app/gui/gui_node.h"

namespace atl::test {

Invite plain_invite();
QString text_of(const Invite& invite);
QString good_invite();
nlohmann::json looked();  // what the agent tells of its hub

class WizardFixture : public QObject {
 protected:
  void begin();  // once
  void open();   // before each test
  void close();

  FakeAgent& agent() { return world_->agent; }
  template <class T>
  T* find(const char* name) {
    return wizard_->currentPage()->findChild<T*>(name);
  }
  Notice* notice(const char* name) { return find<Notice>(name); }
  bool can_go_on() { return wizard_->button(QWizard::NextButton)->isEnabled(); }
  void next() { QTest::mouseClick(wizard_->button(QWizard::NextButton), Qt::LeftButton); }
  void commit() { QTest::mouseClick(wizard_->button(QWizard::CommitButton), Qt::LeftButton); }
  void paste(const QString& text) { find<QPlainTextEdit>("invite")->setPlainText(text); }
  void go_to(int page);
  void to_trust() {
    paste(good_invite());
    next();
  }

  std::unique_ptr<GuiNode> world_;
  std::unique_ptr<JoinWizard> wizard_;
};

}  // namespace atl::test
