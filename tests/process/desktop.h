// The desktop app's window on a machine, as a person has it: opened as `atoll-gui --home` opens it, then clicked, typed
// into and read. What is looked for is what can be seen: in the dialog that is open, else in the window. Owned by a
// test; GUI thread.
#pragma once

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QApplication>
#include <QLabel>
#include <QWizard>
#include <QtTest>
#include <filesystem>
#include <memory>

#include "app/core/nodes.h"
#include "app/gui/look/theme.h"
#include "app/gui/main_window.h"

namespace atl::test {

class Desktop : public QObject {
 public:
  explicit Desktop(std::filesystem::path home) : home_(std::move(home)), theme_(*qApp) {}

  void open();
  void close();  // by its title bar; what belongs to the window is gone then
  MainWindow& window() { return *window_; }

  static int xServer();  // the process that serves this program's display; 0: not known, or there is none

  QWidget* front() const;  // the dialog that is open, else the window
  // The first that is seen; null: none.
  template <class T>
  T* find(const QString& name = {}) const {
    for (T* widget : front()->findChildren<T*>(name)) {
      if (widget->isVisible()) return widget;
    }
    return nullptr;
  }
  QWizard* wizard() const { return qobject_cast<QWizard*>(front()); }

  // What a label shows from now on, also for a moment: the words that were painted.
  void follow(const char* label);
  const QStringList& seen() const { return seen_; }

  QString text(const char* label) const;   // of a label
  QString said(const char* notice) const;  // all lines of a notice
  QString cell(const char* table, int row, int column) const;
  // The row whose text has these words; -1: none.
  int row(const char* table, const QString& words) const;
  QString newestPoint() const;            // as the first plot reads it out when the keyboard goes there
  bool offers(const char* button) const;  // it is seen and can be pressed

  // False: it is not there to be pressed.
  bool click(const char* button) const;
  bool click(QWizard::WizardButton button) const;
  bool press(const QKeySequence& keys) const;   // in the window
  bool choosePage(const QString& title) const;  // in the side bar
  bool type(const char* field, const QString& text) const;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  static void turn();
  static bool press(QAbstractButton* button);

  const std::filesystem::path home_;
  Theme theme_;
  std::unique_ptr<Nodes> nodes_;
  std::unique_ptr<MainWindow> window_;
  QStringList seen_;
};

}  // namespace atl::test
