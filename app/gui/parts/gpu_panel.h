// One GPU: what it does, how hot and how full it is, and what is amiss with it. The keyboard reaches it; what it shows
// is its description. Owned by the page GPUs; GUI thread.
#pragma once

#include "app/core/node_state.h"
#include "app/gui/look/colours.h"
#include "app/gui/parts/card.h"

class QGridLayout;
class QLabel;

namespace atl {

class FactsList;
class Meter;

// How a GPU stands: good, throttled, hot, with errors. With the word that goes with it.
struct GpuVerdict {
  Tone tone = Tone::kGood;
  QString word;
};
GpuVerdict judge_gpu(const GpuSample& sample);

class GpuPanel : public Card {
  Q_OBJECT

 public:
  explicit GpuPanel(int index, QWidget* parent = nullptr);

  void showSample(const GpuSample& sample);
  void setGreyed(bool greyed);
  void setWide(bool wide);  // it has the page's width: two meters beside each other

 protected:
  void paintEvent(QPaintEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  void showVerdict();

  const int index_;
  GpuVerdict verdict_;
  QLabel* verdict_icon_;
  QLabel* verdict_text_;
  Meter* use_;
  Meter* memory_;
  Meter* power_;
  Meter* temperature_;
  QLabel* name_;
  QGridLayout* meters_;
  FactsList* facts_;
};

}  // namespace atl
