// How several models of one shape become one, parameter by parameter, as mergekit 0.1.5 defines it. With base b, models
// m_i, weights w_i and d_i = m_i - b, all in fp32:
//
//   linear           sum w_i m_i / sum w_i                                           (model soups, arXiv:2203.05482)
//   slerp            between two models, on the sphere:  sin((1 - t) a) / sin(a) m_1 + sin(t a) / sin(a) m_2,
//                    a the angle between them; (1 - t) m_1 + t m_2 where |cos(a)| > 0.9995
//   task-arithmetic  b + lambda sum w_i d_i                                                         (arXiv:2212.04089)
//   ties             of each d_i the largest in magnitude are kept, a part `density` of them; of what is left at a
//                    place only what has the sign of its weighted sum counts:                       (arXiv:2306.01708)
//                    b + lambda sum w_i d_i / sum w_i, both sums over those
//   dare-linear      each value of d_i is kept with probability `density`, and those are scaled so that their absolute
//                    sum is again that of all; then task-arithmetic                                 (arXiv:2311.03099)
//   dare-ties        the same; then signs as with ties, not divided
//
// `normalize`: whether sums are divided by those of the weights. DARE's paper scales by 1 / density, which is the
// expectation of the scale here.
//
// Nothing holds a tensor: values come in pieces, several times where a method has to know all of them first. Pieces are
// worked on by all processors; what comes out depends neither on their number nor on their size, but for the rounding
// of sums in fp64.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "net/base/result.h"

namespace atl {

enum class MergeMethod { kLinear, kSlerp, kTaskArithmetic, kTies, kDareLinear, kDareTies };
inline constexpr std::string_view kMergeMethodNames[] = {"linear", "slerp",       "task-arithmetic",
                                                         "ties",   "dare-linear", "dare-ties"};
std::string_view name_of(MergeMethod method);
std::optional<MergeMethod> parse_merge_method(std::string_view name);
bool needs_base(MergeMethod method);   // all but linear and slerp
bool has_density(MergeMethod method);  // ties and DARE
bool draws(MergeMethod method);        // DARE

struct MergeRecipe {
  MergeMethod method = MergeMethod::kLinear;
  std::vector<double> weights = {};    // of each model
  std::vector<double> densities = {};  // of each model, (0, 1]; where there is a density
  double t = 0.5;                      // slerp: 0 the first model, 1 the second
  double lambda = 1.0;                 // what is added to the base is multiplied by it
  std::optional<bool> normalize = {};  // default: linear and ties do
  std::uint64_t seed = 1;              // DARE

  bool normalizes() const;
  Status validate() const;
};

// Of one parameter: input i of the models, or after them the base, from element `first` on. Several threads at once.
using MergeInput = std::function<void(std::size_t input, std::int64_t first, std::span<float> out)>;

// One parameter's merge. `recipe` and `input` outlive it.
class ParameterMerge {
 public:
  // `index`: the parameter's place in the canonical layout, of which DARE's choice depends. Reads all of it where the
  // method asks for it.
  ParameterMerge(const MergeRecipe& recipe, const MergeInput& input, std::int64_t numel, std::size_t index);

  // The merged values of a piece: from `first`, a multiple of kPieceNumel, on, kPieceNumel of them or as many as there
  // are. Several threads at once.
  void merge(std::int64_t first, std::span<float> out) const;

  static constexpr std::int64_t kPieceNumel = 1 << 18;

 private:
  // Which values of a difference stay.
  struct Kept {
    std::uint32_t least = 0;  // magnitude, as its bits: all above it stay
    // Of those that are as large so many of each piece: the first of the parameter; nothing: all.
    std::optional<std::vector<std::uint64_t>> equals;
    double scale = 1.0;
  };

  std::size_t models() const { return recipe_.weights.size(); }
  std::size_t pieces() const;
  std::vector<float> values(std::size_t input, std::size_t piece) const;
  std::vector<float> difference(std::size_t model, std::size_t piece) const;
  template <class BinOf>
  std::vector<std::uint64_t> histogram(std::size_t model, const BinOf& bin_of) const;
  void find_angle();
  void find_largest(std::size_t model);
  void find_scale(std::size_t model);
  void sparsify(std::size_t model, std::int64_t first, std::span<float> difference) const;
  void merge_weighted(std::int64_t first, std::span<float> out) const;
  void merge_differences(std::int64_t first, std::span<float> out) const;

  const MergeRecipe& recipe_;
  const MergeInput& input_;
  const std::int64_t numel_;
  const std::size_t index_;
  std::vector<double> coefficients_;  // linear, slerp: of each model
  std::vector<Kept> kept_;
};

// Whether DARE keeps element i of a model's difference: the upper 53 bits of splitmix64's output function of
// key + (i + 1) * 0x9e3779b97f4a7c15, as a number of [0, 1), are below the density; the key is the same function of
// seed, model and parameter in turn. So a merge can be repeated anywhere.
std::uint64_t dare_key(std::uint64_t seed, std::size_t model, std::size_t parameter);
bool dare_keeps(std::uint64_t key, std::int64_t element, double density);

}  // namespace atl
