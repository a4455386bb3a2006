// Man pages in man(7), made of the parser's own texts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "app/cli/shell/command_tree.h"

namespace atl {
namespace {

// Safe in a line of roff: backslashes and hyphens are themselves, no line begins with a request.
std::string roff(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n')) result += "\\&";
      result += c;
    }
  }
  return result;
}

std::string page_name(std::string path) {
  std::replace(path.begin(), path.end(), ' ', '-');
  return path;
}

void add_options(const CommandNode& node, std::string& page) {
  for (const bool positional : {true, false}) {
    bool first = true;
    for (const CommandOption& option : node.options) {
      if (option.positional != positional) continue;
      if (std::exchange(first, false)) page += positional ? ".SH ARGUMENTS\n" : ".SH OPTIONS\n";
      const std::string value =
          positional || option.value.empty() ? "" : fmt::format(" \\fI{}\\fR", roff(option.value));
      page += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(fmt::format("{}", fmt::join(option.names, ", "))), value,
                          roff(option.meaning.empty() ? "See above." : option.meaning));
      if (!option.words.empty()) page += roff(fmt::format("One of {}.", fmt::join(option.words, ", "))) + "\n";
    }
  }
}

// "Examples:" and what is indented under it are shown as they are; the rest is text.
void add_footer(const std::string& footer, std::string& page) {
  std::istringstream lines(footer);
  bool verbatim = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "Example:" || line == "Examples:") {
      page += ".SH EXAMPLES\n.nf\n";
      verbatim = true;
    } else if (verbatim && !line.starts_with(' ') && !line.empty()) {
      page += ".fi\n.SH NOTES\n" + roff(line) + "\n";
      verbatim = false;
    } else {
      page += line.empty() ? ".sp\n" : roff(line) + "\n";
    }
  }
  if (verbatim) page += ".fi\n";
}

}  // namespace

std::string man_page(const CommandNode& node) {
  std::string title = page_name(node.path);
  std::string page = fmt::format(".TH {} 1 \"\" \"atoll {}\" \"Atoll\"\n.SH NAME\n{} \\- {}\n", roff(title),
                                 ATOLL_VERSION, roff(title), roff(node.meaning));
  page += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR", roff(node.path));
  if (!node.children.empty()) page += " \\fICOMMAND\\fR";
  if (!node.options.empty()) page += " [\\fIOPTIONS\\fR]";
  for (const CommandOption& option : node.options) {
    if (option.positional) page += fmt::format(" \\fI{}\\fR", roff(option.names.front()));
  }
  page += "\n";
  if (!node.children.empty()) {
    page += ".SH COMMANDS\n";
    for (const CommandNode& child : node.children) {
      page += fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n", roff(page_name(child.path)), roff(child.meaning));
    }
  }
  add_options(node, page);
  add_footer(node.footer, page);
  if (node.path.find(' ') != std::string::npos) page += ".SH SEE ALSO\n\\fBatoll\\fR(1)\n";
  return page;
}

}  // namespace atl
