// How controls look: flat, rounded, with one focus ring for all of them, in the colours of the palette. Everything that
// is not drawn here is Fusion's. Owned by the application; GUI thread.
#pragma once

#include <QProxyStyle>

namespace atl {

class AtollStyle : public QProxyStyle {
  Q_OBJECT

 public:
  AtollStyle();

  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override;
  void drawControl(ControlElement element, const QStyleOption* option, QPainter* painter,
                   const QWidget* widget) const override;
  void drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                          const QWidget* widget) const override;
  QRect subControlRect(ComplexControl control, const QStyleOptionComplex* option, SubControl part,
                       const QWidget* widget) const override;
  QRect subElementRect(SubElement element, const QStyleOption* option, const QWidget* widget) const override;
  QSize sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& size,
                         const QWidget* widget) const override;
  int pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const override;
  int styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget,
                QStyleHintReturn* data) const override;
  QIcon standardIcon(StandardPixmap which, const QStyleOption* option, const QWidget* widget) const override;
  void polish(QWidget* widget) override;
  void polish(QApplication* app) override;
  using QProxyStyle::polish;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  bool alt_ = false;  // is held: the letters that it works with are underlined
};

// A button that is the one to press next is filled with the accent.
void make_primary(QWidget* button, bool primary = true);

}  // namespace atl
