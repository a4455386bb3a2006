// The page "Settings": every value of the node's configuration with its meaning and where it comes from. Changes go
// through `config.set`; config.toml is the person's own and is never written. Owned by the main window; GUI thread.
#pragma once

#include <map>
#include <string>

#include <QWidget>

class QLabel;
class QPushButton;
class QVBoxLayout;

namespace atl {

class Node;
class Notice;
class SettingField;

class SettingsPage : public QWidget {
  Q_OBJECT

 public:
  explicit SettingsPage(Node& node, QWidget* parent = nullptr);

 Q_SIGNALS:
  void startWanted();  // of this machine's agent, which keeps the configuration

 private:
  QWidget* makeButtons();
  void rebuild();  // fields of keys that are new
  void refresh();
  void showCaps();
  void refreshButtons();
  void apply();
  void discard();

  Node& node_;
  std::map<std::string, SettingField*> fields_;
  QVBoxLayout* groups_;
  Notice* notice_;
  QLabel* files_;
  QPushButton* apply_;
  QPushButton* start_;
  QPushButton* discard_;
  bool saving_ = false;
  int failed_ = 0;  // of the last apply
};

}  // namespace atl
