#include "app/gui/check_topics.h"

#include <QEvent>
#include <QGridLayout>
#include <QLabel>
#include <QVBoxLayout>

#include "app/gui/look/icons.h"
#include "app/gui/parts/card.h"
#include "app/gui/parts/check_titles.h"
#include "app/gui/parts/plain_label.h"
#include "net/check/judge.h"

namespace atl {
namespace {

constexpr int kIcon = 20;

enum Topic { kMachine, kGpus, kNetwork };

Topic topic_of(const RowRule& rule) {
  if (rule.id.starts_with("gpu.")) return kGpus;
  return rule.id.starts_with("net.") || rule.id == "clock" ? kNetwork : kMachine;
}

// In the colour of the theme, also as that changes.
class TopicIcon final : public QLabel {
 public:
  explicit TopicIcon(const char* name) : name_(name) { draw(); }

 protected:
  void changeEvent(QEvent* event) override {
    QLabel::changeEvent(event);
    if (event->type() == QEvent::PaletteChange) draw();
  }

 private:
  void draw() { setPixmap(icon_pixmap(name_, colours_of(palette()).accent, kIcon, devicePixelRatioF())); }
  const char* const name_;
};

}  // namespace

CheckTopics::CheckTopics(QWidget* parent) : QWidget(parent) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  auto* row = new QHBoxLayout;
  row->setSpacing(12);
  row->addWidget(
      makeTopic("computer", tr("Machine"), tr("Memory, disk and limits: is there what a run needs?"), kMachine), 1);
  row->addWidget(makeTopic("gpu", tr("GPUs"), tr("Are they well, and as fast as others of their kind?"), kGpus), 1);
  row->addWidget(makeTopic("islands", tr("Network"), tr("The way to the hub and to the other islands."), kNetwork), 1);
  column->addLayout(row);
  column->addStretch(1);
}

Card* CheckTopics::makeTopic(const char* icon_name, const QString& title, const QString& what, int topic) {
  auto* card = new Card(title);
  card->addToHeader(new TopicIcon(icon_name));
  card->body()->addWidget(make_lead(what));
  auto* grid = new QGridLayout;
  grid->setColumnStretch(0, 1);
  grid->setVerticalSpacing(7);
  for (const RowRule& rule : check_rules()) {
    if (topic_of(rule) != topic) continue;
    const int row = grid->rowCount();
    grid->addWidget(make_sentence(check_title(std::string(rule.id))), row, 0);
    if (rule.quick) continue;
    QLabel* full = make_lead(tr("full check"));
    full->setWordWrap(false);
    grid->addWidget(full, row, 1, Qt::AlignTop | Qt::AlignRight);
  }
  card->body()->addSpacing(4);
  card->body()->addLayout(grid);
  card->body()->addStretch(1);
  return card;
}

}  // namespace atl
