#include "net/mesh/work_findings.h"

#include <algorithm>
#include <cmath>

#include "net/mesh/attempt.h"

namespace atl {
namespace {

// What encoding may lose, of the average's length: int8-block loses 0.012 with four members and 0.018 with fourteen, of
// normal values; twice that where a block's largest value is far above the others.
constexpr double kTolerance = 0.1, kToleranceOfMany = 0.02;
// What those who do not say it gave may be: so many times what the others gave, and no more against them than this.
constexpr double kMostOfSilent = 3, kLeastOfSilent = -0.1;

struct Given {
  IslandId island;
  double share = 0;
  WorkSketch sketch;
  double norm = 0;
};

double dot(const WorkSketch& a, const WorkSketch& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double norm_of(const WorkSketch& sketch) { return std::sqrt(dot(sketch, sketch)); }

// The upper one of two in the middle; of at least one value.
double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Between `one` and what each of the others gave, the one in the middle: as long as most of the others are honest, it
// is what an honest one's would be.
double agreement_of(const WorkSketch& one, const std::vector<Given>& given, const Given* self) {
  const double norm = norm_of(one);
  std::vector<double> cosines;
  for (const Given& other : given) {
    if (&other == self) continue;
    const double both = norm * other.norm;
    cosines.push_back(both > 0 ? dot(one, other.sketch) / both : 0);
  }
  return median(std::move(cosines));
}

// With error feedback what encoding a sum loses is said by its chunk's owner; one without weight cannot pay it back.
double owed_by_nobody(const std::vector<AttemptMember>& members, WireFormat wire) {
  if (!feeds_errors_back(wire)) return 0;
  const auto all = static_cast<double>(members.size());
  const double weightless = all - static_cast<double>(std::ranges::count_if(members, trained));
  return 2 * traits_of(wire).error * std::sqrt(weightless / all);
}

}  // namespace

void WorkWords::add(const IslandId& island, const IslandHave& said) {
  if (!said.gave_sketch.empty()) gave_[island] = said.gave_sketch;
  if (!said.average_sketch.empty()) averages_[island] = said.average_sketch;
}

std::optional<WorkSketch> WorkWords::gave(const IslandId& island) const {
  const auto said = gave_.find(island);
  return said == gave_.end() ? std::nullopt : decode_sketch(said->second);
}

std::optional<WorkSketch> WorkWords::average() const {
  std::map<std::string_view, std::size_t> said;
  for (const auto& [island, sketch] : averages_) {
    if (++said[sketch] >= 2 && 2 * said[sketch] > averages_.size()) return decode_sketch(sketch);
  }
  return std::nullopt;
}

WorkFindings find_in_work(const std::vector<AttemptMember>& members, const WorkWords& words, WireFormat wire) {
  WorkFindings found;
  double tokens = 0;
  for (const AttemptMember& member : members) tokens += static_cast<double>(member.tokens);
  std::vector<Given> given;
  double silent_share = 0;
  for (const AttemptMember& member : members) {
    if (!trained(member)) continue;
    const double share = static_cast<double>(member.tokens) / tokens;
    if (auto sketch = words.gave(member.id)) {
      const double norm = norm_of(*sketch);
      given.push_back({member.id, share, std::move(*sketch), norm});
    } else {
      found.silent.insert(member.id);
      silent_share += share;
    }
  }
  std::optional<WorkSketch> average = words.average();
  if (!average || given.empty() || given.size() < found.silent.size()) return found;
  found.is_judged = given.size() + found.silent.size() > 1;
  found.said = given.size();
  const double length = norm_of(*average);
  WorkSketch& rest = *average;  // what is left of it without what is said
  std::vector<double> norms, parts;
  for (const Given& one : given) {
    for (std::size_t i = 0; i < rest.size(); ++i) rest[i] -= one.share * one.sketch[i];
    norms.push_back(one.norm);
    parts.push_back(one.share * one.norm);
  }
  const auto count = static_cast<double>(given.size());
  // Where work cancels out, what encoding loses is of the parts' length; a part that is said to be large is no excuse.
  const double scale = std::max(length, std::sqrt(count) * median(parts));
  const double left = norm_of(rest);
  const bool is_missing =
      found.silent.empty()
          ? left > (std::max(kTolerance, kToleranceOfMany * std::sqrt(count)) + owed_by_nobody(members, wire)) * scale
          : left > kMostOfSilent * silent_share * median(norms) || agreement_of(rest, given, nullptr) < kLeastOfSilent;
  if (is_missing && scale > 0) found.missing = left / scale;
  if (given.size() < 3) return found;
  for (const Given& one : given) found.agreement[one.island] = agreement_of(one.sketch, given, &one);
  return found;
}

}  // namespace atl
