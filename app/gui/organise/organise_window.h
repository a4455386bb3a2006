// A run of one's own: made from a preset, served by this machine's hub, others invited. What `atoll hub` does; all of
// it is in HubModel. Closing the window stops nothing. Owned by who opens it; GUI thread.
#pragma once

#include <QMainWindow>

class QStackedWidget;

namespace atl {

class CreateRunPage;
class HubModel;
class HubPage;

class OrganiseWindow : public QMainWindow {
  Q_OBJECT

 public:
  // The caller calls hub.start().
  explicit OrganiseWindow(HubModel& hub, QWidget* parent = nullptr);

 private:
  void refresh();

  HubModel& hub_;
  QStackedWidget* stack_;
  CreateRunPage* create_;
  HubPage* page_;
};

}  // namespace atl
