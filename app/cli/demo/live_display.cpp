#include "app/cli/demo/live_display.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace atl {

LiveDisplay::LiveDisplay(Console& console) : console_(console) { console_.out << "\033[?25l" << std::flush; }

LiveDisplay::~LiveDisplay() { console_.out << "\033[?25h" << std::flush; }

int LiveDisplay::begin_frame() {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0;
  console_.columns = terminal_columns();
  return known ? std::max(4, size.ws_row - 1) : 23;
}

void LiveDisplay::draw(const std::vector<std::string>& lines) {
  std::string frame;
  if (drawn_lines_ > 0) frame += fmt::format("\033[{}A", drawn_lines_);
  // Lines are cleared after their text, never before: what stays the same never disappears.
  for (const std::string& line : lines) frame += "\r" + line + "\033[K\n";
  frame += "\033[J";
  drawn_lines_ = lines.size();
  console_.out << frame << std::flush;
}

}  // namespace atl
