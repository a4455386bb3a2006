#include "app/gui/parts/ring_geometry.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace atl {

double RingGeometry::angle(double position) const { return 90 - 360 * position / static_cast<double>(count_); }

QPointF RingGeometry::at(double position, double outwards) const {
  const double radians = angle(position) * std::numbers::pi / 180;
  const QPointF on_unit_circle(std::cos(radians), -std::sin(radians));
  return area_.center() + QPointF(on_unit_circle.x() * (area_.width() / 2 + outwards),
                                  on_unit_circle.y() * (area_.height() / 2 + outwards));
}

double RingGeometry::edgeLength() const {
  return std::numbers::pi * (area_.width() + area_.height()) / 2 / static_cast<double>(count_);
}

std::vector<bool> apart(std::span<const QRectF> boxes, const QRectF& taken) {
  std::vector<QRectF> drawn{taken};
  std::vector<bool> fits;
  for (const QRectF& box : boxes) {
    const bool free = std::ranges::none_of(drawn, [&](const QRectF& other) { return other.intersects(box); });
    if (free) drawn.push_back(box);
    fits.push_back(free);
  }
  return fits;
}

std::size_t travelling_chunk(std::size_t rank, std::uint32_t step, std::size_t count) {
  if (count < 2) return 0;
  const std::size_t in_bucket = step % (2 * (count - 1));
  return (rank + 2 * count - in_bucket) % count;
}

}  // namespace atl
