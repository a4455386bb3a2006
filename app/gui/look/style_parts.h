// The drawing behind AtollStyle, a function a part. Stateless; GUI thread.
#pragma once

class QPainter;
class QRect;
class QStyleOption;
class QStyleOptionComboBox;
class QStyleOptionGroupBox;
class QStyleOptionProgressBar;
class QStyleOptionSlider;
class QStyleOptionSpinBox;
class QWidget;

namespace atl {

struct Colours;

void paint_button(QPainter* painter, const QStyleOption& option, const Colours& colours, bool primary);
void paint_tool_button(QPainter* painter, const QStyleOption& option, const Colours& colours);
void paint_focus(QPainter* painter, const QStyleOption& option, const Colours& colours);
void paint_field(QPainter* painter, const QStyleOption& option, const Colours& colours);
void paint_frame(QPainter* painter, const QStyleOption& option, const Colours& colours);
void paint_tool_tip(QPainter* painter, const QStyleOption& option, const Colours& colours);
void paint_check_box(QPainter* painter, const QStyleOption& option, const Colours& colours);
void paint_radio_button(QPainter* painter, const QStyleOption& option, const Colours& colours);
void paint_item(QPainter* painter, const QStyleOption& option, const Colours& colours, const QWidget* view);
void paint_groove(QPainter* painter, const QStyleOptionProgressBar& bar, const Colours& colours);
void paint_progress(QPainter* painter, const QStyleOptionProgressBar& bar, const Colours& colours);
void paint_header(QPainter* painter, const QStyleOption& option, const Colours& colours);
void paint_scroll_bar(QPainter* painter, const QStyleOptionSlider& bar, const QRect& slider, const Colours& colours);
void paint_slider(QPainter* painter, const QStyleOptionSlider& slider, const QRect& handle, const Colours& colours);
void paint_combo_box(QPainter* painter, const QStyleOptionComboBox& box, const QRect& arrow, const Colours& colours);
void paint_spin_box(QPainter* painter, const QStyleOptionSpinBox& box, const QRect& up, const QRect& down,
                    const Colours& colours);

// A group box looks like a card: its title within, in bold.
QRect group_title_rect(const QStyleOptionGroupBox& box);
QRect group_contents_rect(const QStyleOptionGroupBox& box);
void paint_group_box(QPainter* painter, const QStyleOptionGroupBox& box, const Colours& colours);

}  // namespace atl
