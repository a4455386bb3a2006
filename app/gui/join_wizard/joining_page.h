// The wizard's last page: joining, stage by stage, with bytes, rate and time left; a stage that fails can be tried
// again. Owned by the wizard; GUI thread.
#pragma once

#include <array>
#include <functional>

#include <QWizardPage>

#include "app/core/join_model.h"

class QLabel;
class QProgressBar;
class QPushButton;

namespace atl {

class ConsentPage;
class Node;
class Notice;
class ResourcesPage;

class JoiningPage : public QWizardPage {
  Q_OBJECT

 public:
  // The pages before it say with what it joins.
  JoiningPage(Node& node, const ResourcesPage& resources, const ConsentPage& consent, QWidget* parent = nullptr);

  void initializePage() override;
  bool isComplete() const override;

 Q_SIGNALS:
  void anotherInviteWanted();

 private:
  struct Row {
    QLabel* symbol = nullptr;
    QLabel* name = nullptr;
    QProgressBar* bar = nullptr;
    QLabel* text = nullptr;
  };
  QWidget* makeStages();
  void join();
  void refresh();
  void showStage(JoinStage stage);
  void showOutcome();
  void installService();

  Node& node_;
  const ResourcesPage& resources_;
  const ConsentPage& consent_;
  bool service_asked_ = false;
  Notice* notice_;
  Notice* service_;
  std::array<Row, kJoinStages> rows_;
  QPushButton* another_;
  QPushButton* retry_;
};

}  // namespace atl
