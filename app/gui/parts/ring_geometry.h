// Where a ring's islands, edges and travelling chunks are drawn. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include <QPointF>
#include <QRectF>
#include <span>
#include <vector>

namespace atl {

// Islands on an ellipse, the first at the top, clockwise.
class RingGeometry {
 public:
  RingGeometry(const QRectF& area, std::size_t count) : area_(area), count_(count) {}

  std::size_t count() const { return count_; }
  double angle(double position) const;  // degrees, as QPainter::drawArc counts; position: of islands, 1.5 is halfway
  QPointF at(double position, double outwards = 0) const;
  double edgeLength() const;  // about, in pixels

 private:
  const QRectF area_;
  const std::size_t count_;
};

// Of boxes in the order of their importance: those that touch neither `taken` nor one that is drawn before them.
std::vector<bool> apart(std::span<const QRectF> boxes, const QRectF& taken);

// Which chunk rank `rank` sends on in step `step` of the ring (net/collective/ring_schedule.h): chunk (rank - step) mod
// N, through reduce-scatter and all-gather of each bucket, 2(N - 1) steps.
std::size_t travelling_chunk(std::size_t rank, std::uint32_t step, std::size_t count);

}  // namespace atl
