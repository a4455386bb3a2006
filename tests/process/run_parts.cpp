#include "tests/process/run_parts.h"

#include <QtCore/QProcess>
#include <fstream>
#include <random>

#include "net/data/prepare.h"
#include "net/enrol/client.h"

namespace atl::test {
namespace {

// Words drawn with a fixed seed.
void write_text(const std::filesystem::path& path) {
  const std::vector<std::string> words{"the",  "island", "sends", "its", "gradient", "around",
                                       "ring", "and",    "waits", "for", "reef"};
  std::mt19937 random(7);
  std::ofstream text(path);
  for (int i = 0; i < 60'000; ++i) text << words[random() % words.size()] << (i % 12 == 11 ? ".\n" : " ");
}

}  // namespace

void make_dataset(const std::filesystem::path& text, const std::filesystem::path& dataset) {
  write_text(text);
  require(prepare_dataset({text}, dataset, {}, {}));
}

IslandHome make_island_home(const IslandHomeOptions& options, const RunConfig& run) {
  const Identity identity =
      require(enrol(options.invite, options.display_name, Deadline::after(std::chrono::seconds(60)))).identity;
  IslandHome home{options.directory / identity.name.value};
  require(make_directories(home.directory, FileMode::kPrivate));
  require(save_identity(home.identity(), identity));
  JoinFile join;
  join.run_id = run.run_id;
  join.run_name = run.name;
  join.hub_addresses = options.invite.hub;
  join.display_name = options.display_name;
  join.bind = options.bind;
  join.threads = 1;
  require(save_join_file(home.join_file(), join));
  std::filesystem::create_directory_symlink(options.dataset, home.data());
  return home;
}

std::unique_ptr<QProcess> start_trainer(const IslandHome& home) {
  auto process = std::make_unique<QProcess>();
  process->setProcessChannelMode(QProcess::MergedChannels);
  process->setStandardOutputFile(QString::fromStdString(home.trainer_log().string()), QIODevice::Append);
  process->start(QString(ATOLL_BIN_DIR) + "/atoll-trainer",
                 {"run", "--home", QString::fromStdString(home.directory.string())});
  if (!process->waitForStarted()) qFatal("atoll-trainer did not start: %s", qPrintable(process->errorString()));
  return process;
}

std::string small_model_json() {
  return R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 257, "hidden_size": 64,
             "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
             "hidden_act": "silu", "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
             "tie_word_embeddings": true})";
}

RunConfig small_run(std::uint32_t min_islands) {
  RunConfig run;
  run.model_json = small_model_json();
  run.inner_steps = 6;
  run.sequences_per_step = 2;
  run.sequence_length = 64;
  run.min_islands = min_islands;
  run.validate_every = 0;
  return run;
}

}  // namespace atl::test
