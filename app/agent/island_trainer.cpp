#include "app/agent/island_trainer.h"

#include <spdlog/spdlog.h>

#include <csignal>

#include "app/agent/trainer_link.h"
#include "net/base/file.h"
#include "net/base/unix_time.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kAskTime{2};

}  // namespace

void IslandTrainer::expect_another() {
  memory_kills_ = memory_kills();
  hung_.clear();
  told_to_end_ = false;
}

bool IslandTrainer::find() {
  expect_another();
  process_ = TrainerProcess::find(home_);
  if (process_) spdlog::log(news_level_, "trainer taken_over pid={}", pid());
  return process_.has_value();
}

Status IslandTrainer::start(const GpuList& gpus) {
  expect_another();
  Status started = start_process(gpus);
  if (started.ok()) {
    spdlog::log(news_level_, "trainer started pid={}", pid());
  } else {
    spdlog::error("trainer started=false error=\"{}\"", started.error().message);
  }
  return started;
}

Status IslandTrainer::start_process(const GpuList& gpus) {
  ATOLL_RETURN_IF_ERROR(make_directories(home_.state, FileMode::kPrivate));
  TrainerStart start = start_;
  start.visible_gpus = gpus.visible_devices();
  ATOLL_ASSIGN_OR_RETURN(process_, TrainerProcess::start(home_, start));
  return ok_status();
}

TrainerExit IslandTrainer::exit() const {
  return judge_exit({.status = process_->exit_status(),
                     .last_words = last_words(home_.trainer_log(), process_->log_from()),
                     .memory_kills = memory_kills() > memory_kills_,
                     .hung = hung_,
                     .was_told_to_end = told_to_end_},
                    unix_time_now());
}

std::optional<SupervisorEvent> IslandTrainer::look() {
  if (!process_) return std::nullopt;
  const TrainerProcess::State state = process_->look();
  if (state == TrainerProcess::State::kStopped) return TrainerStopped{};
  if (state != TrainerProcess::State::kEnded) return std::nullopt;
  const TrainerExit why = exit();
  spdlog::log(news_level_, "trainer ended pid={} cause={} status={} text=\"{}\"", pid(), word_of(why.cause), why.status,
              why.text);
  process_.reset();
  std::error_code ignored;
  std::filesystem::remove(home_.trainer_file(), ignored);
  return TrainerEnded{why};
}

void IslandTrainer::ask_to(Wish wish) {
  if (!process_) return;
  told_to_end_ = true;
  const Status asked = ask_trainer(home_.island.control_socket(), word_of(wish), Deadline::after(kAskTime));
  spdlog::log(news_level_, "trainer asked_to={} answered={}", word_of(wish), asked.ok());
  if (!asked.ok()) process_->signal(SIGTERM);
}

void IslandTrainer::kill(const std::string& hung) {
  if (!process_) return;
  hung_ = hung;
  told_to_end_ = told_to_end_ || hung.empty();
  if (!hung.empty()) spdlog::warn("trainer hung reason=\"{}\"", hung);
  process_->signal(SIGKILL);
}

}  // namespace atl
