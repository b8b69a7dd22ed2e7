// Parameter initializers (zeros, normal, Xavier ...), and the sets of them that papers use.
#pragma once

#include <functional>
#include <vector>

#include "heed/core/api.h"
#include "heed/core/random.h"
#include "heed/core/tensor.h"

namespace HEED_API heed {

// Makes the first value of a parameter.
using Initializer = std::function<Tensor(const Shape& shape, Rng& rng)>;

// The initializers of a model, by kind of parameter. Biases start at 0, norm weights at 1.
struct Initializers {
  Initializer weight;     // of linear layers
  Initializer residual;   // of linear layers whose output is added to the residual stream
  Initializer embedding;  // of tokens
  Initializer patch;      // of the projection of patches
  Initializer position;   // of learned positions
};

namespace initializer {

// The same number everywhere.
Initializer constant(float value);
inline Initializer zeros() { return constant(0); }
inline Initializer ones() { return constant(1); }
Initializer uniform(float bound);  // [-bound, bound)
// Normal numbers.
Initializer normal(float deviation, float mean = 0);
Initializer truncated_normal(float deviation);  // redrawn beyond two deviations; the result has a deviation of 0.88 times that

// Fan-in and fan-out of a weight (O, I) are I and O; of a convolution (O, C, KY, KX), C KY KX and O KY KX.
Initializer xavier_uniform();  // variance 2 / (in + out): Glorot and Bengio 2010
Initializer kaiming_normal();  // variance 2 / in, for layers before a ReLU: He et al. 2015
Initializer lecun_normal();    // variance 1 / in: LeCun et al. 1998

// Initializes blocks of rows separately, so that a fused QKV projection has the same distribution as separate projections.
Initializer in_parts(std::vector<int64_t> rows, Initializer each);

// Sets. Numbers missing in a paper are taken from its authors' code.
Initializers original(int64_t D);   // Vaswani et al. 2017: Xavier; embeddings normal 1 / sqrt(D), as they are scaled by sqrt(D)
Initializers bert();                // Devlin et al. 2019, and DeiT (Touvron et al. 2021): truncated normal 0.02 everywhere
Initializers gpt2(int64_t layers);  // Radford et al. 2019: normal 0.02, residual 0.02 / sqrt(2 layers), positions 0.01
Initializers vit();                 // Dosovitskiy et al. 2021: Xavier; patches LeCun normal, positions normal 0.02

}  // namespace initializer
}  // namespace heed
