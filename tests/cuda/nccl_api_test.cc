// heed's declarations of NCCL against NVIDIA's header. Compiled only where that header is found; it has nothing to run.
#include "heed/cuda/nccl_api.h"

#if __has_include(<nccl.h>)
#include <nccl.h>

namespace heed::cuda::nccl {

static_assert(sizeof(Status) == sizeof(ncclResult_t) && kSuccess == ncclSuccess);
static_assert(sizeof(ncclDataType_t) == sizeof(int) && kFloat == ncclFloat32);
static_assert(sizeof(ncclRedOp_t) == sizeof(int) && kSum == ncclSum);
static_assert(sizeof(Id) == sizeof(ncclUniqueId));

}  // namespace heed::cuda::nccl
#endif
