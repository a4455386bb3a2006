// The wizard's fourth page: what of this machine the run may use. Name and GPUs go with the joining; the rest are
// settings of the node, saved when the page is left. Owned by the wizard; GUI thread.
#pragma once

#include <vector>

#include <QWizardPage>

#include "app/core/join_model.h"

class QFormLayout;
class QLabel;
class QLineEdit;
class QSpinBox;

namespace atl {

class GpuChoice;
class Node;
class Notice;
class SettingField;

class ResourcesPage : public QWizardPage {
  Q_OBJECT

 public:
  explicit ResourcesPage(Node& node, QWidget* parent = nullptr);

  void initializePage() override;
  bool isComplete() const override;
  // Saves what was changed, and goes on once that is done.
  bool validatePage() override;

  JoinResources resources() const;

 private:
  QWidget* makeIsland();
  void takeSettings();
  void takeState();
  void showGpus();
  bool canComputeOnGpus() const;
  bool computesOnGpus() const;
  void proposeThreads();
  void refresh();
  void saved(int failed);

  Node& node_;
  bool saving_ = false, saved_ = false;
  Notice* notice_;
  QLineEdit* name_;
  QFormLayout* island_;
  QLabel* computing_;  // what is chosen in the row: GPUs, or cores
  GpuChoice* gpus_;
  QSpinBox* threads_;
  bool threads_chosen_ = false;  // by the person
  QLabel* directory_;
  QWidget* limits_;
  std::vector<SettingField*> fields_;
};

}  // namespace atl
