#include "app/gui/demo/demo_choice.h"

#include <QCheckBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QGroupBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>

#include "app/cli/demo/demo_options.h"
#include "app/gui/look/colours.h"
#include "app/gui/look/icons.h"
#include "app/gui/look/style.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/plain_label.h"
#include "app/gui/parts/screen_fit.h"

namespace atl {
namespace {

constexpr int kWidest = 720;  // longer lines are hard to read
constexpr int kSign = 48;

}  // namespace

DemoChoice::DemoChoice(QWidget* parent) : QWidget(parent) {
  auto* outer = new QHBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  auto* held = new QWidget;
  held->setMaximumWidth(kWidest);
  outer->addStretch(1);
  outer->addWidget(held, 1000);
  outer->addStretch(1);
  auto* column = new QVBoxLayout(held);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(12);
  column->addStretch(1);
  auto* sign = new QLabel;
  sign->setPixmap(icon_pixmap("demo", colours_of(palette()).accent, kSign, devicePixelRatioF()));
  column->addWidget(sign, 0, Qt::AlignLeft);
  column->addWidget(as_heading(make_sentence(tr("Demo")), 1.9));
  column->addWidget(make_sentence(
      tr("A hub and several islands, each a process of its own, train a small language model together on this machine, "
         "over encrypted connections to one another. You watch the loss fall, then see what it cost and what the model "
         "writes. Nothing leaves the machine, and nothing stays running.")));
  column->addWidget(makeOptions());
  column->addWidget(notice_ = new Notice("demo_notice"));
  start_ = new QPushButton(icon("play"), tr("&Start the demo"));
  start_->setObjectName("start_demo");
  start_->setAccessibleName(tr("Start the demo"));
  make_primary(start_);
  column->addWidget(start_, 0, Qt::AlignLeft);
  column->addStretch(2);
  align_captions(*this);
  connect(start_, &QPushButton::clicked, this, &DemoChoice::startWanted);
  refresh();
}

QWidget* DemoChoice::makeOptions() {
  auto* options = new QGroupBox;
  auto* form = new QFormLayout(options);
  form->setHorizontalSpacing(16);
  islands_ = new QSpinBox;
  islands_->setRange(1, 16);
  islands_->setValue(3);
  islands_->setAccessibleName(tr("Islands"));
  minutes_ = new QSpinBox;
  minutes_->setRange(1, 600);
  minutes_->setValue(5);
  minutes_->setAccessibleName(tr("Minutes of training"));
  for (QSpinBox* box : {islands_, minutes_}) box->setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
  kill_ = new QCheckBox(tr("&Kill an island in mid-round, and let a new one join"));
  kill_->setObjectName("kill");
  kill_->setAccessibleName(tr("Kill an island in mid-round, and let a new one join"));
  text_ = new QLineEdit;
  text_->setObjectName("demo_text");
  text_->setPlaceholderText(kDemoText);
  text_->setAccessibleName(tr("Text file to learn from"));
  text_->setClearButtonEnabled(true);
  auto* choose = new QPushButton(icon("folder"), tr("&Choose\u2026"));
  choose->setAccessibleName(tr("Choose a text file to learn from"));
  auto* row = new QHBoxLayout;
  row->setSpacing(8);
  row->addWidget(text_, 1);
  row->addWidget(choose);
  form->addRow(tr("&Islands:"), islands_);
  form->addRow(tr("&Minutes:"), minutes_);
  auto* caption = new QLabel(tr("&Text:"));
  caption->setBuddy(text_);
  form->addRow(caption, row);
  form->addRow(QString(), kill_);
  connect(choose, &QPushButton::clicked, this, &DemoChoice::chooseText);
  connect(text_, &QLineEdit::textChanged, this, &DemoChoice::refresh);
  connect(islands_, &QSpinBox::valueChanged, this, &DemoChoice::refresh);
  return options;
}

DemoWish DemoChoice::wish() const {
  return {.islands = islands_->value(),
          .minutes = minutes_->value(),
          .kill = kill_->isEnabled() && kill_->isChecked(),
          .text = text_->text().trimmed()};
}

void DemoChoice::setPossible(bool here) {
  here_ = here;
  refresh();
}

void DemoChoice::showProblem(const QString& problem) {
  problem_ = problem;
  refresh();
}

void DemoChoice::chooseText() {
  auto* dialog = new QFileDialog(this, tr("Text to learn from"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  new ScreenFit(*dialog);
  dialog->setFileMode(QFileDialog::ExistingFile);
  connect(dialog, &QFileDialog::fileSelected, text_, &QLineEdit::setText);
  dialog->open();
}

void DemoChoice::refresh() {
  kill_->setEnabled(islands_->value() > 1);  // who would finish the round?
  const QString text = text_->text().trimmed();
  const bool there = QFileInfo::exists(text.isEmpty() ? QString(kDemoText) : text);
  start_->setEnabled(here_ && there);
  using Kind = Notice::Kind;
  if (!here_) {
    notice_->say(Kind::kInfo, tr("The demo runs on this machine."), tr("Choose this machine at the left to see it."));
  } else if (!there && text.isEmpty()) {
    notice_->say(Kind::kWarning, tr("The English text that the demo learns from is not installed."),
                 tr("Install it with: apt-get install dict-gcide - or choose a text file of your own, of a megabyte or "
                    "more."));
  } else if (!there) {
    notice_->say(Kind::kWarning, tr("There is no such file."), tr("Choose another one."), text);
  } else if (!problem_.isEmpty()) {
    notice_->say(Kind::kError, tr("The demo did not run to its end."), problem_);
  } else {
    notice_->clear();
  }
}

}  // namespace atl
