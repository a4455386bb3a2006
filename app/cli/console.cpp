#include "app/cli/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>

namespace atl {
namespace {

const char* code_of(Style style) {
  switch (style) {
    case Style::kPlain: return "";
    case Style::kBold: return "\033[1m";
    case Style::kDim: return "\033[2m";
    case Style::kGood: return "\033[32m";
    case Style::kWarning: return "\033[33m";
    case Style::kBad: return "\033[31m";
  }
  return "";
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool locale_is_unicode() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = environment(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

// Of a command that a person on another machine runs (`--host`): how that person's terminal is, which is not ours.
// "ATOLL_TERMINAL=terminal:columns:color:unicode", numbers all.
struct FarTerminal {
  int terminal = 0, columns = 80, color = 0, unicode = 0;
};
std::optional<FarTerminal> far_terminal() {
  FarTerminal far;
  const std::string text = environment("ATOLL_TERMINAL");
  if (std::sscanf(text.c_str(), "%d:%d:%d:%d", &far.terminal, &far.columns, &far.color, &far.unicode) != 4) return {};
  return far;
}

}  // namespace

std::string Console::styled(std::string_view text, Style style) const {
  if (!color || style == Style::kPlain) return std::string(text);
  return fmt::format("{}{}\033[0m", code_of(style), text);
}

std::function<void(int)> Console::loss_listener() const {
  if (output == nullptr) return {};
  return [output = output](int error_number) { output->note_failure(error_number); };
}

UnhurriedConsole::UnhurriedConsole(const Console& screen)
    : console_{screen.output != nullptr
                   ? stream_.emplace(thread_.emplace(STDOUT_FILENO, OutputThread::kMostWaiting, screen.loss_listener()))
                   : screen.out,
               screen.err,
               screen.out_is_terminal,
               screen.err_is_terminal,
               screen.color,
               screen.unicode,
               screen.columns,
               screen.output} {
  screen.out << std::flush;
}

int terminal_columns() {
  if (const auto far = far_terminal()) return far->columns;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

Console process_console(StandardOutput& output) {
  const bool dumb = environment("TERM").empty() || environment("TERM") == "dumb";
  Console console{std::cout, std::cerr};
  console.out_is_terminal = ::isatty(STDOUT_FILENO) == 1 && !dumb;
  console.err_is_terminal = ::isatty(STDERR_FILENO) == 1 && !dumb;
  console.color = console.out_is_terminal && environment("NO_COLOR").empty();
  console.unicode = locale_is_unicode();
  console.columns = terminal_columns();
  console.output = &output;
  if (const auto far = far_terminal()) {
    console.out_is_terminal = console.err_is_terminal = far->terminal == 1;
    console.color = far->color == 1;
    console.unicode = far->unicode == 1;
  }
  return console;
}

}  // namespace atl
