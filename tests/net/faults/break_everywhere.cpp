#include "tests/net/faults/break_everywhere.h"

#include <fmt/format.h>

#include <QtTest>

namespace atl {
namespace {

constexpr std::uint64_t kFewestBytes = 500;  // of a TLS handshake with a certificate: less was no exchange
// The clean connection may have been a little longer: signatures differ in length, and who ends it says so or not.
constexpr int kMayBeMissed = 200;

FaultKind kind_at(const Breaking& breaking, std::uint64_t at) {
  if (breaking.stalls) return FaultKind::kStall;
  return at % 2 == 0 ? FaultKind::kCut : FaultKind::kReset;
}

const char* name_of(FaultWay way) { return way == FaultWay::kToListener ? "to the listener" : "to the dialler"; }

}  // namespace

void add_kinds_of_faults() {
  QTest::addColumn<bool>("stalls");
  QTest::newRow("cut or reset") << false;
  QTest::newRow("silent") << true;
}

std::chrono::milliseconds silence_until(bool stalls) {
  return stalls ? kSilence : std::chrono::milliseconds(kPatience);
}

std::string words(const Error& error) { return std::string(to_string(error.code)) + ": " + error.message; }

std::optional<std::string> break_everywhere(FaultProxy& proxy, const Breaking& breaking,
                                            const std::function<std::optional<std::string>()>& exchange) {
  if (const auto wrong = exchange()) return "without a fault: " + *wrong;
  const FaultProxy::Passed whole = proxy.passed();
  if (whole.to_listener < kFewestBytes / 2 || whole.to_dialler < kFewestBytes) return "nothing was exchanged";
  const int broken_before = proxy.broken();
  int cases = 0;
  for (const FaultWay way : {FaultWay::kToListener, FaultWay::kToDialler}) {
    const std::uint64_t end = way == FaultWay::kToListener ? whole.to_listener : whole.to_dialler;
    for (std::uint64_t at = 0; at <= end;) {
      proxy.break_next({kind_at(breaking, at), way, at});
      ++cases;
      const std::uint64_t next = at + (at < breaking.every_byte_until ? breaking.stride : breaking.then_every);
      // An exchange may end well before it came upon all of them: then the next one does.
      while (proxy.pending() >= kBrokenInARow || (next > end && proxy.pending() > 0)) {
        if (const auto wrong = exchange()) {
          return fmt::format("broken after up to {} of {} bytes {}: {}", at, end, name_of(way), *wrong);
        }
      }
      at = next;
    }
  }
  const int missed = cases - (proxy.broken() - broken_before);
  if (missed > kMayBeMissed || missed > cases / 4) return fmt::format("{} of {} faults did not strike", missed, cases);
  return std::nullopt;
}

}  // namespace atl
