#include "app/gui/look/colours.h"

#include <algorithm>
#include <cmath>

namespace atl {
namespace {

// One channel of sRGB, 0 to 1, as light.
double linear(double channel) {
  return channel <= 0.04045 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4);
}

double luminance(const QColor& colour) {
  return 0.2126 * linear(colour.redF()) + 0.7152 * linear(colour.greenF()) + 0.0722 * linear(colour.blueF());
}

Colours make_light() {
  Colours c;
  c.window = QColor(0xF4, 0xF6, 0xF8);
  c.side = QColor(0xEA, 0xEE, 0xF2);
  c.surface = QColor(0xFF, 0xFF, 0xFF);
  c.raised = QColor(0xFF, 0xFF, 0xFF);
  c.border = QColor(0xDD, 0xE2, 0xE8);
  c.outline = QColor(0x86, 0x91, 0x9E);
  c.grid = QColor(0xE8, 0xEB, 0xEF);
  c.text = QColor(0x18, 0x21, 0x2B);
  c.muted = QColor(0x53, 0x60, 0x6E);
  c.faint = QColor(0x62, 0x6D, 0x79);
  c.accent = QColor(0x0B, 0x6E, 0x83);
  c.on_accent = QColor(0xFF, 0xFF, 0xFF);
  c.selection = QColor(0xCC, 0xE8, 0xEE);
  c.good = QColor(0x19, 0x76, 0x46);
  c.warning = QColor(0x8F, 0x5A, 0x00);
  c.bad = QColor(0xB8, 0x2E, 0x26);
  c.series = {QColor(0x0B, 0x76, 0x8C), QColor(0xC2, 0x52, 0x0A), QColor(0x75, 0x4A, 0xBA), QColor(0x2F, 0x7A, 0x35),
              QColor(0xB5, 0x2F, 0x7C), QColor(0x2A, 0x5F, 0xC0), QColor(0x80, 0x5F, 0x36), QColor(0x5C, 0x68, 0x75)};
  return c;
}

Colours make_dark() {
  Colours c;
  c.window = QColor(0x12, 0x17, 0x1C);
  c.side = QColor(0x0D, 0x11, 0x16);
  c.surface = QColor(0x1A, 0x20, 0x27);
  c.raised = QColor(0x26, 0x2E, 0x37);
  c.border = QColor(0x2C, 0x35, 0x3F);
  c.outline = QColor(0x6C, 0x78, 0x86);
  c.grid = QColor(0x29, 0x31, 0x3A);
  c.text = QColor(0xE6, 0xEA, 0xEF);
  c.muted = QColor(0xA3, 0xAF, 0xBC);
  c.faint = QColor(0x8B, 0x97, 0xA4);
  c.accent = QColor(0x4F, 0xC1, 0xD6);
  c.on_accent = QColor(0x06, 0x23, 0x2A);
  c.selection = QColor(0x1B, 0x47, 0x52);
  c.good = QColor(0x55, 0xC9, 0x8C);
  c.warning = QColor(0xE5, 0xB2, 0x4E);
  c.bad = QColor(0xFF, 0x80, 0x77);
  c.series = {QColor(0x4F, 0xC1, 0xD6), QColor(0xF0, 0x9A, 0x5B), QColor(0xB9, 0xA0, 0xF4), QColor(0x80, 0xC9, 0x86),
              QColor(0xEF, 0x8F, 0xC0), QColor(0x84, 0xAD, 0xF6), QColor(0xCB, 0xAE, 0x88), QColor(0xA9, 0xB4, 0xC0)};
  return c;
}

}  // namespace

QColor Colours::of(Tone tone) const {
  switch (tone) {
    case Tone::kNeutral: return muted;
    case Tone::kAccent: return accent;
    case Tone::kGood: return good;
    case Tone::kWarning: return warning;
    case Tone::kBad: return bad;
  }
  return muted;
}

QColor Colours::ground_of(Tone tone) const { return mixed(surface, of(tone), 0.1); }

const Colours& light_colours() {
  static const Colours colours = make_light();
  return colours;
}

const Colours& dark_colours() {
  static const Colours colours = make_dark();
  return colours;
}

const Colours& colours_of(const QPalette& palette) {
  const auto lightness = [&](QPalette::ColorRole role) { return palette.color(QPalette::Active, role).lightness(); };
  return lightness(QPalette::Window) < lightness(QPalette::WindowText) ? dark_colours() : light_colours();
}

QPalette palette_of(const Colours& c) {
  QPalette p;
  p.setColor(QPalette::Window, c.window);
  p.setColor(QPalette::WindowText, c.text);
  p.setColor(QPalette::Base, c.surface);
  p.setColor(QPalette::AlternateBase, mixed(c.surface, c.text, 0.03));
  p.setColor(QPalette::Text, c.text);
  p.setColor(QPalette::PlaceholderText, c.faint);
  p.setColor(QPalette::Button, c.raised);
  p.setColor(QPalette::ButtonText, c.text);
  p.setColor(QPalette::BrightText, c.bad);
  p.setColor(QPalette::ToolTipBase, c.raised);
  p.setColor(QPalette::ToolTipText, c.text);
  p.setColor(QPalette::Highlight, c.selection);
  p.setColor(QPalette::HighlightedText, c.text);
  p.setColor(QPalette::Link, c.accent);
  p.setColor(QPalette::LinkVisited, c.accent);
  p.setColor(QPalette::Light, mixed(c.surface, c.text, 0.02));
  p.setColor(QPalette::Midlight, c.border);
  p.setColor(QPalette::Mid, c.border);
  p.setColor(QPalette::Dark, c.outline);
  p.setColor(QPalette::Shadow, mixed(c.window, QColor(Qt::black), 0.3));
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText, QPalette::HighlightedText}) {
    p.setColor(QPalette::Disabled, role, c.faint);
  }
  p.setColor(QPalette::Disabled, QPalette::Base, c.window);
  p.setColor(QPalette::Disabled, QPalette::Button, c.window);
  return p;
}

QColor phase_colour(const Colours& colours, SyncPart part) {
  switch (part) {
    case SyncPart::kWait: return colours.series[7];
    case SyncPart::kConnect: return colours.series[6];
    case SyncPart::kQuantise: return colours.series[2];
    case SyncPart::kReduceScatter: return colours.series[5];
    case SyncPart::kAllGather: return colours.series[0];
    case SyncPart::kCommit: return colours.series[1];
    case SyncPart::kApply: return colours.series[3];
    case SyncPart::kFailed: return colours.bad;
    case SyncPart::kUnknown: break;
  }
  return colours.muted;
}

double contrast(const QColor& a, const QColor& b) {
  const double one = luminance(a);
  const double other = luminance(b);
  return (std::max(one, other) + 0.05) / (std::min(one, other) + 0.05);
}

QColor mixed(const QColor& ground, const QColor& over, double share) {
  const auto mix = [share](int a, int b) { return static_cast<int>(std::lround((1 - share) * a + share * b)); };
  return QColor(mix(ground.red(), over.red()), mix(ground.green(), over.green()), mix(ground.blue(), over.blue()));
}

}  // namespace atl
