// The desktop app's window: what is true of this machine's island now, or how old it is. Owned by main(); GUI thread.
#pragma once

#include <QMainWindow>
#include <QTimer>

#include "app/core/island_report.h"
#include "net/control/home.h"

class QLabel;

namespace atl {

class FactsView;

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  explicit MainWindow(IslandHome home, QWidget* parent = nullptr);

  void showReport(const atl::IslandReport& report);

 private:
  QWidget* makeHeader();
  QWidget* makeRemedy();
  void refresh();  // also as time passes without a report

  const IslandHome home_;
  IslandReport report_;
  QLabel* state_;
  QLabel* run_;
  QLabel* age_;
  QLabel* advice_;
  QWidget* remedy_;
  QLabel* command_;
  FactsView* facts_;
  QTimer clock_;
};

}  // namespace atl
