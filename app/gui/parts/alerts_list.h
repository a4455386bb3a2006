// What happened lately, newest first, each with its symbol and time. Owned by its page; GUI thread.
#pragma once

#include <optional>
#include <vector>

#include <QListWidget>

#include "app/core/node.h"

namespace atl {

class AlertsList : public QListWidget {
  Q_OBJECT

 public:
  explicit AlertsList(QWidget* parent = nullptr);

  // `well`: without an alert all is well; else there is just none.
  void showAlerts(const std::vector<Alert>& alerts, bool well);

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  int heightOf(int rows) const;

  std::vector<Alert> shown_;
  std::optional<bool> well_;
};

}  // namespace atl
