#include "tests/process/local_run.h"

#include <QtCore/QProcess>
#include <QtCore/QThread>
#include <fstream>
#include <random>

#include "net/data/prepare.h"
#include "net/enrol/client.h"

namespace atl::test {
namespace {

// Words drawn with a fixed seed: enough structure for a loss to fall.
void write_text(const std::filesystem::path& path) {
  const std::vector<std::string> words{"the",  "island", "sends", "its", "gradient", "around",
                                       "ring", "and",    "waits", "for", "reef"};
  std::mt19937 random(7);
  std::ofstream text(path);
  for (int i = 0; i < 60'000; ++i) text << words[random() % words.size()] << (i % 12 == 11 ? ".\n" : " ");
}

std::chrono::sys_seconds now() {
  return std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
}

}  // namespace

std::string small_model_json() {
  return R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 257, "hidden_size": 64,
             "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
             "hidden_act": "silu", "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
             "tie_word_embeddings": true})";
}

LocalRun::LocalRun(RunConfig run) {
  write_text(directory() / "text.txt");
  require(prepare_dataset({directory() / "text.txt"}, dataset(), {}, {}));
  run.name = "test run";
  config_ =
      require(hub_init({.directory = directory() / "hub", .dataset_directory = dataset(), .run = std::move(run)}));
  hub_ =
      require(HubServer::start({.directory = directory() / "hub", .listen = {"127.0.0.1", 0}, .advertised = {}}, {}));
}

LocalRun::~LocalRun() = default;

Address LocalRun::hub_address() const { return {"127.0.0.1", hub_->port()}; }

bool LocalRun::wait_until(const std::function<bool(const HubState&)>& condition, std::chrono::seconds limit) const {
  const Deadline deadline = Deadline::after(limit);
  while (!condition(state())) {
    if (deadline.expired()) return false;
    QThread::msleep(20);
  }
  return true;
}

Invite LocalRun::invite(std::uint32_t uses, std::chrono::seconds valid_for) const {
  const InviteReport report =
      require(create_invite(directory() / "hub", {.addresses = {hub_address()}, .uses = uses, .valid_for = valid_for}));
  return require(decode_invite(report.text, now()));
}

Identity LocalRun::enrol(const std::string& name) const {
  return require(atl::enrol(invite(), name, Deadline::after(std::chrono::seconds(10)))).identity;
}

IslandHome LocalRun::make_home(const std::string& name, std::uint16_t port) const {
  const Identity identity = enrol(name);
  const IslandHome home{directory() / "islands" / identity.name.value};
  require(make_directories(home.directory, FileMode::kPrivate));
  require(save_identity(home.identity(), identity));
  JoinFile join;
  join.run_id = config_.run_id;
  join.run_name = config_.name;
  join.hub_addresses = {hub_address()};
  join.display_name = name;
  join.bind = {"127.0.0.1", port};
  join.threads = 1;
  require(save_join_file(home.join_file(), join));
  std::filesystem::create_directory_symlink(dataset(), home.data());
  return home;
}

std::unique_ptr<QProcess> LocalRun::start_island(const std::string& name, std::uint16_t port) const {
  const IslandHome home = make_home(name, port);
  auto process = std::make_unique<QProcess>();
  process->setProcessChannelMode(QProcess::MergedChannels);
  process->setStandardOutputFile(QString::fromStdString(home.trainer_log().string()));
  process->start(QString(ATOLL_BIN_DIR) + "/atoll-trainer",
                 {"run", "--home", QString::fromStdString(home.directory.string())});
  if (!process->waitForStarted()) qFatal("atoll-trainer did not start: %s", qPrintable(process->errorString()));
  return process;
}

}  // namespace atl::test
