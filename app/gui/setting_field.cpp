#include "app/gui/setting_field.h"

#include <QGridLayout>
#include <QLabel>
#include <QPointer>
#include <QToolButton>

#include "app/gui/look/colours.h"
#include "app/gui/look/icons.h"
#include "app/gui/parts/plain_label.h"
#include "app/gui/setting_editor.h"
#include "app/gui/setting_text.h"

namespace atl {
namespace {

constexpr int kTitleWidth = 170;  // so that fields stand beneath one another

const ConfigKey* known_key(const std::string& name) {
  for (const ConfigKey& key : config_keys()) {
    if (name == key.name) return &key;
  }
  return nullptr;
}

}  // namespace

SettingField::SettingField(const SettingRow& row, const QString& title, QWidget* parent)
    : QWidget(parent), row_(row), title_(title.isEmpty() ? setting_title(row.key) : title) {
  setObjectName(QString::fromStdString(row.key));
  editor_ = make_setting_editor(known_key(row.key));
  editor_->nameAfter(title_);
  auto* name = make_sentence(title_);
  name->setMinimumWidth(kTitleWidth);
  name->setBuddy(editor_->focusProxy());
  auto* meaning = make_sentence(setting_meaning(row));
  meaning->setForegroundRole(QPalette::PlaceholderText);
  origin_ = make_sentence({});
  origin_->setForegroundRole(QPalette::PlaceholderText);
  reset_ = new QToolButton;
  reset_->setText(tr("Take back"));
  reset_->setAccessibleName(tr("Take back: %1").arg(title_));
  reset_->setToolTip(tr("Go back to what holds without it"));
  now_ = make_plain_label("now");
  problem_ = make_plain_label("problem");
  problem_symbol_ = new QLabel;

  auto* grid = new QGridLayout(this);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setHorizontalSpacing(10);
  grid->setVerticalSpacing(2);
  grid->setColumnMinimumWidth(0, kTitleWidth);
  grid->setColumnStretch(1, 1);
  grid->addWidget(name, 0, 0);
  grid->addWidget(editor_, 0, 1);
  grid->addWidget(origin_, 0, 2);
  grid->addWidget(reset_, 0, 3);
  grid->addWidget(meaning, 1, 1, 1, 3);
  grid->addWidget(now_, 2, 1, 1, 3);
  grid->addWidget(problem_symbol_, 3, 0, Qt::AlignRight | Qt::AlignTop);
  grid->addWidget(problem_, 3, 1, 1, 3);
  origin_->setWordWrap(false);
  connect(editor_, &SettingEditor::edited, this, [this] {
    changed_ = editor_->value() != QString::fromStdString(row_.value);
    setProblem({});
    Q_EMIT edited();
  });
  connect(reset_, &QToolButton::clicked, this, &SettingField::resetWanted);
  setProblem({});
  setNow({});
  setRow(row);
}

QString SettingField::value() const { return editor_->value(); }
bool SettingField::isChanged() const { return changed_; }
QWidget* SettingField::control() const { return editor_->focusProxy(); }
QString SettingField::problem() const { return problem_->text(); }

void SettingField::setRow(const SettingRow& row) {
  row_ = row;
  if (!changed_) editor_->setValue(QString::fromStdString(row.value));
  refresh();
}

void SettingField::discard() {
  changed_ = false;
  setProblem({});
  setRow(row_);
}

void SettingField::saved() {
  changed_ = false;
  setProblem({});
  setRow(row_);  // as the agent writes it
}

void SettingField::setProblem(const QString& problem) {
  set_plain_text(problem_, problem);
  problem_->setAccessibleName(tr("%1: error: %2").arg(title_, problem));
  problem_->setVisible(!problem.isEmpty());
  problem_symbol_->setVisible(!problem.isEmpty());
  if (!problem.isEmpty()) {
    const Colours& colours = colours_of(palette());
    problem_symbol_->setPixmap(icon_pixmap("error", colours.bad, 16, devicePixelRatioF()));
  }
}

void SettingField::setNow(const QString& now) {
  set_plain_text(now_, now);
  now_->setAccessibleName(tr("%1: %2").arg(title_, now));
  now_->setVisible(!now.isEmpty());
}

void SettingField::refresh() {
  const bool overruled = setting_is_overruled(row_);
  editor_->setEnabled(!overruled);
  editor_->setToolTip(overruled ? tr("What is set here has no effect while the agent is started with another value")
                                : QString());
  set_plain_text(origin_, setting_origin(row_));
  reset_->setVisible(setting_is_ours(row_));
}

void save_fields(SettingsModel& settings, const std::vector<SettingField*>& fields, QObject* context,
                 std::function<void(int failed)> done) {
  struct Progress {
    int open = 1;  // one for the loop below
    int failed = 0;
    std::function<void(int)> done;
  };
  auto progress = std::make_shared<Progress>();
  progress->done = std::move(done);
  const auto one_less = [progress] {
    if (--progress->open == 0) progress->done(progress->failed);
  };
  for (SettingField* field : fields) {
    if (!field->isChanged()) continue;
    ++progress->open;
    const QPointer<SettingField> shown(field);
    settings.set(field->key(), field->value().toStdString(), context, [progress, one_less, shown](const Status& set) {
      if (!set.ok()) ++progress->failed;
      if (shown && set.ok()) shown->saved();
      if (shown && !set.ok()) shown->setProblem(QString::fromStdString(set.error().message));
      one_less();
    });
  }
  one_less();
}

}  // namespace atl
