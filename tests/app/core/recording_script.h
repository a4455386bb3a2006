// A recording written by hand: lines as a recorder writes them, without one. Owned by a test.
#pragma once

#include <fmt/format.h>

#include <fstream>
#include <string>
#include <string_view>

#include <QString>
#include <nlohmann/json.hpp>

#include "net/control/json_rpc.h"
#include "tests/app/core/fake_agent.h"

namespace atl::test {

class RecordingScript {
 public:
  static constexpr double kBegan = 1'763'725'000;  // seconds since 1970

  explicit RecordingScript(const QString& path) : out_(path.toStdString()) {
    out_ << R"({"atoll_recording":1,"program":"a test","time":1763725000.0})"
         << "\n";
  }
  // Of printable ASCII, as all is that tests say: a week has a million of them.
  void line(double t, const char* key, std::string_view text) {
    buffer_ = fmt::format("{{\"{}\":\"", key);
    for (const char c : text) {
      if (c == '"' || c == '\\') buffer_ += '\\';
      buffer_ += c;
    }
    out_ << buffer_ << fmt::format("\",\"t\":{}}}\n", t);
  }
  void answer(double t, const char* method, const nlohmann::json& params, const nlohmann::json& result) {
    ++id_;
    for (auto [key, text] :
         {std::pair("out", encode_request(id_, method, params)), std::pair("in", encode_response(id_, result))}) {
      text.pop_back();  // the newline
      line(t, key, text);
    }
  }
  void event(double t, const std::string& name, const nlohmann::json& data) {
    line(t, "in",
         fmt::format(
             R"({{"jsonrpc":"2.0","method":"event","params":{{"event":"{}","seq":{},"time":{:.3f},"data":{}}}}})", name,
             ++seq_, kBegan + t, data.dump()));
  }
  void greet(double t, const nlohmann::json& state = training_state()) {
    answer(t, "hello", nlohmann::json::object(), {{"version", 1}, {"program", "atoll-agent"}});
    answer(t, "events.subscribe", {{"since", 0u}}, {{"first", 1u}, {"last", seq_}});
    answer(t, "state.get", nlohmann::json::object(), state);
  }
  void close() { out_.close(); }
  std::uint64_t events() const { return seq_; }

 private:
  std::ofstream out_;
  std::string buffer_;
  std::int64_t id_ = 0;
  std::uint64_t seq_ = 0;
};

}  // namespace atl::test
