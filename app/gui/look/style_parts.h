// The drawing behind AtollStyle, a function a part. Stateless; GUI thread.
#pragma once

class QPainter;
class QRect;
class QStyleOption;
class QStyleOptionComboBox;
class QStyleOptionProgressBar;
class QStyleOptionSlider;
class QWidget;

namespace atl {

struct Colours;

void paint_button(QPainter* painter, const QStyleOption& option, const Colours& colours, bool primary);
void paint_tool_button(QPainter* painter, const QStyleOption& option, const Colours& colours);
void paint_focus(QPainter* painter, const QStyleOption& option, const Colours& colours);
void paint_field(QPainter* painter, const QStyleOption& option, const Colours& colours);
void paint_frame(QPainter* painter, const QStyleOption& option, const Colours& colours);
void paint_check_box(QPainter* painter, const QStyleOption& option, const Colours& colours);
void paint_radio_button(QPainter* painter, const QStyleOption& option, const Colours& colours);
void paint_item(QPainter* painter, const QStyleOption& option, const Colours& colours, const QWidget* view);
void paint_groove(QPainter* painter, const QStyleOptionProgressBar& bar, const Colours& colours);
void paint_progress(QPainter* painter, const QStyleOptionProgressBar& bar, const Colours& colours);
void paint_header(QPainter* painter, const QStyleOption& option, const Colours& colours);
void paint_scroll_bar(QPainter* painter, const QStyleOptionSlider& bar, const QRect& slider, const Colours& colours);
void paint_slider(QPainter* painter, const QStyleOptionSlider& slider, const QRect& handle, const Colours& colours);
void paint_combo_box(QPainter* painter, const QStyleOptionComboBox& box, const QRect& arrow, const Colours& colours);

}  // namespace atl
