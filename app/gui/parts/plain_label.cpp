#include "app/gui/parts/plain_label.h"

#include <algorithm>
#include <vector>

#include <QFormLayout>
#include <QLabel>
#include <QPainter>

#include "app/gui/look/colours.h"

namespace atl {
namespace {

constexpr const char* kCaption = "caption";
constexpr int kFieldHeight = 30;  // of one line; the form itself puts a caption beside the first of several

// Says where the keyboard is: the caret alone is easily missed.
class FocusLabel final : public QLabel {
 public:
  using QLabel::QLabel;

 protected:
  void paintEvent(QPaintEvent* event) override {
    QLabel::paintEvent(event);
    if (!hasFocus()) return;
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(colours_of(palette()).accent);
    painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 3, 3);
  }
};

}  // namespace

QLabel* make_plain_label(const char* name, const QString& text, QWidget* parent) {
  auto* label = new FocusLabel(text, parent);
  label->setObjectName(QString::fromLatin1(name));
  label->setTextFormat(Qt::PlainText);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  label->setFocusPolicy(Qt::StrongFocus);
  label->setWordWrap(true);
  label->setAccessibleName(text);
  return label;
}

QLabel* make_sentence(const QString& text, QWidget* parent) {
  auto* label = new QLabel(text, parent);
  label->setTextFormat(Qt::PlainText);
  label->setWordWrap(true);
  return label;
}

QLabel* make_lead(const QString& text, QWidget* parent) {
  QLabel* label = make_sentence(text, parent);
  label->setForegroundRole(QPalette::PlaceholderText);
  return label;
}

void set_plain_text(QLabel* label, const QString& text) {
  if (label->text() == text) return;
  const bool named_after_text = label->accessibleName() == label->text();
  label->setText(text);
  if (named_after_text) label->setAccessibleName(text);
}

QLabel* as_heading(QLabel* label, double factor) {
  QFont font = label->font();
  font.setPointSizeF(font.pointSizeF() * factor);
  font.setBold(true);
  label->setFont(font);
  return label;
}

void align_captions(const QWidget& page) {
  std::vector<QWidget*> captions;
  int widest = 0;
  for (const auto* form : page.findChildren<QFormLayout*>()) {
    for (int row = 0; row < form->rowCount(); ++row) {
      const QLayoutItem* caption = form->itemAt(row, QFormLayout::LabelRole);
      const QLayoutItem* field = form->itemAt(row, QFormLayout::FieldRole);
      if (caption == nullptr || caption->widget() == nullptr) continue;
      captions.push_back(caption->widget());
      widest = std::max(widest, caption->widget()->sizeHint().width());
      const int height = field != nullptr ? field->sizeHint().height() : 0;
      if (height <= kFieldHeight) caption->widget()->setMinimumHeight(height);
    }
  }
  for (QWidget* caption : captions) caption->setMinimumWidth(widest);
}

QLabel* add_fact(QFormLayout* form, const char* name, const QString& caption) {
  QLabel* value = make_plain_label(name);
  value->setProperty(kCaption, caption);
  auto* title = make_sentence(caption);
  title->setWordWrap(false);
  title->setAlignment(Qt::AlignLeft | Qt::AlignTop);  // in line with the first of several
  title->setBuddy(value);
  form->addRow(title, value);
  set_fact(value, {});
  return value;
}

void set_fact(QLabel* value, const QString& text) {
  set_plain_text(value, text);
  value->setAccessibleName(QString("%1 %2").arg(value->property(kCaption).toString(), text));
}

}  // namespace atl
