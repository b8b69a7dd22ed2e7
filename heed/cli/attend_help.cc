// The table of input tensors of `heed attend`, and its help, generated from both tables.
#include <sstream>

#include "heed/cli/attend_options.h"

namespace heed::cli {
namespace {

constexpr const char* kFormulas = R"(Computes attention on the tensors of a file, and with grad_out its gradients.
Tensors are q: (B, H, N, D), k: (B, G, M, D), v: (B, G, M, E) in f32, f16 or bf16; H is a multiple of G, and query head h
uses key head h G / H, rounded down. B, or B and H, may be omitted; results have the rank of q. Everything is
computed and written in f32. b, h, i, j index items, heads, queries and keys, from 0.

kind=softmax  out_i = sum_j p_ij v_j, p_i = softmax over j of s_ij, where s_ij is
                1. beta q_i.k_j (with u, w and relative_keys more)
                2. + additive terms: relative_table, bias, slopes, alibi, alpha, spread
                3. softcap
                4. + mask, if it has floats
                5. -infinity unless every mask keeps it ("keep"). A query with no key left gives zeros.
kind=linear   out_i = phi(q_i) sum_j phi(k_j)^T v_j / sum_j phi(q_i).phi(k_j), over the keys j visible to i
kind=channel  out[n, c] = sum_d a[c, d] v[n, d], a[c] = softmax over d of beta sum_n q[n, c] k[n, d], for every head:
              q: (B, H, N, C), k: (B, H, N, D), v: (B, H, M, D) -> (B, H, M, C), p is a
)";

constexpr const char* kExamples = R"(Examples:
  heed attend in.safetensors -o out.safetensors
  heed attend in.safetensors causal=true window=128,0 beta=0.125 -o out.safetensors
  heed attend in.safetensors grid=16x16 content=false probabilities=true heads=0 rows=136 -o out.safetensors
  heed attend in.safetensors kind=linear features=relu causal=true -o out.safetensors

The output file holds out; with probabilities=true also probabilities; and if the tensor grad_out is present the gradients
of sum(out grad_out) with respect to q, k, v and every tensor marked *: grad_q, grad_k, grad_v, grad_bias and so on, in the
shapes of the file. Exit codes: 2 for wrong options, 3 for a bad file: wrong shapes, non-finite values.)";

// Name and meaning in two columns.
void put_row(std::ostream& out, const std::string& left, const std::string& meaning) {
  constexpr size_t column = 26;
  std::istringstream lines(meaning);
  std::string start = "  " + left;
  for (std::string line; std::getline(lines, line);) {
    if (start.size() >= column)
      out << start << '\n' << std::string(column, ' ');
    else
      out << start << std::string(column - start.size(), ' ');
    out << line << '\n';
    start.clear();
  }
}

std::string only_for(const AttendKinds& kinds) {
  if (kinds == AttendKinds{AttendKind::softmax}) return "";
  if (kinds.size() == 3) return " [every kind]";
  std::string text;
  for (const AttendKind kind : kinds) text += (text.empty() ? " [" : ", ") + name_of(kind);
  return text + "]";
}

}  // namespace

const std::vector<AttendTensor>& attend_tensors() {
  using enum AttendKind;
  const AttendKinds all{softmax, linear, channel};
  static const std::vector<AttendTensor> table = {
      {"q", "(B, H, N, D)", all, "", "queries", true},
      {"k", "(B, G, M, D)", all, "", "keys", true},
      {"v", "(B, G, M, E)", all, "", "values", true},
      {"grad_out", "(B, H, N, E)", all, "", "gradient of the output; requests the gradients of everything marked *"},
      {"beta", "(H) or (1)", {softmax, channel}, "", "instead of the option beta", true},
      {"bias", "any shape that broadcasts to (B, H, N, M)", {softmax}, "", "add bias[b, h, i, j]; -infinity masks", true},
      {"mask",
       "any shape that broadcasts to (B, H, N, M)",
       {softmax},
       "",
       "bool or integers: keep where not 0. Floats: add mask[b, h, i, j], -infinity masks.\nFor example (N, M) or (M)"},
      {"key_mask", "(B, M) or (M)", {softmax}, "", "keep where not 0; bool or integers"},
      {"lengths", "(B)", {softmax, linear}, "", "keep j < lengths[b]; integers"},
      {"block_pattern",
       "(H, N / BLOCK, M / BLOCK)",
       {softmax},
       "block",
       "keep block_pattern[h, i / BLOCK, j / BLOCK]; bool or integers;\nsizes rounded up, N counted from position 0; H may be 1 or "
       "missing"},
      {"relative_table",
       "(H, 2 R + 1), or with grid (H, 2 R + 1, 2 C + 1)",
       {softmax},
       "",
       "add relative_table[h, clamp(j - i, -R, R) + R]; H may be 1 or missing.\nWith 3 axes: add relative_table[h, "
       "clamp(rows, -R, R) + R,\nclamp(columns, -C, C) + C], rows and columns from query to key",
       true},
      {"relative_keys",
       "(H, 2 R + 1, D)",
       {softmax},
       "",
       "r_ij = relative_keys[h, clamp(j - i, -R, R) + R]: step 1 becomes\nbeta (q_i.k_j + q_i.r_ij + u_h.k_j + w_h.r_ij); H may be 1 or "
       "missing",
       true},
      {"u", "(H, D)", {softmax}, "", "the u above: step 1 becomes beta (q_i + u_h).k_j", true},
      {"w", "(H, D)", {softmax}, "relative_keys", "the w above", true},
      {"slopes", "(H) or (1)", {softmax}, "", "add -slopes[h] |i - j|", true},
      {"alpha",
       "(H) or (1)",
       {softmax},
       "center grid",
       "add -alpha[h] |delta - center[h]|^2, delta = query position - key position on the\ngrid, in rows and columns",
       true},
      {"center", "(H, 2) or (2)", {softmax}, "alpha|spread", "of alpha or spread: rows, columns", true},
      {"spread", "(H, 2, 2) or (2, 2)", {softmax}, "center grid", "add -|spread[h] (delta - center[h])|^2", true},
      {"projection", "(R, D)", {linear}, "features", "the rows w_r of features=exp, instead of random ones"},
  };
  return table;
}

std::string attend_help() {
  std::ostringstream out;
  out << kFormulas << "\nTensors of the file (* learned), for kind=softmax unless marked [kind]:\n";
  for (const AttendTensor& t : attend_tensors())
    put_row(out, t.name + (t.learned ? "*" : ""), t.shape + only_for(t.kinds) + "\n" + t.meaning);
  out << "\nOptions, each name=value, for kind=softmax unless marked [kind]:\n";
  for (const AttendOption& o : attend_options()) put_row(out, o.name + "=", o.value + only_for(o.kinds) + "\n" + o.meaning);
  out << '\n' << kExamples;
  return out.str();
}

}  // namespace heed::cli
