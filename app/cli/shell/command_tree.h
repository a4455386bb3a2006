// The commands as data, read out of the parser: what completions and man pages are made of, so that neither can say
// anything that the program does not know. Pure; any thread.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace atl {

struct CommandOption {
  std::vector<std::string> names;  // "--json", "-f"; of a positional its name
  std::string value;               // what it takes: "DIR", "TEXT"; empty: nothing
  std::string meaning;
  bool positional = false;
  std::vector<std::string> words;  // the only values, if there are such
};

struct CommandNode {
  std::string path;  // "atoll hub init"
  std::string name;
  std::string meaning;
  std::string footer;  // examples and exit codes
  std::vector<CommandOption> options;
  std::vector<CommandNode> children;
};

CommandNode read_command_tree(const CLI::App& app);

std::string bash_completion(const CommandNode& root);
std::string zsh_completion(const CommandNode& root);
std::string fish_completion(const CommandNode& root);

// A page of section 1 (man(7)); its file is the path with '-' and ".1".
std::string man_page(const CommandNode& node);

}  // namespace atl
