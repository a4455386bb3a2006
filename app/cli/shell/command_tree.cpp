#include "app/cli/shell/command_tree.h"

#include <CLI/CLI.hpp>

namespace atl {
namespace {

CommandOption read_option(const CLI::Option& option) {
  CommandOption read;
  read.positional = option.get_positional();
  read.meaning = option.get_description();
  for (const std::string& name : option.get_snames()) read.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) read.names.push_back("--" + name);
  if (read.positional) read.names = {option.get_name()};
  if (option.get_items_expected_max() == 0) return read;
  read.value = option.get_type_name();
  // A list of words is written "TEXT:{a,b}".
  const auto begin = read.value.find('{'), end = read.value.find('}');
  if (begin != std::string::npos && end != std::string::npos) {
    read.words = CLI::detail::split(read.value.substr(begin + 1, end - begin - 1), ',');
  }
  read.value = read.value.substr(0, read.value.find(':'));
  if (read.value.empty()) read.value = "VALUE";
  return read;
}

CommandNode read_node(const CLI::App& app, const std::string& above) {
  CommandNode node;
  node.name = app.get_name();
  node.path = above.empty() ? node.name : above + " " + node.name;
  node.meaning = app.get_description();
  node.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) node.options.push_back(read_option(*option));
  }
  for (const CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!child->get_group().empty()) node.children.push_back(read_node(*child, node.path));
  }
  return node;
}

}  // namespace

CommandNode read_command_tree(const CLI::App& app) { return read_node(app, ""); }

}  // namespace atl
