// The part of cuBLASLt's C API that heed uses, as NVIDIA documents it: the library is loaded at run time, so that heed is built without it.
// tests/cuda/cublaslt_api_test.cc compares every value and layout with the real header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heed::cuda::lt {

using Status = int;
inline constexpr Status kSuccess = 0, kNotSupported = 15;

inline constexpr int kFloat = 0, kBf16 = 14;          // cudaDataType
inline constexpr int kComputeFloat = 68;              // cublasComputeType_t: f32 products and sums, no TF32
inline constexpr int kAsStored = 0, kTransposed = 1;  // cublasOperation_t

enum class DescriptionField { transpose_a = 3, transpose_b = 4, epilogue = 7, bias = 8, bias_type = 26 };
enum class LayoutField { batch_count = 5, batch_step = 6 };
enum class PreferenceField { workspace_bytes = 1, reductions = 3, align_a = 5, align_b = 6, align_c = 7, align_d = 8 };
inline constexpr uint32_t kPlain = 1, kAddBias = 4;  // cublasLtEpilogue_t
inline constexpr uint32_t kReduceInComputeType = 2;  // cublasLtReductionScheme_t: parts of a sum wait as f32 and are added in order

struct Context;
struct Description;
struct Layout;
struct Preference;

struct Algorithm {
  uint64_t data[8];
};

struct Choice {
  Algorithm algorithm;
  size_t workspace_bytes;
  Status status;
  float waves;
  int reserved[4];
};

// Matrices are stored column after column. d = alpha op(a) op(b) + beta c.
struct Functions {
  Status (*create)(Context** context);
  Status (*description_create)(Description** description, int compute_type, int scale_type);
  Status (*description_set)(Description* description, DescriptionField field, const void* value, size_t bytes);
  Status (*description_destroy)(Description* description);
  Status (*layout_create)(Layout** layout, int data_type, uint64_t rows, uint64_t columns, int64_t stride);
  Status (*layout_set)(Layout* layout, LayoutField field, const void* value, size_t bytes);
  Status (*layout_destroy)(Layout* layout);
  Status (*preference_create)(Preference** preference);
  Status (*preference_set)(Preference* preference, PreferenceField field, const void* value, size_t bytes);
  Status (*preference_destroy)(Preference* preference);
  Status (*choose)(Context* context, Description* description, Layout* a, Layout* b, Layout* c, Layout* d, Preference* preference,
                   int wanted, Choice* choices, int* found);
  Status (*multiply)(Context* context, Description* description, const void* alpha, const void* a, Layout* a_layout, const void* b,
                     Layout* b_layout, const void* beta, const void* c, Layout* c_layout, void* d, Layout* d_layout,
                     const Algorithm* algorithm, void* workspace, size_t workspace_bytes, void* stream);
};

}  // namespace heed::cuda::lt
