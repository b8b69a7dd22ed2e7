// heed's declarations of cuBLASLt against NVIDIA's header. Compiled only where that header is found; it has nothing to run.
#include "heed/cuda/cublaslt_api.h"

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

#include <type_traits>

namespace heed::cuda::lt {

static_assert(sizeof(Status) == sizeof(cublasStatus_t) && kSuccess == CUBLAS_STATUS_SUCCESS &&
              kNotSupported == CUBLAS_STATUS_NOT_SUPPORTED);
static_assert(sizeof(cudaDataType) == sizeof(int) && kFloat == CUDA_R_32F && kBf16 == CUDA_R_16BF);
static_assert(sizeof(cublasComputeType_t) == sizeof(int) && kComputeFloat == CUBLAS_COMPUTE_32F);
static_assert(sizeof(cublasOperation_t) == sizeof(int) && kAsStored == CUBLAS_OP_N && kTransposed == CUBLAS_OP_T);

template <class Own, class Real>
constexpr bool same(Own own, Real real) {
  return sizeof(Own) == sizeof(Real) && static_cast<int>(own) == static_cast<int>(real);
}
static_assert(same(DescriptionField::transpose_a, CUBLASLT_MATMUL_DESC_TRANSA) &&
              same(DescriptionField::transpose_b, CUBLASLT_MATMUL_DESC_TRANSB));
static_assert(same(DescriptionField::epilogue, CUBLASLT_MATMUL_DESC_EPILOGUE));
static_assert(same(DescriptionField::bias, CUBLASLT_MATMUL_DESC_BIAS_POINTER));
static_assert(same(DescriptionField::bias_type, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE));
static_assert(same(LayoutField::batch_count, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT));
static_assert(same(LayoutField::batch_step, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET));
static_assert(same(PreferenceField::workspace_bytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES));
static_assert(same(PreferenceField::reductions, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK));
static_assert(same(PreferenceField::align_a, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES));
static_assert(same(PreferenceField::align_b, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES));
static_assert(same(PreferenceField::align_c, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES));
static_assert(same(PreferenceField::align_d, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES));
static_assert(same(kPlain, CUBLASLT_EPILOGUE_DEFAULT) && same(kAddBias, CUBLASLT_EPILOGUE_BIAS));
static_assert(same(kReduceInComputeType, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));

static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t) && alignof(Algorithm) == alignof(cublasLtMatmulAlgo_t));
using RealChoice = cublasLtMatmulHeuristicResult_t;
static_assert(sizeof(Choice) == sizeof(RealChoice) && alignof(Choice) == alignof(RealChoice));
static_assert(offsetof(Choice, algorithm) == offsetof(RealChoice, algo) && offsetof(Choice, status) == offsetof(RealChoice, state));
static_assert(offsetof(Choice, workspace_bytes) == offsetof(RealChoice, workspaceSize));
static_assert(offsetof(Choice, waves) == offsetof(RealChoice, wavesCount));

// Two functions are called the same way if they have as many parameters, each of the same size and the same kind.
template <class A, class B>
constexpr bool passed_alike = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> &&
                              (std::is_integral_v<A> || std::is_enum_v<A>) == (std::is_integral_v<B> || std::is_enum_v<B>);
template <class Own, class Real>
constexpr bool called_alike = false;
template <class A, class... As, class B, class... Bs>
requires(sizeof...(As) == sizeof...(Bs)) constexpr bool called_alike<A (*)(As...), B (*)(Bs...)> = passed_alike<A, B> &&
                                                                                                   (passed_alike<As, Bs> && ...);

static_assert(called_alike<decltype(Functions::create), decltype(&cublasLtCreate)>);
static_assert(called_alike<decltype(Functions::description_create), decltype(&cublasLtMatmulDescCreate)>);
static_assert(called_alike<decltype(Functions::description_set), decltype(&cublasLtMatmulDescSetAttribute)>);
static_assert(called_alike<decltype(Functions::description_destroy), decltype(&cublasLtMatmulDescDestroy)>);
static_assert(called_alike<decltype(Functions::layout_create), decltype(&cublasLtMatrixLayoutCreate)>);
static_assert(called_alike<decltype(Functions::layout_set), decltype(&cublasLtMatrixLayoutSetAttribute)>);
static_assert(called_alike<decltype(Functions::layout_destroy), decltype(&cublasLtMatrixLayoutDestroy)>);
static_assert(called_alike<decltype(Functions::preference_create), decltype(&cublasLtMatmulPreferenceCreate)>);
static_assert(called_alike<decltype(Functions::preference_set), decltype(&cublasLtMatmulPreferenceSetAttribute)>);
static_assert(called_alike<decltype(Functions::preference_destroy), decltype(&cublasLtMatmulPreferenceDestroy)>);
static_assert(called_alike<decltype(Functions::choose), decltype(&cublasLtMatmulAlgoGetHeuristic)>);
static_assert(called_alike<decltype(Functions::multiply), decltype(&cublasLtMatmul)>);

}  // namespace heed::cuda::lt
#endif
