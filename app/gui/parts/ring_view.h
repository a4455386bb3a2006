// The ring as it is: its islands in their order, each edge with its rate, and, while an all-reduce runs, the chunks
// that travel. Where everybody sends to everybody: the islands, each joined to each. This island is at the top. Owned by its page; GUI thread.
#pragma once

#include <optional>
#include <vector>

#include <QElapsedTimer>
#include <QTimer>
#include <QWidget>

#include "app/core/sync_model.h"

namespace atl {

class RingGeometry;
struct Colours;

struct RingPicture {
  std::vector<RingIsland> ring;
  std::optional<SyncProgress> progress;  // of the all-reduce under way, or of the last one
  bool active = false;
  std::optional<std::size_t> slowest_edge;
  bool directly = false;  // everybody sends to everybody
};

class RingView : public QWidget {
  Q_OBJECT

 public:
  explicit RingView(QWidget* parent = nullptr);

  void showRing(RingPicture picture);
  void setGreyed(bool greyed);

  QSize sizeHint() const override { return {460, 400}; }
  QSize minimumSizeHint() const override { return {320, 300}; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;

 private:
  QString spoken() const;
  void animate();
  std::size_t memberAt(std::size_t place) const;  // place 0 is the top
  double fraction() const;                        // of the all-reduce, as it should be by now
  double widestName() const;
  bool isNamed(std::size_t place) const;
  void paintPairs(QPainter& painter, const RingGeometry& geometry) const;
  void paintEdge(QPainter& painter, const RingGeometry& geometry, std::size_t place) const;
  std::vector<std::size_t> ratedPlaces(std::size_t count) const;  // whose edges' rates are to be read, the foremost first
  QString rateText(std::size_t place) const;
  QRectF rateBox(const RingGeometry& geometry, std::size_t place) const;
  void paintRates(QPainter& painter, const RingGeometry& geometry, const QRectF& middle) const;
  void paintChunks(QPainter& painter, const RingGeometry& geometry) const;
  void paintIsland(QPainter& painter, const RingGeometry& geometry, std::size_t place) const;
  QString middleText() const;                       // beneath the figure
  QRectF middleBox(const QRectF& area) const;  // what the figure and that text cover
  void paintMiddle(QPainter& painter, const QRectF& area) const;

  RingPicture picture_;
  std::size_t top_ = 0;  // index of the member that is drawn at the top
  bool greyed_ = false;
  QElapsedTimer since_progress_;
  QTimer frames_;
};

}  // namespace atl
