#include "heed/core/captured_step.h"

#include "heed/core/copy.h"
#include "heed/core/raw.h"

namespace heed {

CapturedStep::CapturedStep(Device device, Rng* rng, std::function<Tensors()> work, bool takes_memory)
    : device_(device), rng_(rng), work_(std::move(work)), takes_memory_(takes_memory) {}

const Tensors& CapturedStep::run() {
  const int warm_up_runs = takes_memory_ ? 2 : 1;  // fill the memory pool, load kernels, choose algorithms
  if (!graph_ && runs_ >= warm_up_runs && cuda::Graph::is_supported(device_)) record();
  if (!graph_) {
    results_ = work_();
    ++runs_;
    return results_;
  }
  if (rng_) {
    copy_into(Tensor::full({}, static_cast<double>(rng_->next_stream() - first_stream_), DType::i64, kCpu), advance_);
    rng_->skip(streams_);
  }
  graph_->run();
  return results_;
}

void CapturedStep::record() {
  results_.clear();
  Rng start(0);
  if (rng_) {
    advance_ = Tensor::zeros({}, DType::i64, device_);
    start = *rng_;
    first_stream_ = start.next_stream();
    rng_->set_advance(raw<uint64_t>(advance_));
  }
  try {
    graph_.emplace(
        device_, [&] { results_ = work_(); }, takes_memory_);
  } catch (...) {
    failed_ = true;
    if (rng_) *rng_ = start;
    throw;
  }
  if (rng_) {
    streams_ = rng_->next_stream() - first_stream_;
    *rng_ = start;
  }
}

}  // namespace heed
