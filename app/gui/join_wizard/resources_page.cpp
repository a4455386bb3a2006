#include "app/gui/join_wizard/resources_page.h"

#include <algorithm>

#include <QFormLayout>
#include <QGroupBox>
#include <QLabel>
#include <QLineEdit>
#include <QSpinBox>
#include <QSysInfo>
#include <QThread>
#include <QVBoxLayout>
#include <QWizard>

#include "app/core/node.h"
#include "app/gui/join_wizard/gpu_choice.h"
#include "app/gui/join_wizard/page_layout.h"
#include "app/gui/look/format.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/plain_label.h"
#include "app/gui/setting_field.h"
#include "net/check/gpu_compute.h"
#include "net/control/words.h"

namespace atl {
namespace {

constexpr const char* kDevice = "island.device";
// Joining takes the first and the last two from the configuration, too.
constexpr const char* kSettings[] = {kDevice,         "limits.upload",   "schedule.hours", "limits.gpu_power",
                                     "island.listen", "island.advertise"};
constexpr int kMaxNameBytes = 64, kMostThreads = 1024;

bool found_no_gpu(const CheckModel& check) {
  return std::ranges::any_of(check.rows(), [](const CheckRow& row) {
    const bool left_idle = row.value.value_or(0) > 0;  // as the person chose, who may choose again
    return row.id == "gpu.model" && row.verdict == Verdict::kSkip && !left_idle;
  });
}

// As the node check counted them; 0: not known.
int cores_of(Node& node) {
  const auto& rows = node.check().rows();
  const auto row = std::ranges::find(rows, "cpu", &CheckRow::id);
  if (row != rows.end() && row->value && *row->value >= 1) return static_cast<int>(std::min(*row->value, 1024.0));
  return std::holds_alternative<LocalNode>(node.address()) ? QThread::idealThreadCount() : 0;
}

}  // namespace

ResourcesPage::ResourcesPage(Node& node, QWidget* parent) : QWizardPage(parent), node_(node) {
  auto* content = new QWidget;
  auto* groups = new QVBoxLayout(content);
  groups->setContentsMargins(0, 0, 0, 0);
  groups->setSpacing(12);
  groups->addWidget(makeIsland());
  auto* limits = new QGroupBox(tr("Limits and network"));
  limits_ = limits;
  (new QVBoxLayout(limits))->setSpacing(12);
  groups->addWidget(limits);
  groups->addStretch(1);
  content->setAccessibleName(tr("Resources for the run"));
  auto* column =
      lay_out_page(*this, tr("Resources"),
                   tr("What of this machine the run may use. All of it can be changed later, in the settings."));
  column->addWidget(notice_ = new Notice("resources_notice"));
  column->addWidget(content, 1);
  connect(&node_.settings(), &SettingsModel::changed, this, &ResourcesPage::takeSettings);
  connect(&node_, &Node::changed, this, &ResourcesPage::takeState);
}

QWidget* ResourcesPage::makeIsland() {
  auto* island = new QGroupBox(tr("Island"));
  auto* form = new QFormLayout(island);
  form->setHorizontalSpacing(16);
  name_ = new QLineEdit(QSysInfo::machineHostName());
  name_->setObjectName("name");
  name_->setMaxLength(kMaxNameBytes);
  name_->setAccessibleName(tr("Name"));
  name_->setToolTip(tr("What the others see"));
  form->addRow(tr("Na&me:"), name_);
  gpus_ = new GpuChoice;
  threads_ = new QSpinBox;
  threads_->setObjectName("threads");
  threads_->setAccessibleName(tr("Processor cores that train"));
  threads_->setToolTip(tr("The others stay for what else you do here"));
  threads_->setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
  // In one row: QFormLayout gives rows the place of others that were hidden once.
  auto* either = new QWidget;
  auto* both = new QVBoxLayout(either);
  both->setContentsMargins(0, 0, 0, 0);
  both->addWidget(gpus_);
  both->addWidget(threads_);
  form->addRow(computing_ = new QLabel(tr("&Cores:")), either);
  island_ = form;
  directory_ = make_plain_label("directory");
  form->addRow(make_sentence(tr("Directory:")), directory_);
  align_captions(*island);
  connect(name_, &QLineEdit::textEdited, this, &ResourcesPage::refresh);
  connect(threads_, &QSpinBox::valueChanged, this, [this] { threads_chosen_ = true; });
  connect(gpus_, &GpuChoice::edited, this, &ResourcesPage::refresh);
  return island;
}

void ResourcesPage::initializePage() {
  saved_ = false;
  node_.settings().reload();
  takeSettings();
  takeState();
  if (const SettingRow* row = node_.settings().find("island.gpus")) gpus_->setValue(QString::fromStdString(row->value));
  proposeThreads();
  const SettingRow* name = node_.settings().find("island.name");
  if (name != nullptr && !name->value.empty()) name_->setText(QString::fromStdString(name->value));
}

void ResourcesPage::takeSettings() {
  for (const char* key : kSettings) {
    const SettingRow* row = node_.settings().find(key);
    if (row == nullptr) continue;
    const auto found = std::ranges::find(fields_, std::string(key), &SettingField::key);
    if (found != fields_.end()) {
      (*found)->setRow(*row);
      continue;
    }
    auto* field = new SettingField(*row);
    fields_.push_back(field);
    if (field->key() == kDevice) {
      island_->insertRow(1, field);  // beneath the name
    } else {
      limits_->layout()->addWidget(field);
    }
    connect(field, &SettingField::edited, this, &ResourcesPage::refresh);
    if (field->key() == kDevice) connect(field, &SettingField::edited, this, &ResourcesPage::showGpus);
    connect(field, &SettingField::resetWanted, this, [this, field] {
      field->discard();
      node_.settings().set(field->key(), std::nullopt, field, [field](const Status& set) {
        if (!set.ok()) field->setProblem(QString::fromStdString(set.error().message));
      });
    });
  }
  showGpus();
  refresh();
}

void ResourcesPage::takeState() {
  gpus_->setGpus(node_.gpus(), found_no_gpu(node_.check()));
  showGpus();
  QString directory = tr("where the agent of that machine keeps it");
  if (const auto* here = std::get_if<LocalNode>(&node_.address())) {
    directory = QString::fromStdString(here->home.island.directory.string());
  }
  if (node_.state() && node_.state()->disk_free_bytes) {
    directory = tr("%1 (%2 free)").arg(directory, text::bytes(*node_.state()->disk_free_bytes));
  }
  set_plain_text(directory_, directory);
  directory_->setAccessibleName(tr("Directory: %1").arg(directory));
}

bool ResourcesPage::canComputeOnGpus() const {
  const bool here = std::holds_alternative<LocalNode>(node_.address());  // of another machine its trainer will say
  return !found_no_gpu(node_.check()) && (!here || gpus_compute());
}

bool ResourcesPage::computesOnGpus() const {
  const auto device = std::ranges::find(fields_, std::string(kDevice), &SettingField::key);
  return canComputeOnGpus() && device != fields_.end() &&
         (*device)->value().toStdString() != word_of(DeviceChoice::kProcessor);
}

// As many as are configured, or all but one: somebody works at this machine, too.
void ResourcesPage::proposeThreads() {
  if (threads_chosen_) return;
  const int cores = cores_of(node_);
  const QSignalBlocker quiet(threads_);
  threads_->setRange(cores > 0 ? 1 : 0, cores > 0 ? cores : kMostThreads);
  threads_->setSpecialValueText(cores > 0 ? QString() : tr("all"));
  threads_->setSuffix(cores > 0 ? tr(" of %1").arg(cores) : QString());
  const SettingRow* row = node_.settings().find("island.threads");
  const int configured = row != nullptr ? QString::fromStdString(row->value).toInt() : 0;
  threads_->setValue(configured > 0 ? configured : std::max(cores > 0 ? 1 : 0, cores - 1));
}

// GPUs are to choose where they will compute: there are some, the trainer can use them, and the person has them do it.
void ResourcesPage::showGpus() {
  const bool can = canComputeOnGpus();
  const bool chosen = computesOnGpus();
  for (SettingField* field : fields_) {
    if (field->key() == kDevice) field->setVisible(can);
    if (field->key() == "limits.gpu_power") field->setVisible(chosen);
  }
  gpus_->setVisible(chosen);
  threads_->setVisible(!chosen);
  computing_->setText(chosen ? tr("&GPUs:") : tr("&Cores:"));
  computing_->setBuddy(chosen ? static_cast<QWidget*>(gpus_) : threads_);
}

bool ResourcesPage::isComplete() const {
  return !saving_ && name_->text().toUtf8().size() <= kMaxNameBytes && gpus_->problem().isEmpty();
}

void ResourcesPage::refresh() {
  saved_ = false;
  if (name_->text().toUtf8().size() > kMaxNameBytes) {
    notice_->say(Notice::Kind::kError, tr("The name is too long."), tr("Use at most %1 letters.").arg(kMaxNameBytes));
  } else if (!gpus_->problem().isEmpty()) {
    notice_->say(Notice::Kind::kError, tr("These are no GPUs."), gpus_->problem());
  } else {
    notice_->clear();
  }
  Q_EMIT completeChanged();
}

bool ResourcesPage::validatePage() {
  const bool changed = std::ranges::any_of(fields_, &SettingField::isChanged);
  if (saved_ || !changed) return true;
  if (saving_) return false;
  saving_ = true;
  Q_EMIT completeChanged();
  save_fields(node_.settings(), fields_, this, [this](int failed) { saved(failed); });
  return false;
}

void ResourcesPage::saved(int failed) {
  saving_ = false;
  saved_ = failed == 0;
  Q_EMIT completeChanged();
  if (failed == 0) {
    wizard()->next();
    return;
  }
  notice_->say(Notice::Kind::kError, tr("%n value(s) could not be set.", nullptr, failed),
               tr("Beside each is what is wrong with it."));
}

JoinResources ResourcesPage::resources() const {
  JoinResources resources;
  resources.name = name_->text().trimmed().toStdString();
  resources.gpus = gpus_->value().toStdString();
  if (!computesOnGpus()) resources.threads = static_cast<std::uint32_t>(threads_->value());
  return resources;
}

}  // namespace atl
