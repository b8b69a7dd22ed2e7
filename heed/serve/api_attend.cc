// /api/attend: attention on a few tokens with any terms: weights, output, and gradients of everything.
#include <chrono>
#include <cmath>

#include "heed/attention/attention.h"
#include "heed/attention/probabilities.h"
#include "heed/ops/ops.h"
#include "heed/serve/app.h"
#include "heed/serve/tensor_json.h"
#include "heed/serve/term_values.h"

namespace heed::serve {
namespace {

struct AttendProblem {
  TermPlace place = {.tokens = 16, .layer = 1};  // as heed attend
  int64_t H = 1, D = 8;
  Tensor q, k, v;  // (1, H, N, D), (1, H, N, D), (1, H, N, E)
  Tensor beta;     // (H)
  Tensor shift;    // (1, H, N, N) zeros that are added to the scores: its gradient is theirs
  std::vector<RequestTerm> terms = {};
  AttentionOptions options = {};

  int64_t N() const { return place.tokens; }
};

// (H, N, width), given or normal numbers of the seed
Tensor operand(const JsonReader& body, const char* name, const AttendProblem& problem, int64_t width, uint64_t seed) {
  const Shape shape{problem.H, problem.N(), width};
  Rng rng(seed);
  Tensor out = body.has(name) ? tensor_in(body[name], shape) : random_normal(shape, 0, 1, rng, kCpu);
  return reshape(out, {1, problem.H, problem.N(), width}).require_grad();
}

// The width of the values that were given.
int64_t value_width(const JsonReader& body, int64_t fallback) {
  const Json* v = body.has("v") ? &body["v"].json() : nullptr;
  for (int i = 0; v && i < 2; ++i) v = v->is_array() && !v->empty() ? &(*v)[0] : nullptr;
  return v && v->is_array() && !v->empty() && v->size() <= 256 ? static_cast<int64_t>(v->size()) : fallback;
}

AttendProblem problem_in(const JsonReader& body) {
  AttendProblem out;
  out.H = body.has("heads") ? body["heads"].whole(1, 16) : 1;
  out.D = body.has("width") ? body["width"].whole(1, 256) : 8;
  if (body.has("grid")) {
    require(body["grid"].size() == 2, 400, "body: grid: found ", body["grid"].size(), " numbers, expected rows and columns");
    out.place.rows = body["grid"][size_t{0}].whole(1, 32);
    out.place.columns = body["grid"][size_t{1}].whole(1, 32);
    out.place.tokens = out.place.rows * out.place.columns;
  } else if (body.has("tokens")) {
    out.place.tokens = body["tokens"].whole(1, 1024);
  }
  require(out.H * out.N() * out.N() <= int64_t{1} << 22, 400, "body: ", out.H, " maps of ", out.N(), " x ", out.N(),
          " tokens are too many, expected at most ", int64_t{1} << 22, " weights");
  const auto seed = static_cast<uint64_t>(body.has("seed") ? body["seed"].whole(0) : 1);
  out.q = operand(body, "q", out, out.D, seed);
  out.k = operand(body, "k", out, out.D, seed + 1);
  out.v = operand(body, "v", out, value_width(body, out.D), seed + 2);
  const float beta = body.has("beta") ? static_cast<float>(body["beta"].number(-1e6, 1e6)) : 1 / std::sqrt(static_cast<float>(out.D));
  out.beta = Tensor::full({out.H}, static_cast<double>(beta), kCpu).require_grad();
  out.shift = Tensor::zeros({1, out.H, out.N(), out.N()}, kCpu).require_grad();
  if (body.has("terms"))
    for (const JsonReader& each : body["terms"].list()) out.terms.push_back(term_in(each, out.place, out.H, seed));
  require(out.terms.size() < kMaxTerms, 400, "body: terms: found ", out.terms.size(), ", expected less than ", kMaxTerms);
  out.options.beta = out.beta;
  for (const RequestTerm& each : out.terms) out.options.terms.push_back(each.term);
  out.options.terms.emplace_back(Bias{out.shift});
  if (body.flag_or("hard", false)) out.options.hard = Hard::straight_through;
  return out;
}

// What the gradients are of: one weight, which is the output for values that are 1 at its key and 0 elsewhere, or out * grad_out.
Tensor loss_of(const JsonReader& body, AttendProblem& problem) {
  if (body.has("target")) {
    const JsonReader target = body["target"];
    const int64_t head = target["head"].whole(0, problem.H - 1), query = target["query"].whole(0, problem.N() - 1),
                  key = target["key"].whole(0, problem.N() - 1);
    std::vector<float> at_key(static_cast<size_t>(problem.N()));
    at_key[static_cast<size_t>(key)] = 1;
    const Tensor chosen = expand(Tensor::from(at_key, {1, 1, problem.N(), 1}, kCpu), {1, problem.H, problem.N(), 1});
    return sum(slice(slice(attention(problem.q, problem.k, contiguous(chosen), problem.options), 1, head, head + 1), 2, query, query + 1));
  }
  const Tensor out = attention(problem.q, problem.k, problem.v, problem.options);
  if (!body.has("grad_out")) return sum(out);
  return sum(out * reshape(tensor_in(body["grad_out"], {problem.H, problem.N(), problem.v.size(3)}), out.shape()));
}

Json gradient_json(const Tensor& x, int first_axis) {
  const Tensor grad = x.grad();
  return tensor_json(grad.defined() ? grad : Tensor::zeros(x.shape(), kCpu), first_axis);
}

Json gradients_json(const JsonReader& body, AttendProblem& problem) {
  const Tensor loss = loss_of(body, problem);
  backward(loss);
  Json terms = Json::array();
  for (const RequestTerm& each : problem.terms) {
    Json parameters = Json::object();
    for (size_t i = 0; i < each.parameters.size(); ++i) parameters[each.info->parameters[i].name] = gradient_json(each.parameters[i], 0);
    terms.push_back(std::move(parameters));
  }
  return {{"loss", short_number(loss.item())}, {"q", gradient_json(problem.q, 1)},          {"k", gradient_json(problem.k, 1)},
          {"v", gradient_json(problem.v, 1)},  {"scores", gradient_json(problem.shift, 1)}, {"beta", gradient_json(problem.beta, 0)},
          {"terms", std::move(terms)}};
}

Json terms_json(const AttendProblem& problem) {
  Json out = Json::array();
  for (const RequestTerm& each : problem.terms) {
    Json parameters = Json::object();
    for (size_t i = 0; i < each.parameters.size(); ++i)
      parameters[each.info->parameters[i].name] = tensor_json(each.parameters[i].detach());
    out.push_back({{"name", each.info->name}, {"settings", each.values}, {"parameters", std::move(parameters)}});
  }
  return out;
}

// Logarithms of the weights: the scores up to a constant of every query.
Json log_weights(const Tensor& p) {
  std::vector<float> values = p.to_vector<float>();
  for (float& each : values) each = std::log(each);
  return tensor_json(Tensor::from(values, p.shape(), kCpu), 1);
}

// Parameters are tensors of the file; terms without parameters are options.
std::string command_text(const AttendProblem& problem, bool hard) {
  std::ostringstream out;
  out << "heed attend in.safetensors";
  if (problem.place.rows > 0) out << " grid=" << problem.place.rows << 'x' << problem.place.columns;
  const float beta = problem.beta.to_vector<float>()[0];
  out << (beta == 0 ? " content=false" : " beta=" + std::to_string(beta));
  for (const RequestTerm& each : problem.terms) {
    if (each.info->name == "causal") out << " causal=true";
    if (each.info->settings.empty() || !each.info->parameters.empty()) continue;
    out << ' ' << each.info->name << '=';
    for (const TermSetting& setting : each.info->settings)
      out << (&setting == each.info->settings.data() ? "" : ",") << each.values.at(setting.name);
  }
  out << (hard ? " hard=true" : "") << " probabilities=true -o out.safetensors";
  return out.str();
}

void attend_request(const Call& call) {
  const Json json = call.body();
  const JsonReader body(json, "body");
  const auto begin = std::chrono::steady_clock::now();
  AttendProblem problem = problem_in(body);
  const Tensor p = attention_probabilities(problem.q.detach(), problem.k.detach(), problem.options);
  Json out{{"tokens", problem.N()},
           {"grid", problem.place.rows > 0 ? Json{problem.place.rows, problem.place.columns} : Json()},
           {"heads", problem.H},
           {"width", problem.D},
           {"beta", short_number(problem.beta.to_vector<float>()[0])},
           {"probabilities", tensor_json(p, 1)},
           {"terms", terms_json(problem)},
           {"command", command_text(problem, problem.options.hard != Hard::no)}};
  if (body.has("include"))
    for (const JsonReader& each : body["include"].list()) {
      const std::string name = each.text();
      if (name == "scores")
        out["scores"] = log_weights(p);
      else if (name == "output")
        out["output"] = tensor_json(attention(problem.q.detach(), problem.k.detach(), problem.v.detach(), problem.options).detach(), 1);
      else if (name == "q" || name == "k" || name == "v")
        out[name] = tensor_json((name == "q" ? problem.q : name == "k" ? problem.k : problem.v).detach(), 1);
      else
        each.expected("q, k, v, output or scores");
    }
  if (body.flag_or("gradients", true)) out["gradients"] = gradients_json(body, problem);
  out["milliseconds"] = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  call.reply(out);
}

}  // namespace

Endpoints attend_endpoints() { return {{"POST", "/api/attend", Where::worker, attend_request}}; }

}  // namespace heed::serve
