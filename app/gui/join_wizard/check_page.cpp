#include "app/gui/join_wizard/check_page.h"

#include <algorithm>

#include <QCheckBox>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>

#include "app/core/check_model.h"
#include "app/core/join_model.h"
#include "app/gui/join_wizard/page_layout.h"
#include "app/gui/look/icons.h"
#include "app/gui/parts/check_table.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/plain_label.h"

namespace atl {

JoinCheckPage::JoinCheckPage(CheckModel& check, const JoinModel& join, QWidget* parent)
    : QWizardPage(parent), check_(check), join_(join) {
  auto* column = lay_out_page(*this, tr("Node check"), tr("Can this machine train? What fails must be mended first."));
  column->addWidget(notice_ = new Notice("check_notice"));
  column->addWidget(busy_ = new QProgressBar);
  busy_->setRange(0, 0);
  busy_->setTextVisible(false);
  busy_->setMaximumHeight(6);
  busy_->setAccessibleName(tr("A check is under way"));
  column->addWidget(table_ = new CheckTable(check_), 1);
  accept_ = new QCheckBox(tr("&I have read the warnings and want to go on"));
  accept_->setObjectName("accept_warnings");
  accept_->setAccessibleName(tr("I have read the warnings and want to go on"));
  again_ = new QPushButton(icon("refresh"), tr("Check &again"));
  again_->setObjectName("again");
  again_->setAccessibleName(tr("Check this machine again"));
  table_->addButton(again_);
  column->addWidget(accept_);
  connect(again_, &QPushButton::clicked, this, &JoinCheckPage::run);
  connect(accept_, &QCheckBox::toggled, this, &JoinCheckPage::completeChanged);
  connect(&check_, &CheckModel::changed, this, &JoinCheckPage::refresh);
  refresh();
}

void JoinCheckPage::initializePage() { run(); }

void JoinCheckPage::run() {
  accept_->setChecked(false);
  if (!check_.running()) check_.run(/*full=*/false, join_.inviteText());
  refresh();
}

int JoinCheckPage::count(bool fails) const {
  const Verdict verdict = fails ? Verdict::kFail : Verdict::kWarn;
  return static_cast<int>(std::ranges::count_if(
      check_.rows(), [&](const CheckRow& row) { return row.verdict == verdict && !is_silent_hub(row); }));
}

bool JoinCheckPage::isComplete() const {
  if (check_.running() || !check_.finished() || !check_.problem().empty()) return false;
  return count(/*fails=*/true) == 0 && (count(/*fails=*/false) == 0 || accept_->isChecked());
}

void JoinCheckPage::refresh() {
  const int fails = count(/*fails=*/true);
  const int warnings = count(/*fails=*/false);
  const bool done = check_.finished() && !check_.running() && check_.problem().empty();
  busy_->setVisible(check_.running());
  again_->setEnabled(!check_.running());
  accept_->setVisible(done && fails == 0 && warnings > 0);
  using Kind = Notice::Kind;
  if (check_.running()) {
    notice_->say(Kind::kBusy, tr("Checking: rows appear as they come."));
  } else if (!check_.problem().empty()) {
    notice_->say(Kind::kError, tr("The check could not be run to its end."), QString::fromStdString(check_.problem()));
  } else if (!done) {
    notice_->say(Kind::kInfo, tr("This machine has not been checked yet."));
  } else if (fails > 0) {
    notice_->say(Kind::kError, tr("%n row(s) failed, so this machine cannot join yet.", nullptr, fails),
                 tr("Failed rows come first. Do what stands in them, then check again."));
  } else if (warnings > 0) {
    notice_->say(Kind::kWarning,
                 tr("%n warning(s): this machine can train, but not as well as it could.", nullptr, warnings));
  } else {
    notice_->say(Kind::kGood, tr("This machine can train."));
  }
  Q_EMIT completeChanged();
}

}  // namespace atl
