// A text as a QR code on the screen, for a phone or another machine's camera. Dark on light whatever the theme: readers
// want it so. GUI thread.
#pragma once

#include <vector>

#include <QByteArray>
#include <QString>
#include <QWidget>

#include "net/base/result.h"

namespace atl {

struct QrModules {
  int width = 0;           // modules a side
  std::vector<bool> dark;  // row by row
};

// kInvalidArgument when the text is longer than a code can hold.
Result<QrModules> qr_modules(const QByteArray& text);

class QrCode : public QWidget {
  Q_OBJECT

 public:
  explicit QrCode(QWidget* parent = nullptr);

  // Empty: nothing is drawn.
  void setText(const QString& text);
  QSize sizeHint() const override;
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override { return width < kSide ? width : kSide; }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  static constexpr int kSide = 300;  // enough for any camera

  QrModules modules_;
};

}  // namespace atl
