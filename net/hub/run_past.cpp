#include "net/hub/run_past.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "net/hub/shown_points.h"

namespace atl {
namespace {

bool is_figure(double loss) { return std::isfinite(loss) && loss >= 0; }

double mean_loss(const HubState::Past& a, const HubState::Past& b) {
  if (a.mean_loss_nats == 0 || b.mean_loss_nats == 0) return std::max(a.mean_loss_nats, b.mean_loss_nats);
  const double weight_a = std::max(1.0, static_cast<double>(a.tokens));
  const double weight_b = std::max(1.0, static_cast<double>(b.tokens));
  return (a.mean_loss_nats * weight_a + b.mean_loss_nats * weight_b) / (weight_a + weight_b);
}

}  // namespace

void RunPast::add(HubState::Past round) {
  if (!is_figure(round.mean_loss_nats)) round.mean_loss_nats = 0;
  append(round);
  if (pieces_.size() <= HubState::kMaxPast) return;
  width_ *= 2;
  for (const HubState::Past& piece : std::exchange(pieces_, {})) append(piece);
}

void RunPast::append(const HubState::Past& piece) {
  if (pieces_.empty() || pieces_.back().round / width_ != piece.round / width_) return pieces_.push_back(piece);
  HubState::Past& last = pieces_.back();
  last.mean_loss_nats = mean_loss(last, piece);
  last.rounds += piece.rounds;
  last.tokens += piece.tokens;
  last.seconds += piece.seconds;
}

void RunPast::add(const HubState::Validation& validation) {
  if (is_figure(validation.loss_nats)) losses_[validation.outer_step] = validation.loss_nats;
}

std::vector<HubState::Validation> RunPast::validations() const {
  std::vector<HubState::Validation> shown;
  std::size_t number = 0;
  for (const auto& [outer_step, loss] : losses_) {
    if (is_shown(number++, losses_.size(), HubState::kMaxPoints)) shown.push_back({outer_step, loss});
  }
  return shown;
}

}  // namespace atl
