// Pause, finish, stop or leave: what it means and what it costs is said before it is done; a failure is said too, and
// the dialog stays. Owned by its parent; GUI thread.
#pragma once

#include <QDialog>

#include "app/core/agent_link.h"

class QComboBox;
class QLabel;
class QPushButton;

namespace atl {

class Node;
class Notice;
class ScreenFit;

class WishDialog : public QDialog {
  Q_OBJECT

 public:
  enum class Wish { kPause, kFinish, kStop, kLeave };

  WishDialog(Node& node, Wish wish, QWidget* parent = nullptr);

 private:
  void refresh();
  void grow();
  void ask();
  void answered(const Result<nlohmann::json>& result);

  Node& node_;
  const Wish wish_;
  QComboBox* span_ = nullptr;  // of a pause
  QLabel* cost_;
  Notice* notice_;
  QPushButton* ok_;
  ScreenFit* fit_ = nullptr;  // once it is laid out
};

}  // namespace atl
