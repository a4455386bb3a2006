#include "net/base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink-inl.h>  // for a mutex of ours
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <vector>

#include "net/base/mutex.h"
#include "net/base/output_thread.h"
#include "net/base/printable.h"

namespace atl {
namespace {

constexpr const char* kPattern = "%Y-%m-%dT%H:%M:%S.%e %l %v";

class PrintableFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) override {
    const std::string shown = printable({message.payload.data(), message.payload.size()});
    spdlog::details::log_msg safe = message;
    safe.payload = shown;
    pattern_.format(safe, line);
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<PrintableFormatter>(); }

 private:
  spdlog::pattern_formatter pattern_{kPattern};
};

class OutputThreadSink final : public spdlog::sinks::base_sink<Mutex> {
 public:
  explicit OutputThreadSink(const std::function<void(int)>& on_lost)
      : output_(STDOUT_FILENO, OutputThread::kMostWaiting, on_lost) {
    set_formatter(log_formatter());
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    output_.write(std::string(line.data(), line.size()));
  }
  void flush_() override {}

  OutputThread output_;
};

}  // namespace

std::unique_ptr<spdlog::formatter> log_formatter() { return std::make_unique<PrintableFormatter>(); }

void set_up_log() { spdlog::set_formatter(log_formatter()); }

void set_log_level(std::string_view name) {
  for (const auto level : {spdlog::level::err, spdlog::level::warn, spdlog::level::info, spdlog::level::debug}) {
    const spdlog::string_view_t known = spdlog::level::to_string_view(level);
    if (name == std::string_view(known.data(), known.size())) spdlog::set_level(level);
  }
}

void log_without_waiting(const std::function<void(int)>& on_lost) {
  const auto before = spdlog::default_logger();
  std::vector<spdlog::sink_ptr> sinks;
  for (const spdlog::sink_ptr& sink : before->sinks()) {
    const bool waits = dynamic_cast<spdlog::sinks::stdout_color_sink_mt*>(sink.get()) != nullptr;
    sinks.push_back(waits ? std::make_shared<OutputThreadSink>(on_lost) : sink);
  }
  auto logger = std::make_shared<spdlog::logger>(before->name(), sinks.begin(), sinks.end());
  logger->set_level(before->level());
  spdlog::set_default_logger(std::move(logger));
}

void end_log() { spdlog::default_logger()->sinks().clear(); }

void log_at_any_level(std::string_view message) {
  const spdlog::details::log_msg line(spdlog::source_loc{}, "", spdlog::level::info,
                                      spdlog::string_view_t(message.data(), message.size()));
  for (const spdlog::sink_ptr& sink : spdlog::default_logger()->sinks()) sink->log(line);
}

}  // namespace atl
