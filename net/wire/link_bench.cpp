#include "net/wire/link_bench.h"

#include <fmt/format.h>

#include <algorithm>

namespace atl {
namespace {

constexpr std::size_t kNameBytes = 16;

Error wrong(std::string message) { return Error{ErrorCode::kProtocol, "bench link: " + std::move(message)}; }

}  // namespace

Bytes encode(const LinkRequest& request) {
  ByteWriter writer;
  writer.put(kLinkBenchMagic);
  writer.put(kLinkBenchVersion);
  writer.put(static_cast<std::uint8_t>(request.mode));
  writer.put(std::uint8_t{0});
  writer.put(request.milliseconds);
  return writer.take();
}

Result<LinkRequest> decode_link_request(ByteView bytes) {
  ByteReader reader(bytes);
  const auto magic = reader.get<std::uint32_t>();
  const auto version = reader.get<std::uint16_t>();
  const auto mode = reader.get<std::uint8_t>();
  const auto zero = reader.get<std::uint8_t>();
  const auto milliseconds = reader.get<std::uint32_t>();
  if (!reader.ok() || !reader.at_end() || magic != kLinkBenchMagic) return wrong("this is no request");
  if (version != kLinkBenchVersion) {
    return Error{ErrorCode::kVersionUnsupported,
                 fmt::format("bench link: the other end speaks version {}, this one {}; update the older", version,
                             kLinkBenchVersion)};
  }
  if (mode > static_cast<std::uint8_t>(LinkMode::kBye)) return wrong(fmt::format("unknown mode {}", mode));
  if (zero != 0) return wrong("a byte that must be zero is not");
  if (milliseconds > kMaxLinkMilliseconds) {
    return wrong(fmt::format("{} ms are more than {}", milliseconds, kMaxLinkMilliseconds));
  }
  return LinkRequest{static_cast<LinkMode>(mode), milliseconds};
}

Bytes encode(const LinkSenderReport& report) {
  ByteWriter writer;
  writer.put(report.rtt_us);
  writer.put(report.least_rtt_us);
  writer.put(report.retransmitted);
  writer.put(report.segments);
  std::string name = report.congestion_control;
  name.resize(kNameBytes, '\0');
  writer.put_bytes(as_bytes(name));
  return writer.take();
}

Result<LinkSenderReport> decode_link_sender_report(ByteView bytes) {
  ByteReader reader(bytes);
  LinkSenderReport report;
  report.rtt_us = reader.get<std::uint32_t>();
  report.least_rtt_us = reader.get<std::uint32_t>();
  report.retransmitted = reader.get<std::uint32_t>();
  report.segments = reader.get<std::uint32_t>();
  const std::string name = to_string(reader.get_bytes(kNameBytes));
  if (!reader.ok() || !reader.at_end()) return wrong("the sender's report has another length");
  report.congestion_control = name.substr(0, name.find('\0'));
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-'; };
  if (!std::ranges::all_of(report.congestion_control, plain)) return wrong("the name of a congestion control is none");
  return report;
}

Bytes encode(const LinkReceiverReport& report) {
  ByteWriter writer;
  writer.put(report.bytes);
  writer.put(report.nanoseconds);
  writer.put(report.steady_bytes);
  writer.put(report.steady_nanoseconds);
  return writer.take();
}

Result<LinkReceiverReport> decode_link_receiver_report(ByteView bytes) {
  ByteReader reader(bytes);
  LinkReceiverReport report;
  report.bytes = reader.get<std::uint64_t>();
  report.nanoseconds = reader.get<std::uint64_t>();
  report.steady_bytes = reader.get<std::uint64_t>();
  report.steady_nanoseconds = reader.get<std::uint64_t>();
  if (!reader.ok() || !reader.at_end()) return wrong("the receiver's report has another length");
  return report;
}

}  // namespace atl
