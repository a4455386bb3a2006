#include "app/gui/parts/ring_view.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <QPainter>
#include <QStyle>

#include "app/gui/look/colours.h"
#include "app/gui/look/format.h"
#include "app/gui/parts/phase_bar.h"
#include "app/gui/parts/ring_geometry.h"

namespace atl {
namespace {

using namespace std::chrono_literals;

constexpr auto kFrame = 33ms;
constexpr double kLookAhead = 0.5;  // seconds that a rate is believed without news
constexpr std::size_t kAllNamed = 12;
constexpr double kIslandRadius = 9, kWidestName = 160;
constexpr double kWidest = 1.5;  // a ring, not a band
constexpr double kMiddleWidth = 0.66;  // of the ring's: what is written there
constexpr double kDegree = std::numbers::pi / 180;

QFont ring_font(QFont font) {
  font.setPointSizeF(font.pointSizeF() * 0.9);
  return font;
}

QFont figure_font(QFont font) {
  font.setPointSizeF(font.pointSizeF() * 1.9);
  font.setWeight(QFont::DemiBold);
  return font;
}

QString name_of(const RingIsland& member) {
  return QString::fromStdString(member.name.empty() ? member.id : member.name);
}

}  // namespace

RingView::RingView(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Ring of islands"));
  connect(&frames_, &QTimer::timeout, this, qOverload<>(&QWidget::update));
  showRing({});
}

void RingView::showRing(RingPicture picture) {
  const bool news =
      picture.progress.has_value() &&
      (!picture_.progress || picture.progress->bytes_done != picture_.progress->bytes_done ||
       picture.progress->attempt != picture_.progress->attempt || picture.progress->round != picture_.progress->round);
  if (news) since_progress_.start();
  picture_ = std::move(picture);
  const auto self =
      std::find_if(picture_.ring.begin(), picture_.ring.end(), [](const RingIsland& m) { return m.self; });
  top_ = self == picture_.ring.end() ? 0 : static_cast<std::size_t>(self - picture_.ring.begin());
  setAccessibleDescription(spoken());
  setToolTip(text::tool_tip(spoken()));
  animate();
  update();
}

void RingView::setGreyed(bool greyed) {
  if (greyed_ == greyed) return;
  greyed_ = greyed;
  animate();
  update();
}

// Only while there is something to see move.
void RingView::animate() {
  const bool wanted = style()->styleHint(QStyle::SH_Widget_Animation_Duration, nullptr, this) > 0;
  const bool moves = picture_.active && picture_.progress && !greyed_ && isVisible() && wanted;
  if (moves && !frames_.isActive()) frames_.start(kFrame);
  if (!moves) frames_.stop();
}

void RingView::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  animate();
}
void RingView::hideEvent(QHideEvent* event) {
  QWidget::hideEvent(event);
  animate();
}

QString RingView::spoken() const {
  if (picture_.ring.empty()) return tr("No ring yet: it is known from the first synchronisation on.");
  QStringList edges;
  for (std::size_t i = 0; i < picture_.ring.size(); ++i) {
    const RingIsland& member = picture_.ring[i];
    const RingIsland& next = picture_.ring[(i + 1) % picture_.ring.size()];
    QString from = name_of(member);
    if (member.self) from = tr("%1 (this island)").arg(from);
    if (picture_.directly) {
      edges << from;
      continue;
    }
    QString edge = tr("%1 to %2").arg(from, name_of(next));
    if (member.edge_bytes_per_second) edge += ", " + text::link_rate(*member.edge_bytes_per_second);
    if (picture_.slowest_edge == i) edge += ", " + tr("the slowest edge");
    edges << edge;
  }
  QString text = picture_.directly ? tr("Each sends to each: %1").arg(edges.join(", ")) : edges.join("; ");
  if (picture_.active && picture_.progress) {
    text += ". " + phase_word(picture_.progress->part) + ", " + text::percent(picture_.progress->fraction());
  }
  return text;
}

std::size_t RingView::memberAt(std::size_t place) const { return (top_ + place) % picture_.ring.size(); }

double RingView::fraction() const {
  const SyncProgress& progress = *picture_.progress;
  if (progress.bytes_total == 0) return 0;
  double done = static_cast<double>(progress.bytes_done);
  if (frames_.isActive()) {
    const double age = std::min(static_cast<double>(since_progress_.elapsed()) / 1000, kLookAhead);
    done += progress.received_bytes_per_second * age;
  }
  return std::clamp(done / static_cast<double>(progress.bytes_total), 0.0, 1.0);
}

bool RingView::isNamed(std::size_t place) const {
  const std::size_t count = picture_.ring.size();
  if (count <= kAllNamed || place == 0) return true;
  if (!picture_.slowest_edge) return false;
  const std::size_t member = memberAt(place);
  return member == *picture_.slowest_edge || member == (*picture_.slowest_edge + 1) % count;
}

double RingView::widestName() const {
  if (picture_.ring.size() > kAllNamed) return kWidestName / 2;
  const QFontMetricsF metrics(ring_font(font()));
  double widest = 0;
  for (const RingIsland& member : picture_.ring) widest = std::max(widest, metrics.horizontalAdvance(name_of(member)));
  return std::min(widest, kWidestName);
}

void RingView::paintEvent(QPaintEvent*) {
  const Colours& colours = colours_of(palette());
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const double side = std::min(0.27 * width(), std::max(60.0, widestName() + 2 * kIslandRadius + 10));
  const double above = 2.6 * fontMetrics().height();
  QRectF area = QRectF(rect()).adjusted(side, above, -side, -above);
  if (const double widest = kWidest * area.height(); area.width() > widest) {
    area.adjust((area.width() - widest) / 2, 0, -(area.width() - widest) / 2, 0);
  }
  if (picture_.ring.empty()) {
    painter.setPen(QPen(colours.border, 2, Qt::DashLine));
    painter.drawEllipse(area);
    painter.setPen(colours.muted);
    painter.drawText(area.adjusted(20, 0, -20, 0), Qt::AlignCenter | Qt::TextWordWrap, spoken());
  } else {
    const RingGeometry geometry(area, picture_.ring.size());
    if (picture_.directly) {
      paintPairs(painter, geometry);
    } else {
      for (std::size_t place = 0; place < geometry.count(); ++place) paintEdge(painter, geometry, place);
      paintRates(painter, geometry, middleBox(area));
      if (picture_.active && picture_.progress && !greyed_) paintChunks(painter, geometry);
    }
    for (std::size_t place = 0; place < geometry.count(); ++place) paintIsland(painter, geometry, place);
    paintMiddle(painter, area);
  }
  if (!hasFocus()) return;
  painter.setPen(QPen(colours.accent, 2));
  painter.setBrush(Qt::NoBrush);
  painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 6, 6);
}

// This island's lines last, so that they lie above the others.
void RingView::paintPairs(QPainter& painter, const RingGeometry& geometry) const {
  const Colours& colours = colours_of(palette());
  const std::size_t count = geometry.count();
  for (std::size_t first = count; first-- > 0;) {
    const bool own = picture_.ring[memberAt(first)].self;
    painter.setPen(QPen(greyed_ ? colours.border : own ? colours.accent : colours.outline, own ? 1.6 : 0.8));
    for (std::size_t second = first + 1; second < count; ++second) {
      painter.drawLine(geometry.at(static_cast<double>(first)), geometry.at(static_cast<double>(second)));
    }
  }
}

// An arc to the next island, with an arrow at its end: chunks travel over the rest of it.
void RingView::paintEdge(QPainter& painter, const RingGeometry& geometry, std::size_t place) const {
  if (geometry.count() < 2) return;
  const Colours& colours = colours_of(palette());
  const bool slow = picture_.slowest_edge == memberAt(place);
  const bool own = picture_.ring[memberAt(place)].self;
  const QColor colour = greyed_ ? colours.border : slow ? colours.warning : own ? colours.accent : colours.outline;
  painter.setPen(QPen(colour, slow || own ? 2.4 : 1.6));
  painter.setBrush(Qt::NoBrush);
  const auto from = static_cast<double>(place);
  QPolygonF arc;
  for (int i = 0; i <= 32; ++i) arc << geometry.at(from + i / 32.0);
  painter.drawPolyline(arc);
  if (geometry.edgeLength() < 40) return;
  const double end = 1 - (kIslandRadius + 11) / geometry.edgeLength();
  const QPointF tip = geometry.at(from + end);
  const QPointF ahead = geometry.at(from + end + 0.01) - geometry.at(from + end - 0.01);
  const double length = std::hypot(ahead.x(), ahead.y());
  if (length <= 0) return;
  const QPointF along = ahead / length * 5;
  const QPointF across(-along.y(), along.x());
  painter.setPen(Qt::NoPen);
  painter.setBrush(colour);
  painter.drawPolygon(QPolygonF() << tip + along * 1.4 << tip - along + across << tip - along - across);
}

std::vector<std::size_t> RingView::ratedPlaces(std::size_t count) const {
  std::vector<std::size_t> places;
  const auto rank = [&](std::size_t place) {  // the slowest edge, then the own one, then the others
    const std::size_t member = memberAt(place);
    return picture_.slowest_edge == member ? 0 : picture_.ring[member].self ? 1 : 2;
  };
  for (std::size_t place = 0; place < count && count > 1; ++place) {
    if (!picture_.ring[memberAt(place)].edge_bytes_per_second) continue;
    if (count <= kAllNamed || rank(place) < 2) places.push_back(place);
  }
  std::ranges::stable_sort(places, {}, rank);
  return places;
}

QString RingView::rateText(std::size_t place) const {
  const QString rate = text::link_rate(*picture_.ring[memberAt(place)].edge_bytes_per_second);
  return picture_.slowest_edge == memberAt(place) ? rate + "\n" + tr("slowest") : rate;
}

// Within the ring, beside the middle of the edge.
QRectF RingView::rateBox(const RingGeometry& geometry, std::size_t place) const {
  const QFontMetricsF metrics(ring_font(font()));
  const QRectF bounds = metrics.boundingRect(QRectF(0, 0, 200, 100), Qt::AlignCenter, rateText(place));
  QRectF box(0, 0, bounds.width() + 8, bounds.height() + 2);
  const double towards = geometry.angle(static_cast<double>(place) + 0.5) * kDegree;
  const double half = (std::abs(std::cos(towards)) * box.width() + std::abs(std::sin(towards)) * box.height()) / 2;
  box.moveCenter(geometry.at(static_cast<double>(place) + 0.5, -16 - half));
  return box;
}

// Where the ring is small not all of them have room: all are in the spoken text and in the table.
void RingView::paintRates(QPainter& painter, const RingGeometry& geometry, const QRectF& middle) const {
  const Colours& colours = colours_of(palette());
  const std::vector<std::size_t> places = ratedPlaces(geometry.count());
  std::vector<QRectF> boxes;
  for (const std::size_t place : places) boxes.push_back(rateBox(geometry, place));
  const std::vector<bool> fits = apart(boxes, middle);
  painter.setFont(ring_font(font()));
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!fits[i]) continue;
    const bool slow = picture_.slowest_edge == memberAt(places[i]);
    painter.setPen(Qt::NoPen);
    painter.setBrush(colours.surface);
    painter.drawRoundedRect(boxes[i], 3, 3);
    painter.setPen(greyed_ ? colours.faint : slow ? colours.warning : colours.muted);
    painter.drawText(boxes[i], Qt::AlignCenter, rateText(places[i]));
  }
}

// Each island sends the chunk that the schedule names; all of them at once.
void RingView::paintChunks(QPainter& painter, const RingGeometry& geometry) const {
  if (geometry.count() < 2) return;
  const Colours& colours = colours_of(palette());
  const SyncProgress& progress = *picture_.progress;
  const std::uint32_t steps = std::max<std::uint32_t>(progress.steps, 1);
  const double done = fraction() * steps;
  const auto step = std::min(static_cast<std::uint32_t>(done), steps - 1);
  const double within = std::clamp(done - step, 0.0, 1.0);
  QFont bold = ring_font(font());
  bold.setBold(true);
  painter.setFont(bold);
  const bool numbered = geometry.edgeLength() > 70;
  for (std::size_t place = 0; place < geometry.count(); ++place) {
    const std::size_t chunk = travelling_chunk(memberAt(place), step, geometry.count());
    const double ends = std::min(0.3, (kIslandRadius + 18) / geometry.edgeLength());
    const QPointF at = geometry.at(static_cast<double>(place) + ends + (1 - 2 * ends) * within);
    QRectF box(0, 0, numbered ? 20 : 8, numbered ? 16 : 8);
    box.moveCenter(at);
    painter.setPen(QPen(colours.surface, 1.5));
    painter.setBrush(colours.series[chunk % colours.series.size()]);
    painter.drawRoundedRect(box, 4, 4);
    if (!numbered) continue;
    painter.setPen(colours.surface);
    painter.drawText(box, Qt::AlignCenter, QString::number(chunk + 1));
  }
}

void RingView::paintIsland(QPainter& painter, const RingGeometry& geometry, std::size_t place) const {
  const Colours& colours = colours_of(palette());
  const RingIsland& member = picture_.ring[memberAt(place)];
  const QPointF at = geometry.at(static_cast<double>(place));
  const double radius = geometry.count() > kAllNamed && !member.self ? 5 : kIslandRadius;
  painter.setPen(QPen(colours.surface, 3));
  painter.setBrush(greyed_       ? colours.outline
                   : member.self ? colours.accent
                                 : mixed(colours.surface, colours.text, 0.55));
  painter.drawEllipse(at, radius, radius);
  if (!isNamed(place)) return;
  QFont name_font = ring_font(font());
  name_font.setBold(member.self);
  painter.setFont(name_font);
  const QFontMetricsF metrics(name_font);
  const double room = 2 * std::min(at.x(), width() - at.x());
  const QString name = metrics.elidedText(name_of(member), Qt::ElideRight, std::clamp(room, 60.0, kWidestName));
  QRectF box(0, 0, metrics.horizontalAdvance(name) + 4, metrics.height());
  const QPointF outside = geometry.at(static_cast<double>(place), radius + 9);
  const double side = std::cos(geometry.angle(static_cast<double>(place)) * kDegree);
  box.moveCenter(outside + QPointF(side * (box.width() / 2 + 4), 0));
  box.moveLeft(std::clamp(box.left(), 2.0, std::max(2.0, width() - box.width() - 2)));
  painter.setPen(greyed_ ? colours.faint : colours.text);
  painter.drawText(box, Qt::AlignCenter, name);
}

QString RingView::middleText() const {
  if (!picture_.active || !picture_.progress) {
    const int islands = static_cast<int>(picture_.ring.size());
    return picture_.directly ? tr("island(s), each with each", nullptr, islands)
                             : tr("island(s) in the last ring", nullptr, islands);
  }
  const SyncProgress& progress = *picture_.progress;
  return phase_word(progress.part) + "\n" +
         tr("\u2191 %1   \u2193 %2")
             .arg(text::link_rate(progress.sent_bytes_per_second), text::link_rate(progress.received_bytes_per_second));
}

QRectF RingView::middleBox(const QRectF& area) const {
  const double widest = area.width() * kMiddleWidth;
  const QRectF text = QFontMetricsF(ring_font(font()))
                          .boundingRect(QRectF(0, 0, widest, area.height()), Qt::AlignHCenter | Qt::TextWordWrap,
                                        middleText());
  const double above = QFontMetricsF(figure_font(font())).height();
  return {area.center().x() - text.width() / 2, area.center().y() - above, text.width(), above + 2 + text.height()};
}

void RingView::paintMiddle(QPainter& painter, const QRectF& area) const {
  const Colours& colours = colours_of(palette());
  QRectF box(0, 0, area.width() * kMiddleWidth, area.height() * 0.45);
  box.moveCenter(area.center());
  const bool runs = picture_.active && picture_.progress;
  painter.setFont(figure_font(font()));
  painter.setPen(greyed_ ? colours.faint : colours.text);
  painter.drawText(QRectF(box.left(), box.top(), box.width(), box.height() / 2), Qt::AlignHCenter | Qt::AlignBottom,
                   runs ? text::percent(fraction()) : text::count(picture_.ring.size()));
  painter.setFont(ring_font(font()));
  painter.setPen(colours.muted);
  painter.drawText(QRectF(box.left(), box.center().y() + 2, box.width(), box.height() / 2),
                   Qt::AlignHCenter | Qt::AlignTop | Qt::TextWordWrap, middleText());
}

}  // namespace atl
