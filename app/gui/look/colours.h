// The colours of the app, light and dark: the one place where a colour is chosen. Texts have a contrast of at least
// 4.5 to their ground, lines and marks at least 3 (WCAG 2.1); a test checks it. Plain values; any thread.
#pragma once

#include <array>

#include <QColor>
#include <QPalette>

#include "net/control/words.h"

namespace atl {

// How a thing stands. Never told by colour alone: an icon and a word go with it.
enum class Tone { kNeutral, kAccent, kGood, kWarning, kBad };

struct Colours {
  QColor window;   // the ground of a window
  QColor side;     // the ground of the side bar
  QColor surface;  // the ground of cards, tables and fields
  QColor raised;   // the ground of buttons
  QColor border;   // around cards and between rows: may be faint
  QColor outline;  // around what can be operated
  QColor grid;     // of plots
  QColor text, muted;
  QColor faint;  // of what cannot be operated, or is no longer true
  QColor accent, on_accent;
  QColor selection;  // behind texts that are chosen
  QColor good, warning, bad;
  std::array<QColor, 8> series;  // lines and bars

  QColor of(Tone tone) const;
  QColor ground_of(Tone tone) const;  // behind `text`, on a window or surface
};

const Colours& light_colours();
const Colours& dark_colours();
// Those that the palette was made of (a widget's own: it follows the theme).
const Colours& colours_of(const QPalette& palette);
QPalette palette_of(const Colours& colours);

// Of a part of a synchronisation; parts of one round can be told apart.
QColor phase_colour(const Colours& colours, SyncPart part);

// WCAG 2.1: 1 (none) to 21 (black on white).
double contrast(const QColor& a, const QColor& b);
// `share` of `over` on `ground`: both opaque.
QColor mixed(const QColor& ground, const QColor& over, double share);

}  // namespace atl
