#include "app/cli/foreground_agent.h"

#include <array>
#include <fstream>

#include "app/agent/agent_config.h"
#include "app/cli/agent_options.h"
#include "app/cli/join_progress.h"

namespace atl {
namespace {

// Nobody takes the trainer of a foreground command over: it ends soon after it.
constexpr std::chrono::seconds kForegroundPatience{5};

// What is new in a file that grows.
class LogFollower {
 public:
  explicit LogFollower(std::filesystem::path path) : path_(std::move(path)) {
    std::error_code error;
    offset_ = std::filesystem::file_size(path_, error);
    if (error) offset_ = 0;
  }
  void drain(JoinProgress& progress) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path_, error);
    if (error || size == offset_) return;
    if (size < offset_) offset_ = 0;  // a new log was begun
    std::ifstream file(path_, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset_));
    std::array<char, 4096> buffer{};
    while (file.read(buffer.data(), buffer.size()) || file.gcount() > 0) {
      progress.take_output({buffer.data(), static_cast<std::size_t>(file.gcount())});
      offset_ += static_cast<std::uintmax_t>(file.gcount());
    }
  }

 private:
  const std::filesystem::path path_;
  std::uintmax_t offset_ = 0;
};

}  // namespace

Status train_in_foreground(const AgentHome& home, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const Config config, Config::load(config_sources(home)));
  ATOLL_ASSIGN_OR_RETURN(AgentOptions options, agent_options(home, config));
  options.trainer_patience = kForegroundPatience;
  options.foreground = true;
  options.supervisor.agent_ends = Wish::kStop;  // Ctrl-C is a goodbye
  JoinProgress progress(home.island, context.console);
  LogFollower log(home.trainer_log());
  bool said = false;
  options.on_turn = [&] {
    log.drain(progress);
    progress.look_at_rounds();
    if (context.interrupt.raised() && !std::exchange(said, true)) context.console.out << "stopping ..." << std::endl;
  };
  // To join is to say that it shall train, whatever was said before.
  ATOLL_RETURN_IF_ERROR(save_wish(home.wish_file(), {.wish = Wish::kRun}));
  ATOLL_ASSIGN_OR_RETURN(const auto agent, Agent::start(std::move(options)));
  const Status ended = agent->run(context.interrupt, context.hurry);
  log.drain(progress);
  return ended;
}

}  // namespace atl
