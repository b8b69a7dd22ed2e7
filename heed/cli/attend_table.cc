// The table of options that `heed attend` knows: what each expects, means and sets.
#include "heed/cli/attend_options.h"
#include "heed/cli/attend_word.h"

namespace heed::cli {

const std::vector<AttendOption>& attend_options() {
  using O = AttendOptions;
  using Word = AttendWord;
  using enum AttendKind;
  const AttendKinds all{softmax, linear, channel};
  static const std::vector<AttendOption> table = {
      {"kind", "softmax, linear or channel", all, "", "which attention (softmax); formulas above",
       [](O& o, const Word& w) {
         o.kind = w.one_of<AttendKind>({{"softmax", softmax}, {"linear", linear}, {"channel", channel}});
       }},
      {"beta", "a number", all, "",
       "inverse temperature. softmax: 1 / sqrt(D) unless given; linear: q and k are\nmultiplied by sqrt(beta), 1, with features=exp 1 / "
       "sqrt(D); "
       "channel: 1 / sqrt(D)",
       [](O& o, const Word& w) { o.beta = w.number(); }},
      {"scale", "a number", all, "", "another name of beta", [](O& o, const Word& w) { o.beta = w.number(); }},
      {"content",
       "true or false",
       {softmax},
       "",
       "false: beta = 0, only what is added to scores speaks",
       [](O& o, const Word& w) { o.content = w.yes(); }},
      {"causal", "true or false", {softmax, linear}, "", "keep j <= i + offset", [](O& o, const Word& w) { o.causal = w.yes(); }},
      {"offset",
       "a whole number",
       {softmax},
       "causal",
       "of causal (0): M - N when the queries are the last of M tokens",
       [](O& o, const Word& w) { o.offset = w.whole(std::numeric_limits<int32_t>::min()); }},
      {"window",
       "W or BEFORE,AFTER, whole numbers of 0 or more",
       {softmax},
       "",
       "keep i - BEFORE <= j <= i + AFTER; W: |i - j| <= W",
       [](O& o, const Word& w) { o.window = w.pair(',', 0); }},
      {"globals",
       "a whole number of 0 or more",
       {softmax},
       "window",
       "and keep i < GLOBALS and j < GLOBALS: first tokens see all, are seen by all",
       [](O& o, const Word& w) { o.globals = w.whole(0); }},
      {"chunk",
       "a whole number of 1 or more",
       {softmax},
       "",
       "keep floor((i + shift) / CHUNK) = floor((j + shift) / CHUNK): windows that tile",
       [](O& o, const Word& w) { o.chunk = w.whole(1); }},
      {"shift", "a whole number of 0 or more", {softmax}, "chunk", "of chunk (0)", [](O& o, const Word& w) { o.shift = w.whole(0); }},
      {"dilation",
       "a whole number of 1 or more",
       {softmax},
       "",
       "keep j - i divisible by DILATION",
       [](O& o, const Word& w) { o.dilation = w.whole(1); }},
      {"lengths",
       "whole numbers of 0 or more, one per item: 3,5",
       {softmax, linear},
       "",
       "keep j < lengths[b]; also a tensor",
       [](O& o, const Word& w) { o.lengths = w.list(); }},
      {"block",
       "a whole number of 1 or more",
       {softmax},
       "block_pattern",
       "keep block_pattern[h, i / BLOCK, j / BLOCK], rounded down",
       [](O& o, const Word& w) { o.block = w.whole(1); }},
      {"grid",
       "ROWSxCOLUMNS, for example 16x16",
       {softmax, linear},
       "",
       "tokens lie on a grid: token t in row t / COLUMNS, column t % COLUMNS, so N = M =\nROWS COLUMNS (for pool: M)",
       [](O& o, const Word& w) {
         if (w.parts('x').size() != 2) w.refuse();
         o.grid = w.pair('x', 1);
       }},
      {"grid_window",
       "R or R,C, whole numbers of 0 or more",
       {softmax},
       "grid",
       "keep what is at most R rows and C columns away; R: C = R",
       [](O& o, const Word& w) { o.grid_window = w.pair(',', 0); }},
      {"alibi",
       "true or false",
       {softmax},
       "",
       "add -m_h |i - j|, m_h = 2^(-8 (h + 1) / H), heads from 0; other slopes: tensor slopes",
       [](O& o, const Word& w) { o.alibi = w.yes(); }},
      {"softcap",
       "a number above 0",
       {softmax},
       "",
       "s <- C tanh(s / C), after all that is added, before masks",
       [](O& o, const Word& w) { o.softcap = w.number(0); }},
      {"hard",
       "true or false",
       {softmax},
       "",
       "the limit of a growing beta: p_i is 1 at the largest score, shared equally by ties",
       [](O& o, const Word& w) { o.hard = w.yes() ? Hard::straight_through : Hard::no; }},
      {"hard_gradient",
       "straight-through or none",
       {softmax},
       "hard",
       "straight-through: scores get the gradient of the soft p (default); none: only v\ngets a gradient",
       [](O& o, const Word& w) {
         o.hard_gradient = w.one_of<Hard>({{"straight-through", Hard::straight_through}, {"none", Hard::no_gradient}});
       }},
      {"dropout",
       "a probability of 0 or more, below 1",
       {softmax},
       "",
       "p_ij <- 0 with that probability, else p_ij / (1 - DROPOUT)",
       [](O& o, const Word& w) {
         o.dropout = w.number();
         if (o.dropout < 0 || o.dropout >= 1) w.refuse();
       }},
      {"seed",
       "a whole number of 0 or more",
       {softmax, linear},
       "dropout|features|random_features",
       "of what is random (1)",
       [](O& o, const Word& w) { o.seed = w.whole(0); }},
      {"features",
       "elu, relu or exp",
       {linear},
       "",
       "phi(x). elu (default): x + 1 above 0, e^x below; relu: max(x, 0) + 0.001;\nexp: e^(w_r.x - |x|^2 / 2), random w_r, so "
       "phi(q).phi(k) is "
       "e^(q.k) on average",
       [](O& o, const Word& w) {
         o.features = w.one_of<std::string>({{"elu", "elu"}, {"relu", "relu"}, {"exp", "exp"}});
       }},
      {"random_features",
       "a whole number of 1 or more",
       {linear},
       "",
       "how many w_r features=exp has (4 D)",
       [](O& o, const Word& w) { o.random_features = w.whole(1); }},
      {"quadratic",
       "true or false",
       {linear},
       "",
       "multiply in the other order, (phi(q) phi(k)^T) v: the same result in N M steps",
       [](O& o, const Word& w) { o.quadratic = w.yes(); }},
      {"pool",
       "a whole number of 1 or more",
       {softmax, linear},
       "grid",
       "first replace k and v by the means of every POOL x POOL square of the grid\n(less at its border); from then on j and M mean these",
       [](O& o, const Word& w) { o.pool = w.whole(1); }},
      {"probabilities", "true or false", all, "", "also write p: (B, H, N, M), without dropout; channel: a: (B, H, C, D)",
       [](O& o, const Word& w) { o.probabilities = w.yes(); }},
      {"heads", "whole numbers of 0 or more: 0,2", all, "probabilities", "p of these heads only, in this order",
       [](O& o, const Word& w) { o.heads = w.list(); }},
      {"rows", "whole numbers of 0 or more: 0,5", all, "probabilities", "p of these queries only, in this order",
       [](O& o, const Word& w) { o.rows = w.list(); }},
      {"ignore", "names of tensors: alpha,center", all, "", "do as if the file did not have them",
       [](O& o, const Word& w) { o.ignore = w.parts(','); }},
  };
  return table;
}

}  // namespace heed::cli
