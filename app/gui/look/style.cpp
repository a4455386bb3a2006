#include "app/gui/look/style.h"

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QApplication>
#include <QComboBox>
#include <QKeyEvent>
#include <QLineEdit>
#include <QMenu>
#include <QPainter>
#include <QScrollBar>
#include <QSlider>
#include <QStyleFactory>
#include <QStyleOption>

#include "app/gui/look/colours.h"
#include "app/gui/look/icons.h"
#include "app/gui/look/style_parts.h"

namespace atl {
namespace {

constexpr const char* kPrimary = "atoll_primary";
constexpr int kScrollBarExtent = 12;
constexpr int kShortestSlider = 28;
constexpr int kTextInwards = 4;  // from a field's edge

bool is_primary(const QStyleOption* option, const QWidget* widget) {
  const auto* button = qstyleoption_cast<const QStyleOptionButton*>(option);
  if (button != nullptr && (button->features & QStyleOptionButton::DefaultButton)) return true;
  return widget != nullptr && widget->property(kPrimary).toBool();
}

bool is_card(const QStyleOptionGroupBox& box) { return !box.subControls.testFlag(QStyle::SC_GroupBoxCheckBox); }

QRect scroll_slider(const QStyleOptionSlider& bar) {
  const bool across = bar.orientation == Qt::Horizontal;
  const int length = across ? bar.rect.width() : bar.rect.height();
  const qint64 range = static_cast<qint64>(bar.maximum) - bar.minimum;
  int slider = length;
  if (range > 0) {
    slider = static_cast<int>(qint64{length} * bar.pageStep / (range + bar.pageStep));
    slider = qBound(std::min(kShortestSlider, length), slider, length);
  }
  const int at =
      QStyle::sliderPositionFromValue(bar.minimum, bar.maximum, bar.sliderPosition, length - slider, bar.upsideDown);
  const QRect rect = across ? QRect(at, 0, slider, bar.rect.height()) : QRect(0, at, bar.rect.width(), slider);
  return QStyle::visualRect(bar.direction, bar.rect, rect.translated(bar.rect.topLeft()));
}

}  // namespace

void make_primary(QWidget* button, bool primary) {
  button->setProperty(kPrimary, primary);
  button->update();
}

AtollStyle::AtollStyle() : QProxyStyle(QStyleFactory::create("Fusion")) {}

void AtollStyle::drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                               const QWidget* widget) const {
  const Colours& colours = colours_of(option->palette);
  switch (element) {
    case PE_PanelButtonCommand: return paint_button(painter, *option, colours, is_primary(option, widget));
    case PE_PanelButtonTool: return paint_tool_button(painter, *option, colours);
    case PE_FrameDefaultButton: return;
    case PE_PanelScrollAreaCorner: return;  // the ground goes on between two scroll bars
    case PE_FrameFocusRect:
      if (widget != nullptr && widget->window()->windowType() == Qt::Popup) return;  // a list's choice is its ground
      return paint_focus(painter, *option, colours);
    case PE_PanelLineEdit: {
      const auto* frame = qstyleoption_cast<const QStyleOptionFrame*>(option);
      if (frame == nullptr || frame->lineWidth > 0) return paint_field(painter, *option, colours);
      return;
    }
    case PE_PanelTipLabel: return paint_tool_tip(painter, *option, colours);
    case PE_FrameMenu: return paint_frame(painter, *option, colours);
    case PE_FrameLineEdit: return;  // the panel has its frame
    case PE_Frame: return paint_frame(painter, *option, colours);
    case PE_IndicatorCheckBox: return paint_check_box(painter, *option, colours);
    case PE_IndicatorRadioButton: return paint_radio_button(painter, *option, colours);
    case PE_PanelItemViewItem: return paint_item(painter, *option, colours, widget);
    default: QProxyStyle::drawPrimitive(element, option, painter, widget);
  }
}

void AtollStyle::drawControl(ControlElement element, const QStyleOption* option, QPainter* painter,
                             const QWidget* widget) const {
  const Colours& colours = colours_of(option->palette);
  switch (element) {
    case CE_PushButtonLabel:
      if (const auto* button = qstyleoption_cast<const QStyleOptionButton*>(option);
          button != nullptr && is_primary(option, widget) && (option->state & State_Enabled)) {
        QStyleOptionButton filled = *button;
        filled.palette.setColor(QPalette::ButtonText, colours.on_accent);
        if (const QString name = filled.icon.name(); !name.isEmpty()) {
          const double ratio = painter->device()->devicePixelRatioF();
          filled.icon = QIcon(icon_pixmap(qPrintable(name), colours.on_accent, filled.iconSize.width(), ratio));
        }
        return QProxyStyle::drawControl(element, &filled, painter, widget);
      }
      break;
    case CE_ProgressBarGroove:
    case CE_ProgressBarContents:
      if (const auto* bar = qstyleoption_cast<const QStyleOptionProgressBar*>(option)) {
        return element == CE_ProgressBarGroove ? paint_groove(painter, *bar, colours)
                                               : paint_progress(painter, *bar, colours);
      }
      break;
    case CE_HeaderSection:
    case CE_HeaderEmptyArea: return paint_header(painter, *option, colours);
    default: break;
  }
  QProxyStyle::drawControl(element, option, painter, widget);
}

void AtollStyle::drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                                    const QWidget* widget) const {
  const Colours& colours = colours_of(option->palette);
  if (control == CC_ScrollBar) {
    if (const auto* bar = qstyleoption_cast<const QStyleOptionSlider*>(option)) {
      return paint_scroll_bar(painter, *bar, scroll_slider(*bar), colours);
    }
  }
  if (control == CC_Slider) {
    if (const auto* slider = qstyleoption_cast<const QStyleOptionSlider*>(option)) {
      return paint_slider(painter, *slider, subControlRect(CC_Slider, option, SC_SliderHandle, widget), colours);
    }
  }
  if (control == CC_ToolButton) {
    const auto* button = qstyleoption_cast<const QStyleOptionToolButton*>(option);
    if (button != nullptr && (button->features & QStyleOptionToolButton::PopupDelay) == 0 &&
        (button->features & QStyleOptionToolButton::MenuButtonPopup) == 0) {
      QStyleOptionToolButton plain = *button;
      plain.features &= ~QStyleOptionToolButton::HasMenu;  // no arrow in the icon's corner
      return QProxyStyle::drawComplexControl(control, &plain, painter, widget);
    }
  }
  if (control == CC_ComboBox) {
    if (const auto* box = qstyleoption_cast<const QStyleOptionComboBox*>(option)) {
      return paint_combo_box(painter, *box, subControlRect(CC_ComboBox, option, SC_ComboBoxArrow, widget), colours);
    }
  }
  if (control == CC_SpinBox) {
    if (const auto* box = qstyleoption_cast<const QStyleOptionSpinBox*>(option); box != nullptr && box->frame) {
      return paint_spin_box(painter, *box, subControlRect(control, option, SC_SpinBoxUp, widget),
                            subControlRect(control, option, SC_SpinBoxDown, widget), colours);
    }
  }
  if (control == CC_GroupBox) {
    if (const auto* box = qstyleoption_cast<const QStyleOptionGroupBox*>(option); box != nullptr && is_card(*box)) {
      return paint_group_box(painter, *box, colours);
    }
  }
  QProxyStyle::drawComplexControl(control, option, painter, widget);
}

// Scroll bars have no arrows.
QRect AtollStyle::subControlRect(ComplexControl control, const QStyleOptionComplex* option, SubControl part,
                                 const QWidget* widget) const {
  if (control == CC_ComboBox && part == SC_ComboBoxEditField) {
    return QProxyStyle::subControlRect(control, option, part, widget).adjusted(kTextInwards, 0, 0, 0);
  }
  if (const auto* box = qstyleoption_cast<const QStyleOptionGroupBox*>(option);
      control == CC_GroupBox && box != nullptr && is_card(*box)) {
    if (part == SC_GroupBoxContents) return group_contents_rect(*box);
    if (part == SC_GroupBoxLabel) return group_title_rect(*box);
    if (part == SC_GroupBoxFrame) return box->rect;
  }
  const auto* bar = qstyleoption_cast<const QStyleOptionSlider*>(option);
  if (control != CC_ScrollBar || bar == nullptr) return QProxyStyle::subControlRect(control, option, part, widget);
  const QRect slider = scroll_slider(*bar);
  const bool across = bar->orientation == Qt::Horizontal;
  QRect rect = bar->rect;
  switch (part) {
    case SC_ScrollBarGroove: return rect;
    case SC_ScrollBarSlider: return slider;
    case SC_ScrollBarSubPage: across ? rect.setRight(slider.left() - 1) : rect.setBottom(slider.top() - 1); return rect;
    case SC_ScrollBarAddPage: across ? rect.setLeft(slider.right() + 1) : rect.setTop(slider.bottom() + 1); return rect;
    default: return {};
  }
}

QRect AtollStyle::subElementRect(SubElement element, const QStyleOption* option, const QWidget* widget) const {
  if (element == SE_PushButtonFocusRect) return option->rect;
  if (element == SE_LineEditContents) {
    const auto* frame = qstyleoption_cast<const QStyleOptionFrame*>(option);
    const int inwards = frame != nullptr && frame->lineWidth > 0 ? kTextInwards : 0;
    return QProxyStyle::subElementRect(element, option, widget).adjusted(inwards, 0, -inwards, 0);
  }
  return QProxyStyle::subElementRect(element, option, widget);
}

QSize AtollStyle::sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& size,
                                   const QWidget* widget) const {
  QSize result = QProxyStyle::sizeFromContents(type, option, size, widget);
  const int control_height = option->fontMetrics.height() + 14;
  switch (type) {
    case CT_PushButton:
      result.setWidth(result.width() + 14);
      result.setHeight(std::max(result.height(), control_height));
      break;
    case CT_ComboBox: result.setWidth(result.width() + 2 * kTextInwards); [[fallthrough]];
    case CT_SpinBox:
    case CT_LineEdit:
      if (const auto* frame = qstyleoption_cast<const QStyleOptionFrame*>(option);
          frame != nullptr && frame->lineWidth == 0) {
        break;
      }
      result.setHeight(std::max(result.height(), control_height));
      break;
    case CT_MenuItem:
      if (const auto* item = qstyleoption_cast<const QStyleOptionMenuItem*>(option);
          item != nullptr && item->menuItemType != QStyleOptionMenuItem::Separator) {
        result = {result.width() + 16, std::max(result.height(), option->fontMetrics.height() + 14)};
      }
      break;
    case CT_HeaderSection: result.setHeight(std::max(result.height(), option->fontMetrics.height() + 14)); break;
    case CT_ItemViewItem: result.setHeight(std::max(result.height(), option->fontMetrics.height() + 12)); break;
    default: break;
  }
  return result;
}

int AtollStyle::pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const {
  switch (metric) {
    case PM_ScrollBarExtent: return kScrollBarExtent;
    case PM_ScrollBarSliderMin: return kShortestSlider;
    case PM_SliderLength:
    case PM_SliderControlThickness: return 16;
    case PM_SliderThickness: return 22;
    case PM_IndicatorWidth:
    case PM_IndicatorHeight:
    case PM_ExclusiveIndicatorWidth:
    case PM_ExclusiveIndicatorHeight: return 18;
    case PM_ButtonShiftHorizontal:
    case PM_ButtonShiftVertical:
    case PM_ScrollView_ScrollBarSpacing: return 0;
    case PM_ToolTipLabelFrameWidth:
    case PM_HeaderMargin:
    case PM_FocusFrameHMargin: return 6;
    default: return QProxyStyle::pixelMetric(metric, option, widget);
  }
}

int AtollStyle::styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget,
                          QStyleHintReturn* data) const {
  switch (hint) {
    case SH_EtchDisabledText:
    case SH_DialogButtonBox_ButtonsHaveIcons:
    case SH_ComboBox_Popup: return 0;
    case SH_UnderlineShortcut: return alt_ || qobject_cast<const QMenu*>(widget) != nullptr ? 1 : 0;
    case SH_ItemView_ShowDecorationSelected:
    case SH_ScrollBar_LeftClickAbsolutePosition: return 1;
    case SH_Slider_AbsoluteSetButtons: return Qt::LeftButton;
    default: return QProxyStyle::styleHint(hint, option, widget, data);
  }
}

// Of message boxes.
QIcon AtollStyle::standardIcon(StandardPixmap which, const QStyleOption* option, const QWidget* widget) const {
  switch (which) {
    case SP_MessageBoxQuestion:
    case SP_MessageBoxInformation: return icon(icon_of(Tone::kAccent), Tone::kAccent);
    case SP_MessageBoxWarning: return icon(icon_of(Tone::kWarning), Tone::kWarning);
    case SP_MessageBoxCritical: return icon(icon_of(Tone::kBad), Tone::kBad);
    default: return QProxyStyle::standardIcon(which, option, widget);
  }
}

void AtollStyle::polish(QWidget* widget) {
  QProxyStyle::polish(widget);
  if (qobject_cast<QAbstractButton*>(widget) || qobject_cast<QComboBox*>(widget) || qobject_cast<QSlider*>(widget) ||
      qobject_cast<QScrollBar*>(widget) || qobject_cast<QLineEdit*>(widget)) {
    widget->setAttribute(Qt::WA_Hover);
  }
  if (auto* view = qobject_cast<QAbstractItemView*>(widget)) view->viewport()->setAttribute(Qt::WA_Hover);
}

void AtollStyle::polish(QApplication* app) {
  QProxyStyle::polish(app);
  app->installEventFilter(this);
}

bool AtollStyle::eventFilter(QObject* watched, QEvent* event) {
  const bool pressed = event->type() == QEvent::KeyPress;
  const bool away = event->type() == QEvent::WindowDeactivate;
  if (pressed || event->type() == QEvent::KeyRelease || away) {
    const bool alt = !away && static_cast<QKeyEvent*>(event)->key() == Qt::Key_Alt;
    if ((alt || away) && alt_ != (alt && pressed)) {
      alt_ = alt && pressed;
      for (QWidget* window : QApplication::topLevelWidgets()) window->update();
    }
  }
  return QProxyStyle::eventFilter(watched, event);
}

}  // namespace atl
