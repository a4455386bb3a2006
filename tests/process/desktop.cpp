#include "tests/process/desktop.h"

#include <QAbstractItemModel>
#include <QCheckBox>
#include <QFile>
#include <QLineEdit>
#include <QListWidget>

#include "app/gui/command_line.h"
#include "app/gui/parts/notice.h"
#include "app/gui/plot/plot.h"
#include "tests/fakes/processes.h"
#include "tests/process/agent_service.h"
#include "tests/process/run_parts.h"

namespace atl::test {

void Desktop::open() {
  nodes_ = std::make_unique<Nodes>(QString());
  GuiOptions options;
  options.home = QString::fromStdString(home_.string());
  require(open_nodes(options, *nodes_));
  window_ = std::make_unique<MainWindow>(*nodes_, theme_);
  window_->show();
}

void Desktop::close() {
  if (!window_) return;
  window_->close();
  window_.reset();
  nodes_.reset();
}

QWidget* Desktop::front() const {
  QWidget* dialog = QApplication::activeModalWidget();
  return dialog != nullptr ? dialog : window_.get();
}

// xvfb-run starts "Xvfb :99 ...".
int Desktop::xServer() {
  const QByteArray display = qgetenv("DISPLAY").split('.').front();
  for (const pid_t process : processes_of(display.constData())) {
    QFile file(QString("/proc/%1/cmdline").arg(process));
    if (!file.open(QIODevice::ReadOnly)) continue;
    const QList<QByteArray> words = file.readAll().split('\0');
    if (words.value(0).contains("X") && words.value(1) == display) return process;
  }
  return 0;
}

// ---- reading

void Desktop::follow(const char* label) {
  seen_.clear();
  find<QLabel>(label)->installEventFilter(this);
}

bool Desktop::eventFilter(QObject* watched, QEvent* event) {
  const auto* label = qobject_cast<QLabel*>(watched);
  if (label != nullptr && event->type() == QEvent::Paint && !seen_.contains(label->text())) seen_ << label->text();
  return QObject::eventFilter(watched, event);
}

QString Desktop::text(const char* label) const {
  const auto* found = find<QLabel>(label);
  return found != nullptr ? found->text() : QString();
}

QString Desktop::said(const char* notice) const {
  const auto* found = find<Notice>(notice);
  if (found == nullptr) return {};
  return QStringList{found->sentence(), found->advice(), found->details()}.join('\n');
}

QString Desktop::cell(const char* table, int row, int column) const {
  const auto* found = find<QAbstractItemView>(table);
  return found != nullptr ? found->model()->index(row, column).data().toString() : QString();
}

int Desktop::row(const char* table, const QString& words) const {
  const auto* found = find<QAbstractItemView>(table);
  if (found == nullptr) return -1;
  for (int row = 0; row < found->model()->rowCount(); ++row) {
    for (int column = 0; column < found->model()->columnCount(); ++column) {
      if (cell(table, row, column).contains(words)) return row;
    }
  }
  return -1;
}

QString Desktop::newestPoint() const {
  auto* plot = find<Plot>();
  if (plot == nullptr) return {};
  turn();
  QTest::keyClick(plot, Qt::Key_Escape);
  QTest::keyClick(plot, Qt::Key_Left, Qt::ShiftModifier);
  return plot->accessibleDescription();
}

bool Desktop::offers(const char* button) const {
  const auto* found = find<QAbstractButton>(button);
  return found != nullptr && found->isEnabled();
}

// ---- doing

// Between what a person does the event loop turns, many times.
void Desktop::turn() { QTest::qWait(2); }

bool Desktop::press(QAbstractButton* button) {
  if (button == nullptr || !button->isVisible() || !button->isEnabled()) return false;
  // A box is ticked by its mark or its words, not by the room behind them.
  const bool box = qobject_cast<QCheckBox*>(button) != nullptr;
  const QPoint place = box ? QPoint(10, button->height() / 2) : button->rect().center();
  turn();
  QTest::mousePress(button, Qt::LeftButton, {}, place);
  turn();
  QTest::mouseRelease(button, Qt::LeftButton, {}, place);
  turn();
  return true;
}

bool Desktop::click(const char* button) const { return press(find<QAbstractButton>(button)); }
bool Desktop::click(QWizard::WizardButton which) const { return wizard() != nullptr && press(wizard()->button(which)); }

// On a bare X server there is no window manager that would give it the keyboard.
bool Desktop::press(const QKeySequence& keys) const {
  window_->activateWindow();
  if (!QTest::qWaitForWindowActive(window_.get())) return false;
  turn();
  QTest::keySequence(window_.get(), keys);
  turn();
  return true;
}

bool Desktop::choosePage(const QString& title) const {
  auto* pages = find<QListWidget>("pages");
  const auto found = pages->findItems(title, Qt::MatchExactly);
  if (found.isEmpty()) return false;
  turn();
  QTest::mouseClick(pages->viewport(), Qt::LeftButton, {}, pages->visualItemRect(found.front()).center());
  turn();
  return true;
}

bool Desktop::type(const char* field, const QString& text) const {
  auto* holder = find<QWidget>(field);
  auto* line = qobject_cast<QLineEdit*>(holder);
  if (line == nullptr && holder != nullptr) line = holder->findChild<QLineEdit*>();
  if (line == nullptr || !line->isEnabled()) return false;
  QTest::keySequence(line, QKeySequence::SelectAll);
  for (const QChar letter : text) {
    turn();
    QTest::keyClick(line, letter.toLatin1());
  }
  turn();
  return true;
}

}  // namespace atl::test
