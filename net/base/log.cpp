#include "net/base/log.h"

#include <spdlog/pattern_formatter.h>
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

}  // namespace atl
