#include "net/base/log.h"

#include <spdlog/async.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/sink.h>
#include <spdlog/spdlog.h>

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

}  // namespace

std::unique_ptr<spdlog::formatter> log_formatter() { return std::make_unique<PrintableFormatter>(); }

void set_up_log() { spdlog::set_formatter(log_formatter()); }

void set_log_level(std::string_view name) {
  for (const auto level : {spdlog::level::err, spdlog::level::warn, spdlog::level::info, spdlog::level::debug}) {
    const spdlog::string_view_t known = spdlog::level::to_string_view(level);
    if (name == std::string_view(known.data(), known.size())) spdlog::set_level(level);
  }
}

void log_without_waiting() {
  constexpr std::size_t kWaiting = 4096;
  spdlog::init_thread_pool(kWaiting, 1);
  const auto before = spdlog::default_logger();
  auto logger =
      std::make_shared<spdlog::async_logger>(before->name(), before->sinks().begin(), before->sinks().end(),
                                             spdlog::thread_pool(), spdlog::async_overflow_policy::overrun_oldest);
  logger->set_level(before->level());
  spdlog::set_default_logger(std::move(logger));
}

void log_at_any_level(std::string_view message) {
  const spdlog::details::log_msg line(spdlog::source_loc{}, "", spdlog::level::info,
                                      spdlog::string_view_t(message.data(), message.size()));
  for (const spdlog::sink_ptr& sink : spdlog::default_logger()->sinks()) sink->log(line);
}

}  // namespace atl
