// A window, or a single page, on an agent in memory; and what tests ask of widgets. Owned by a test; GUI thread.
#pragma once

#include <memory>

#include <QAbstractButton>
#include <QApplication>
#include <QLabel>
#include <QTemporaryDir>
#include <QTest>

#include "app/core/nodes.h"
#include "app/gui/look/theme.h"
#include "app/gui/main_window.h"
#include "app/gui/node_view.h"
#include "tests/app/gui/run_story.h"
#include "tests/fakes/patience.h"

namespace atl::test {

class GuiScene {
 public:
  explicit GuiScene(int gpus = 8) : story(agent, gpus), theme(*qApp), nodes(QString()) {}

  // `joined`: whether the machine's disk says that a run was joined.
  void open(bool joined = true) {
    const std::filesystem::path home = directory.filePath("home").toStdString();
    std::filesystem::create_directories(home);
    if (joined) QFile(QString::fromStdString((home / "join.json").string())).open(QIODevice::WriteOnly);
    add_node(agent, LocalNode{agent_home_in(home)});
    window = std::make_unique<MainWindow>(nodes, theme);
    window->show();
  }
  Node& add_node(const FakeAgent& of, NodeAddress address) {
    return nodes.add(std::make_unique<Node>(std::move(address), of.open(), commands.run(), kQuick));
  }
  Node& node() { return *nodes.all().front(); }

  // Found within the page that is shown, the header, or the whole window.
  template <class T>
  T* find(const char* name) {
    QWidget* page = window->view()->pageWidget();
    if (T* found = page != nullptr ? page->findChild<T*>(name) : nullptr) return found;
    if (T* found = window->view()->findChild<T*>(name)) return found;
    return window->findChild<T*>(name);
  }
  QString text(const char* name) {
    const auto* label = find<QLabel>(name);
    return label != nullptr ? label->text() : QString("no label %1").arg(name);
  }
  // Waits until it can be clicked, as users do: pages follow their models a moment later.
  void click(const char* name) {
    QTRY_VERIFY2(can_be_clicked(find<QAbstractButton>(name)), name);
    QTest::mouseClick(find<QAbstractButton>(name), Qt::LeftButton);
  }
  template <class T>
  T* dialog() {
    for (QWidget* widget : QApplication::topLevelWidgets()) {
      if (auto* found = qobject_cast<T*>(widget); found != nullptr && found->isVisible()) return found;
    }
    return nullptr;
  }

  static bool can_be_clicked(const QAbstractButton* button) {
    return button != nullptr && button->isEnabled() && button->isVisible();
  }

  static constexpr LinkTiming kQuick{.first_retry = std::chrono::milliseconds(20),
                                     .longest_retry = std::chrono::milliseconds(100),
                                     .answer_time = std::chrono::milliseconds(8000)};

  QTemporaryDir directory;
  FakeAgent agent;
  FakeCommands commands;
  RunStory story;
  Theme theme;
  Nodes nodes;
  std::unique_ptr<MainWindow> window;
};

}  // namespace atl::test
