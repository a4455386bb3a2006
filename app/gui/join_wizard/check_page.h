// The wizard's third page: the node check. Rows stream in; a FAIL stops, a WARN needs a tick. Owned by the wizard; GUI
// thread.
#pragma once

#include <QWizardPage>

class QCheckBox;
class QProgressBar;
class QPushButton;

namespace atl {

class CheckModel;
class CheckTable;
class JoinModel;
class Notice;

class JoinCheckPage : public QWizardPage {
  Q_OBJECT

 public:
  // For the run of the invite that `join` has.
  JoinCheckPage(CheckModel& check, const JoinModel& join, QWidget* parent = nullptr);

  void initializePage() override;
  bool isComplete() const override;

 private:
  // Without rows about a hub that did not answer: what talks to it next says more.
  int count(bool fails) const;
  void run();
  void refresh();

  CheckModel& check_;
  const JoinModel& join_;
  Notice* notice_;
  QProgressBar* busy_;
  CheckTable* table_;
  QCheckBox* accept_;
  QPushButton* again_;
};

}  // namespace atl
