// The wizard's first page: the invite, pasted, from a file, or of an `atoll:` link; read offline. Owned by the wizard;
// GUI thread.
#pragma once

#include <QPlainTextEdit>
#include <QWizardPage>

namespace atl {

class JoinModel;
class Notice;

// Takes what is pasted or dropped: text, a link, or a file that holds it.
class InviteEdit : public QPlainTextEdit {
  Q_OBJECT

 public:
  explicit InviteEdit(QWidget* parent = nullptr);

 Q_SIGNALS:
  void fileDropped(const QString& file);

 protected:
  bool canInsertFromMimeData(const QMimeData* mime) const override;
  void insertFromMimeData(const QMimeData* mime) override;
};

class InvitePage : public QWizardPage {
  Q_OBJECT

 public:
  explicit InvitePage(JoinModel& join, QWidget* parent = nullptr);

  void setText(const QString& text);
  bool isComplete() const override;

 private:
  QWidget* makeButtons();
  void edited();
  void paste();
  void chooseFile();
  void readFile(const QString& file);

  JoinModel& join_;
  InviteEdit* edit_;
  Notice* notice_;
};

}  // namespace atl
