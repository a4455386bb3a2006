#include "app/gui/look/style_parts.h"

#include <algorithm>
#include <array>

#include <QPainter>
#include <QPainterPath>
#include <QStyleOption>
#include <QTableView>

#include "app/gui/look/colours.h"

namespace atl {
namespace {

constexpr double kRadius = 6, kCardRadius = 8;
constexpr int kThinBar = 12;                          // bars up to this height have no text on them
constexpr int kGroupPad = 14, kGroupTitleAbove = 11;  // as cards have it
constexpr int kLayoutMargin = 9;                      // that layouts within add

bool has(const QStyleOption& option, QStyle::StateFlag flag) { return option.state.testFlag(flag); }

// The middle of the outermost pixels, so that a line of one pixel is sharp.
QRectF outline(const QRect& rect) { return QRectF(rect).adjusted(0.5, 0.5, -0.5, -0.5); }

struct Painting {  // undone at its end
  explicit Painting(QPainter* given) : painter(given) {
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
  }
  ~Painting() { painter->restore(); }
  Painting(const Painting&) = delete;
  Painting& operator=(const Painting&) = delete;
  QPainter* painter;
};

void rounded(QPainter* painter, const QRectF& rect, double radius, const QBrush& fill, const QPen& line) {
  painter->setBrush(fill);
  painter->setPen(line);
  painter->drawRoundedRect(rect, radius, radius);
}

QColor button_ground(const QStyleOption& option, const Colours& colours, bool primary) {
  const QColor ground = primary ? colours.accent : colours.raised;
  const QColor over = primary ? colours.on_accent : colours.text;
  if (!has(option, QStyle::State_Enabled)) return colours.window;
  if (has(option, QStyle::State_Sunken) || has(option, QStyle::State_On)) return mixed(ground, over, 0.16);
  return has(option, QStyle::State_MouseOver) ? mixed(ground, over, 0.07) : ground;
}

void chevron(QPainter* painter, const QPointF& centre, double half, bool up, const QColor& colour) {
  painter->setBrush(Qt::NoBrush);
  painter->setPen(QPen(colour, 1.6, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
  const double rise = up ? half / 2 : -half / 2;
  const std::array points{centre + QPointF(-half, rise), centre + QPointF(0, -rise), centre + QPointF(half, rise)};
  painter->drawPolyline(points.data(), int{points.size()});
}

QFont bold(QFont font) {
  font.setBold(true);
  return font;
}

QColor mark_ground(const QStyleOption& option, const Colours& colours, bool on) {
  if (!has(option, QStyle::State_Enabled)) return colours.window;
  return on ? colours.accent : colours.surface;
}

}  // namespace

void paint_button(QPainter* painter, const QStyleOption& option, const Colours& colours, bool primary) {
  const Painting painting(painter);
  const bool enabled = has(option, QStyle::State_Enabled);
  const QColor line = !enabled ? colours.border : primary ? colours.accent : mixed(colours.border, colours.text, 0.14);
  rounded(painter, outline(option.rect), kRadius, button_ground(option, colours, primary && enabled), line);
  if (!has(option, QStyle::State_HasFocus) || !has(option, QStyle::State_KeyboardFocusChange)) return;
  // Fusion shows it by the button's outline, which is ours; on the accent itself the ring stands within.
  const bool within = primary && enabled;
  const double inwards = within ? 3 : 1;
  rounded(painter, QRectF(option.rect).adjusted(inwards, inwards, -inwards, -inwards), kRadius - (within ? 2 : 0),
          Qt::NoBrush, QPen(within ? colours.on_accent : colours.accent, within ? 1.5 : 2));
}

void paint_tool_button(QPainter* painter, const QStyleOption& option, const Colours& colours) {
  double share = has(option, QStyle::State_MouseOver) && has(option, QStyle::State_Enabled) ? 0.07 : 0;
  if (has(option, QStyle::State_Sunken) || has(option, QStyle::State_On)) share = 0.14;
  if (share == 0) return;
  const Painting painting(painter);
  const QColor ground = option.palette.color(QPalette::Window);
  rounded(painter, QRectF(option.rect), kRadius, mixed(ground, colours.text, share), Qt::NoPen);
}

void paint_focus(QPainter* painter, const QStyleOption& option, const Colours& colours) {
  if (!has(option, QStyle::State_KeyboardFocusChange)) return;
  const Painting painting(painter);
  rounded(painter, QRectF(option.rect).adjusted(1, 1, -1, -1), kRadius, Qt::NoBrush, QPen(colours.accent, 2));
}

void paint_field(QPainter* painter, const QStyleOption& option, const Colours& colours) {
  const Painting painting(painter);
  const bool enabled = has(option, QStyle::State_Enabled);
  const bool focus = enabled && has(option, QStyle::State_HasFocus);
  const QColor line = focus ? colours.accent : enabled ? colours.outline : colours.border;
  const QRectF rect = focus ? QRectF(option.rect).adjusted(1, 1, -1, -1) : outline(option.rect);
  rounded(painter, rect, kRadius, enabled ? colours.surface : colours.window, QPen(line, focus ? 2 : 1));
}

void paint_frame(QPainter* painter, const QStyleOption& option, const Colours& colours) {
  const Painting painting(painter);
  const bool focus = has(option, QStyle::State_HasFocus) && has(option, QStyle::State_KeyboardFocusChange);
  rounded(painter, outline(option.rect), 4, Qt::NoBrush, focus ? colours.accent : colours.border);
}

// Its window has square corners.
void paint_tool_tip(QPainter* painter, const QStyleOption& option, const Colours& colours) {
  painter->fillRect(option.rect, colours.outline);
  painter->fillRect(option.rect.adjusted(1, 1, -1, -1), colours.raised);
}

void paint_check_box(QPainter* painter, const QStyleOption& option, const Colours& colours) {
  const Painting painting(painter);
  const bool part = has(option, QStyle::State_NoChange);
  const bool on = has(option, QStyle::State_On) || part;
  const bool enabled = has(option, QStyle::State_Enabled);
  const QRectF box = outline(option.rect.adjusted(1, 1, -1, -1));
  rounded(painter, box, 4, mark_ground(option, colours, on), on && enabled ? colours.accent : colours.outline);
  if (!on) return;
  painter->setBrush(Qt::NoBrush);
  painter->setPen(QPen(enabled ? colours.on_accent : colours.faint, 2, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
  const auto at = [&box](double x, double y) {
    return QPointF(box.left() + x * box.width(), box.top() + y * box.height());
  };
  if (part) {
    painter->drawLine(at(0.25, 0.5), at(0.75, 0.5));
  } else {
    const std::array tick{at(0.22, 0.52), at(0.43, 0.73), at(0.78, 0.3)};
    painter->drawPolyline(tick.data(), int{tick.size()});
  }
}

void paint_radio_button(QPainter* painter, const QStyleOption& option, const Colours& colours) {
  const Painting painting(painter);
  const bool on = has(option, QStyle::State_On);
  const bool enabled = has(option, QStyle::State_Enabled);
  const QRectF ring = outline(option.rect.adjusted(1, 1, -1, -1));
  painter->setBrush(mark_ground(option, colours, on));
  painter->setPen(on && enabled ? colours.accent : colours.outline);
  painter->drawEllipse(ring);
  if (!on) return;
  painter->setPen(Qt::NoPen);
  painter->setBrush(enabled ? colours.on_accent : colours.faint);
  painter->drawEllipse(ring.center(), 3.5, 3.5);
}

// Rows of tables are set apart by a line.
void paint_item(QPainter* painter, const QStyleOption& option, const Colours& colours, const QWidget* view) {
  const QColor surface = option.palette.color(QPalette::Base);
  if (has(option, QStyle::State_Selected)) {
    painter->fillRect(option.rect, colours.selection);
  } else if (has(option, QStyle::State_MouseOver) && has(option, QStyle::State_Enabled)) {
    painter->fillRect(option.rect, mixed(surface, colours.text, 0.04));
  }
  if (qobject_cast<const QTableView*>(view) == nullptr) return;
  const QRect& rect = option.rect;
  painter->fillRect(QRect(rect.left(), rect.bottom(), rect.width(), 1), mixed(surface, colours.border, 0.7));
}

void paint_groove(QPainter* painter, const QStyleOptionProgressBar& bar, const Colours& colours) {
  const Painting painting(painter);
  const double radius = std::min(kRadius, bar.rect.height() / 2.0);
  rounded(painter, QRectF(bar.rect), radius, mixed(colours.window, colours.text, 0.1), Qt::NoPen);
}

void paint_progress(QPainter* painter, const QStyleOptionProgressBar& bar, const Colours& colours) {
  const qint64 range = qint64{bar.maximum} - bar.minimum;
  const Painting painting(painter);
  const double radius = std::min(kRadius, bar.rect.height() / 2.0);
  QPainterPath shape;
  shape.addRoundedRect(QRectF(bar.rect), radius, radius);
  painter->setClipPath(shape);
  QRectF done(bar.rect);
  // Without a range nobody knows how far it is: half a bar, without a claim to move.
  const double share = range > 0 ? double(qint64{bar.progress} - bar.minimum) / double(range) : 0.5;
  done.setWidth(done.width() * std::clamp(share, 0.0, 1.0));
  if (bar.direction == Qt::RightToLeft) done.moveRight(bar.rect.right() + 1);
  const bool live = has(bar, QStyle::State_Enabled);
  const bool text_above = bar.rect.height() > kThinBar;
  const double strength = range <= 0 ? 0.25 : text_above ? 0.45 : 1;
  painter->setPen(Qt::NoPen);
  painter->setBrush(live ? mixed(colours.surface, colours.accent, strength)
                         : mixed(colours.surface, colours.outline, 0.5));
  painter->drawRoundedRect(done, text_above ? 0 : radius, text_above ? 0 : radius);
}

void paint_header(QPainter* painter, const QStyleOption& option, const Colours& colours) {
  painter->fillRect(option.rect, colours.surface);
  painter->fillRect(QRect(option.rect.left(), option.rect.bottom(), option.rect.width(), 1), colours.border);
}

void paint_scroll_bar(QPainter* painter, const QStyleOptionSlider& bar, const QRect& slider, const Colours& colours) {
  if (bar.maximum <= bar.minimum) return;
  const Painting painting(painter);
  const QColor ground = bar.palette.color(QPalette::Window);
  double share = has(bar, QStyle::State_MouseOver) ? 0.45 : 0.3;
  if ((bar.activeSubControls & QStyle::SC_ScrollBarSlider) && has(bar, QStyle::State_Sunken)) share = 0.55;
  const QRectF handle = QRectF(slider).adjusted(3, 3, -3, -3);
  const double radius = std::min(handle.width(), handle.height()) / 2;
  rounded(painter, handle, radius, mixed(ground, colours.text, share), Qt::NoPen);
}

void paint_slider(QPainter* painter, const QStyleOptionSlider& slider, const QRect& handle, const Colours& colours) {
  const Painting painting(painter);
  const bool enabled = has(slider, QStyle::State_Enabled);
  const QRectF knob = QRectF(handle.center().x() - 7.5 + 0.5, handle.center().y() - 7.5 + 0.5, 15, 15);
  QRectF groove(slider.rect);
  QRectF done;
  if (slider.orientation == Qt::Horizontal) {
    groove = QRectF(groove.left() + 2, knob.center().y() - 2, groove.width() - 4, 4);
    done = QRectF(groove.left(), groove.top(), knob.center().x() - groove.left(), 4);
    if (slider.upsideDown) done = QRectF(knob.center().x(), groove.top(), groove.right() - knob.center().x(), 4);
  } else {
    groove = QRectF(knob.center().x() - 2, groove.top() + 2, 4, groove.height() - 4);
    done = QRectF(groove.left(), knob.center().y(), 4, groove.bottom() - knob.center().y());
  }
  rounded(painter, groove, 2, mixed(slider.palette.color(QPalette::Window), colours.text, 0.18), Qt::NoPen);
  if (enabled) rounded(painter, done, 2, colours.accent, Qt::NoPen);
  const bool focus = has(slider, QStyle::State_HasFocus) && has(slider, QStyle::State_KeyboardFocusChange);
  painter->setBrush(enabled ? colours.surface : colours.window);
  painter->setPen(QPen(enabled ? colours.accent : colours.outline, focus ? 4 : 2));
  painter->drawEllipse(knob.adjusted(1, 1, -1, -1));
}

void paint_combo_box(QPainter* painter, const QStyleOptionComboBox& box, const QRect& arrow, const Colours& colours) {
  if (box.editable) {
    paint_field(painter, box, colours);
  } else if (box.frame) {
    paint_button(painter, box, colours, false);
    if (has(box, QStyle::State_HasFocus)) paint_focus(painter, box, colours);
  }
  const Painting painting(painter);
  chevron(painter, QRectF(arrow).center(), 4, false, has(box, QStyle::State_Enabled) ? colours.muted : colours.faint);
}

void paint_spin_box(QPainter* painter, const QStyleOptionSpinBox& box, const QRect& up, const QRect& down,
                    const Colours& colours) {
  paint_field(painter, box, colours);
  const Painting painting(painter);
  const auto part = [&](const QRect& rect, QStyle::SubControl which, QAbstractSpinBox::StepEnabledFlag step) {
    const bool can = has(box, QStyle::State_Enabled) && box.stepEnabled.testFlag(step);
    const bool hovered = has(box, QStyle::State_MouseOver) && box.activeSubControls.testFlag(which);
    const double towards_middle = step == QAbstractSpinBox::StepUpEnabled ? 1.5 : -1.5;
    chevron(painter, QRectF(rect).center() + QPointF(0, towards_middle), 3.5, step == QAbstractSpinBox::StepUpEnabled,
            !can      ? colours.border
            : hovered ? colours.accent
                      : colours.muted);
  };
  part(up, QStyle::SC_SpinBoxUp, QAbstractSpinBox::StepUpEnabled);
  part(down, QStyle::SC_SpinBoxDown, QAbstractSpinBox::StepDownEnabled);
}

QRect group_title_rect(const QStyleOptionGroupBox& box) {
  const int height = box.text.isEmpty() ? 0 : box.fontMetrics.height();
  return {box.rect.left() + kGroupPad, box.rect.top() + kGroupTitleAbove, box.rect.width() - 2 * kGroupPad, height};
}

QRect group_contents_rect(const QStyleOptionGroupBox& box) {
  const int title = group_title_rect(box).height();
  const int inwards = kGroupPad - kLayoutMargin;
  return box.rect.adjusted(inwards, title > 0 ? kGroupTitleAbove + title : inwards, -inwards, -inwards + 2);
}

void paint_group_box(QPainter* painter, const QStyleOptionGroupBox& box, const Colours& colours) {
  const Painting painting(painter);
  rounded(painter, outline(box.rect), kCardRadius, colours.surface, colours.border);
  painter->setFont(bold(painter->font()));
  painter->setPen(has(box, QStyle::State_Enabled) ? colours.text : colours.faint);
  painter->drawText(group_title_rect(box), Qt::AlignLeft | Qt::AlignVCenter | Qt::TextHideMnemonic, box.text);
}

}  // namespace atl
