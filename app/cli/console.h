// Where a command writes, and what is known of the screen behind it. Made in main, or by a test. One thread.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "net/base/output_thread.h"
#include "net/base/standard_output.h"

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
  StandardOutput* output = nullptr;  // behind `out`; null: a test looks at it

  // The stream that a person sees, of the two; null: neither.
  std::ostream* screen() const { return out_is_terminal ? &out : err_is_terminal ? &err : nullptr; }
  // `text`, with the terminal's codes around it when there is colour.
  std::string styled(std::string_view text, Style style) const;
  // For who writes there by another way than `out`: takes the error of what was lost.
  std::function<void(int error_number)> loss_listener() const;
};

// The same screen for a command that others depend on while it prints: it does not wait for who reads. Outlived by
// `screen`, on which nothing else is said meanwhile.
class UnhurriedConsole {
 public:
  explicit UnhurriedConsole(const Console& screen);

  Console& console() { return console_; }

 private:
  std::optional<OutputThread> thread_;  // none: a test looks
  std::optional<OutputThreadStream> stream_;
  Console console_;
};

// Of this process: looks at stdout, stderr, NO_COLOR, TERM, LC_ALL, LC_CTYPE, LANG. Outlived by `output`.
Console process_console(StandardOutput& output);
// The terminal's width now; 80 when it has none.
int terminal_columns();

}  // namespace atl
