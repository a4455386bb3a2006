// A new run: its name, its text, a preset of model and training, and where its hub is reached. GUI thread.
#pragma once

#include <vector>

#include <QWidget>

#include "app/core/hub_model.h"
#include "app/gui/organise/preset_facts.h"

class QComboBox;
class QFormLayout;
class QLabel;
class QLineEdit;
class QProgressBar;
class QPushButton;
class QSpinBox;

namespace atl {

class Notice;

class CreateRunPage : public QWidget {
  Q_OBJECT

 public:
  explicit CreateRunPage(HubModel& hub, QWidget* parent = nullptr);

  RunPlan plan() const;
  // What is missing or wrong in it, in a sentence; empty when it can be made.
  QString defect() const;

 private:
  QWidget* makeRun();
  QWidget* makeHub();
  void addText(QFormLayout* form);
  void chooseDirectory();
  void showPreset();
  void refresh();

  HubModel& hub_;
  std::vector<PresetFacts> presets_;
  QLineEdit* name_;
  QLineEdit* operator_;
  QComboBox* kind_;  // of the text
  QLineEdit* directory_;
  QComboBox* preset_;
  QLabel* facts_;
  QSpinBox* islands_;
  QSpinBox* inner_steps_;
  QLineEdit* listen_;
  QLineEdit* advertise_;
  Notice* notice_;
  QProgressBar* busy_;
  QPushButton* create_;
};

}  // namespace atl
