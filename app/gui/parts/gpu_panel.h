// One GPU: what it does, how hot and how full it is, and what is amiss with it. The keyboard reaches it; what it shows
// is its description. Of many, one can be chosen. Owned by the page GPUs; GUI thread.
#pragma once

#include "app/gui/look/colours.h"
#include "app/gui/parts/card.h"
#include "net/control/node_state.h"

class QGridLayout;
class QLabel;
class QToolButton;

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
  // Whether its owner has paused it, and whether that can be changed: not of the last one.
  void setPaused(bool paused, bool changeable);
  // Wide: it has the page's width, two meters stand beside each other. Little: one of many, which shows throttling and
  // errors only where there are some, and not the name that all of them share.
  enum class Room { kWide, kUsual, kLittle };
  void setRoom(Room room);
  // Whether a person can choose it (with a click, the space bar or Enter), and whether it is chosen.
  void setChoosable(bool choosable);
  void setChosen(bool chosen);

 Q_SIGNALS:
  void choiceWanted();  // or no longer, where it is chosen
  void pauseWanted(bool pause);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void changeEvent(QEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void showVerdict();
  void describe();
  void showRoom();

  const int index_;
  Room room_ = Room::kUsual;
  bool choosable_ = false, chosen_ = false, paused_ = false;
  GpuSample sample_;
  GpuVerdict verdict_;
  QLabel* verdict_icon_;
  QLabel* verdict_text_;
  QToolButton* pause_;
  Meter* use_;
  Meter* memory_;
  Meter* power_;
  Meter* temperature_;
  QLabel* name_;
  QGridLayout* meters_;
  FactsList* facts_;
};

}  // namespace atl
