#include "heed/cuda/cublaslt.h"

#include <array>
#include <compare>
#include <map>
#include <mutex>

#include "heed/cuda/cublaslt_api.h"
#include "heed/cuda/find_library.h"
#include "heed/cuda/launch.cuh"

namespace heed::cuda {
namespace {

using lt::Choice;
using lt::DescriptionField;
using lt::LayoutField;
using lt::PreferenceField;

constexpr size_t kWorkspace = size_t{32} << 20;  // bytes, per device: parts of sums that several blocks make
constexpr int kAlignment = 16;                   // bytes; kernels gain nothing from more
constexpr size_t kMostPlans = 4096;

struct Library {
  std::string file;
  lt::Functions functions = {};
  bool usable = false;

  Library() {
    void* const handle = open_library({.title = "cuBLASLt",
                                       .variable = "HEED_CUBLASLT",
                                       .names = {"libcublasLt.so.13", "libcublasLt.so.12"},
                                       .packages = {"nvidia/cu13/lib", "nvidia/cublas/lib"}},
                                      file);
    if (!handle) return;
    const auto get = [&](auto& function, const char* name) { find_function(handle, "cuBLASLt: " + file, name, function); };
    get(functions.create, "cublasLtCreate");
    get(functions.description_create, "cublasLtMatmulDescCreate");
    get(functions.description_set, "cublasLtMatmulDescSetAttribute");
    get(functions.description_destroy, "cublasLtMatmulDescDestroy");
    get(functions.layout_create, "cublasLtMatrixLayoutCreate");
    get(functions.layout_set, "cublasLtMatrixLayoutSetAttribute");
    get(functions.layout_destroy, "cublasLtMatrixLayoutDestroy");
    get(functions.preference_create, "cublasLtMatmulPreferenceCreate");
    get(functions.preference_set, "cublasLtMatmulPreferenceSetAttribute");
    get(functions.preference_destroy, "cublasLtMatmulPreferenceDestroy");
    get(functions.choose, "cublasLtMatmulAlgoGetHeuristic");
    get(functions.multiply, "cublasLtMatmul");
    usable = true;
  }
};

const Library& library() {
  static const auto* const loaded = new Library;  // never unloaded: streams may still run its kernels at exit
  return *loaded;
}

void check_lt(lt::Status status, const char* what) { check(status == lt::kSuccess, "cuBLASLt: ", what, " failed (status ", status, ")"); }

// Everything that the choice of an algorithm depends on.
struct Key {
  int64_t M, N, K, batch, a_stride, b_stride, c_stride, a_step, b_step, c_step;
  int device, a_alignment, b_alignment, c_alignment, bias_alignment;
  DType type, c_type, bias_type;
  bool a_transposed, b_transposed, bias;
  auto operator<=>(const Key&) const = default;
};

// A product as cuBLASLt describes it. It reads matrices as column-major, so ours are transposed there, and it computes c^T = b^T a^T: our b
// is its first operand.
struct Plan {
  lt::Description* description = nullptr;
  lt::Layout *a = nullptr, *b = nullptr, *c = nullptr;
  Choice choice = {};
  bool usable = false;
};

int data_type(DType type) { return type == DType::bf16 ? lt::kBf16 : lt::kFloat; }

int alignment_of(const void* p) {
  const auto bits = reinterpret_cast<uintptr_t>(p) | kAlignment;
  return static_cast<int>(bits & (~bits + 1));
}

lt::Layout* make_layout(const lt::Functions& f, DType type, int64_t rows, int64_t columns, const LtMatrix& matrix, int64_t batch) {
  lt::Layout* layout = nullptr;
  check_lt(f.layout_create(&layout, data_type(type), static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), matrix.stride), "layout");
  if (batch > 1) {
    const auto count = static_cast<int32_t>(batch);
    check_lt(f.layout_set(layout, LayoutField::batch_count, &count, sizeof count), "layout");
    check_lt(f.layout_set(layout, LayoutField::batch_step, &matrix.step, sizeof matrix.step), "layout");
  }
  return layout;
}

void set_bias(const lt::Functions& f, const Plan& plan, const void* bias) {
  check_lt(f.description_set(plan.description, DescriptionField::bias, &bias, sizeof bias), "bias");
}

Plan make_plan(const lt::Functions& f, lt::Context* context, const LtProduct& p, const Key& key) {
  Plan plan;
  check_lt(f.description_create(&plan.description, lt::kComputeFloat, lt::kFloat), "description");
  const auto set = [&](DescriptionField field, auto value) {
    check_lt(f.description_set(plan.description, field, &value, sizeof value), "description");
  };
  set(DescriptionField::transpose_a, int32_t{p.b.transposed ? lt::kTransposed : lt::kAsStored});
  set(DescriptionField::transpose_b, int32_t{p.a.transposed ? lt::kTransposed : lt::kAsStored});
  set(DescriptionField::epilogue, p.bias ? lt::kAddBias : lt::kPlain);
  if (p.bias) {
    set(DescriptionField::bias_type, int32_t{data_type(p.bias_type)});
    set_bias(f, plan, p.bias);
  }
  plan.a = make_layout(f, p.type, p.a.transposed ? p.M : p.K, p.a.transposed ? p.K : p.M, p.a, p.batch);
  plan.b = make_layout(f, p.type, p.b.transposed ? p.K : p.N, p.b.transposed ? p.N : p.K, p.b, p.batch);
  plan.c = make_layout(f, p.c_type, p.N, p.M, p.c, p.batch);

  lt::Preference* preference = nullptr;
  check_lt(f.preference_create(&preference), "preference");
  const auto prefer = [&](PreferenceField field, auto value) {
    check_lt(f.preference_set(preference, field, &value, sizeof value), "preference");
  };
  prefer(PreferenceField::workspace_bytes, kWorkspace);
  prefer(PreferenceField::reductions, lt::kReduceInComputeType);
  prefer(PreferenceField::align_a, static_cast<uint32_t>(key.b_alignment));
  prefer(PreferenceField::align_b, static_cast<uint32_t>(key.a_alignment));
  prefer(PreferenceField::align_c, static_cast<uint32_t>(key.c_alignment));
  prefer(PreferenceField::align_d, static_cast<uint32_t>(key.c_alignment));
  int found = 0;
  const lt::Status status = f.choose(context, plan.description, plan.b, plan.a, plan.c, plan.c, preference, 1, &plan.choice, &found);
  check_lt(f.preference_destroy(preference), "preference");
  plan.usable = status == lt::kSuccess && found > 0 && plan.choice.status == lt::kSuccess && plan.choice.workspace_bytes <= kWorkspace;
  return plan;
}

// Of one device.
struct LtDevice {
  lt::Context* context = nullptr;
  void* workspace = nullptr;
};

// Whether the strides are ones that the library takes: rows of a matrix must not overlap.
bool takes(const LtProduct& p) {
  const auto fits = [](const LtMatrix& x, int64_t rows, int64_t columns) { return x.stride >= (x.transposed ? rows : columns); };
  return fits(p.a, p.M, p.K) && fits(p.b, p.K, p.N) && fits(p.c, p.M, p.N) && p.batch <= INT32_MAX && (!p.bias || !p.add);
}

}  // namespace

std::string lt_library() { return library().file; }

bool lt_multiply(const LtProduct& p) {
  if (!library().usable || !takes(p)) return false;
  const lt::Functions& f = library().functions;
  static std::mutex mutex;
  static auto* const devices = new std::map<int, LtDevice>;
  static auto* const plans = new std::map<Key, Plan>;
  int device = 0;
  check_cuda(cudaGetDevice(&device), "device");
  const Key key{.M = p.M,
                .N = p.N,
                .K = p.K,
                .batch = p.batch,
                .a_stride = p.a.stride,
                .b_stride = p.b.stride,
                .c_stride = p.c.stride,
                .a_step = p.a.step,
                .b_step = p.b.step,
                .c_step = p.c.step,
                .device = device,
                .a_alignment = alignment_of(p.a.data),
                .b_alignment = alignment_of(p.b.data),
                .c_alignment = alignment_of(p.c.data),
                .bias_alignment = alignment_of(p.bias),
                .type = p.type,
                .c_type = p.c_type,
                .bias_type = p.bias_type,
                .a_transposed = p.a.transposed,
                .b_transposed = p.b.transposed,
                .bias = p.bias != nullptr};
  const std::lock_guard lock(mutex);  // descriptions are changed by a call, when it sets the bias
  LtDevice& own = (*devices)[device];
  if (!own.context) {
    check_lt(f.create(&own.context), "start");
    check_cuda(cudaMalloc(&own.workspace, kWorkspace), "memory of cuBLASLt");
  }
  auto at = plans->find(key);
  if (at == plans->end()) {
    if (plans->size() >= kMostPlans) {
      for (auto& [old, plan] : *plans) {
        check_lt(f.description_destroy(plan.description), "description");
        for (lt::Layout* const layout : {plan.a, plan.b, plan.c}) check_lt(f.layout_destroy(layout), "layout");
      }
      plans->clear();
    }
    at = plans->emplace(key, make_plan(f, own.context, p, key)).first;
  }
  Plan& plan = at->second;
  if (!plan.usable) return false;
  if (p.bias) set_bias(f, plan, p.bias);
  const float one = 1, beta = p.add ? 1 : 0;
  const lt::Status status = f.multiply(own.context, plan.description, &one, p.b.data, plan.b, p.a.data, plan.a, &beta, p.c.data, plan.c,
                                       p.c.data, plan.c, &plan.choice.algorithm, own.workspace, kWorkspace, stream());
  if (status == lt::kNotSupported) return plan.usable = false;
  check_lt(status, "product");
  return true;
}

}  // namespace heed::cuda
