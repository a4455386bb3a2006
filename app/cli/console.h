// Where a command writes, and what is known of the screen behind it. Made in main, or by a test. One thread.
#pragma once

#include <ostream>
#include <string>
#include <string_view>

namespace atl {

enum class Style { kPlain, kBold, kDim, kGood, kWarning, kBad };

struct Console {
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool color = false;    // a terminal, and NO_COLOR is not set
  bool unicode = false;  // the locale can show more than ASCII
  int columns = 80;

  // `text`, with the terminal's codes around it when there is colour.
  std::string styled(std::string_view text, Style style) const;
};

// Of this process: looks at stdout, stderr, NO_COLOR, TERM, LC_ALL, LC_CTYPE, LANG.
Console process_console();
// The terminal's width now; 80 when it has none.
int terminal_columns();

}  // namespace atl
