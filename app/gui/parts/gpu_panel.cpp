#include "app/gui/parts/gpu_panel.h"

#include <algorithm>
#include <array>

#include <QEvent>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QMouseEvent>
#include <QPainter>
#include <QToolButton>
#include <QVBoxLayout>

#include "app/gui/look/format.h"
#include "app/gui/look/icons.h"
#include "app/gui/parts/elided_label.h"
#include "app/gui/parts/facts_list.h"
#include "app/gui/parts/gpu_plot.h"
#include "app/gui/parts/meter.h"
#include "app/gui/parts/plain_label.h"

namespace atl {
namespace {

constexpr double kWarmCelsius = 75;
constexpr double kHotCelsius = 83;  // from here on data-centre GPUs throttle

enum Fact { kClock, kThrottling, kEcc, kNvlink };

// Of its range, so that the bar means something: from a cool room to what no GPU survives.
double temperature_share(double celsius) { return (celsius - 20) / 75; }

Tone temperature_tone(double celsius) {
  if (celsius >= kHotCelsius) return Tone::kBad;
  return celsius >= kWarmCelsius ? Tone::kWarning : Tone::kAccent;
}

QString of_total(double part, const std::optional<double>& total, QString (*text)(double)) {
  return total ? GpuPanel::tr("%1 of %2").arg(text(part), text(*total)) : text(part);
}

double share(double part, const std::optional<double>& total) { return total && *total > 0 ? part / *total : -1; }

void show_reading(Meter* meter, const std::optional<double>& part, const std::optional<double>& total,
                  QString (*text)(double)) {
  if (!part) return meter->setReading(-1, QString("\u2013"));
  meter->setReading(share(*part, total), of_total(*part, total, text));
}

// The reasons of net/check/nvml.cpp; of a newer agent as it says them.
QString throttling_words(const std::string& reasons) {
  static const std::array kReasons{
      QT_TRANSLATE_NOOP("atl::GpuPanel", "heat"), QT_TRANSLATE_NOOP("atl::GpuPanel", "power cap"),
      QT_TRANSLATE_NOOP("atl::GpuPanel", "power brake"), QT_TRANSLATE_NOOP("atl::GpuPanel", "hardware slowdown")};
  if (reasons.empty()) return GpuPanel::tr("nothing");
  QStringList words;
  for (const QString& reason : QString::fromStdString(reasons).split(", ")) {
    const auto known = std::find_if(kReasons.begin(), kReasons.end(), [&](const char* word) { return reason == word; });
    words << (known != kReasons.end() ? GpuPanel::tr(*known) : reason);
  }
  return words.join(", ");
}

}  // namespace

GpuVerdict judge_gpu(const GpuSample& sample) {
  if (sample.ecc_errors.value_or(0) > 0) return {Tone::kBad, GpuPanel::tr("memory errors")};
  const double celsius = sample.temperature_celsius.value_or(0);
  if (celsius >= kHotCelsius) return {Tone::kBad, GpuPanel::tr("hot")};
  if (!sample.throttling.empty()) {
    return {Tone::kWarning, GpuPanel::tr("throttled")};
  }
  if (celsius >= kWarmCelsius) return {Tone::kWarning, GpuPanel::tr("warm")};
  return {Tone::kGood, GpuPanel::tr("OK")};
}

GpuPanel::GpuPanel(int index, QWidget* parent)
    : Card({}, parent),
      index_(index),
      verdict_icon_(new QLabel),
      verdict_text_(make_plain_label("verdict")),
      pause_(new QToolButton),
      use_(new Meter(tr("Utilisation"))),
      memory_(new Meter(tr("Memory"))),
      power_(new Meter(tr("Power"))),
      temperature_(new Meter(tr("Temperature"))),
      name_(new ElidedLabel),
      meters_(new QGridLayout),
      facts_(new FactsList) {
  setFocusPolicy(Qt::StrongFocus);
  setTitle(tr("GPU %1").arg(index));
  verdict_text_->setWordWrap(false);
  verdict_text_->setFocusPolicy(Qt::NoFocus);
  addToHeader(verdict_icon_);
  addToHeader(verdict_text_);
  addToHeader(pause_);
  pause_->setObjectName("pause_gpu");
  pause_->setAutoRaise(true);
  pause_->setFocusPolicy(Qt::StrongFocus);
  connect(pause_, &QToolButton::clicked, this, [this] { Q_EMIT pauseWanted(!paused_); });
  setPaused(false, false);
  meters_->setHorizontalSpacing(24);
  meters_->setVerticalSpacing(8);
  name_->setForegroundRole(QPalette::PlaceholderText);
  body()->setSpacing(10);
  body()->addWidget(name_);
  body()->addLayout(meters_);
  body()->addWidget(facts_);
  body()->addStretch(1);
  facts_->add(kClock, "clock", tr("Clock"));
  facts_->add(kThrottling, "throttling", tr("Throttled by"));
  facts_->add(kEcc, "ecc", tr("ECC errors"));
  facts_->add(kNvlink, "nvlink", tr("NVLink"));
  facts_->setColumns(1);
  showRoom();
}

void GpuPanel::showSample(const GpuSample& sample) {
  if (&sample != &sample_) sample_ = sample;
  name_->setText(QString::fromStdString(sample.name));
  use_->setReading(sample.utilisation.value_or(-1), text::or_dash(sample.utilisation, text::percent));
  show_reading(memory_, sample.memory_bytes, sample.memory_total_bytes, text::bytes);
  show_reading(power_, sample.power_watts, sample.power_limit_watts, text::watts);
  const auto& celsius = sample.temperature_celsius;
  temperature_->setReading(celsius ? temperature_share(*celsius) : -1, text::or_dash(celsius, text::celsius),
                           temperature_tone(celsius.value_or(0)));
  facts_->set(kClock, text::or_dash(sample.sm_clock_hertz, text::hertz));
  facts_->set(kThrottling, throttling_words(sample.throttling));
  facts_->set(kEcc, sample.ecc_errors ? text::count(*sample.ecc_errors) : tr("not known"));
  facts_->set(kNvlink, sample.nvlink_bytes_per_second ? tr("%1/s").arg(text::bytes(*sample.nvlink_bytes_per_second))
                                                      : tr("none"));
  verdict_ = paused_ ? GpuVerdict{Tone::kNeutral, tr("paused")} : judge_gpu(sample);
  showRoom();
  showVerdict();
  describe();
}

void GpuPanel::setPaused(bool paused, bool changeable) {
  paused_ = paused;
  pause_->setIcon(icon(paused ? "play" : "pause"));
  const QString what = paused ? tr("Resume GPU %1").arg(index_) : tr("Pause GPU %1").arg(index_);
  pause_->setAccessibleName(what);
  pause_->setToolTip(paused ? tr("Train on it again")
                            : tr("Leave it to other programs; training goes on on the others"));
  pause_->setVisible(changeable);
  if (!sample_.name.empty()) showSample(sample_);
}

void GpuPanel::describe() {
  const QString name = tr("GPU %1 %2: %3").arg(index_).arg(QString::fromStdString(sample_.name), verdict_.word);
  setAccessibleName(chosen_ ? tr("%1, chosen").arg(name) : name);
  QStringList readings;
  for (const Meter* meter : {use_, memory_, power_, temperature_}) readings << meter->accessibleName();
  if (choosable_) readings << tr("The space bar shows its lines in the plots");
  setAccessibleDescription(readings.join(", "));
}

void GpuPanel::showVerdict() {
  const Colours& colours = colours_of(palette());
  verdict_icon_->setPixmap(icon_pixmap(icon_of(verdict_.tone), colours.of(verdict_.tone), 16, devicePixelRatioF()));
  set_plain_text(verdict_text_, verdict_.word);
  verdict_text_->setAccessibleName(verdict_.word);
}

void GpuPanel::setRoom(Room room) {
  room_ = room;
  const int columns = room == Room::kWide ? 2 : 1;
  int at = 0;
  for (Meter* meter : {use_, memory_, power_, temperature_}) {
    meters_->removeWidget(meter);
    meters_->addWidget(meter, at / columns, at % columns);
    ++at;
  }
  facts_->setColumns(columns);
  showRoom();
}

void GpuPanel::showRoom() {
  const bool little = room_ == Room::kLittle;
  name_->setVisible(!little && !sample_.name.empty());
  facts_->setShown(kThrottling, !little || !sample_.throttling.empty());
  facts_->setShown(kEcc, !little || sample_.ecc_errors.value_or(0) > 0);
}

void GpuPanel::setChoosable(bool choosable) {
  choosable_ = choosable;
  setCursor(choosable ? Qt::PointingHandCursor : Qt::ArrowCursor);
  setToolTip(choosable ? tr("Show its lines in the plots") : QString());
  describe();
}

void GpuPanel::setChosen(bool chosen) {
  if (chosen_ == chosen) return;
  chosen_ = chosen;
  describe();
  update();
}

void GpuPanel::setGreyed(bool greyed) {
  for (Meter* meter : {use_, memory_, power_, temperature_}) meter->setGreyed(greyed);
  facts_->setGreyed(greyed);
}

// The one that is chosen has a frame of its lines' colour.
void GpuPanel::paintEvent(QPaintEvent* event) {
  Card::paintEvent(event);
  if (!hasFocus() && !chosen_) return;
  const Colours& colours = colours_of(palette());
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  if (chosen_) {
    painter.setPen(QPen(colours.series[GpuPlot::kChosenColour], 2));
    painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 8, 8);
  }
  if (!hasFocus()) return;
  const double inwards = chosen_ ? 4 : 1;
  painter.setPen(QPen(colours.accent, 2));
  painter.drawRoundedRect(QRectF(rect()).adjusted(inwards, inwards, -inwards, -inwards), 8, 8);
}

void GpuPanel::mouseReleaseEvent(QMouseEvent* event) {
  Card::mouseReleaseEvent(event);
  if (choosable_ && event->button() == Qt::LeftButton && rect().contains(event->position().toPoint())) {
    Q_EMIT choiceWanted();
  }
}

void GpuPanel::keyPressEvent(QKeyEvent* event) {
  const bool chooses = event->key() == Qt::Key_Space || event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
  if (choosable_ && chooses && !event->isAutoRepeat()) return Q_EMIT choiceWanted();
  Card::keyPressEvent(event);
}

void GpuPanel::changeEvent(QEvent* event) {
  Card::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && !verdict_.word.isEmpty()) showVerdict();
}

}  // namespace atl
