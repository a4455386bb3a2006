// The wizard's fifth page: which run it is and what it costs, what will run here and what leaves the machine, and
// whether that is agreed to. Joining is consent: without the tick nothing happens. Owned by the wizard; GUI thread.
#pragma once

#include <QWizardPage>

class QCheckBox;
class QLabel;

namespace atl {

class Node;
class Notice;

class ConsentPage : public QWizardPage {
  Q_OBJECT

 public:
  explicit ConsentPage(Node& node, QWidget* parent = nullptr);

  void initializePage() override;
  bool isComplete() const override;

  bool atBoot() const;                                // start the agent with the machine
  bool withoutLogin() const;                          // and train while nobody is logged in
  bool leavesOther() const { return leaves_other_; }  // the run that this machine belongs to

 private:
  QWidget* makeRun();
  QWidget* makeService();
  void showRun();
  void showOther();

  Node& node_;
  bool leaves_other_ = false;  // as was shown
  Notice* other_;
  QLabel *run_, *operator_, *model_, *round_, *disk_, *memory_;
  QLabel* runs_;
  QLabel* leaves_;
  QLabel* stops_;
  QCheckBox* agree_;
  QCheckBox* boot_;
  QCheckBox* linger_;
};

}  // namespace atl
