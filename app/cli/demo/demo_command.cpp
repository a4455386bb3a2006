// atoll demo.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "app/cli/command.h"
#include "app/cli/demo/demo_run.h"
#include "app/cli/validators.h"

namespace atl {

void add_demo_command(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<DemoOptions>();
  CLI::App* sub = app.add_subcommand("demo", "Watch islands on this machine train a small language model together");
  sub->footer(
      "Examples:\n"
      "  atoll demo                       three islands, about five minutes\n"
      "  atoll demo --kill                kills an island in mid-round; a new one joins later\n"
      "  atoll demo --rounds 5 --text book.txt --summary summary.json\n\n"
      "A hub and each island are processes of their own, connected by mutual TLS over 127.0.0.1. Ctrl-C stops\n"
      "all of them.");
  sub->add_option("--islands", options->islands, "How many")->check(whole_number(1, 16))->capture_default_str();
  sub->add_option("--rounds", options->rounds, "End after so many rounds")->check(whole_number(1, UINT32_MAX));
  sub->add_option("--minutes", options->minutes,
                  fmt::format("End after the round in which so much time of training is over "
                              "(default: {}, or as long as --rounds take)",
                              kDemoMinutes))
      ->check(positive_number());
  sub->add_option("--text", options->text, "Text files to learn from (default: Debian's dict-gcide)")
      ->type_name("FILE");
  sub->add_option("--summary", options->summary_file, "Write the figures as JSON")->type_name("FILE");
  sub->add_option("--dir", options->directory,
                  "Where to keep it all (default: a new directory under ~/.local/state/atoll/demo, where the last "
                  "three demos stay)")
      ->type_name("DIR");
  sub->add_flag("--kill", options->kill,
                "Kill an island in mid-round, let a new one join later; 2 islands and 6 rounds at least");
  sub->add_option("--inner-steps", options->run.inner_steps, "Inner steps a round (H)")
      ->check(whole_number(1, 1'000'000));
  sub->add_option("--batch", options->run.sequences_per_step, "Sequences an inner step and island")
      ->check(whole_number(1, 1 << 20));
  sub->add_option("--lr", options->run.learning_rate, "Peak learning rate of the inner optimiser")
      ->check(positive_number());
  sub->add_option("--outer-lr", options->run.outer_learning_rate, "Learning rate of the outer optimiser")
      ->check(positive_number());
  sub->add_option("--wire", options->run.wire, "How gradients travel")
      ->check(CLI::IsMember(std::vector<std::string>(kRunWireFormatNames.begin(), kRunWireFormatNames.end())));
  sub->add_option("--model", options->run.model, "Model: a preset's name, or a HuggingFace config.json");
  sub->add_option("--seed", options->run.seed, "Of the initial parameters and the order of the data")
      ->check(whole_number(0, UINT64_MAX));
  sub->callback([options, &context] {
    DemoRun demo(*options, context);
    context.finish(demo.run());
  });
}

}  // namespace atl
