// Completions for bash, zsh and fish: a table of what may follow each command, and a few lines of shell that look the
// command up.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/cli/shell/command_tree.h"

namespace atl {
namespace {

bool takes_file(const CommandOption& option) { return option.value == "FILE" || option.value == "DIR"; }

// In single quotes of a POSIX shell; fish reads the same.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      result += c;
    }
  }
  return result + "'";
}

template <class Visit>
void each_node(const CommandNode& node, const Visit& visit) {
  visit(node);
  for (const CommandNode& child : node.children) each_node(child, visit);
}

std::vector<std::string> words_after(const CommandNode& node) {
  std::vector<std::string> words;
  for (const CommandNode& child : node.children) words.push_back(child.name);
  for (const CommandOption& option : node.options) {
    if (option.positional) {
      words.insert(words.end(), option.words.begin(), option.words.end());
    } else {
      words.insert(words.end(), option.names.begin(), option.names.end());
    }
  }
  return words;
}

// "case" arms: the path of commands up to the cursor.
std::string path_arms(const CommandNode& root) {
  std::vector<std::string> paths;
  each_node(root, [&](const CommandNode& node) {
    for (const CommandNode& child : node.children) paths.push_back(quoted(child.path));
  });
  return fmt::format("{}", fmt::join(paths, "|"));
}

}  // namespace

std::string bash_completion(const CommandNode& root) {
  std::string words, values;
  each_node(root, [&](const CommandNode& node) {
    words += fmt::format("    {}) words={};;\n", quoted(node.path),
                         quoted(fmt::format("{}", fmt::join(words_after(node), " "))));
    for (const CommandOption& option : node.options) {
      if (option.positional || option.value.empty()) continue;
      std::vector<std::string> keys;
      for (const std::string& name : option.names) keys.push_back(quoted(node.path + " " + name));
      // Nothing to offer leaves the shell's own completion of files.
      const std::string offer =
          option.words.empty() && !takes_file(option) ? "" : fmt::format("{}", fmt::join(option.words, " "));
      values += fmt::format("    {}) words={}; return_files={};;\n", fmt::join(keys, "|"), quoted(offer),
                            takes_file(option) ? 1 : 0);
    }
  });
  return fmt::format(R"(# bash completion of atoll
_atoll() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before= path={root} words= return_files=0 i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path ${{COMP_WORDS[i]}}" in
    {arms}) path="$path ${{COMP_WORDS[i]}}" ;;
    esac
  done
  before=${{COMP_WORDS[COMP_CWORD - 1]}}
  case "$path" in
{words}  esac
  case "$path $before" in
{values}  esac
  COMPREPLY=()
  ((return_files)) && return
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o default -F _atoll {root}
)",
                     fmt::arg("root", root.name), fmt::arg("arms", path_arms(root)), fmt::arg("words", words),
                     fmt::arg("values", values));
}

std::string zsh_completion(const CommandNode& root) {
  std::string offers, values;
  each_node(root, [&](const CommandNode& node) {
    std::vector<std::string> entries;
    const auto add = [&](const std::string& name, const std::string& meaning) {
      std::string escaped;
      for (const char c : name) escaped += c == ':' ? "\\:" : std::string(1, c);
      entries.push_back(quoted(escaped + ":" + meaning));
    };
    for (const CommandNode& child : node.children) add(child.name, child.meaning);
    for (const CommandOption& option : node.options) {
      for (const std::string& word : option.words) {
        if (option.positional) add(word, option.meaning);
      }
      for (const std::string& name : option.names) {
        if (!option.positional) add(name, option.meaning);
      }
      if (option.positional || option.value.empty()) continue;
      std::vector<std::string> keys, words;
      for (const std::string& name : option.names) keys.push_back(quoted(node.path + " " + name));
      for (const std::string& word : option.words) words.push_back(quoted(word));
      values += fmt::format("    {}) offers=({});;\n", fmt::join(keys, "|"), fmt::join(words, " "));
    }
    offers += fmt::format("    {}) offers=({});;\n", quoted(node.path), fmt::join(entries, " "));
  });
  return fmt::format(R"(#compdef {root}
_atoll() {{
  local path_={root} i
  local -a offers
  for ((i = 2; i < CURRENT; i++)); do
    case "$path_ ${{words[i]}}" in
    {arms}) path_="$path_ ${{words[i]}}" ;;
    esac
  done
  case "$path_" in
{offers}  esac
  case "$path_ ${{words[CURRENT - 1]}}" in
{values}  esac
  _describe -t commands '{root}' offers || _files
}}
if [[ ${{funcstack[1]}} == _atoll ]]; then _atoll "$@"; else compdef _atoll {root}; fi
)",
                     fmt::arg("root", root.name), fmt::arg("arms", path_arms(root)), fmt::arg("offers", offers),
                     fmt::arg("values", values));
}

std::string fish_completion(const CommandNode& root) {
  std::string text = fmt::format(R"(# fish completion of atoll
function __atoll_at
  set -l path {0}
  for word in (commandline -opc)[2..]
    switch "$path $word"
      case {1}
        set path "$path $word"
    end
  end
  test "$path" = "$argv"
end
complete -c {0} -f
)",
                                 root.name, [&] {
                                   std::string arms = path_arms(root);
                                   for (char& c : arms) c = c == '|' ? ' ' : c;
                                   return arms;
                                 }());
  each_node(root, [&](const CommandNode& node) {
    const std::string at = fmt::format("complete -c {} -n {}", root.name, quoted("__atoll_at " + node.path));
    for (const CommandNode& child : node.children) {
      text += fmt::format("{} -a {} -d {}\n", at, child.name, quoted(child.meaning));
    }
    for (const CommandOption& option : node.options) {
      const std::string words = fmt::format("{}", fmt::join(option.words, " "));
      if (option.positional) {
        if (!words.empty()) text += fmt::format("{} -a {}\n", at, quoted(words));
        continue;
      }
      text += at;
      for (const std::string& name : option.names) {
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (!option.value.empty())
        text += takes_file(option) ? " -r -F" : words.empty() ? " -x" : " -x -a " + quoted(words);
      text += fmt::format(" -d {}\n", quoted(option.meaning));
    }
  });
  return text;
}

}  // namespace atl
