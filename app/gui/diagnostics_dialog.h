// A diagnostics bundle for whoever helps: what is in it is shown before anything is kept. Made of the node's agent, or,
// where none answers, by `atoll diag`. Of another machine the bundle stays there. GUI thread.
#pragma once

#include <memory>

#include <QDialog>
#include <QString>
#include <QTemporaryDir>
#include <nlohmann/json_fwd.hpp>

#include "app/gui/bundle_reader.h"
#include "net/base/result.h"

class QLineEdit;
class QListWidget;
class QPlainTextEdit;
class QPushButton;

namespace atl {

class Node;
class Notice;

class DiagnosticsDialog : public QDialog {
  Q_OBJECT

 public:
  explicit DiagnosticsDialog(Node& node, QWidget* parent = nullptr);
  ~DiagnosticsDialog() override;

 private:
  QWidget* makePreview();
  QWidget* makePlace();
  bool isHere() const;
  void collect();
  void collected(const Result<nlohmann::json>& answer);
  void read(const Result<BundleContent>& content);
  void showEntry(int row);
  void save();
  void saveAs(const QString& place);

  Node& node_;
  QTemporaryDir directory_;
  QString file_;  // the bundle, not yet kept
  BundleContent content_;
  Notice* notice_;
  QLineEdit* place_;  // of another machine
  QListWidget* entries_;
  QPlainTextEdit* preview_;
  QPushButton* collect_;
  QPushButton* save_;
};

}  // namespace atl
