// One value of the configuration on the screen: its field, its meaning, where it comes from, and beside it what is
// wrong with it. The settings page and the join wizard show the same. GUI thread.
#pragma once

#include <functional>
#include <vector>

#include <QString>
#include <QWidget>

#include "app/core/settings_model.h"

class QLabel;
class QToolButton;

namespace atl {

class SettingEditor;

class SettingField : public QWidget {
  Q_OBJECT

 public:
  // `title`: what it is called where the usual name would not do.
  explicit SettingField(const SettingRow& row, const QString& title = {}, QWidget* parent = nullptr);

  const std::string& key() const { return row_.key; }
  QString value() const;
  bool isChanged() const;  // the person has edited it, and it was not saved

  // As the agent says. What the person has edited stays.
  void setRow(const SettingRow& row);
  void discard();
  void saved();
  void setProblem(const QString& problem);  // empty: none
  void setNow(const QString& now);          // what is in force at this hour; empty: nothing to say
  QString problem() const;
  QWidget* control() const;  // that takes the keyboard

 Q_SIGNALS:
  void edited();
  void resetWanted();  // take it back to what holds without it

 private:
  void refresh();

  SettingRow row_;
  const QString title_;
  bool changed_ = false;
  SettingEditor* editor_;
  QLabel* origin_;
  QLabel* now_;
  QLabel* problem_;
  QLabel* problem_symbol_;
  QToolButton* reset_;
};

// Saves those that were changed; each shows what is wrong with its value. `done` gets how many could not be saved,
// unless `context` is gone by then.
void save_fields(SettingsModel& settings, const std::vector<SettingField*>& fields, QObject* context,
                 std::function<void(int failed)> done);

}  // namespace atl
