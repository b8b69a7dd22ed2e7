// The table of options of `heed attend`: what each expects, means and sets.
#include <algorithm>

#include "heed/cli/attend_argument.h"
#include "heed/cli/attend_options.h"

namespace heed::cli {
namespace {

// Options of score terms that are made from settings: name=V1,V2,... in the order of the descriptor.
std::vector<AttendOption> with_term_options(std::vector<AttendOption> others) {
  std::vector<AttendOption> out;
  for (const TermInfo& info : term_infos()) {
    if (info.use == TermUse::call || info.settings.empty() || attend_tensors_decide(info)) continue;
    const bool several = info.settings.size() > 1;
    std::string needs = info.needs_grid ? "grid" : "", meaning = info.summary;
    for (const TermParameter& each : info.parameters) needs += " " + each.file_name;
    for (const TermSetting& each : info.settings) meaning += "\n" + each.name + ": " + each.meaning;
    out.push_back({info.name,
                   several ? info.settings_text(",") + "; trailing ones may be missing" : info.settings[0].expected(),
                   {AttendKind::softmax},
                   needs,
                   meaning,
                   [&info](AttendOptions& o, const AttendArgument& a) {
                     for (const auto& [name, value] : a.settings(info)) a.add_setting(o.terms[info.name], name, value);
                   },
                   info.aliases});
  }
  others.insert(std::find_if(others.begin(), others.end(), [](const AttendOption& each) { return each.name == "globals"; }), out.begin(),
                out.end());
  return others;
}

}  // namespace

const std::vector<AttendOption>& attend_options() {
  using O = AttendOptions;
  using Argument = AttendArgument;
  using enum AttendKind;
  const AttendKinds all{softmax, linear, channel};
  static const std::vector<AttendOption> table = with_term_options({
      {"kind", "softmax, linear or channel", all, "", "which attention (softmax); formulas above",
       [](O& o, const Argument& a) {
         const std::string name = a.choice("attention");
         if (name != "soft" && name != "linear" && name != "channel") a.refuse();
         o.kind = name == "soft" ? softmax : name == "linear" ? linear : channel;
       }},
      {"beta", "a number", all, "",
       "inverse temperature. softmax: 1 / sqrt(D) unless given; linear: q and k are\nmultiplied by sqrt(beta), 1, with features=random 1 / "
       "sqrt(D); "
       "channel: 1 / sqrt(D)",
       [](O& o, const Argument& a) { o.beta = a.number(); }},
      {"scale", "a number", all, "", "another name of beta", [](O& o, const Argument& a) { o.beta = a.number(); }},
      {"content",
       "true or false",
       {softmax},
       "",
       "false: beta = 0, scores are the additive terms alone",
       [](O& o, const Argument& a) { o.content = a.boolean(); }},
      {"causal", "true or false", {softmax, linear}, "", "keep j <= i + offset", [](O& o, const Argument& a) { o.causal = a.boolean(); }},
      {"offset",
       "a whole number",
       {softmax},
       "causal",
       "of causal (0); M - N if the queries are the last of M tokens and nothing else\ndepends on their positions, else use first_query",
       [](O& o, const Argument& a) { o.offset = a.whole(std::numeric_limits<int32_t>::min()); }},
      {"first_query",
       "a whole number of 0 or more",
       {softmax},
       "",
       "position of the first query (0), where i starts: M - N if the queries are the\nlast of M tokens. Rows of bias and mask count "
       "from 0",
       [](O& o, const Argument& a) { o.first_query = a.whole(0); }},
      {"globals",
       "a whole number of 0 or more",
       {softmax},
       "window",
       "also keep i < GLOBALS and j < GLOBALS: the first tokens see all and are seen by all",
       [](O& o, const Argument& a) { a.add_setting(o.terms["window"], "globals", a.whole(0)); }},
      {"shift",
       "a whole number of 0 or more",
       {softmax},
       "chunks",
       "of chunks (0)",
       [](O& o, const Argument& a) { a.add_setting(o.terms["chunks"], "shift", a.whole(0)); }},
      {"lengths",
       "whole numbers of 0 or more, one per item: 3,5",
       {softmax, linear},
       "",
       "keep j < lengths[b]; also a tensor",
       [](O& o, const Argument& a) { o.lengths = a.list(); }},
      {"block",
       "a whole number of 1 or more",
       {softmax},
       "block_pattern",
       "keep block_pattern[h, i / BLOCK, j / BLOCK], rounded down",
       [](O& o, const Argument& a) { o.block = a.whole(1); }},
      {"grid",
       "ROWSxCOLUMNS, for example 16x16",
       {softmax, linear},
       "",
       "tokens are on a grid: token t in row t / COLUMNS, column t % COLUMNS, so N = M =\nROWS COLUMNS (with pool only M)",
       [](O& o, const Argument& a) {
         if (a.parts('x').size() != 2) a.refuse();
         o.grid = a.pair('x', 1);
       }},
      {"alibi",
       "true or false",
       {softmax},
       "",
       "add -m_h |i - j|, m_h = 2^(-8 (h + 1) / H), heads from 0; other slopes: tensor slopes",
       [](O& o, const Argument& a) { o.alibi = a.boolean(); }},
      {"hard",
       "true or false",
       {softmax},
       "",
       "the limit of a growing beta: p_i is 1 at the largest score, shared equally by ties",
       [](O& o, const Argument& a) { o.hard = a.boolean() ? Hard::straight_through : Hard::no; }},
      {"hard_gradient",
       "straight-through or none",
       {softmax},
       "hard",
       "straight-through: scores get the gradient of the soft p (default); none: only v\ngets a gradient",
       [](O& o, const Argument& a) {
         o.hard_gradient = a.one_of<Hard>({{"straight-through", Hard::straight_through}, {"none", Hard::no_gradient}});
       }},
      {"dropout",
       "a probability of 0 or more, below 1",
       {softmax},
       "",
       "p_ij <- 0 with that probability, else p_ij / (1 - DROPOUT)",
       [](O& o, const Argument& a) {
         o.dropout = a.number();
         if (o.dropout < 0 || o.dropout >= 1) a.refuse();
       }},
      {"seed",
       "a whole number of 0 or more",
       {softmax, linear},
       "dropout|features|random_features",
       "random seed (1)",
       [](O& o, const Argument& a) { o.seed = a.whole(0); }},
      {"features",
       "elu, relu or random",
       {linear},
       "",
       "phi(x). elu (default): x + 1 above 0, e^x below; relu: max(x, 0) + 0.001;\nrandom: e^(w_r.x - |x|^2 / 2), random w_r, so "
       "phi(q).phi(k) is "
       "e^(q.k) on average",
       [](O& o, const Argument& a) { o.features = a.choice("features"); }},
      {"random_features",
       "a whole number from 1 to 65536",
       {linear},
       "",
       "number of w_r of features=random (4 D)",
       [](O& o, const Argument& a) { o.random_features = a.whole(1); }},
      {"quadratic",
       "true or false",
       {linear},
       "",
       "multiply in the other order, (phi(q) phi(k)^T) v: the same result in N M steps",
       [](O& o, const Argument& a) { o.quadratic = a.boolean(); }},
      {"pool",
       "a whole number of 1 or more",
       {softmax, linear},
       "grid",
       "first replace k and v by the means of every POOL x POOL square of the grid\n(smaller at its border); j and M then count these",
       [](O& o, const Argument& a) { o.pool = a.whole(1); }},
      {"probabilities", "true or false", all, "", "also write p: (B, H, N, M), without dropout; channel: a: (B, H, C, D)",
       [](O& o, const Argument& a) { o.probabilities = a.boolean(); }},
      {"heads", "whole numbers of 0 or more: 0,2", all, "probabilities", "p of these heads only, in this order",
       [](O& o, const Argument& a) { o.heads = a.list(); }},
      {"rows", "whole numbers of 0 or more: 0,5", all, "probabilities", "p of these queries only, in this order",
       [](O& o, const Argument& a) { o.rows = a.list(); }},
      {"ignore", "names of tensors: alpha,center", all, "", "treat the file as if it did not have them",
       [](O& o, const Argument& a) { o.ignore = a.parts(','); }},
  });
  return table;
}

}  // namespace heed::cli
