#include "heed/models/rope.h"

#include <cmath>
#include <numbers>

namespace heed {
namespace {

constexpr int64_t kWidestHead = 65536, kMostPositions = int64_t{1} << 24;
constexpr double kLeastTheta = 1, kMostTheta = 1e12;      // of rope_theta
constexpr double kLeastFactor = 1e-3, kMostFactor = 1e6;  // of rope_scaling

// The inputs of a scaling. Arithmetic is f32 in the order of `transformers`, so that angles of long texts are the same.
struct Rope {
  const Config &config, &rope;
  int64_t dim;  // rotated features
  float theta;
  double positions, original;  // max_position_embeddings; of the texts before scaling

  float number(const char* key, float fallback) const { return rope.number(key, fallback, kLeastFactor, kMostFactor); }
  float required(const char* key) const {
    if (!rope.has(key)) rope.refuse(key, "a number");
    return number(key, 1);
  }
  float power(int64_t i) const { return std::pow(theta, 2 * static_cast<float>(i) / static_cast<float>(dim)); }
};

using Frequencies = std::vector<double>;

template <class Frequency>
Frequencies each_pair(const Rope& at, const Frequency& frequency) {
  Frequencies out;
  for (int64_t i = 0; i < at.dim / 2; ++i) out.push_back(static_cast<float>(frequency(i)));
  return out;
}

// Llama 3.1 (Grattafiori et al. 2024): low frequencies are divided by a factor, high ones are unchanged, those between interpolated.
Frequencies llama3(const Rope& at) {
  const double factor = at.required("factor"), low = at.required("low_freq_factor"), high = at.required("high_freq_factor");
  if (!(high > low)) at.rope.refuse("high_freq_factor", "more than low_freq_factor");
  return each_pair(at, [&](int64_t i) {
    const double frequency = 1 / at.power(i), periods = at.original * frequency / (2 * std::numbers::pi);
    const double share = std::clamp((periods - low) / (high - low), 0.0, 1.0);
    return (1 - share) * frequency / factor + share * frequency;
  });
}

// YaRN (Peng et al. 2023): feature pairs with many rotations within the original length keep their frequency, those with few are divided.
Frequencies yarn(const Rope& at, float factor) {
  const double fast = at.number("beta_fast", 32), slow = at.number("beta_slow", 1);
  const auto pair_with = [&](double turns) {
    return static_cast<double>(at.dim) * std::log(at.original / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(static_cast<double>(at.theta)));
  };
  const bool whole = at.rope.flag("truncate", true);
  const double low = std::max(whole ? std::floor(pair_with(fast)) : pair_with(fast), 0.0);
  double high = std::min(whole ? std::ceil(pair_with(slow)) : pair_with(slow), static_cast<double>(at.dim - 1));
  if (low == high) high += 0.001;
  return each_pair(at, [&](int64_t i) {
    const auto kept = 1 - static_cast<float>(std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0));
    return 1 / (factor * at.power(i)) * (1 - kept) + 1 / at.power(i) * kept;
  });
}

float yarn_scale(const Rope& at, float factor) {
  const auto scale = [&](double times) { return factor <= 1 ? 1.0 : 0.1 * times * std::log(static_cast<double>(factor)) + 1; };
  if (at.rope.has("attention_factor")) return at.number("attention_factor", 1);
  const double own = at.rope.number("mscale", 0), all = at.rope.number("mscale_all_dim", 0);
  return static_cast<float>(own != 0 && all != 0 ? scale(own) / scale(all) : scale(1));
}

// Dynamic NTK scaling: the base grows with the length of the text.
Frequencies dynamic(int64_t dim, float theta, float factor, int64_t trained, int64_t length) {
  const auto d = static_cast<float>(dim), longer = factor * static_cast<float>(length) / static_cast<float>(trained);
  const float grown = theta * std::pow(longer - (factor - 1), d / (d - 2));
  Frequencies out;
  for (int64_t i = 0; i < dim / 2; ++i) out.push_back(1 / std::pow(grown, 2 * static_cast<float>(i) / d));
  return out;
}

// LongRoPE (Ding et al. 2024): every pair has its own factor, one for short and one for long texts.
Frequencies longrope(const Rope& at, const char* key) {
  if (!at.rope.has(key)) at.rope.refuse(key, "a list of numbers");
  const JsonReader list = at.rope.at(key);
  if (!list.json().is_array() || std::ssize(list.json()) != at.dim / 2)
    at.rope.refuse(key, std::to_string(at.dim / 2) + " numbers, one for every pair of features");
  return each_pair(at, [&](int64_t i) {
    return 1 / (static_cast<float>(list[static_cast<size_t>(i)].number(kLeastFactor, kMostFactor)) * at.power(i));
  });
}

float longrope_scale(const Rope& at) {
  if (at.rope.has("attention_factor")) return at.number("attention_factor", 1);
  const double factor = at.number("factor", static_cast<float>(at.positions / at.original));
  return static_cast<float>(factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(at.original)));
}

int64_t original_positions(const Config& config, const Config& rope, int64_t positions) {
  constexpr const char* key = "original_max_position_embeddings";
  return config.size(key, rope.size(key, positions));
}

}  // namespace

Config rope_in(const Config& config) {
  const Config scaling = config.below("rope_scaling");
  return scaling.json().empty() ? config.below("rope_parameters") : scaling;
}

int64_t rope_positions(const Config& config, int64_t fallback) {
  const int64_t positions = config.size("max_position_embeddings", fallback);
  const Config rope = rope_in(config);
  const double extended = static_cast<double>(original_positions(config, rope, positions)) *
                          static_cast<double>(rope.number("factor", 1, kLeastFactor, kMostFactor));
  return std::max(positions, static_cast<int64_t>(std::min(extended, static_cast<double>(kMostPositions))));
}

Rotary rotary_from(const Config& config, const Config& rope, int64_t D, int64_t positions, float usual_theta) {
  if (D % 2 != 0 || D > kWidestHead) config.refuse("head_dim", "an even number of at most " + std::to_string(kWidestHead));
  const char* key = rope.has("rope_type") ? "rope_type" : "type";  // "type" in older files
  const std::string kind = rope.string(key, "default");
  // Without a scaling, transformers ignores it.
  const float part = kind == "default" ? 1 : rope.number("partial_rotary_factor", config.number("partial_rotary_factor", 1, 0, 1), 0, 1);
  const auto rotated = static_cast<int64_t>(static_cast<float>(D) * part);
  if (rotated < 2 || rotated % 2 != 0)
    (rope.has("partial_rotary_factor") ? rope : config).refuse("partial_rotary_factor", "an even number of rotated features, at least 2");
  const int64_t trained = config.size("max_position_embeddings", positions);
  const Rope at{
      .config = config,
      .rope = rope,
      .dim = rotated,
      .theta = rope.number("rope_theta", config.number("rope_theta", usual_theta, kLeastTheta, kMostTheta), kLeastTheta, kMostTheta),
      .positions = static_cast<double>(trained),
      .original = static_cast<double>(original_positions(config, rope, trained))};
  RotaryOptions options{.pairing = Pairing::halves, .rotated = rotated, .rounded = true};
  const auto scaled = [&](float factor) { return each_pair(at, [&](int64_t i) { return 1 / at.power(i) / factor; }); };
  if (kind == "default") {
    options.frequencies = scaled(1);
  } else if (kind == "linear") {
    options.frequencies = scaled(at.required("factor"));
  } else if (kind == "llama3") {
    options.frequencies = llama3(at);
  } else if (kind == "yarn") {
    const float factor = at.number("factor", static_cast<float>(at.positions / at.original));
    options.frequencies = yarn(at, factor);
    options.scale = yarn_scale(at, factor);
  } else if (kind == "dynamic") {
    const float factor = at.required("factor");
    options.frequencies = scaled(1);
    options.usual_length = trained;
    if (rotated <= 2) rope.refuse(key, "another one: dynamic needs more than 2 rotated features");
    options.long_frequencies = [=, theta = at.theta](int64_t length) { return dynamic(rotated, theta, factor, trained, length); };
  } else if (kind == "longrope") {
    options.frequencies = longrope(at, "short_factor");
    options.scale = longrope_scale(at);
    options.usual_length = static_cast<int64_t>(at.original);
    options.long_frequencies = [frequencies = longrope(at, "long_factor")](int64_t) { return frequencies; };
  } else {
    rope.refuse(key, "default, linear, dynamic, yarn, longrope or llama3");
  }
  return {positions, D, options};
}

}  // namespace heed
