// The demo inside the app: `atoll demo` on this machine, its islands and its loss as they come, and what it came to.
// Leaving the page ends nothing; closing the app ends the demo. Owned by the main window; GUI thread.
#pragma once

#include <memory>

#include <QString>
#include <QWidget>

class QStackedWidget;

namespace atl {

class DemoChoice;
class DemoProgress;
class DemoRunner;
class DemoSummaryView;
class Node;

class DemoPage : public QWidget {
  Q_OBJECT

 public:
  explicit DemoPage(Node& node, QWidget* parent = nullptr);
  ~DemoPage() override;

  bool running() const;

 private:
  void begin();
  void ended();

  std::unique_ptr<DemoRunner> runner_;
  QStackedWidget* stack_;
  DemoChoice* choice_;
  DemoProgress* progress_;
  DemoSummaryView* summary_;
};

}  // namespace atl
