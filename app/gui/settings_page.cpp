#include "app/gui/settings_page.h"

#include <QGroupBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

#include "app/core/node.h"
#include "app/gui/look/icons.h"
#include "app/gui/look/style.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/plain_label.h"
#include "app/gui/setting_field.h"
#include "app/gui/setting_text.h"

namespace atl {
namespace {

constexpr int kWidest = 1060;  // a field stays near its title

}  // namespace

SettingsPage::SettingsPage(Node& node, QWidget* parent) : QWidget(parent), node_(node) {
  auto* outer = new QHBoxLayout(this);
  outer->setContentsMargins(20, 16, 20, 16);
  auto* held = new QWidget;
  held->setMaximumWidth(kWidest);
  outer->addWidget(held, 100);
  outer->addStretch(1);
  auto* column = new QVBoxLayout(held);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(12);
  column->addWidget(as_heading(make_sentence(tr("Settings"))));
  column->addWidget(notice_ = new Notice("settings_notice"));
  start_ = new QPushButton(icon("play"), tr("&Start the agent"));
  start_->setObjectName("start_agent");
  start_->setAccessibleName(tr("Start the agent of this machine"));
  notice_->hold(start_);
  connect(start_, &QPushButton::clicked, this, &SettingsPage::startWanted);
  auto* content = new QWidget;
  auto* all = new QVBoxLayout(content);
  all->setContentsMargins(0, 0, 8, 0);
  all->addLayout(groups_ = new QVBoxLayout);
  all->addStretch(1);
  groups_->setSpacing(12);
  auto* scroll = new QScrollArea;
  scroll->setObjectName("settings_scroll");
  scroll->setAccessibleName(tr("Settings of this machine"));
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setWidget(content);
  column->addWidget(scroll, 1);
  column->addWidget(files_ = make_plain_label("files"));
  files_->setForegroundRole(QPalette::PlaceholderText);
  column->addWidget(makeButtons());
  connect(&node_.settings(), &SettingsModel::changed, this, &SettingsPage::refresh);
  connect(&node_, &Node::changed, this, &SettingsPage::refresh);
  refresh();
}

QWidget* SettingsPage::makeButtons() {
  auto* buttons = new QWidget;
  auto* row = new QHBoxLayout(buttons);
  row->setContentsMargins(0, 0, 0, 0);
  row->addStretch(1);
  row->addWidget(discard_ = new QPushButton(tr("&Discard changes")));
  row->addWidget(apply_ = new QPushButton(tr("&Apply")));
  discard_->setObjectName("discard");
  discard_->setAccessibleName(tr("Discard changes"));
  apply_->setObjectName("apply");
  make_primary(apply_);
  apply_->setAccessibleName(tr("Apply changes"));
  connect(discard_, &QPushButton::clicked, this, &SettingsPage::discard);
  connect(apply_, &QPushButton::clicked, this, &SettingsPage::apply);
  return buttons;
}

void SettingsPage::rebuild() {
  std::map<std::string, QVBoxLayout*> groups;
  for (const SettingRow& row : node_.settings().rows()) {
    if (fields_.contains(row.key)) continue;
    const std::string name = row.key.substr(0, row.key.find('.'));
    if (!groups.contains(name)) {
      auto* box = new QGroupBox(setting_group(row.key));
      groups[name] = new QVBoxLayout(box);
      groups[name]->setSpacing(12);
      groups_->addWidget(box);
    }
    auto* field = new SettingField(row);
    fields_[row.key] = field;
    groups[name]->addWidget(field);
    connect(field, &SettingField::edited, this, &SettingsPage::refreshButtons);
    connect(field, &SettingField::resetWanted, this, [this, field] {
      field->discard();
      node_.settings().set(field->key(), std::nullopt, field, [field](const Status& set) {
        if (!set.ok()) field->setProblem(QString::fromStdString(set.error().message));
      });
    });
  }
}

void SettingsPage::refresh() {
  const SettingsModel& settings = node_.settings();
  if (fields_.size() != settings.rows().size()) rebuild();
  for (const auto& [key, field] : fields_) {
    if (const SettingRow* row = settings.find(key)) field->setRow(*row);
  }
  showCaps();
  const bool connected = node_.link().state() == LinkState::kConnected;
  for (const auto& [key, field] : fields_) field->setEnabled(connected);
  using Kind = Notice::Kind;
  const bool can_start =
      node_.link().state() == LinkState::kNoAgent && std::holds_alternative<LocalNode>(node_.address());
  start_->setVisible(can_start);
  if (can_start) {
    notice_->say(Kind::kWarning, tr("No agent runs on this machine, so nothing can be changed from here."),
                 tr("The agent keeps the settings. Starting it trains nothing before you joined a run."));
  } else if (!connected) {
    notice_->say(Kind::kWarning, tr("No agent answers, so nothing can be changed from here."),
                 QString::fromStdString(node_.link().problem()));
  } else if (!settings.problem().empty()) {
    notice_->say(Kind::kError, tr("The configuration cannot be read."), QString::fromStdString(settings.problem()));
  } else if (settings.rows().empty()) {
    notice_->say(Kind::kBusy, tr("Asking the agent for its configuration."));
  } else if (failed_ == 0) {
    notice_->clear();
  }
  const bool known = !settings.settings().empty();
  files_->setVisible(known);
  set_plain_text(files_, tr("Changes are kept in %1. Your own %2 is never written; what is set here comes before it.")
                             .arg(settings.settings().c_str(), settings.file().c_str()));
  files_->setAccessibleName(files_->text());
  refreshButtons();
}

// What the hour makes of the limits, where it makes a difference.
void SettingsPage::showCaps() {
  const auto& state = node_.state();
  const auto show = [&](const char* key, const std::optional<TransferCapView>& cap) {
    const auto field = fields_.find(key);
    if (field != fields_.end()) field->second->setNow(cap ? cap_in_force(*cap) : QString());
  };
  show("limits.upload", state ? state->agent.upload_cap : std::nullopt);
  show("limits.download", state ? state->agent.download_cap : std::nullopt);
}

void SettingsPage::refreshButtons() {
  bool changed = false;
  for (const auto& [key, field] : fields_) changed = changed || field->isChanged();
  apply_->setEnabled(changed && !saving_);
  discard_->setEnabled(changed && !saving_);
}

void SettingsPage::apply() {
  saving_ = true;
  std::vector<SettingField*> fields;
  for (const auto& [key, field] : fields_) fields.push_back(field);
  refreshButtons();
  save_fields(node_.settings(), fields, this, [this](int failed) {
    saving_ = false;
    failed_ = failed;
    if (failed > 0) {
      notice_->say(Notice::Kind::kError, tr("%n value(s) could not be set.", nullptr, failed),
                   tr("Beside each is what is wrong with it."));
    }
    refresh();
  });
}

void SettingsPage::discard() {
  failed_ = 0;
  for (const auto& [key, field] : fields_) field->discard();
  refresh();
}

}  // namespace atl
