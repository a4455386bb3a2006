// Redraws a few lines in place: each frame is one write, so that nothing flickers. Hides the cursor while it lives. One
// thread; only where the output is a terminal.
#pragma once

#include <string>
#include <vector>

#include "app/cli/console.h"

namespace atl {

class LiveDisplay {
 public:
  explicit LiveDisplay(Console& console);
  ~LiveDisplay();  // leaves the last frame on the screen
  LiveDisplay(const LiveDisplay&) = delete;
  LiveDisplay& operator=(const LiveDisplay&) = delete;

  // Looks at the terminal's size; lines that one frame may have.
  int begin_frame();
  void draw(const std::vector<std::string>& lines);

 private:
  Console& console_;
  std::size_t drawn_lines_ = 0;
};

}  // namespace atl
