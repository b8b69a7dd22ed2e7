#include "heed/ops/next_token.h"

#include <cmath>
#include <limits>

#include "heed/core/raw.h"

namespace heed {

void embed_last_tokens(const Tensor& table, const Tensor& positions, const WrittenTokens& written, const Tensor& out) {
  const int64_t B = written.last.count(), D = table.size(1);
  check(out.shape() == Shape{B, D} && written.lengths.count() == B && (!positions.defined() || positions.size(1) == D),
        "embed_last_tokens: a table of shape ", table.shape(), " for states ", out.shape());
  const Device device = common_device("embed_last_tokens", {&table, &positions, &written.last, &written.lengths, &out});
  launch(embed_last, device,
         {.table = raw<float>(table),
          .positions = raw_or_null<float>(positions),
          .last = raw<int64_t>(written.last),
          .lengths = raw<int64_t>(written.lengths),
          .out = raw<float>(out),
          .B = B,
          .D = D});
}

Device device_of_written(const char* op, const Tensor& logits, const WrittenTokens& written) {
  const int64_t B = written.last.count();
  check(logits.rank() == 2 && logits.size(0) == B && logits.size(1) > 0, op, ": logits ", logits.shape(), " for ", B, " sequences");
  check(written.lengths.count() == B && written.all.rank() == 2 && written.all.size(0) == B, op, ": ", written.lengths.count(),
        " lengths and tokens of shape ", written.all.shape(), " for ", B, " sequences");
  return common_device(op, {&logits, &written.last, &written.lengths, &written.all});
}

void append_best_tokens(const Tensor& logits, const WrittenTokens& written) {
  const Device device = device_of_written("append_best_tokens", logits, written);
  launch(append_best, device,
         {.logits = raw<float>(logits),
          .last = raw<int64_t>(written.last),
          .lengths = raw<int64_t>(written.lengths),
          .all = raw<int64_t>(written.all),
          .B = logits.size(0),
          .V = logits.size(1),
          .capacity = written.all.size(1)});
}

void cpu::embed_last(const EmbedLastTokens& p) {
  for (int64_t b = 0; b < p.B; ++b)
    for (int64_t d = 0; d < p.D; ++d)
      p.out[b * p.D + d] = p.last[b] < 0 ? std::numeric_limits<float>::quiet_NaN()
                                         : p.table[p.last[b] * p.D + d] + (p.positions ? p.positions[p.lengths[b] * p.D + d] : 0);
}

void cpu::append_best(const AppendBestTokens& p) {
  for (int64_t b = 0; b < p.B; ++b) {
    const float* const row = p.logits + b * p.V;
    int64_t best = 0;
    bool finite = true;
    for (int64_t i = 0; i < p.V; ++i) {
      finite = finite && std::isfinite(row[i]);
      if (row[i] > row[best]) best = i;
    }
    const int64_t length = ++p.lengths[b];
    check(0 <= length && length < p.capacity, "append_best_tokens: position ", length, ", there is room for ", p.capacity, " tokens");
    p.last[b] = finite ? best : -1;
    p.all[b * p.capacity + length] = p.last[b];
  }
}

}  // namespace heed
