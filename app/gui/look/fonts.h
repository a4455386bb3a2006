// Sizes of text beside that of the platform. GUI thread.
#pragma once

#include <QFont>

namespace atl {

// Of what is beside a value: its name, its scale.
inline QFont small_font(QFont font) {
  font.setPointSizeF(font.pointSizeF() * 0.92);
  return font;
}

}  // namespace atl
