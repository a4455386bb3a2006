#include "app/gui/logs_page.h"

#include <algorithm>

#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QFontDatabase>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QLocale>
#include <QPushButton>
#include <QScrollBar>
#include <QShortcut>
#include <QVBoxLayout>

#include "app/core/node.h"
#include "app/gui/diagnostics_dialog.h"
#include "app/gui/log_filter.h"
#include "app/gui/look/icons.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/plain_label.h"

namespace atl {

LogsPage::LogsPage(Node& node, QWidget* parent)
    : QWidget(parent), node_(node), filter_(new LogFilter(node.log(), this)) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(20, 8, 20, 16);
  column->setSpacing(12);
  auto* header = new QHBoxLayout;
  header->addWidget(as_heading(make_sentence(tr("Logs"))), 1);
  auto* diagnostics = new QPushButton(icon("diagnostics"), tr("&Diagnostics bundle\u2026"));
  diagnostics->setObjectName("diagnostics");
  diagnostics->setAccessibleName(tr("Diagnostics bundle"));
  diagnostics->setToolTip(tr("State, logs and configuration without secrets, for whoever helps you"));
  header->addWidget(diagnostics);
  column->addLayout(header);
  column->addWidget(makeFilters());
  column->addWidget(notice_ = new Notice("logs_notice"));
  makeList();
  column->addWidget(list_, 1);
  auto* footer = new QHBoxLayout;
  footer->addWidget(count_ = make_sentence({}), 1);
  copy_ = new QPushButton(icon("copy"), tr("&Copy"));
  copy_->setObjectName("copy");
  copy_->setAccessibleName(tr("Copy the chosen lines, or all that are shown"));
  copy_->setToolTip(copy_->accessibleName());
  footer->addWidget(copy_);
  column->addLayout(footer);
  connect(diagnostics, &QPushButton::clicked, this, &LogsPage::openDiagnostics);
  connect(copy_, &QPushButton::clicked, this, &LogsPage::copy);
  connect(&node_.log(), &LogModel::changed, this, &LogsPage::refresh);
  connect(&node_, &Node::changed, this, &LogsPage::refresh);
  refresh();
}

QWidget* LogsPage::makeFilters() {
  auto* filters = new QWidget;
  auto* row = new QHBoxLayout(filters);
  row->setContentsMargins(0, 0, 0, 0);
  search_ = new QLineEdit;
  search_->setObjectName("search");
  search_->setPlaceholderText(tr("Show lines with\u2026"));
  search_->setAccessibleName(tr("Show lines with these words"));
  search_->setClearButtonEnabled(true);
  search_->addAction(icon("search"), QLineEdit::LeadingPosition);
  level_ = new QComboBox;
  level_->setObjectName("level");
  level_->setAccessibleName(tr("Least level"));
  level_->addItem(tr("Everything"), int(LogLevel::kDebug));
  level_->addItem(tr("Information and above"), int(LogLevel::kInfo));
  level_->addItem(tr("Warnings and errors"), int(LogLevel::kWarning));
  level_->addItem(tr("Errors"), int(LogLevel::kError));
  level_->setCurrentIndex(1);
  source_ = new QComboBox;
  source_->setObjectName("source");
  source_->setAccessibleName(tr("Written by"));
  source_->addItem(tr("Agent and trainer"), QString());
  source_->addItem(tr("Agent"), "agent");
  source_->addItem(tr("Trainer"), "trainer");
  follow_ = new QCheckBox(tr("Foll&ow"));
  follow_->setObjectName("follow");
  follow_->setAccessibleName(tr("Follow: show new lines as they are written"));
  follow_->setChecked(true);
  row->addWidget(search_, 1);
  for (QWidget* part : std::initializer_list<QWidget*>{level_, source_, follow_}) row->addWidget(part);
  connect(search_, &QLineEdit::textChanged, filter_, &LogFilter::setWords);
  connect(level_, &QComboBox::currentIndexChanged, this,
          [this] { filter_->setLeast(static_cast<LogLevel>(level_->currentData().toInt())); });
  connect(source_, &QComboBox::currentIndexChanged, this,
          [this] { filter_->setSource(source_->currentData().toString()); });
  connect(follow_, &QCheckBox::toggled, this, &LogsPage::follow);
  return filters;
}

void LogsPage::makeList() {
  list_ = new QListView;
  list_->setObjectName("lines");
  list_->setAccessibleName(tr("Lines of the logs"));
  list_->setModel(filter_);
  list_->setUniformItemSizes(true);
  list_->setSelectionMode(QAbstractItemView::ExtendedSelection);
  list_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  list_->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  auto* shortcut = new QShortcut(QKeySequence::Copy, list_);
  shortcut->setContext(Qt::WidgetShortcut);
  connect(shortcut, &QShortcut::activated, this, &LogsPage::copy);
  // New lines move the view only while it shows the newest.
  const QScrollBar* bar = list_->verticalScrollBar();
  connect(filter_, &LogFilter::rowsAboutToBeInserted, this,
          [this, bar] { at_end_ = bar->value() >= bar->maximum() - 1; });
  connect(filter_, &LogFilter::rowsInserted, this, &LogsPage::refresh);
  connect(filter_, &LogFilter::rowsRemoved, this, &LogsPage::refresh);
  connect(filter_, &LogFilter::modelReset, this, &LogsPage::refresh);
}

void LogsPage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  follow();
}

void LogsPage::hideEvent(QHideEvent* event) {
  QWidget::hideEvent(event);
  node_.log().follow(false);
}

void LogsPage::follow() {
  node_.log().follow(isVisible() && follow_->isChecked());
  if (!follow_->isChecked()) return;
  at_end_ = true;
  toTheEnd();
}

void LogsPage::toTheEnd() {
  if (at_end_ && follow_->isChecked()) list_->scrollToBottom();
}

void LogsPage::copy() {
  QModelIndexList rows = list_->selectionModel()->selectedIndexes();
  std::ranges::sort(rows, {}, &QModelIndex::row);
  QString text;
  if (rows.isEmpty()) {
    for (int row = 0; row < filter_->rowCount(); ++row) text += filter_->line(row) + "\n";
  }
  for (const QModelIndex& index : rows) text += filter_->line(index.row()) + "\n";
  QGuiApplication::clipboard()->setText(text);
}

void LogsPage::refresh() {
  const int shown = filter_->rowCount();
  const int all = node_.log().rowCount();
  set_plain_text(count_, shown == all ? tr("%n line(s)", nullptr, all)
                                      : tr("%1 of %n line(s)", nullptr, all).arg(QLocale().toString(shown)));
  copy_->setEnabled(shown > 0);
  toTheEnd();
  using Kind = Notice::Kind;
  const bool connected = node_.link().state() == LinkState::kConnected;
  if (!connected) {
    notice_->say(Kind::kWarning, tr("No agent answers, so no new lines can be read."),
                 QString::fromStdString(node_.link().problem()));
  } else if (!node_.log().problem().empty()) {
    notice_->say(Kind::kError, tr("The logs cannot be read."), QString::fromStdString(node_.log().problem()));
  } else if (all > 0 && shown == 0) {
    notice_->say(Kind::kInfo, tr("No line fits what you look for."), tr("Show more levels, or look for fewer words."));
  } else {
    notice_->clear();
  }
}

void LogsPage::openDiagnostics() {
  auto* dialog = new DiagnosticsDialog(node_, this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->open();
}

}  // namespace atl
