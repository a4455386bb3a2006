// The wizard's second page: who runs the hub that answers, which run and model it is, and that its key is the one in
// the invite. A key that is not has no way around. Starts this machine's agent when none runs: it does the asking.
// Owned by the wizard; GUI thread.
#pragma once

#include <QTimer>
#include <QWizardPage>

class QLabel;
class QProgressBar;
class QPushButton;

namespace atl {

class Node;
class Notice;

class TrustPage : public QWizardPage {
  Q_OBJECT

 public:
  explicit TrustPage(Node& node, QWidget* parent = nullptr);

  void initializePage() override;
  bool isComplete() const override;

 Q_SIGNALS:
  void anotherInviteWanted();

 private:
  void ask();
  void askNow();  // of the agent that is there, or of one that is started for it
  void linkChanged();
  void looked();
  void refresh();
  void showHub();
  void showProblem();

  Node& node_;
  bool wants_agent_ = false;  // started, and waited for
  int asks_left_ = 0;         // of an agent in the place of one that was lost
  QString agent_problem_;
  QTimer agent_time_;
  Notice* notice_;
  QProgressBar* busy_;
  QWidget* facts_;
  QLabel *run_, *operator_, *model_, *hub_, *expiry_, *pin_;
  QPushButton* another_;
  QPushButton* retry_;
};

}  // namespace atl
