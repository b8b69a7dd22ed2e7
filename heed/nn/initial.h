// How parameters begin: one number at a time (zeros, normal, Xavier ...), and as whole sets that papers use together.
#pragma once

#include <functional>
#include <vector>

#include "heed/core/random.h"
#include "heed/core/tensor.h"

namespace heed {

using Initialiser = std::function<Tensor(const Shape& shape, Rng& rng)>;

// What a model states once; modules take from it what fits them. Biases begin at 0, norms at 1.
struct Initialisation {
  Initialiser weight;     // of linear layers
  Initialiser residual;   // of linear layers whose output is added to the residual stream
  Initialiser embedding;  // of tokens
  Initialiser patch;      // of the projection of patches
  Initialiser position;   // of learned positions
};

namespace initial {

Initialiser constant(float value);
inline Initialiser zeros() { return constant(0); }
inline Initialiser ones() { return constant(1); }
Initialiser uniform(float bound);  // [-bound, bound)
Initialiser normal(float deviation, float mean = 0);
Initialiser truncated_normal(float deviation);  // drawn again beyond two deviations; what is left deviates by 0.88 of it

// The fans of a weight (O, I) are I in and O out; those of a convolution (O, C, KY, KX) count its taps as well.
Initialiser xavier_uniform();   // variance 2 / (in + out): Glorot and Bengio 2010
Initialiser xavier_normal();    // the same variance
Initialiser kaiming_uniform();  // variance 2 / in, for layers before a ReLU: He et al. 2015
Initialiser kaiming_normal();
Initialiser lecun_normal();  // variance 1 / in: LeCun et al. 1998

// Rows of one tensor that are matrices of their own, each drawn by itself: a fused projection starts as separate ones do.
Initialiser in_parts(std::vector<int64_t> rows, Initialiser each);

// The sets. Where a paper leaves a number out, its authors' code has it.
Initialisation original(int64_t D);   // Vaswani et al. 2017: Xavier; embeddings deviate by 1 / sqrt(D), as they are scaled by sqrt(D)
Initialisation bert();                // Devlin et al. 2019, and DeiT (Touvron et al. 2021): truncated normal 0.02 everywhere
Initialisation gpt2(int64_t layers);  // Radford et al. 2019: normal 0.02, residual 0.02 / sqrt(2 layers), positions 0.01
Initialisation vit();                 // Dosovitskiy et al. 2021: Xavier; patches LeCun's, positions normal 0.02

}  // namespace initial
}  // namespace heed
