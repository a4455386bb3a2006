// The app's icons: line drawings of resources/icons, in the colour of the text beside them, sharp at every scale. GUI
// thread.
#pragma once

#include <QIcon>

#include "app/gui/look/colours.h"

namespace atl {

// `name`: a file of resources/icons without ".svg". It takes the colour of button texts, also as the theme changes.
QIcon icon(const char* name);
// In the colour of a tone.
QIcon icon(const char* name, Tone tone);

QPixmap icon_pixmap(const char* name, const QColor& colour, int size, double device_pixel_ratio);

// The icon that goes with a tone: a tick, a triangle, a cross, ...
const char* icon_of(Tone tone);

}  // namespace atl
