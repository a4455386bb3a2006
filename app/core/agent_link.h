// The connection to one agent: says hello, subscribes to events, asks, and connects again when it is lost. Owned by a
// Node; GUI thread; nothing blocks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <QObject>
#include <QPointer>
#include <QTimer>
#include <nlohmann/json.hpp>

#include "app/core/line_stream.h"
#include "net/base/deadline.h"
#include "net/base/result.h"

namespace atl {

class Recorder;
struct RpcEvent;
struct RpcResponse;

enum class LinkState {
  kConnecting,  // the first attempt, or one after `reconnect`
  kConnected,   // it answered hello
  kNoAgent,     // nobody serves there; looks again
  kLost,        // it was connected, or cannot be reached; tries again
  kRefused,     // another version, or not permitted: trying again would not help
  kEnded,       // a recording is over
};

// An event as it came, of an agent or of a hub; net/control reads it.
struct LinkEvent {
  std::string name;
  std::uint64_t seq = 0;
  double time = 0;  // seconds since 1970
  nlohmann::json data;
  bool kept = false;  // from before this app looked: no news
};

struct LinkTiming {
  std::chrono::milliseconds first_retry{250};
  std::chrono::milliseconds longest_retry{5000};
  std::chrono::milliseconds answer_time{10'000};
  std::chrono::milliseconds hello_time{10'000};  // from the stream's opening; ssh needs some of it to log in
};

class AgentLink : public QObject {
  Q_OBJECT

 public:
  using Answer = std::function<void(const Result<nlohmann::json>& result)>;

  explicit AgentLink(OpenStream open, LinkTiming timing = {});
  ~AgentLink() override;

  void start();
  void reconnect();  // now, and from the shortest wait on
  // The agent behind an unbroken connection may be another one, as behind `atoll control --stdio`: subscribes again.
  void resubscribe();

  LinkState state() const { return state_; }
  const std::string& problem() const { return problem_; }  // what happened and what to do; empty when connected
  std::string program() const { return program_; }         // of its hello
  Seconds now() const;                                     // LineStream::now, which goes on between streams

  // `answer` is called once, on the GUI thread and never from within this call, unless `context` (not null) is gone by
  // then; it may be empty. Without a connection: kNotRunning or kPeerLost at once. kTimeout after the answer time.
  void call(std::string_view method, const nlohmann::json& params, QObject* context, Answer answer);

  // Every line in both directions goes there too, from now on; null ends it. Not owned. When connected, everything is
  // asked for again, so that the recording begins with all that is known.
  void recordTo(Recorder* recorder);

 Q_SIGNALS:
  void stateChanged();
  void eventReceived(const atl::LinkEvent& event);
  // Events were missed, or the agent is another one: what was under way may have ended unheard. Before mustReload.
  void eventsLost();
  // It cannot be written any longer (a full disk): what happened. It is let go.
  void recordingFailed(const QString& why);
  // Ask for everything again: after the first hello, and when events were lost.
  void mustReload();

 private:
  struct Call {
    std::string method = {};
    QPointer<QObject> context = {};
    Answer answer = {};
    Clock::time_point sent = {}, expires = {};
    bool own = false;  // of this link, which ends by itself
  };
  using Calls = std::map<std::int64_t, Call>;

  void connectNow();
  void dropStream();
  void tryAgain();
  void ask(std::string_view method, const nlohmann::json& params, std::chrono::milliseconds time, Call call);
  void greeted(const Result<nlohmann::json>& hello);
  void subscribe(std::uint64_t since);
  void subscribed(const Result<nlohmann::json>& answer, std::uint64_t since);
  void take(const QByteArray& line);
  void takeResponse(const RpcResponse& response);
  void takeEvent(RpcEvent event);
  void tellToReload(bool lost);
  void sweep();  // calls whose time is over
  void agentGone();
  void ended(const Error& why);
  void failCalls(const Calls& calls, const Error& error);
  void retryLater(std::chrono::milliseconds longest);
  void setState(LinkState state, const std::string& problem);
  template <class Write>
  void record(Write write);

  const OpenStream open_;
  const LinkTiming timing_;
  std::unique_ptr<LineStream> stream_;
  LinkState state_ = LinkState::kConnecting;
  std::string problem_, program_;
  Calls calls_;
  std::int64_t next_id_ = 1;
  bool subscribing_ = false;
  bool verify_next_ = false;  // the next event should be the last that we know
  bool reload_due_ = false;   // of the subscription under way
  bool was_connected_ = false;
  std::uint64_t last_seq_ = 0, kept_until_ = 0;
  double last_time_ = 0;
  Clock::time_point connected_at_{}, received_at_{};
  Seconds clock_offset_{0};  // of the last stream's clock to ours
  std::chrono::milliseconds wait_;
  Recorder* recorder_ = nullptr;
  QTimer retry_, sweep_;
};

}  // namespace atl
