// A sentence with its symbol about what is on a page: all is well, something is amiss, work is under way. Beneath it
// what to do, and, from another program, the details. Hidden while it has nothing to say. GUI thread.
#pragma once

#include <QFrame>
#include <QString>

class QGridLayout;
class QLabel;

namespace atl {

class Notice : public QFrame {
  Q_OBJECT

 public:
  enum class Kind { kGood, kInfo, kBusy, kWarning, kError };

  explicit Notice(const char* name, QWidget* parent = nullptr);

  void say(Kind kind, const QString& sentence, const QString& advice = {}, const QString& details = {});
  void clear();
  // At its right: what is done about it.
  void hold(QWidget* button);

  bool says() const { return !sentence_.isEmpty(); }
  Kind kind() const { return kind_; }
  const QString& sentence() const { return sentence_; }
  QString advice() const;
  QString details() const;

 protected:
  void changeEvent(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  void showKind();

  Kind kind_ = Kind::kInfo;
  QString sentence_;
  QGridLayout* grid_;
  QLabel* symbol_;
  QLabel* text_;
  QLabel* advice_;
  QLabel* details_;
};

}  // namespace atl
