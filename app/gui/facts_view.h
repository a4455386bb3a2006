// The values of an island's state, in groups, each with its unit. Owned by the window; GUI thread.
#pragma once

#include <vector>

#include <QWidget>

#include "net/control/island_state.h"

class QFormLayout;
class QLabel;
class QProgressBar;

namespace atl {

class FactsView : public QWidget {
  Q_OBJECT

 public:
  explicit FactsView(QWidget* parent = nullptr);

  void showState(const IslandState& state, bool live);

 private:
  // One line: what it is called, and how it is read from a state.
  struct Fact {
    const char* name;
    QString caption;
    QString (*text)(const IslandState&);
  };
  struct Row {
    Fact fact;
    QLabel* value;
  };

  QWidget* makeGroup(const QString& title, std::vector<Fact> facts, QWidget* above = nullptr);
  void addRow(QFormLayout* form, Fact fact);
  void showStep(const IslandState& state, bool live);

  std::vector<Row> rows_;
  QProgressBar* step_;
};

}  // namespace atl
