#include "app/gui/main_window.h"

#include <QAction>
#include <QClipboard>
#include <QFontDatabase>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

#include "app/gui/facts_view.h"
#include "app/gui/island_text.h"

namespace atl {
namespace {

QLabel* make_text(const char* name) {
  auto* label = new QLabel;
  label->setObjectName(name);
  label->setTextFormat(Qt::PlainText);  // names and errors come from other programs
  label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  label->setFocusPolicy(Qt::StrongFocus);
  return label;
}

void set_text(QLabel* label, const QString& text) {
  // Setting the same text would lose the user's selection.
  if (label->text() != text) label->setText(text);
}

QFont scaled(QFont font, double factor) {
  font.setPointSizeF(font.pointSizeF() * factor);
  font.setBold(true);
  return font;
}

}  // namespace

MainWindow::MainWindow(IslandHome home, QWidget* parent) : QMainWindow(parent), home_(std::move(home)) {
  auto* content = new QWidget;
  auto* column = new QVBoxLayout(content);
  column->setContentsMargins(20, 16, 20, 16);
  column->setSpacing(12);
  column->addWidget(makeHeader());
  advice_ = make_text("advice");
  advice_->setWordWrap(true);
  column->addWidget(advice_);
  column->addWidget(remedy_ = makeRemedy());
  column->addWidget(facts_ = new FactsView, 1);
  column->addStretch();

  auto* scroll = new QScrollArea;
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setWidget(content);
  scroll->setAccessibleName(tr("What this machine's island does"));
  setCentralWidget(scroll);

  auto* quit = new QAction(tr("&Quit"), this);
  quit->setShortcut(QKeySequence::Quit);
  connect(quit, &QAction::triggered, this, &QWidget::close);
  addAction(quit);

  connect(&clock_, &QTimer::timeout, this, &MainWindow::refresh);
  clock_.start(std::chrono::seconds(1));
  resize(780, 500);
  refresh();
}

QWidget* MainWindow::makeHeader() {
  auto* header = new QWidget;
  auto* row = new QHBoxLayout(header);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(16);
  row->addWidget(state_ = make_text("state"));
  row->addWidget(run_ = make_text("run"), 1);
  row->addWidget(age_ = make_text("age"));
  state_->setFont(scaled(font(), 1.7));
  run_->setFont(scaled(font(), 1.2));
  run_->setWordWrap(true);
  return header;
}

QWidget* MainWindow::makeRemedy() {
  auto* remedy = new QWidget;
  auto* row = new QHBoxLayout(remedy);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(command_ = make_text("command"), 1);
  command_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  command_->setWordWrap(true);
  auto* copy = new QPushButton(tr("&Copy command"));
  copy->setObjectName("copy");
  copy->setAccessibleName(tr("Copy the command"));
  row->addWidget(copy);
  connect(copy, &QPushButton::clicked, this, [this] { QGuiApplication::clipboard()->setText(command_->text()); });
  return remedy;
}

void MainWindow::showReport(const IslandReport& report) {
  report_ = report;
  refresh();
}

void MainWindow::refresh() {
  const auto now = Clock::now();
  const bool live = is_live(report_, now);
  const auto role = live || !report_.state ? QPalette::WindowText : QPalette::PlaceholderText;
  const text::StateWord word = text::state_word(report_, now);
  const QString run = QString::fromStdString(report_.run_name);
  setWindowTitle(run.isEmpty() ? tr("Atoll") : tr("%1: %2 - Atoll").arg(word.word, run));
  set_text(state_, word.symbol + " " + word.word);
  state_->setAccessibleName(tr("State: %1").arg(word.word));
  set_text(run_, run.isEmpty() ? QString() : tr("run %1").arg(run));
  run_->setAccessibleName(run.isEmpty() ? tr("No run") : tr("Run: %1").arg(run));
  run_->setForegroundRole(role);
  const QString age = text::age(report_, now);
  set_text(age_, age);
  age_->setAccessibleName(age.isEmpty() ? tr("No data") : age);
  age_->setForegroundRole(role);

  const QString advice = text::advice(report_, home_, now);
  set_text(advice_, advice);
  advice_->setAccessibleName(advice.isEmpty() ? tr("No problem") : advice);
  advice_->setVisible(!advice.isEmpty());
  const QString command = text::remedy(report_, home_);
  set_text(command_, command);
  command_->setAccessibleName(tr("Command: %1").arg(command));
  remedy_->setVisible(!command.isEmpty());

  facts_->setVisible(report_.state.has_value());
  if (report_.state) facts_->showState(*report_.state, live);
}

}  // namespace atl
