#include "app/cli/demo/demo_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/cli/text.h"
#include "net/base/round_words.h"

namespace atl {
namespace {

constexpr std::size_t kPlotLabelColumns = 8;
constexpr std::size_t kShownEvents = 3;

std::string progress_bar(double fraction, int columns, bool unicode) {
  const int filled = static_cast<int>(std::lround(std::clamp(fraction, 0.0, 1.0) * columns));
  std::string bar;
  for (int i = 0; i < columns; ++i) bar += i < filled ? (unicode ? "█" : "#") : (unicode ? "░" : ".");
  return bar;
}

// How far the run is, by whichever limit is nearer.
double fraction_done(const DemoHistory& history, const DemoRunFacts& facts, double seconds) {
  double fraction = 0;
  if (facts.limit_seconds > 0) fraction = seconds / facts.limit_seconds;
  if (facts.limit_rounds > 0) fraction = std::max(fraction, double(history.state().outer_step) / facts.limit_rounds);
  return fraction;
}

std::string limits(const DemoRunFacts& facts, double seconds) {
  std::string text = format_duration(std::floor(seconds));
  if (facts.limit_seconds > 0) text += " of " + format_duration(facts.limit_seconds);
  if (facts.limit_rounds > 0) text += ", " + format_number_of(facts.limit_rounds, "round");
  return text;
}

Style style_of(const HubState::Island& island) {
  if (island.is_gone() || island.phase == IslandPhase::kError) return Style::kBad;
  const bool trains = island.state == HubIslandState::kTraining &&
                      island.phase.value_or(IslandPhase::kTraining) == IslandPhase::kTraining;
  return trains ? Style::kGood : Style::kWarning;
}

constexpr std::size_t kNameColumns = 13, kStateColumns = 11;

// Cells from the left as long as the screen has room for them.
class Row {
 public:
  Row(std::size_t columns, std::string_view first)
      : columns_(columns), text_(fit(first, std::min(columns, kNameColumns))) {}
  void add(const std::string& cell, std::size_t width, bool left = false, Style style = Style::kPlain,
           const Console* console = nullptr) {
    if (display_width(text_) + width > columns_) return;
    const std::string padded = left ? fit(cell, width) : fit_right(cell, width);
    text_ += console != nullptr ? console->styled(padded, style) : padded;
  }
  const std::string& text() const { return text_; }

 private:
  std::size_t columns_;
  std::string text_;
};

std::string island_row(const HubState::Island& island, const DemoRunFacts& facts, const Console& console) {
  const bool gone = island.is_gone();
  const double seconds = island.inner_seconds + island.sync_seconds;
  Row row(static_cast<std::size_t>(console.columns), " " + island.name);
  row.add(std::string(island.word()), kStateColumns, true, style_of(island), &console);
  row.add(gone ? "" : fmt::format("{}/{}", island.inner_step, facts.inner_steps), 8);
  row.add(format_loss(island.loss_nats), 9);
  row.add(gone ? "" : format_count(static_cast<std::uint64_t>(island.tokens_per_second)), 10);
  row.add(seconds > 0 ? format_percent(island.inner_seconds / seconds) : "-", 9);
  row.add(format_bytes(static_cast<double>(island.bytes_sent)), 10);
  return row.text();
}

std::string island_header(const Console& console) {
  Row row(static_cast<std::size_t>(console.columns), " island");
  row.add("state", kStateColumns, true);
  for (const auto& [text, width] :
       {std::pair{"step", 8}, {"loss", 9}, {"tokens/s", 10}, {"in steps", 9}, {"sent", 10}}) {
    row.add(text, static_cast<std::size_t>(width));
  }
  return console.styled(row.text(), Style::kDim);
}

std::string summary_line(const DemoHistory& history) {
  double inner = 0, sync = 0, rate = 0;
  for (const HubState::Island& island : history.islands()) {
    if (!island.is_gone()) rate += island.tokens_per_second;
    inner += island.inner_seconds;
    sync += island.sync_seconds;
  }
  return fmt::format(" {}   inner steps {}   waiting and ring {}   sent {}", format_rate(rate), format_duration(inner),
                     format_duration(sync), format_bytes(static_cast<double>(history.bytes_sent())));
}

}  // namespace

std::vector<std::string> loss_plot(const std::vector<HubState::Validation>& points, int columns, int height,
                                   bool unicode) {
  const int width = columns - static_cast<int>(kPlotLabelColumns) - 2;
  if (points.size() < 2 || width < 10 || height < 2) return {};
  double low = points.front().loss_nats, high = low;
  for (const auto& point : points) {
    low = std::min(low, point.loss_nats);
    high = std::max(high, point.loss_nats);
  }
  if (high - low < 1e-6) high = low + 1e-6;
  const double steps = std::max(1u, points.back().outer_step - points.front().outer_step);
  std::vector<std::vector<const char*>> cells(static_cast<std::size_t>(height),
                                              std::vector<const char*>(static_cast<std::size_t>(width), " "));
  for (int x = 0; x < width; ++x) {
    // Linear between the points, so that a few of them make a line.
    const double step = points.front().outer_step + steps * x / (width - 1);
    const auto right =
        std::find_if(points.begin() + 1, points.end() - 1, [&](const auto& p) { return p.outer_step >= step; });
    const auto left = right - 1;
    const double span = std::max(1u, right->outer_step - left->outer_step);
    const double loss = left->loss_nats + (right->loss_nats - left->loss_nats) * (step - left->outer_step) / span;
    const auto y = static_cast<std::size_t>(
        std::clamp<long>(std::lround((high - loss) / (high - low) * (height - 1)), 0, height - 1));
    cells[y][static_cast<std::size_t>(x)] = unicode ? "•" : "*";
  }
  std::vector<std::string> lines;
  for (int y = 0; y < height; ++y) {
    const std::string label = y == 0 ? format_loss(high) : y == height - 1 ? format_loss(low) : "";
    std::string line = fit_right(label, kPlotLabelColumns) + (unicode ? " ┤" : " |");
    for (const char* cell : cells[static_cast<std::size_t>(y)]) line += cell;
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> demo_screen(const DemoHistory& history, const DemoRunFacts& facts, double now_seconds,
                                     int rows, const Console& console) {
  const HubState& state = history.state();
  const auto columns = static_cast<std::size_t>(console.columns);
  const double seconds = history.training_seconds(now_seconds);
  std::vector<std::string> lines;
  lines.push_back(console.styled(
      fit(fmt::format("Atoll demo: {}, one model of {:.2f} M parameters, {} of text",
                      format_number_of(facts.islands, "island"), static_cast<double>(facts.parameters) / 1e6,
                      format_bytes(static_cast<double>(facts.text_bytes))),
          columns),
      Style::kBold));
  const int bar_columns = std::clamp(console.columns - 50, 0, 30);
  lines.push_back(fit(fmt::format(" round {}  {}  {}  {}", round_number(state.outer_step), fit(word_of(state.phase), 8),
                                  progress_bar(fraction_done(history, facts, seconds), bar_columns, console.unicode),
                                  limits(facts, seconds)),
                      columns));
  // A short screen keeps the lines about all islands, and shows as many islands as fit.
  const int room = rows - static_cast<int>(lines.size()) - 2 - (history.validations().empty() ? 0 : 1);
  const auto shown = static_cast<std::size_t>(std::clamp<long>(room, 0, static_cast<long>(history.islands().size())));
  if (shown > 0) lines.push_back(island_header(console));
  for (std::size_t i = 0; i < shown; ++i) lines.push_back(island_row(history.islands()[i], facts, console));
  lines.push_back(fit(summary_line(history), columns));
  if (!history.validations().empty()) {
    lines.push_back(
        fit(fmt::format(" validation loss {} nats a byte after {}", format_loss(history.validations().back().loss_nats),
                        format_number_of(history.validations().back().outer_step, "round")),
            columns));
  }
  const auto& events = history.events();
  for (std::size_t i = events.size() - std::min(events.size(), kShownEvents); i < events.size(); ++i) {
    lines.push_back(console.styled(fit(" " + events[i], columns), Style::kWarning));
  }
  if (!history.validations().empty()) {
    const int plot_rows = std::min(8, rows - static_cast<int>(lines.size()) - 1);
    for (std::string& line :
         loss_plot(history.validations(), std::min(console.columns, 80), plot_rows, console.unicode)) {
      lines.push_back(std::move(line));
    }
  }
  if (lines.size() > static_cast<std::size_t>(rows)) lines.resize(static_cast<std::size_t>(rows));
  return lines;
}

std::string demo_round_line(const DemoHistory& history, const HubState::Round& round) {
  std::string line = fmt::format(
      "round {:>3}  {}  loss {}  {}  {}", round_number(round.round), format_number_of(round.members, "island"),
      format_loss(round.mean_loss_nats), format_duration(round.seconds),
      format_rate(round.seconds > 0 ? static_cast<double>(round.tokens) / round.seconds : 0));
  if (round.attempts > 1) line += fmt::format("  {} attempts", round.attempts);
  // Measured while this round was under way, so of the outer state with which it began.
  const auto measured = std::ranges::find(history.validations(), round.round, &HubState::Validation::outer_step);
  if (measured != history.validations().end()) {
    line += fmt::format("  validation loss before it {}", format_loss(measured->loss_nats));
  }
  return line;
}

}  // namespace atl
