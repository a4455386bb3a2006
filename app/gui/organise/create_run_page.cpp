#include "app/gui/organise/create_run_page.h"

#include <QComboBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QGroupBox>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>

#include "app/gui/look/format.h"
#include "app/gui/look/icons.h"
#include "app/gui/look/style.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/plain_label.h"
#include "app/gui/parts/screen_fit.h"
#include "net/base/address.h"

namespace atl {
namespace {

constexpr int kMaxNameBytes = 64;
constexpr int kWidest = 900;  // longer lines are hard to read
enum TextKind { kText, kPrepared };

// A host alone is reached at the port that the hub listens on.
QString reached_at(const QString& host, const QString& listen) {
  if (host.isEmpty() || parse_address(host.toStdString()).ok()) return host;
  const auto listened = parse_address(listen.toStdString());
  const QString with_port = QString("%1:%2").arg(host).arg(listened.ok() ? listened->port : 0);
  return listened.ok() && parse_address(with_port.toStdString()).ok() ? with_port : host;
}

// Of an address that no other machine can dial, the host; else nothing.
QString only_here(const RunPlan& plan) {
  const auto address = parse_address((plan.advertise.isEmpty() ? plan.listen : plan.advertise).toStdString());
  if (!address.ok()) return {};
  const QString host = QString::fromStdString(address->host);
  return host == "localhost" || host.startsWith("127.") || host == "::1" ? host : QString();
}

}  // namespace

CreateRunPage::CreateRunPage(HubModel& hub, QWidget* parent) : QWidget(parent), hub_(hub) {
  for (const std::string& name : run_preset_names()) {
    if (auto facts = preset_facts(name); facts.ok()) presets_.push_back(*std::move(facts));
  }
  auto* outer = new QHBoxLayout(this);
  auto* held = new QWidget;
  held->setMaximumWidth(kWidest);
  outer->setContentsMargins(20, 16, 20, 16);
  outer->addStretch(1);
  outer->addWidget(held, 1000);
  outer->addStretch(1);
  auto* column = new QVBoxLayout(held);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(12);
  column->addWidget(as_heading(make_sentence(tr("A run of your own"))));
  column->addWidget(make_lead(
      tr("This machine becomes the run's hub: it keeps who takes part and decides when a round counts. The hub trains "
         "nothing itself; this machine can join it like any other.")));
  column->addWidget(makeRun());
  column->addWidget(makeHub());
  column->addWidget(notice_ = new Notice("create_notice"));
  column->addWidget(busy_ = new QProgressBar);
  busy_->setRange(0, 0);
  busy_->setTextVisible(false);
  busy_->setMaximumHeight(6);
  create_ = new QPushButton(icon("hub"), tr("&Create the run and start its hub"));
  create_->setObjectName("create");
  create_->setAccessibleName(tr("Create the run and start its hub"));
  make_primary(create_);
  column->addWidget(create_, 0, Qt::AlignLeft);
  column->addStretch(1);
  connect(create_, &QPushButton::clicked, this, [this] { hub_.create(plan()); });
  connect(&hub_, &HubModel::changed, this, &CreateRunPage::refresh);
  align_captions(*this);
  showPreset();
}

QWidget* CreateRunPage::makeRun() {
  auto* box = new QGroupBox(tr("Run"));
  auto* form = new QFormLayout(box);
  form->setHorizontalSpacing(16);
  name_ = new QLineEdit;
  name_->setObjectName("run_name");
  setFocusProxy(name_);
  name_->setAccessibleName(tr("Name of the run"));
  name_->setMaxLength(kMaxNameBytes);
  form->addRow(tr("&Name:"), name_);
  operator_ = new QLineEdit;
  operator_->setObjectName("operator");
  operator_->setAccessibleName(tr("Who runs it, as those see it whom you invite"));
  operator_->setPlaceholderText(tr("who runs it, as those see it whom you invite"));
  operator_->setMaxLength(kMaxNameBytes);
  form->addRow(tr("&Operator:"), operator_);
  addText(form);
  preset_ = new QComboBox;
  preset_->setObjectName("preset");
  preset_->setAccessibleName(tr("Preset"));
  for (const PresetFacts& preset : presets_) {
    preset_->addItem(tr("%1: %2 parameters").arg(preset.name.c_str(), text::count(preset.parameters)),
                     QString::fromStdString(preset.name));
  }
  facts_ = make_plain_label("preset_facts");
  facts_->setMinimumWidth(420);  // else room is kept for more lines than it has
  islands_ = new QSpinBox;
  islands_->setObjectName("min_islands");
  islands_->setRange(1, 1024);
  islands_->setAccessibleName(tr("Islands that the first round waits for"));
  inner_steps_ = new QSpinBox;
  inner_steps_->setObjectName("inner_steps");
  inner_steps_->setRange(0, 1'000'000);
  inner_steps_->setSpecialValueText(tr("as the preset says"));
  inner_steps_->setAccessibleName(tr("Inner steps a round"));
  for (QSpinBox* spin : {islands_, inner_steps_}) spin->setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
  form->addRow(tr("&Preset:"), preset_);
  form->addRow(QString(), facts_);
  form->addRow(tr("&Islands to begin with:"), islands_);
  form->addRow(tr("Inner &steps a round:"), inner_steps_);
  for (QLineEdit* line : {name_, operator_}) connect(line, &QLineEdit::textChanged, this, &CreateRunPage::refresh);
  connect(preset_, &QComboBox::currentIndexChanged, this, &CreateRunPage::showPreset);
  return box;
}

void CreateRunPage::addText(QFormLayout* form) {
  kind_ = new QComboBox;
  kind_->setObjectName("text_kind");
  kind_->setAccessibleName(tr("Kind of text"));
  kind_->addItems({tr("Directory of text files, to be prepared"), tr("Dataset made by atoll data prepare")});
  directory_ = new QLineEdit;
  directory_->setObjectName("text_directory");
  directory_->setAccessibleName(tr("Directory of the text"));
  auto* choose = new QPushButton(icon("folder"), tr("C&hoose\u2026"));
  choose->setObjectName("choose_directory");
  choose->setAccessibleName(tr("Choose the directory"));
  auto* row = new QHBoxLayout;
  row->setSpacing(8);
  row->addWidget(directory_, 1);
  row->addWidget(choose);
  form->addRow(tr("&Text:"), kind_);
  form->addRow(QString(), row);
  connect(choose, &QPushButton::clicked, this, &CreateRunPage::chooseDirectory);
  connect(directory_, &QLineEdit::textChanged, this, &CreateRunPage::refresh);
}

QWidget* CreateRunPage::makeHub() {
  auto* box = new QGroupBox(tr("Hub"));
  auto* form = new QFormLayout(box);
  form->setHorizontalSpacing(16);
  const RunPlan usual;
  listen_ = new QLineEdit(usual.listen);
  listen_->setObjectName("listen");
  listen_->setAccessibleName(tr("Address and port that the hub listens on"));
  advertise_ = new QLineEdit;
  advertise_->setObjectName("advertise");
  advertise_->setPlaceholderText(tr("this machine's own address"));
  advertise_->setAccessibleName(tr("Address that invites carry, HOST or HOST:PORT"));
  form->addRow(tr("&Listen on:"), listen_);
  form->addRow(tr("&Reached at:"), advertise_);
  form->addRow(QString(), make_lead(tr("Others must be able to reach this port: open it in your router or firewall.")));
  connect(listen_, &QLineEdit::textChanged, this, &CreateRunPage::refresh);
  connect(advertise_, &QLineEdit::textChanged, this, &CreateRunPage::refresh);
  return box;
}

void CreateRunPage::chooseDirectory() {
  auto* dialog = new QFileDialog(this, tr("Directory of the text"), directory_->text());
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  new ScreenFit(*dialog);
  dialog->setFileMode(QFileDialog::Directory);
  dialog->setOption(QFileDialog::ShowDirsOnly);
  connect(dialog, &QFileDialog::fileSelected, directory_, &QLineEdit::setText);
  dialog->open();
}

void CreateRunPage::showPreset() {
  const auto at = static_cast<std::size_t>(preset_->currentIndex());
  if (at < presets_.size()) {
    const PresetFacts& preset = presets_[at];
    islands_->setValue(static_cast<int>(preset.min_islands));
    set_plain_text(facts_,
                   tr("%1 inner steps a round, %2 tokens a step. An island whose processor computes takes %3 of "
                      "memory, with less at least %4; each synchronisation sends about %5.")
                       .arg(text::count(preset.inner_steps), text::count(preset.tokens_per_step),
                            text::bytes(preset.usual_memory_bytes), text::bytes(preset.memory_bytes),
                            text::bytes(2.0 * double(preset.payload_bytes))));
    facts_->setAccessibleName(facts_->text());
  }
  refresh();
}

RunPlan CreateRunPage::plan() const {
  RunPlan plan;
  plan.name = name_->text().trimmed();
  plan.operated_by = operator_->text().trimmed();
  (kind_->currentIndex() == kText ? plan.text_directory : plan.data_directory) = directory_->text().trimmed();
  plan.preset = preset_->currentData().toString();
  plan.min_islands = islands_->value();
  plan.inner_steps = inner_steps_->value();
  plan.listen = listen_->text().trimmed();
  plan.advertise = reached_at(advertise_->text().trimmed(), plan.listen);
  return plan;
}

QString CreateRunPage::defect() const {
  const RunPlan wanted = plan();
  if (wanted.name.isEmpty()) return tr("Give the run a name.");
  for (const QString& name : {wanted.name, wanted.operated_by}) {
    if (name.toUtf8().size() > kMaxNameBytes) return tr("The name is too long.");
  }
  const QString directory = directory_->text().trimmed();
  if (directory.isEmpty()) return tr("Choose the directory of the text.");
  if (!QFileInfo(directory).isDir()) return tr("There is no directory %1.").arg(directory);
  if (!parse_address(wanted.listen.toStdString()).ok()) return tr("Write where the hub listens as HOST:PORT.");
  if (!wanted.advertise.isEmpty() && !parse_address(wanted.advertise.toStdString()).ok()) {
    return tr("Write where the hub is reached as HOST or HOST:PORT.");
  }
  return {};
}

void CreateRunPage::refresh() {
  const QString missing = defect();
  create_->setEnabled(missing.isEmpty() && !hub_.busy());
  busy_->setVisible(hub_.busy());
  busy_->setAccessibleName(hub_.doing());
  using Kind = Notice::Kind;
  if (hub_.busy()) {
    notice_->say(Kind::kBusy, hub_.doing());
  } else if (!hub_.problem().empty()) {
    notice_->say(Kind::kError, tr("The run could not be made."), QString::fromStdString(hub_.problem()));
  } else if (!missing.isEmpty() && !name_->text().isEmpty()) {
    notice_->say(Kind::kInfo, missing);
  } else if (const QString host = only_here(plan()); missing.isEmpty() && !host.isEmpty()) {
    notice_->say(Kind::kWarning, tr("Only this machine can reach %1.").arg(host),
                 tr("For a run with others, listen on 0.0.0.0 and name the address that they dial."));
  } else {
    notice_->clear();
  }
}

}  // namespace atl
