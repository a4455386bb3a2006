#include "app/gui/wish_dialog.h"

#include <algorithm>
#include <array>

#include <QComboBox>
#include <QDialogButtonBox>
#include <QFormLayout>
#include <QLabel>
#include <QPointer>
#include <QPushButton>
#include <QVBoxLayout>

#include "app/core/node.h"
#include "app/gui/island_text.h"
#include "app/gui/look/style.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/plain_label.h"
#include "app/gui/parts/screen_fit.h"

namespace atl {
namespace {

struct WishText {
  const char* title;
  const char* what;
  const char* button;
};

WishText text_of(WishDialog::Wish wish) {
  switch (wish) {
    case WishDialog::Wish::kPause:
      return {QT_TRANSLATE_NOOP("atl::WishDialog", "Pause"),
              QT_TRANSLATE_NOOP("atl::WishDialog",
                                "Training stops after the current step, and does not begin again with a restart of the "
                                "machine."),
              QT_TRANSLATE_NOOP("atl::WishDialog", "&Pause")};
    case WishDialog::Wish::kFinish:
      return {QT_TRANSLATE_NOOP("atl::WishDialog", "Finish"),
              QT_TRANSLATE_NOOP("atl::WishDialog", "The right way to stop: the others keep what this island did."),
              QT_TRANSLATE_NOOP("atl::WishDialog", "&Finish")};
    case WishDialog::Wish::kStop:
      return {QT_TRANSLATE_NOOP("atl::WishDialog", "Stop"),
              QT_TRANSLATE_NOOP("atl::WishDialog", "Training ends now and does not begin again until you resume."),
              QT_TRANSLATE_NOOP("atl::WishDialog", "&Stop")};
    case WishDialog::Wish::kLeave: break;
  }
  return {QT_TRANSLATE_NOOP("atl::WishDialog", "Leave the run"),
          QT_TRANSLATE_NOOP("atl::WishDialog",
                            "This island leaves the run. What it contributed so far stays; joining again comes back."),
          QT_TRANSLATE_NOOP("atl::WishDialog", "&Leave")};
}

struct Span {
  const char* word;
  int hours;  // 0: until resumed
};
constexpr std::array kSpans{Span{QT_TRANSLATE_NOOP("atl::WishDialog", "until I resume"), 0},
                            Span{QT_TRANSLATE_NOOP("atl::WishDialog", "for 1 hour"), 1},
                            Span{QT_TRANSLATE_NOOP("atl::WishDialog", "for 2 hours"), 2},
                            Span{QT_TRANSLATE_NOOP("atl::WishDialog", "for 8 hours"), 8},
                            Span{QT_TRANSLATE_NOOP("atl::WishDialog", "for 1 day"), 24}};

constexpr int kWidth = 480;

}  // namespace

WishDialog::WishDialog(Node& node, Wish wish, QWidget* parent) : QDialog(parent), node_(node), wish_(wish) {
  const WishText words = text_of(wish);
  setWindowTitle(tr(words.title));
  setAttribute(Qt::WA_DeleteOnClose);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(20, 16, 20, 16);
  column->setSpacing(12);
  column->addWidget(as_heading(make_sentence(tr(words.title)), 1.25));
  column->addWidget(make_sentence(tr(words.what)));
  if (wish == Wish::kPause) {
    auto* form = new QFormLayout;
    span_ = new QComboBox;
    span_->setObjectName("span");
    for (const Span& span : kSpans) span_->addItem(tr(span.word), span.hours);
    span_->setAccessibleName(tr("How long"));
    form->addRow(tr("&How long:"), span_);
    column->addLayout(form);
    align_captions(*this);
  }
  cost_ = make_plain_label("cost");
  cost_->setWordWrap(true);
  column->addWidget(cost_);
  column->addWidget(notice_ = new Notice("wish_notice"));
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel);
  buttons->button(QDialogButtonBox::Cancel)->setText(tr("Cancel"));
  buttons->button(QDialogButtonBox::Cancel)->setAccessibleName(tr("Cancel"));
  ok_ = buttons->addButton(tr(words.button), QDialogButtonBox::AcceptRole);
  ok_->setObjectName("do_it");
  ok_->setAccessibleName(ok_->text().remove('&'));
  column->addWidget(buttons);
  ok_->setDefault(true);  // within the dialog: before, it would have none
  connect(buttons, &QDialogButtonBox::accepted, this, &WishDialog::ask);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(&node_, &Node::changed, this, &WishDialog::refresh);
  refresh();
  fit_ = new ScreenFit(*this, {kWidth, layout()->totalHeightForWidth(kWidth)});
  setMinimumWidth(kWidth);
  grow();
  span_ != nullptr ? span_->setFocus() : ok_->setFocus();
}

void WishDialog::refresh() {
  QString cost;
  if (const auto& state = node_.state()) {
    switch (wish_) {
      case Wish::kPause: cost = text::pause_cost(*state); break;
      case Wish::kFinish: cost = text::finish_cost(*state); break;
      case Wish::kStop:
      case Wish::kLeave: cost = text::stop_cost(*state); break;
    }
  }
  set_plain_text(cost_, cost);
  cost_->setAccessibleName(tr("What it costs: %1").arg(cost));
  grow();
}

// What is said may take more lines than before.
void WishDialog::grow() {
  layout()->activate();
  const int height = layout()->totalHeightForWidth(std::max(width(), kWidth));
  if (minimumHeight() == height) return;
  setMinimumHeight(height);
  if (fit_ != nullptr) fit_->fitSoon();
}

void WishDialog::ask() {
  ok_->setEnabled(false);
  const auto answer = [dialog = QPointer(this)](const Result<nlohmann::json>& result) {
    if (dialog) dialog->answered(result);
  };
  switch (wish_) {
    case Wish::kPause: {
      const int hours = span_->currentData().toInt();
      return node_.pause(hours > 0 ? std::optional<Seconds>(std::chrono::hours(hours)) : std::nullopt, answer);
    }
    case Wish::kFinish: return node_.finish(answer);
    case Wish::kStop: return node_.stop(answer);
    case Wish::kLeave: return node_.leave(answer);
  }
}

void WishDialog::answered(const Result<nlohmann::json>& result) {
  if (result.ok()) return accept();
  ok_->setEnabled(true);
  notice_->say(Notice::Kind::kError, tr("It was not done."), QString::fromStdString(result.error().message));
  grow();
}

}  // namespace atl
