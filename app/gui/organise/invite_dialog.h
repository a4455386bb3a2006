// An invite to this machine's run: for how many, for how long; then as a text, a link and a QR code. It is a secret,
// and hidden until it is asked for. GUI thread.
#pragma once

#include <optional>

#include <QDialog>

#include "app/core/hub_model.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QSpinBox;
class QVBoxLayout;

namespace atl {

class Notice;
class QrCode;
class ScreenFit;

class InviteDialog : public QDialog {
  Q_OBJECT

 public:
  explicit InviteDialog(HubModel& hub, QWidget* parent = nullptr);

 private:
  QWidget* makeWish();
  QWidget* makeResult();
  void make();
  void made(const Result<MadeInvite>& invite);
  void refresh();
  void copy(const QString& text, const QString& said);
  void save();

  HubModel& hub_;
  std::optional<MadeInvite> invite_;
  bool making_ = false;
  QWidget* content_;
  QVBoxLayout* beneath_;
  ScreenFit* fit_;
  QSpinBox* uses_;
  QComboBox* expires_;
  QPushButton* make_;
  Notice* notice_;
  QWidget* result_;
  QLineEdit* text_;
  QPushButton* show_;
  QPushButton* copy_;
  QrCode* qr_;
};

}  // namespace atl
