#include "app/gui/facts_view.h"

#include <algorithm>

#include <QFontDatabase>
#include <QFormLayout>
#include <QGridLayout>
#include <QGroupBox>
#include <QLabel>
#include <QProgressBar>

#include "app/gui/island_text.h"

namespace atl {
namespace {

QString or_none(const std::string& text) {
  return text.empty() ? FactsView::tr("none yet") : QString::fromStdString(text);
}

QString next_sync(const IslandState& state) {
  return state.next_sync_seconds ? FactsView::tr("in about %1").arg(text::duration(*state.next_sync_seconds))
                                 : FactsView::tr("not known yet");
}

QString last_sync(const IslandState& state) {
  return state.last_sync_seconds ? FactsView::tr("took %1").arg(text::duration(*state.last_sync_seconds))
                                 : FactsView::tr("none yet");
}

QString accepted(const IslandState& state) {
  return state.accepted_round ? FactsView::tr("in round %1").arg(text::count(*state.accepted_round))
                              : FactsView::tr("none yet");
}

// A loss of 0 says that no step was made yet.
QString training_loss(const IslandState& state) {
  return text::loss(state.loss_nats == 0 ? std::nullopt : std::optional(state.loss_nats));
}

QString computing_share(const IslandState& state) {
  const double seconds = state.inner_seconds + state.sync_seconds;
  if (!(seconds > 0)) return FactsView::tr("not known yet");
  return FactsView::tr("%1 % of the time").arg(qRound(100 * state.inner_seconds / seconds));
}

// A grey between ground and text, in light and in dark.
QColor mixed(const QColor& ground, const QColor& text) {
  const auto mix = [](int a, int b) { return (3 * a + b) / 4; };
  return QColor(mix(ground.red(), text.red()), mix(ground.green(), text.green()), mix(ground.blue(), text.blue()));
}

}  // namespace

FactsView::FactsView(QWidget* parent) : QWidget(parent), step_(new QProgressBar) {
  step_->setObjectName("step");
  step_->setAlignment(Qt::AlignCenter);
  auto* grid = new QGridLayout(this);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setSpacing(12);
  grid->setColumnStretch(0, 1);
  grid->setColumnStretch(1, 1);
  using S = const IslandState&;
  grid->addWidget(
      makeGroup(tr("Round"),
                {{"round", tr("Round"), [](S s) { return text::count(s.round); }},
                 {"next_sync", tr("Next synchronization"), next_sync},
                 {"tokens", tr("Trained since start"), [](S s) { return tr("%1 tokens").arg(text::count(s.tokens)); }}},
                step_),
      0, 0);
  grid->addWidget(
      makeGroup(tr("Learning"),
                {{"loss", tr("Loss"), training_loss},
                 {"validation_loss", tr("Validation loss"), [](S s) { return text::loss(s.validation_loss_nats); }},
                 {"speed", tr("Speed"), [](S s) { return text::speed(s.tokens_per_second); }},
                 {"computing", tr("Computing"), computing_share}}),
      0, 1);
  grid->addWidget(
      makeGroup(
          tr("Network"),
          {{"islands", tr("Islands"),
            [](S s) { return tr("%1 of %2 live").arg(text::count(s.islands_live), text::count(s.islands_total)); }},
           {"last_sync", tr("Last synchronization"), last_sync},
           {"accepted", tr("Last contribution accepted"), accepted},
           {"bytes_sent", tr("Sent since start"), [](S s) { return text::bytes(s.bytes_sent); }}}),
      1, 0);
  grid->addWidget(
      makeGroup(tr("This island"),
                {{"name", tr("Name"), [](S s) { return or_none(s.name); }},
                 {"island", tr("Identifier"), [](S s) { return or_none(s.island); }},
                 {"parameters", tr("Model"), [](S s) { return tr("%1 parameters").arg(text::count(s.parameters)); }},
                 {"pid", tr("Trainer"), [](S s) { return tr("process %1").arg(s.pid); }}}),
      1, 1);
  grid->addWidget(
      makeGroup(tr("Shared state"),
                {{"outer_step", tr("Outer step"), [](S s) { return tr("%1 applied").arg(text::count(s.outer_step)); }},
                 {"state_hash", tr("Hash"), [](S s) { return or_none(s.state_hash); }}}),
      2, 0, 1, 2);
  grid->setRowStretch(3, 1);
}

QWidget* FactsView::makeGroup(const QString& title, std::vector<Fact> facts, QWidget* above) {
  auto* group = new QGroupBox(title);
  auto* form = new QFormLayout(group);
  form->setHorizontalSpacing(16);
  if (above != nullptr) form->addRow(above);
  for (Fact& fact : facts) addRow(form, std::move(fact));
  return group;
}

void FactsView::addRow(QFormLayout* form, Fact fact) {
  auto* caption = new QLabel(fact.caption);
  auto* value = new QLabel;
  value->setObjectName(fact.name);
  value->setTextFormat(Qt::PlainText);  // names come from other machines
  // The keyboard reaches each value, and copies it.
  value->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  value->setFocusPolicy(Qt::StrongFocus);
  if (value->objectName() == "state_hash") value->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  caption->setBuddy(value);
  form->addRow(caption, value);
  rows_.push_back({std::move(fact), value});
}

void FactsView::showState(const IslandState& state, bool live) {
  for (const Row& row : rows_) {
    const QString text = row.fact.text(state);
    // Setting the same text would lose the user's selection.
    if (row.value->text() != text) row.value->setText(text);
    row.value->setAccessibleName(tr("%1: %2").arg(row.fact.caption, text));
    row.value->setForegroundRole(live ? QPalette::WindowText : QPalette::PlaceholderText);
  }
  showStep(state, live);
}

void FactsView::showStep(const IslandState& state, bool live) {
  const bool known = state.inner_steps > 0;
  const int steps = static_cast<int>(std::min<std::uint32_t>(known ? state.inner_steps : 1, 1'000'000'000));
  step_->setRange(0, steps);
  step_->setValue(known ? static_cast<int>(std::min<std::uint32_t>(state.inner_step, static_cast<std::uint32_t>(steps)))
                        : 0);
  const QString text = known ? tr("step %1 of %2").arg(text::count(state.inner_step), text::count(state.inner_steps))
                             : tr("no step yet");
  step_->setFormat(text);
  step_->setAccessibleName(tr("Step of this round: %1").arg(text));
  // Styles differ in how they draw a disabled bar; none may look live.
  QPalette colours;
  if (!live) {
    const QColor text_colour = colours.color(QPalette::WindowText);
    colours.setColor(QPalette::Highlight, mixed(colours.color(QPalette::Window), text_colour));
    colours.setColor(QPalette::HighlightedText, text_colour);
  }
  step_->setPalette(colours);
  step_->setEnabled(live);
}

}  // namespace atl
