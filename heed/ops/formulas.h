// The formulas of elementwise.h on lanes, for kernels that apply them. Included like lanes.h.
#if defined(HEED_OPS_FORMULAS_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_OPS_FORMULAS_H_
#undef HEED_OPS_FORMULAS_H_
#else
#define HEED_OPS_FORMULAS_H_
#endif

#include "heed/core/lanes.h"
#include "heed/ops/activation.h"
#include "heed/ops/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

#define HEED_FORMULAS
#define HEED_INLINE HWY_INLINE
#define HEED_VISITOR HWY_INLINE
#include "heed/ops/elementwise.h"
// after elementwise.h
#include "heed/ops/activation_formulas.h"
#undef HEED_VISITOR
#undef HEED_INLINE
#undef HEED_FORMULAS

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif
