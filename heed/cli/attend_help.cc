// The table of input tensors of `heed attend`, and its help, generated from both tables.
#include <algorithm>
#include <sstream>

#include "heed/cli/attend_options.h"
#include "heed/cli/two_columns.h"

namespace heed::cli {
namespace {

constexpr const char* kFormulas = R"(Computes attention on the tensors of a file, and with grad_out its gradients.
Tensors are q: (B, H, N, D), k: (B, G, M, D), v: (B, G, M, E) in f32, f16 or bf16; H is a multiple of G, and query head h
uses key head h G / H, rounded down. B, or B and H, may be omitted; results have the rank of q. Everything is
computed and written in f32. b, h, i, j index items, heads, queries and keys, from 0.

kind=softmax  out_i = sum_j p_ij v_j, p_i = softmax over j of s_ij, where s_ij is
                1. beta q_i.k_j (more products with u, w and relative_keys, see below)
                2. + additive terms: bias, alibi and tensors below that say "add"
                3. soft_cap
                4. + mask, if it has floats
                5. -infinity unless every mask keeps it ("keep"). A query with no key left gives zeros.
kind=linear   out_i = phi(q_i) sum_j phi(k_j)^T v_j / sum_j phi(q_i).phi(k_j), over the keys j visible to i
kind=channel  out[n, c] = sum_d a[c, d] v[n, d], a[c] = softmax over d of beta sum_n q[n, c] k[n, d], for every head:
              q: (B, H, N, C), k: (B, H, N, D), v: (B, H, M, D) -> (B, H, M, C), p is a
)";

constexpr const char* kAttendExamples = R"(Examples:
  heed attend in.safetensors -o out.safetensors
  heed attend in.safetensors causal=true window=128,0 beta=0.125 -o out.safetensors
  heed attend in.safetensors grid=16x16 content=false probabilities=true heads=0 rows=136 -o out.safetensors
  heed attend in.safetensors kind=linear features=relu causal=true -o out.safetensors

The output file holds out; with probabilities=true also probabilities; and if the tensor grad_out is present the gradients
of sum(out grad_out) with respect to q, k, v and every tensor marked *: grad_q, grad_k, grad_v, grad_bias and so on, in the
shapes of the file. Exit codes: 2 for wrong options, 3 for a bad file: wrong shapes, non-finite values.)";

constexpr size_t kColumn = 26;

std::string only_for(const AttendKinds& kinds) {
  if (kinds == AttendKinds{AttendKind::softmax}) return "";
  if (kinds.size() == 3) return " [every kind]";
  std::string text;
  for (const AttendKind kind : kinds) text += (text.empty() ? " [" : ", ") + name_of(kind);
  return text + "]";
}

// Tensors of score terms. One that several terms read needs the first tensor of one of them, unless it is the first itself.
std::vector<AttendTensor> with_term_tensors(std::vector<AttendTensor> others) {
  std::vector<AttendTensor> out;
  for (const TermInfo& info : term_infos())
    for (const TermParameter& each : info.parameters) {
      const bool first = &each == info.parameters.data();
      const auto known = std::find_if(out.begin(), out.end(), [&](const AttendTensor& row) { return row.name == each.file_name; });
      if (known != out.end() && first) {
        known->shape += (info.needs_grid ? ", or with grid " : ", or ") + each.shape_text();
        known->meaning += "\nWith " + std::to_string(each.sizes.size() + 1) + " axes: " + each.meaning;
      } else if (known != out.end()) {
        known->needs += "|" + info.parameters[0].file_name;
      } else {
        std::string needs = first ? "" : info.parameters[0].file_name;
        for (size_t i = 1; i < info.parameters.size() && first; ++i) needs += info.parameters[i].file_name + " ";
        if (first && info.needs_grid) needs += "grid";
        out.push_back(
            {each.file_name, each.shape_text() + " or " + each.headless_text(), {AttendKind::softmax}, needs, each.meaning, true});
      }
    }
  others.insert(std::find_if(others.begin(), others.end(), [](const AttendTensor& each) { return each.name == "relative_keys"; }),
                out.begin(), out.end());
  return others;
}

}  // namespace

bool attend_tensors_decide(const TermInfo& info) {
  return std::all_of(info.settings.begin(), info.settings.end(), [&](const TermSetting& setting) {
    return std::any_of(info.parameters.begin(), info.parameters.end(), [&](const TermParameter& each) {
      return std::any_of(each.sizes.begin(), each.sizes.end(), [&](const TermSize& size) { return size.setting == setting.name; });
    });
  });
}

const std::vector<AttendTensor>& attend_tensors() {
  using enum AttendKind;
  const AttendKinds all{softmax, linear, channel};
  static const std::vector<AttendTensor> table = with_term_tensors({
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
      {"relative_keys",
       "(H, 2 R + 1, D)",
       {softmax},
       "",
       "r_ij = relative_keys[h, clamp(j - i, -R, R) + R]: step 1 becomes\nbeta (q_i.k_j + q_i.r_ij + u_h.k_j + w_h.r_ij); H may be 1 or "
       "missing",
       true},
      {"u", "(H, D)", {softmax}, "", "the u above: step 1 becomes beta (q_i + u_h).k_j", true},
      {"w", "(H, D)", {softmax}, "relative_keys", "the w above", true},
      {"projection", "(R, D)", {linear}, "features", "the rows w_r of features=random, instead of random ones"},
  });
  return table;
}

std::string attend_help() {
  std::ostringstream out;
  out << kFormulas << "\nTensors of the file (* learned), for kind=softmax unless marked [kind]:\n";
  for (const AttendTensor& t : attend_tensors())
    put_row(out, t.name + (t.learned ? "*" : ""), t.shape + only_for(t.kinds) + "\n" + t.meaning, kColumn);
  out << "\nOptions, each name=value, for kind=softmax unless marked [kind]:\n";
  for (const AttendOption& o : attend_options()) put_row(out, o.name + "=", o.value + only_for(o.kinds) + "\n" + o.meaning, kColumn);
  out << '\n' << kAttendExamples;
  return out.str();
}

}  // namespace heed::cli
