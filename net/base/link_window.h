// What a link holds under way, and what a TCP connection's buffers let it hold of that. Pure; any thread.
#pragma once

namespace atl {

// Of so many bytes/s with that round trip in seconds: the product, and a fifth more, for a window is never quite full;
// twice that where packets are lost, for what follows a lost one waits in the window for it to come again.
constexpr double bytes_under_way(double bytes_per_second, double rtt_seconds, bool lossy) {
  constexpr double kSlack = 1.2, kSlackOfLossy = 2 * kSlack;
  return bytes_per_second * rtt_seconds * (lossy ? kSlackOfLossy : kSlack);
}

// The kernel counts a buffer's bookkeeping in its size: a fourth of it.
constexpr double window_of_buffer(double buffer_bytes) { return buffer_bytes * 3 / 4; }
constexpr double buffer_of_window(double window_bytes) { return window_bytes * 4 / 3; }

}  // namespace atl
