#include "net/hub/island_sessions.h"

#include <spdlog/spdlog.h>

#include <boost/asio/steady_timer.hpp>

#include "net/mesh/spawn.h"

namespace atl {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::seconds kHelloTimeout{10};

}  // namespace

asio::awaitable<void> IslandSessions::serve(std::shared_ptr<IslandLink> link) {
  try {
    const bool entered = co_await greet(link);
    if (entered) co_await hear(link);
  } catch (...) {
    spdlog::error("mesh island={} failed=\"{}\"", link->island().id.value, what_of(std::current_exception()));
    link->cut();
  }
  ungreeted_.erase(link);
  std::erase_if(placing_, [&](const auto& placing) { return placing.second == link; });
  forget(link);
}

asio::awaitable<void> IslandSessions::close_after_silence(std::weak_ptr<IslandLink> link,
                                                          std::shared_ptr<bool> greeted) {
  asio::steady_timer timer(io_, kHelloTimeout);
  co_await timer.async_wait(kAwait);
  if (const auto alive = link.lock(); alive && !*greeted) alive->cut();
}

bool IslandSessions::is_still_member(IslandLink& link) {
  const Result<bool> member = gate_.is_member(link.island());
  if (!member.ok()) {
    link.cut();  // it comes again
  } else if (!*member) {
    link.dismiss(ErrorCode::kPermissionDenied, kRemoved);
  }
  return member.ok() && *member;
}

// True when it has said a hello with which it may enter; from then on it takes part.
asio::awaitable<bool> IslandSessions::greet(std::shared_ptr<IslandLink> link) {
  const IslandId id = link->island().id;
  const auto greeted = std::make_shared<bool>(false);
  ungreeted_.insert(link);
  spawn(io_, close_after_silence(link, greeted), [weak = std::weak_ptr(link)](const std::string&) {
    if (const auto alive = weak.lock()) alive->cut();
  });
  const Result<std::string> first = co_await link->read();
  if (!first.ok()) co_return false;
  *greeted = true;
  const bool known = is_still_member(*link);
  if (!known) co_return false;
  Result<IslandConnected> connected = gate_.read_hello(*link, *first);
  if (!connected.ok()) {
    link->dismiss(connected.error().code, connected.error().message);
    co_return false;
  }
  placing_[id] = link;
  co_await gate_.find_place(link, *connected);
  const auto newest = placing_.find(id);
  if (newest == placing_.end() || newest->second != link) {  // it came again meanwhile
    link->cut();
    co_return false;
  }
  placing_.erase(newest);
  ungreeted_.erase(link);
  const bool member = is_still_member(*link);  // it may have been removed meanwhile
  if (!member) co_return false;
  if (const auto old = links_.find(id); old != links_.end()) old->second->cut();
  links_[id] = link;
  gate_.step(*connected);
  co_return true;
}

asio::awaitable<void> IslandSessions::hear(std::shared_ptr<IslandLink> link) {
  const IslandId id = link->island().id;
  for (;;) {
    const Result<std::string> text = co_await link->read();
    if (!text.ok()) co_return;
    const auto current = links_.find(id);
    if (current == links_.end() || current->second != link) co_return;  // sent away, or replaced by a newer connection
    Result<IslandMessage> message = decode_island_message(*text);
    if (!message.ok()) {
      spdlog::warn("mesh island={} error=\"{}\"", id.value, message.error().message);
      link->dismiss(message.error().code, message.error().message);
      co_return;
    }
    gate_.step(IslandSaid{id, std::move(*message)});
  }
}

void IslandSessions::forget(const std::shared_ptr<IslandLink>& link) {
  const IslandId& id = link->island().id;
  const auto current = links_.find(id);
  if (current == links_.end() || current->second != link) return;
  links_.erase(current);
  gate_.step(IslandDisconnected{id});
}

// ---- what the hub does to them

void IslandSessions::send(const IslandId& island, std::string text) {
  const auto link = links_.find(island);
  if (link != links_.end()) link->second->send(std::move(text));
}

void IslandSessions::close(const IslandId& island) {
  const auto link = links_.find(island);
  if (link == links_.end()) return;
  link->second->close_when_sent();
  links_.erase(link);
}

void IslandSessions::send_away(const IslandId& island) {
  for (const auto& link : ungreeted_) {
    if (link->island().id == island) link->dismiss(ErrorCode::kPermissionDenied, kRemoved);
  }
  const auto link = links_.find(island);
  if (link == links_.end()) return;
  link->second->dismiss(ErrorCode::kPermissionDenied, kRemoved);
  links_.erase(link);
}

void IslandSessions::close_all() {
  for (const auto& [id, link] : links_) link->close_when_sent();
}

void IslandSessions::cut_all() {
  for (const auto& [id, link] : links_) link->cut();
}

}  // namespace atl
