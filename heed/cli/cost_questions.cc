#include "heed/cli/cost_questions.h"

#include <cstdio>
#include <functional>
#include <map>
#include <memory>

#include "heed/core/nearest.h"
#include "heed/lab/terminal.h"
#include "heed/train/settings.h"
#include "heed/train/settings_value.h"

namespace heed::cli {
namespace {

using Lines = std::vector<Answer::Line>;
using Numbers = std::map<std::string, double>;

struct Question {
  std::string name, summary, sentence, experiment;
  std::vector<std::pair<std::string, int64_t>> settings;  // with their default values
  std::function<Lines(const Numbers& settings)> lines;
};

const std::map<std::string, std::string>& meanings() {
  static const std::map<std::string, std::string> all = {
      {"width", "D, width of tokens"},
      {"heads", "H"},
      {"tokens", "N"},
      {"layers", "L, layers of the model"},
      {"side", "patches along a side of the image"},
      {"channels", "C, channels of a patch"},
      {"groups", "G, groups of channels that attend only within the group"},
  };
  return all;
}

Lines heads_lines(const Numbers& of) {
  const double D = of.at("width"), H = of.at("heads"), N = of.at("tokens"), work = 3 * N * D * D + 2 * N * N * D;
  return {{"parameters, 1 head of width D", "3 (D² + D)", 3 * (D * D + D)},
          {"parameters, H heads of width D/H", "H · 3 (D + 1) D/H", 3 * (D * D + D)},
          {"multiply-adds, 1 head of width D", "3 N D² + 2 N² D", work},
          {"multiply-adds, H heads of width D/H", "H (3 N D D/H + 2 N² D/H)", work},
          {"multiply-adds, H heads of width D", "H (3 N D² + 2 N² D)", H * work},
          {"exponentials, 1 head", "N²", N * N},
          {"exponentials, H heads", "H N²", H * N * N}};
}

Lines channel_lines(const Numbers& of) {
  const double N = of.at("side") * of.at("side"), C = of.at("channels"), G = of.at("groups");
  return {{"tokens", "side²", N},
          {"multiply-adds, between patches", "2 N² C", 2 * N * N * C},
          {"multiply-adds, between channels", "2 N C²", 2 * N * C * C},
          {"multiply-adds, between channels in G groups", "2 N C² / G", 2 * N * C * C / G},
          {"patches above which channels are cheaper", "C / G", C / G}};
}

Lines token_lines(const Numbers& of) {
  const double D = of.at("width"), N = of.at("tokens"), L = of.at("layers");
  return {{"projections of the new token", "3 D²", 3 * D * D},
          {"its scores", "(N + 1) D", (N + 1) * D},
          {"its weighted sum", "(N + 1) D", (N + 1) * D},
          {"multiply-adds, with a KV cache", "3 D² + 2 D (N + 1)", 3 * D * D + 2 * D * (N + 1)},
          {"multiply-adds, without a cache", "3 D² (N + 1) + D (N + 1)(N + 2)", 3 * D * D * (N + 1) + D * (N + 1) * (N + 2)},
          {"earlier outputs that change", "0", 0},
          {"bytes of cache per token, f32", "4 · 2 D L", 8 * D * L},
          {"bytes of cache for all tokens", "4 · 2 D L (N + 1)", 8 * D * L * (N + 1)}};
}

Lines count_lines(const Numbers& of) {
  const double D = of.at("width"), N = of.at("tokens");
  return {{"one head: weights", "3 D²", 3 * D * D},
          {"one head: biases", "3 D", 3 * D},
          {"its attention map, computed", "N²", N * N},
          {"fully connected: weights", "D² N²", D * D * N * N},
          {"fully connected: biases", "D N", D * N}};
}

Lines linear_attention_lines(const Numbers& of) {
  const double D = of.at("width"), N = of.at("tokens");
  return {{"multiply-adds, map first", "2 N² D", 2 * N * N * D},
          {"multiply-adds, sums first", "N (2 D² + D)", N * (2 * D * D + D)},
          {"tokens above which sums first are cheaper", "(2 D² + D) / 2 D", (2 * D * D + D) / (2 * D)}};
}

Lines position_lines(const Numbers& of) {
  const double D = of.at("width"), N = of.at("tokens");
  return {{"scores, absolute positions", "N D² + N² D", N * D * D + N * N * D},
          {"scores, Gaussian positions", "N² D_p, D_p = 3", 3 * N * N},
          {"times fewer", "D (D + N) / 3 N", D * (D + N) / (3 * N)}};
}

const std::vector<Question>& questions() {
  static const std::vector<Question> all = {
      {"heads",
       "what H heads of width D/H cost against one of width D",
       "The same parameters and multiply-adds; only the parallelism and the number of exponentials grow.",
       "L11",
       {{"width", 512}, {"heads", 8}, {"tokens", 197}},
       heads_lines},
      {"channels",
       "attention between patches, between channels, and in groups of channels (DaViT)",
       "Between patches the cost is quadratic in patches, between channels quadratic in channels; G groups divide the latter by G.",
       "L15",
       {{"side", 16}, {"channels", 512}, {"groups", 8}},
       channel_lines},
      {"new-token",
       "what one more token costs under a causal mask",
       "One projection, N + 1 scores and one weighted sum: earlier keys and values are cached, and earlier outputs do not change.",
       "L16",
       {{"width", 768}, {"tokens", 1024}, {"layers", 12}},
       token_lines},
      {"counts",
       "parameters of one head and of a fully connected layer",
       "The parameters of a head do not depend on the number of tokens.",
       "L10",
       {{"width", 64}, {"tokens", 16}},
       count_lines},
      {"kernel",
       "linear attention: feature maps instead of softmax, multiplied in two orders",
       "The same result, at quadratic or linear cost in the number of tokens.",
       "L18",
       {{"width", 64}, {"tokens", 4096}},
       linear_attention_lines},
      {"positions",
       "scores with absolute and with Gaussian positions",
       "A Gaussian head computes a score from three numbers per pair of positions.",
       "L12",
       {{"width", 400}, {"tokens", 256}},
       position_lines},
  };
  return all;
}

const Question& question_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Question& each : questions()) {
    if (each.name == name) return each;
    names.push_back(each.name);
  }
  fail<UsageError>("--question: found ", quoted(name), ", expected one of ", listed(names), did_you_mean(name, names));
}

std::string whole(double number) {  // with spaces between thousands
  char text[64];
  std::snprintf(text, sizeof text, number == static_cast<double>(static_cast<int64_t>(number)) ? "%.0f" : "%.4g", number);
  std::string out = text;
  const size_t end = out.find_first_not_of("0123456789");
  if (end != std::string::npos) return out;
  for (auto at = std::ssize(out) - 3; at > 0; at -= 3) out.insert(static_cast<size_t>(at), " ");
  return out;
}

}  // namespace

std::string list_questions() {
  std::string out;
  for (const Question& each : questions()) {
    out += "  " + each.name + "\n      " + each.summary + "\n     ";
    for (const auto& [key, value] : each.settings) out += " " + key + "=" + std::to_string(value);
    out += '\n';
  }
  return out;
}

Answer answer(const std::string& name, const std::vector<std::string>& assignments) {
  const Question& question = question_named(name);
  Settings settings("cost --question " + name);
  std::map<std::string, int64_t> values(question.settings.begin(), question.settings.end());
  for (auto& [key, value] : values) settings.add(key, value, meanings().at(key), {.least = 1, .most = 1e7});
  for (const std::string& assignment : assignments) settings.assign(assignment);
  const auto has = [&](const char* key) { return values.contains(key); };
  if (has("heads"))
    check<UsageError>(values["width"] % values["heads"] == 0, "cost: a width of ", values["width"], " in ", values["heads"],
                      " heads, expected a multiple");
  if (has("groups"))
    check<UsageError>(values["channels"] % values["groups"] == 0, "cost: ", values["channels"], " channels in ", values["groups"],
                      " groups, expected a multiple");
  const Numbers numbers(values.begin(), values.end());
  std::vector<std::pair<std::string, int64_t>> used = question.settings;
  for (auto& [key, value] : used) value = values.at(key);
  return {.question = question.name + ": " + question.summary,
          .sentence = question.sentence,
          .experiment = question.experiment,
          .lines = question.lines(numbers),
          .settings = std::move(used)};
}

void print_answer(std::ostream& out, const Answer& answer) {
  out << answer.question << "\n ";
  for (const auto& [key, value] : answer.settings) out << ' ' << key << " = " << value;
  out << "\n\n";
  size_t what = 0, formula = 0, number = 0;
  for (const Answer::Line& line : answer.lines) {
    what = std::max(what, lab::display_width(line.what));
    formula = std::max(formula, lab::display_width(line.formula));
    number = std::max(number, whole(line.number).size());
  }
  for (const Answer::Line& line : answer.lines)
    out << lab::padded(line.what, what) << "  " << lab::padded(line.formula, formula) << "  "
        << lab::padded(whole(line.number), number, true) << '\n';
  out << '\n' << answer.sentence << " heed lab " << answer.experiment << " measures it.\n";
}

Json answer_json(const Answer& answer) {
  Json lines = Json::array();
  for (const Answer::Line& line : answer.lines) lines.push_back({{"what", line.what}, {"formula", line.formula}, {"number", line.number}});
  return {{"question", answer.question},
          {"settings", Json(std::map<std::string, int64_t>(answer.settings.begin(), answer.settings.end()))},
          {"answer", answer.sentence},
          {"experiment", answer.experiment},
          {"numbers", lines}};
}

}  // namespace heed::cli
