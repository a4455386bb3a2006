#include "app/cli/shell/shell_commands.h"

#include <CLI/CLI.hpp>

#include "app/cli/shell/command_tree.h"
#include "net/base/file.h"

namespace atl {
namespace {

Status write_man_pages(const CommandNode& node, const std::filesystem::path& directory) {
  std::string name = node.path;
  std::replace(name.begin(), name.end(), ' ', '-');
  ATOLL_RETURN_IF_ERROR(write_file_atomically(directory / (name + ".1"), man_page(node), FileMode::kPublic));
  for (const CommandNode& child : node.children) ATOLL_RETURN_IF_ERROR(write_man_pages(child, directory));
  return ok_status();
}

Status write_all(const CommandNode& root, const std::filesystem::path& directory) {
  ATOLL_RETURN_IF_ERROR(make_directories(directory));
  return write_man_pages(root, directory);
}

}  // namespace

void add_completion_command(CLI::App& app, CommandContext& context) {
  auto shell = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("completion", "Print completions for a shell");
  sub->footer(
      "Examples:\n"
      "  source <(atoll completion bash)\n"
      "  atoll completion zsh > ~/.zfunc/_atoll\n"
      "  atoll completion fish > ~/.config/fish/completions/atoll.fish");
  sub->add_option("SHELL", *shell, "Which one")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  sub->callback([shell, &app, &context] {
    const CommandNode root = read_command_tree(app);
    context.console.out << (*shell == "bash"  ? bash_completion(root)
                            : *shell == "zsh" ? zsh_completion(root)
                                              : fish_completion(root))
                        << std::flush;
  });
}

void add_man_command(CLI::App& app, CommandContext& context) {
  auto directory = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("man", "Write the man pages");
  sub->group("");  // for the build
  sub->add_option("DIR", *directory, "Directory to write them to")->required();
  sub->callback([directory, &app, &context] { context.finish(write_all(read_command_tree(app), *directory)); });
}

}  // namespace atl
